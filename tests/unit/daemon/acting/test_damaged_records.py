"""Records of the journal that are not whole: refused by name, never filled up with what would allow more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.cluster.drain import Drain
from ballast.core.throttles import LedgerEntry, Setting
from ballast.daemon.acting.decisions import (
    Approval,
    approval_record,
    decisions_in,
    rejection_record,
)
from ballast.daemon.policy import ActionKind
from ballast.errors import Refused
from ballast.executor.journal.drains import drain_record
from ballast.executor.journal.ledger import dump_held, load_ledger, load_topic_ids
from ballast.executor.journal.pause import Pause, pause_record
from ballast.executor.journal.records import names_in_flight
from ballast.ports.journal import Corrupt, JournalRestart, Record, find_restart, restart_record

RATE = Setting("broker", "3", "leader.replication.throttled.rate")
LIST = Setting("topic", "t", "leader.replication.throttled.replicas")
PAUSE, DRAIN = Pause(by="ann", since_ms=7, reason="night"), Drain(broker=3, by="ann", since_ms=7)
MOVES = ActionKind.MOVES
MOVE = Record("move/r/t-0", {"topic": "t", "partition": 0, "stage": "moving"})

Read = Callable[[Sequence[Record]], Any]
WHOLE: dict[str, tuple[Record, Read, Any, frozenset[str]]] = {
    "pause": (pause_record(PAUSE), lambda r: decisions_in(r).pause, PAUSE, frozenset()),
    "drain": (drain_record(3, DRAIN), lambda r: decisions_in(r).drains, (DRAIN,), frozenset()),
    "rejection": (rejection_record(MOVES, "p"), lambda r: decisions_in(r).rejected, {MOVES: "p"}, frozenset()),
    "approval": (
        approval_record(MOVES, Approval(plan="p", by="ann")),
        lambda r: decisions_in(r).approved,
        {MOVES: Approval(plan="p", by="ann")},
        frozenset(),
    ),
    "journal-restart": (restart_record(JournalRestart(7, "ann")), find_restart, JournalRestart(7, "ann"), frozenset()),
    "rate": (
        dump_held(RATE, LedgerEntry(None, frozenset({"5"}))),
        load_ledger,
        {RATE: LedgerEntry(None, frozenset({"5"}))},
        frozenset(),
    ),
    "list": (
        dump_held(LIST, LedgerEntry("1:2", frozenset({"0:1"})), topic_id="x"),
        load_ledger,
        {LIST: LedgerEntry("1:2", frozenset({"0:1"}))},
        frozenset({"topic_id"}),
    ),
    "topic-id": (
        dump_held(LIST, LedgerEntry("1:2", frozenset({"0:1"})), topic_id="x"),
        load_topic_ids,
        {"t": "x"},
        frozenset({"topic_id", "version", "kind", "key", "prior", "ours"}),
    ),
    "move": (MOVE, names_in_flight, {TopicPartition("t", 0)}, frozenset()),
}
"""By what it is: a record, who reads it, what it says, and the keys that this reader does not need."""


@pytest.mark.parametrize("what", WHOLE)
def test_a_whole_record_says_what_was_written(what: str) -> None:
    """So that the refusals below are of what is missing."""
    record, read, says, _ = WHOLE[what]
    assert read([record]) == says


@pytest.mark.parametrize(
    ("what", "key"),
    [(what, key) for what, (record, _, _, spare) in WHOLE.items() for key in sorted(set(record.value or ()) - spare)],
)
def test_a_record_without_one_of_its_keys_is_refused_by_name(what: str, key: str) -> None:
    """A person's rate that is "not there" would be deleted, a pause without a key not heeded, a count begin at 0."""
    record, read, _, _ = WHOLE[what]
    damaged = Record(record.key, {k: v for k, v in (record.value or {}).items() if k != key})
    named = record.key if key == "version" else f"{record.key}: {key}: "
    with pytest.raises(Refused, match=named):
        read([damaged])


def test_a_drain_of_no_broker_is_refused() -> None:
    """Skipped, it would be ended without a person's word."""
    record = drain_record(3, DRAIN)
    with pytest.raises(Corrupt, match="drain/three"):
        decisions_in([Record("drain/three", record.value)])


@pytest.mark.parametrize(
    "record", [pause_record(replace(PAUSE, since_ms=10**15)), drain_record(3, replace(DRAIN, since_ms=10**19))]
)
def test_a_time_after_the_year_9999_is_refused(record: Record) -> None:
    """No calendar has it, so neither page nor API could show it."""
    with pytest.raises(Corrupt, match=f"record {record.key}: since_ms"):
        decisions_in([record])


def test_answers_of_another_form_are_not_shown() -> None:
    """And the process that takes the lock goes on: they decide nothing."""
    answers = [{"request": "r", "detail": "Done.", "ok": True, "at_ms": at} for at in (7, "now")]
    found = decisions_in([Record("daemon/answers", {"answers": answers})])
    assert (found.answers, found.not_shown) == ((), ("the answers to requests",))
    found = decisions_in([Record("daemon/answers", {"answers": answers[:1]})])
    assert ([a.at_ms for a in found.answers], found.not_shown) == ([7], ())

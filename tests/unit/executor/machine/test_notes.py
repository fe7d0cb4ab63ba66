"""Notes: decided upon by their codes, said in one place, and kept by the journal with code, figures and sentence."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.messages import code_and_cause, figures_of

from ballast.core.catalogue import Key, codes_of
from ballast.core.cluster import TopicPartition
from ballast.core.guards import verdict
from ballast.core.plan import Move, Plan
from ballast.core.throttles import RateShortfall
from ballast.executor import machine
from ballast.executor.journal.records import changes, dump_run, load_open_runs
from ballast.executor.machine.notes import MoveNote, Value, code_of, note
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.observe import observe
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Run, new_run, with_moves
from ballast.executor.machine.stages import Cancelling, Failed, Moved, Moving, Planned, Stalled, Submitted, Verified
from ballast.executor.machine.stalls import CAUSES
from ballast.executor.machine.step import Observed, step
from ballast.ports.cluster import BrokerLogs, Outcome, PartitionState, ReplicaLog
from ballast.ports.journal import Record

NAME = TopicPartition("t", 0)
NOW = Now(1_000_000, 1_000.0)
SAMPLES: dict[str, Value] = {
    "answer": Outcome(ok=False, code="POLICY_VIOLATION", message="no"),
    "verdict": verdict("deleted", NAME, partition=NAME),
    "lack": RateShortfall(NAME, 3, "follower", 6e6, 5_000_000, 7_000_000),
    "replicas": (1, 2),
    "wanted": (2, 1),
    "brokers": (1, 2),
    "dirs": {3: "/data/1"},
}
"""Values that are no plain number."""


MOVE = Move("t", 0, (1,), (2,))


def run_in(stage: object, move: Move = MOVE, **common: object) -> Run:
    """A run whose only move is in this stage."""
    run = new_run("r", Plan("test", "c", "f", (move,)), ExecutionPolicy(throttle="none", max_attempts=2), Now(0, 0.0))
    return with_moves(run, {NAME: replace(run.moves[NAME], stage=stage, **common)})  # type: ignore[arg-type]


def seen(replicas: tuple[int, ...], logs: dict[int, BrokerLogs] | None = None, *, exists: bool = True) -> Picture:
    """A look at a cluster in which nothing is being reassigned."""
    partitions = {NAME: PartitionState(1, replicas, replicas)} if exists else {}
    return Picture({}, partitions, frozenset({NAME}), frozenset({1, 2}), logs)


@pytest.mark.parametrize("key", MoveNote.sentences)
def test_every_note_has_a_sentence_that_takes_its_values(key: Key) -> None:
    """Nothing of the template is left, and a figure that is unknown has words."""
    code, cause = code_and_cause(key)
    said = str(MoveNote(code, {name: SAMPLES.get(name, 7) for name in figures_of(MoveNote, key)}, cause))
    assert said
    assert not re.search(r"[{}]|None|<", said)
    assert "left" not in figures_of(MoveNote, key) or "{left:left}" in str(MoveNote.sentences[key])


def test_every_note_is_made_somewhere_and_every_cause_can_be_said() -> None:
    """No sentence is kept that no decision leads to."""
    sources = [p.read_text() for p in Path(machine.__path__[0]).rglob("*.py") if p.name != "notes.py"]
    made = set(re.findall(r'(?:note\(|_replicas_note\(m, )\s*"([a-z-]+)"', "\n".join(sources)))
    assert made == set(codes_of(MoveNote.sentences))
    assert set(CAUSES) <= made


@pytest.mark.parametrize(
    ("adding", "told"), [((3,), "on broker 3 from"), ((3, 4), "on brokers 3, 4 from"), ((), "on its replicas from")]
)
def test_brokers_without_fetches_are_counted(adding: tuple[int, ...], told: str) -> None:
    """One, several, or none that is known."""
    assert told in str(note("fetch-errors", partition="t-0", brokers=adding, leader=1, left=7, records=-1, inbound=0.0))


def test_a_note_without_a_sentence_is_a_bug() -> None:
    """It is found where it is made, not where it is shown."""
    with pytest.raises(ValueError, match="is not a code of MoveNote"):
        note("because")


def test_an_unknown_size_is_said_in_words() -> None:
    """An unknown figure is never a zero."""
    assert "an unknown number of bytes still to be copied" in str(note("disk-full", broker=1, free=0, left=None))


def test_the_journal_keeps_code_figures_and_sentence_of_a_note() -> None:
    """What another process reads says the same; its figures are those of JSON."""
    low = note("throttle-too-low", lack=SAMPLES["lack"], theirs=False)
    held = note("guard", verdict=SAMPLES["verdict"])
    gone = note("overridden", partition=str(NAME), replicas=(1, 2))
    for why in (low, held, gone):
        records = dump_run(run_in(Stalled(), note=why))
        (again,) = load_open_runs([Record(r.key, json.loads(json.dumps(r.value))) for r in records], Now(0, 0.0))
        read = again.moves[NAME].note
        assert read is not None
        assert (code_of(read), str(read), read.parameters) == (why.code, str(why), why.parameters)
        assert dump_run(again) == records
    assert again.moves[NAME].note == gone
    assert held.parameters["verdict"] == {
        "code": "deleted",
        "subject": "t-0",
        "parameters": {"partition": "t-0"},
        "cause": "",
        "isr_within_s": None,
    }


@pytest.mark.parametrize("stage", [Stalled(), Failed("deleted")])
def test_a_record_that_has_the_sentence_alone_is_read(stage: object) -> None:
    """As older versions wrote it: what it says is known, its code is not, and it is written as it was."""
    records = dump_run(run_in(stage, note=note("deleted", partition="t-0")))
    (value,) = (r.value for r in records if r.key.startswith("move/"))
    assert value is not None
    assert (value["code"], value["values"]) == ("deleted", {"partition": "t-0"})
    old = [Record(r.key, {k: v for k, v in (r.value or {}).items() if k not in {"code", "values"}}) for r in records]
    (again,) = load_open_runs(old, Now(0, 0.0))
    m = again.moves[NAME]
    assert (m.detail, code_of(m.note)) == ("t-0 no longer exists.", None)
    assert dump_run(again) == old


def test_the_next_process_goes_on_with_what_the_journal_told() -> None:
    """A refusal that was written before a restart still ends the move as rejected, in the same words."""
    refused = note("answer", answer=Outcome(ok=False, code="UNKNOWN_SERVER_ERROR", message="no"))
    run = run_in(Submitted(), attempts=2, note=refused)
    (again,) = load_open_runs(dump_run(run), Now(0, 0.0))
    assert code_of(again.moves[NAME].note) == "answer"
    late = observe(again, seen((1,)), NOW).moves[NAME]
    assert (late.stage, late.detail) == (Failed("rejected"), "UNKNOWN_SERVER_ERROR: no")
    silent = observe(run_in(Submitted(), attempts=2), seen((1,)), NOW).moves[NAME]
    assert (silent.stage, silent.note and silent.note.code) == (Failed("not-taken"), "never-shown")


@pytest.mark.parametrize(
    ("stage", "kept"),
    [
        (Moving(replicas_after_cancel=(1,), raced=True), {"stage": "moving", "raced": True}),
        (Stalled(raced=True), {"stage": "stalled", "raced": True}),
        (Cancelling(raced=True), {"stage": "cancelling", "raced": True}),
        (Failed("deleted"), {"stage": "failed", "outcome": "deleted"}),
        (Verified(), {"stage": "verified"}),
        (Planned(retry_at_s=7.0), {"stage": "planned"}),
    ],
)
def test_the_journal_keeps_of_a_stage_what_cannot_be_seen_again(stage: object, kept: dict[str, object]) -> None:
    """The rest is transient; an old record that says more than its stage needs is read all the same."""
    records = dump_run(run_in(stage))
    (value,) = [r.value for r in records if r.key.startswith("move/")]
    assert value is not None
    assert {k: v for k, v in value.items() if k in {"stage", "raced", "outcome"}} == kept
    old = [Record(r.key, {**(r.value or {}), "raced": True}) if r.key.startswith("move/") else r for r in records]
    (again,) = load_open_runs(old, Now(0, 0.0))
    assert type(again.moves[NAME].stage) is type(stage)
    assert changes(again, again) == []


def test_a_refused_cancel_does_not_hold_up_a_move_that_has_arrived() -> None:
    """How long a cancel is not asked for again says nothing about the log dirs of a move that went on and arrived."""
    move = Move("t", 0, (1,), (2,), 5, log_dirs=("/data/1",))
    there = {2: BrokerLogs((), {NAME: (ReplicaLog("/data/1", 5, 0),)})}
    run = run_in(Moving(cancel_at_s=NOW.s + 300), move)
    assert step(run, Observed(seen((2,), there)), NOW)[0].moves[NAME].stage == Verified()
    assert observe(run, seen((2,), there), NOW).moves[NAME].stage == Moved()


def test_a_partition_counts_as_deleted_when_it_is_gone_for_a_while_without_a_break() -> None:
    """Metadata that lacks it twice, minutes apart, and had it in between, does not end its move."""
    run = run_in(Submitted(), entered_s=NOW.s)
    for at_s, exists in ((0, False), (1, True), (8, False)):
        run = observe(run, seen((1,), exists=exists), Now(0, NOW.s + at_s))
        assert isinstance(run.moves[NAME].stage, Submitted)
    run = observe(run, seen((1,), exists=False), Now(0, NOW.s + 14))
    assert run.moves[NAME].stage == Failed("deleted")

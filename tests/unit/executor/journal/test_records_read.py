"""What a run writes to the journal, as the next process reads it: whole, packed when it has ended, or named as unreadable."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from ballast.adapters.clock import SystemClock
from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.daemon.acting.journal_view import ParsedJournal, journal_view_of
from ballast.errors import Refused
from ballast.executor.journal.history import expire, load_summaries, summarise
from ballast.executor.journal.records import STRIPPED, changes, dump_run, load_open_runs, load_runs, read_runs
from ballast.executor.machine.notes import journaled_note
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Phase, new_run, with_moves
from ballast.executor.machine.stages import Submitted, Verified
from ballast.executor.machine.transitions import move_to
from ballast.ports.journal import Journal, OtherVersion, Record
from ballast.wiring.runs import find_run

NOW = Now(1000, 1.0)


def test_records_round_trip() -> None:
    """What a run writes is what the next process reads, in the plan's order."""
    run = new_run(
        "r",
        Plan("balance", "c", "f", tuple(Move("t", i, (1, 2), (3, 2), i) for i in (5, 2, 9))),
        ExecutionPolicy(throttle=5, throttle_per_broker={3: 7}),
        NOW,
    )
    read = load_runs(reversed(dump_run(run)), NOW)["r"]
    assert read == run
    assert list(read.moves) == list(run.moves)


def test_changes_are_only_what_changed_and_the_header_goes_last() -> None:
    """A stage that changed is one record; a run that ends writes its header after its moves."""
    run = new_run(
        "r", Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)), Move("t", 1, (1,), (2,)))), ExecutionPolicy(), NOW
    )
    name = TopicPartition("t", 1)
    moved = with_moves(run, {name: move_to(run.moves[name], Submitted(), NOW)})
    assert [r.key for r in changes(run, moved)] == ["move/r/t-1"]
    assert changes(moved, with_moves(moved, {name: replace(moved.moves[name], copied_bytes=5)})) == []
    ended = replace(moved, ended_ms=5)
    assert [r.key for r in changes(run, ended)] == ["move/r/t-1", "run/r"]


def test_newer_records_are_refused() -> None:
    """A record of a version that this program does not know is refused, never guessed."""
    run = new_run("r", Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)),)), ExecutionPolicy(), NOW)
    records = [Record(r.key, {**(r.value or {}), "version": 2}) for r in dump_run(run)]
    with pytest.raises(OtherVersion) as refused:
        load_runs(records, NOW)
    assert refused.value.values["version"] == 2


def test_half_read_run_is_not_there_yet() -> None:
    """A reader that sees the header before the moves does not take the run for an empty one."""
    run = new_run("r", Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)),)), ExecutionPolicy(), NOW)
    assert load_runs(dump_run(run)[:1], NOW) == {}


def test_old_runs_expire_whole_and_open_ones_never() -> None:
    """Beyond the newest few, runs that have ended leave the journal with all their records."""
    plan = Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)),))
    runs = {str(i): new_run(str(i), plan, ExecutionPolicy(), Now(i, 0.0)) for i in range(4)}
    runs |= {i: replace(runs[i], phase=Phase.ENDED) for i in ("0", "1", "2")}
    records = [r for run in runs.values() for r in dump_run(run)]
    assert {(r.key, r.value) for r in expire(records, 2)} == {("run/0", None), ("ended/0", None)}


def test_a_run_that_ends_is_packed_into_two_records() -> None:
    """Its moves' own records are deleted in the append that ends it; it is listed in numbers and read whole as before."""
    name = TopicPartition("t", 1)
    plan = Plan(
        "balance", "c", "f", (Move("t", 0, (1,), (2,), 7), Move("t", 1, (1,), (2,), 5)), (TopicPartition("t", 0),)
    )
    run = new_run("r", plan, ExecutionPolicy(), NOW)
    done = with_moves(run, {name: replace(run.moves[name], stage=Verified(), note=journaled_note("x"))})
    ended = replace(done, phase=Phase.ENDED, ended_ms=5)
    view = {r.key: r.value for r in dump_run(run)} | {r.key: r.value for r in changes(run, ended)}
    left = [Record(key, value) for key, value in view.items() if value is not None]
    assert [r.key for r in left] == ["run/r", "ended/r"]
    assert changes(ended, ended) == []
    assert [r.key for r in changes(ended, replace(ended, stopped_by="Ada"))] == ["ended/r", "run/r"]
    assert load_runs(left, NOW) == {"r": ended}
    assert load_open_runs(left, NOW) == []
    (found,) = load_summaries(left, NOW).runs
    assert found == summarise(ended)
    assert (found.moves, found.elections) == ({"planned": 1, "verified": 1}, {"waiting": 1})
    assert (found.bytes_total, found.bytes_done, found.verified) == (12, 5, 1)


@pytest.mark.parametrize("packed", ["", "?", "bm8=", "eJyLrgUAAXUA+Q==", "eJyLNqkFAAH4APk=", 3])
def test_an_ended_run_that_cannot_be_unpacked_is_skipped(packed: object) -> None:
    """Another tool wrote into its record: nothing of it can be shown, that is told, and what is beside it is read."""
    plan = Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)),))
    one, two = (replace(new_run(i, plan, ExecutionPolicy(), NOW), phase=Phase.ENDED) for i in "12")
    spoilt = Record("ended/1", {"version": 1, "packed": packed})
    read, skipped = read_runs([spoilt, *dump_run(one)[1:], *dump_run(two)], NOW)
    assert read == {"2": two}
    assert {i: why.code for i, why in skipped.items()} == {"1": "corrupt"}


@pytest.mark.parametrize("ended", [True, False])
def test_a_run_without_its_moves_is_named(*, ended: bool) -> None:
    """Half a run is nothing to act upon or to show; that it was there is told, in lists as where it is asked for by name."""
    plan = Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)),))
    runs = [new_run(i, plan, ExecutionPolicy(), NOW) for i in "12"]
    half, whole = (replace(r, phase=Phase.ENDED) if ended else r for r in runs)
    records = [*(r for r in dump_run(half) if r.key.startswith("run/")), *dump_run(whole)]
    found = load_summaries(records, NOW)
    assert [r.id for r in found.runs] == ["2"]
    assert found.skipped == read_runs(records, NOW)[1] == {"1": STRIPPED}
    journal_view = journal_view_of(records, SystemClock(), ParsedJournal())
    assert journal_view.skipped == {"1": STRIPPED}
    journal = cast("Journal", SimpleNamespace(read=lambda: records))
    with pytest.raises(Refused, match="1"):
        find_run(journal, "1")
    assert find_run(journal, "2").id == "2"

"""How far a run has come: what is counted as done, what is left, and how fast."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.guards import verdict
from ballast.core.plan import Move
from ballast.executor.machine.notes import note
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.progress import MoveProgress, Speedometer, done_of, total_of
from ballast.executor.machine.run import ElectionRun, ElectionStage, MoveRun, Phase, Run
from ballast.executor.machine.stages import (
    Cancelling,
    Failed,
    Moved,
    Moving,
    Planned,
    Restoring,
    RolledBack,
    Stage,
    Stalled,
    Submitted,
    Throttled,
    Unthrottled,
    Verified,
)


def move(number: int, stage: Stage, copied: int = 0, *, size: int = 100) -> MoveRun:
    """One replica to another broker, of which so much has arrived."""
    return MoveRun(Move("t", number, (1,), (2,), size), stage, copied_bytes=copied)


def run_of(*moves: MoveRun) -> Run:
    """A run of these."""
    return Run("r", "test", "c", ExecutionPolicy(), {m.move.name: m for m in moves}, {})


@pytest.mark.parametrize(
    ("stage", "done", "unsized"),
    [
        (Planned(), 0, 0),
        (Throttled(), 0, 0),
        (Submitted(), 40, 40),
        (Moving(), 40, 40),
        (Stalled(), 40, 40),
        (Cancelling(), 40, 40),
        (Moved(), 100, 40),
        (Unthrottled(), 100, 40),
        (Verified(), 100, 40),
        (Verified("already-there"), 0, 0),
        (Restoring(), 0, 0),
        (RolledBack("rolled-back"), 0, 0),
        (Failed("overridden"), 0, 0),
    ],
)
def test_what_counts_as_done_goes_by_the_stage(stage: Stage, done: int, unsized: int) -> None:
    """All of what has arrived, as much as was read of what is on its way, nothing of what was undone."""
    assert done_of(move(0, stage, 40)) == done
    assert done_of(move(0, stage, 40, size=-1)) == unsized
    assert done_of(move(0, Moving(), 140)) == 100


def test_the_total_is_that_of_the_newest_figures() -> None:
    """None where that of one is not known."""
    assert total_of([]) == 0
    assert total_of([move(0, Moving()), replace(move(1, Moving()), total_bytes=150)]) == 250
    assert total_of(m for m in (move(0, Moving()), move(1, Moving(), size=-1))) is None


def test_a_look_at_a_run_counts_each_of_its_parts() -> None:
    """Moves by where they are, elections that were completed, bytes of all that may still arrive, and the first few refusals."""
    why = note("not-shown")
    flying, stalled = replace(move(0, Moving(), 40), note=why), move(1, Stalled(), 10)
    moves = (flying, stalled, move(2, Planned()), move(3, Throttled()), move(4, Moved()), move(5, Unthrottled()))
    ended = (move(6, Verified()), move(7, Failed("rejected")), move(8, RolledBack("not-started")))
    held = [ElectionRun(ElectionStage.COMPLETED), ElectionRun(), ElectionRun(ElectionStage.FAILED)]
    refusals = tuple(verdict("space-reserved", b, broker=b, partition=TopicPartition("t", b)) for b in range(7))
    run = replace(
        run_of(*moves, *ended),
        phase=Phase.CANCELLING,
        elections={TopicPartition("t", n): e for n, e in enumerate(held)},
        verdicts=refusals,
    )
    seen = Speedometer().read(run, 5.0)
    assert (seen.run_id, seen.phase) == ("r", "cancelling")
    assert (seen.moves, seen.verified, seen.ended_otherwise, seen.waiting) == (9, 1, 2, 2)
    assert (seen.elections, seen.elections_completed) == (3, 1)
    assert seen.in_flight == (
        MoveProgress(flying.move.name, flying.stage, 40, 100, str(why)),
        MoveProgress(stalled.move.name, stalled.stage, 10, 100, ""),
    )
    assert (seen.bytes_total, seen.bytes_done) == (700, 350)
    assert (seen.bytes_per_s, seen.left_s) == (None, None)
    assert seen.refusals == tuple(str(v) for v in refusals[:5])


def rates(*readings: tuple[float, int]) -> list[float | None]:
    """What is told as the rate at each of these moments, with so much copied."""
    meter = Speedometer()
    return [meter.read(run_of(move(0, Moving(), copied, size=100_000)), at).bytes_per_s for at, copied in readings]


def test_the_rate_is_the_average_of_the_last_half_minute() -> None:
    """By the readings of that time; a copy that was truncated has no negative one."""
    assert rates((100.0, 50), (110.0, 150)) == [None, 10.0]
    assert rates((0.0, 0), (10.0, 100), (20.0, 300), (30.0, 600), (40.0, 1_000)) == [None, 10.0, 15.0, 20.0, 30.0]
    assert rates((0.0, 500), (10.0, 100)) == [None, 0.0]
    assert rates((0.0, 0), (20.0, 100), (40.0, 400)) == [None, 5.0, 15.0]


def test_two_readings_far_apart_tell_a_rate() -> None:
    """The last one before the half minute is kept where there would be one alone without it."""
    assert rates((0.0, 0), (100.0, 50)) == [None, 0.5]


def test_a_run_that_copies_nothing_for_long_has_no_rate_left() -> None:
    """Looks between readings change nothing, and the window goes on without them."""
    assert rates((0.0, 0), (10.0, 100), (12.0, 100)) == [None, 10.0, 100 / 12]
    still = [(10.0 + 11 * n, 100) for n in range(6)]
    assert rates((0.0, 0), *still)[-1] == 0.0


@pytest.mark.parametrize(
    ("copied", "at_s", "size", "left"),
    [
        pytest.param(50, 5.0, 100, 5.0, id="at-that-rate"),
        pytest.param(75, 5.0, 76, 1 / 15, id="a-byte-left"),
        pytest.param(100, 5.0, 100, 0.0, id="nothing-left"),
        pytest.param(0, 5.0, 100, None, id="nothing-arrives"),
        pytest.param(50, 5.0, -1, None, id="size-not-known"),
    ],
)
def test_the_time_left_is_told_where_it_is_known(copied: int, at_s: float, size: int, left: float | None) -> None:
    """What is left at the rate of late."""
    meter = Speedometer()
    meter.read(run_of(move(0, Moving(), 0, size=size)), 0.0)
    seen = meter.read(run_of(move(0, Moving(), copied, size=size)), at_s)
    assert seen.left_s == left


def test_a_run_that_has_copied_everything_has_no_time_left_at_the_first_look() -> None:
    """Though there is no rate yet."""
    seen = Speedometer().read(run_of(move(0, Verified())), 5.0)
    assert (seen.bytes_per_s, seen.left_s) == (None, 0.0)


def test_few_readings_are_kept() -> None:
    """Of those that tell nothing new one in ten seconds, of those older than half a minute one."""
    meter = Speedometer()
    for at, copied in ((100.0, 0), (101.0, 0), (110.0, 0), (110.5, 0), (111.0, 5), (112.0, 9)):
        meter.read(run_of(move(0, Moving(), copied)), at)
    assert list(meter.readings) == [(100.0, 0), (110.5, 0), (111.0, 5), (112.0, 9)]
    meter.read(run_of(move(0, Moving(), 20)), 140.5)
    assert list(meter.readings) == [(110.5, 0), (111.0, 5), (112.0, 9), (140.5, 20)]

"""What a move knows goes on with it from stage to stage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.plan import Move
from ballast.executor.machine.notes import note
from ballast.executor.machine.run import ElectionRun, ElectionStage, MoveRun, Now
from ballast.executor.machine.stages import Failed, Moved, Moving, Planned, Relocating, Stage, Stalled, Submitted
from ballast.executor.machine.transitions import elect_to, move_to

MOVE = Move("t", 0, (1, 2), (3, 2), 100)
NOW = Now(50_000, 50.0)
SAID = note("not-shown")
MOVING = Moving(10.0, 20.0, 30, (2, 1), raced=True, cancel_at_s=40.0, unlisted_since_s=50.0)
STALLED = Stalled(10.0, 20.0, 30, (2, 1), raced=True, cancel_at_s=40.0, unlisted_since_s=50.0, cause="slow")


def test_a_move_that_stands_still_and_goes_on_is_the_same_reassignment() -> None:
    """Its clock, its way back, that it raced and when it may be cancelled next are kept; what has grown begins anew."""
    assert MOVING.stall("slow") == STALLED
    assert STALLED.recover(60.0) == replace(MOVING, grown_at_s=60.0)


@pytest.mark.parametrize(
    ("before", "after", "clock"),
    [
        pytest.param(Submitted(), Moving(replicas_after_cancel=(1, 2)), (50.0, 50.0, 70), id="begins"),
        pytest.param(Moved(), Relocating(), (50.0, 50.0, 70), id="begins-between-log-dirs"),
        pytest.param(MOVING, STALLED, (10.0, 20.0, 30), id="stands-still"),
        pytest.param(STALLED, MOVING, (10.0, 20.0, 30), id="goes-on"),
    ],
)
def test_the_clock_of_a_copy_starts_where_the_copy_does(
    before: Stage, after: Moving | Stalled | Relocating, clock: tuple[float, float, int]
) -> None:
    """And not where the same copy is only called otherwise."""
    m = MoveRun(MOVE, before, note=SAID, entered_s=5.0, down_since_s=4.0, copied_bytes=30)
    found = move_to(m, after, NOW)
    begun = replace(after, grown_at_s=clock[0], mark_s=clock[1], mark_left_bytes=clock[2])
    assert found == MoveRun(MOVE, begun, since_ms=50_000, entered_s=50.0, copied_bytes=30)


def test_the_reason_is_that_of_the_stage() -> None:
    """One of the stage before says nothing of this one."""
    m = MoveRun(MOVE, Submitted(), note=SAID)
    assert move_to(m, Planned(), NOW).note is None
    assert move_to(replace(m, note=None), Planned(), NOW, SAID).note == SAID


def test_an_outcome_that_is_not_in_the_set_is_a_bug() -> None:
    """Users and machines read it; plain success has none."""
    m = MoveRun(MOVE, Submitted())
    with pytest.raises(ValueError, match="gone-fishing is not an outcome"):
        move_to(m, Failed("gone-fishing"), NOW)
    assert move_to(m, Failed(""), NOW).outcome == ""


def test_an_election_counts_how_often_it_was_asked_for() -> None:
    """Its answer is no attempt, and leaves it due at once unless it says when."""
    waits = ElectionRun(ElectionStage.WAITING, 1, SAID)
    asked = elect_to(waits, ElectionStage.REQUESTED, retry_at_s=9.0)
    assert asked == ElectionRun(ElectionStage.REQUESTED, 2, None, 9.0)
    assert elect_to(asked, ElectionStage.WAITING, SAID) == ElectionRun(ElectionStage.WAITING, 2, SAID, 0.0)

"""What a process that takes a run up makes of attempts whose end no process saw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan, Purpose
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.observe import observe
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import (
    ElectionRun,
    ElectionStage,
    MoveRun,
    Now,
    Phase,
    Run,
    new_run,
    resume,
    with_moves,
)
from ballast.executor.machine.stages import (
    Moving,
    Planned,
    Relocating,
    RolledBack,
    Stage,
    Stalled,
    Submitted,
    Throttled,
    Verified,
)
from ballast.executor.machine.transitions import elect_to

NAME = TopicPartition("t", 0)
NOTHING = Picture(reassignments={}, partitions={}, names=frozenset(), alive=frozenset({1, 2}))


def run_with(stage: Stage, attempts: int) -> Run:
    """A run of one move and one election that has been asked for as often."""
    plan = Plan("test", "c", "f", (Move("t", 0, (1,), (2,)),), elections=(NAME,))
    run = new_run("r", plan, ExecutionPolicy(max_attempts=2), Now(0, 0.0))
    run = with_moves(run, {NAME: replace(run.moves[NAME], stage=stage, attempts=attempts)})
    return replace(run, elections={NAME: ElectionRun(ElectionStage.REQUESTED, attempts)})


@pytest.mark.parametrize(
    ("stage", "left"),
    [(Submitted(), 1), (Relocating(), 1), (Planned(), 2), (Moving(), 2), (Throttled(), 2)],
)
def test_an_attempt_that_a_dead_process_may_not_have_made_is_not_counted(stage: Stage, left: int) -> None:
    """Where a process dies right after it has journaled its intent, again and again, the cluster has refused nothing."""
    run = resume(run_with(stage, 2), Now(5, 5.0))
    assert run.moves[NAME].attempts == left
    assert run.moves[NAME].entered_s == 5.0
    assert run.elections[NAME].attempts == 1


def test_a_move_that_was_about_to_be_submitted_is_planned_again() -> None:
    """What its guards said is as old as the process that asked them; one that was submitted goes on."""
    assert resume(run_with(Throttled(), 0), Now(5, 5.0)).moves[NAME].stage == Planned()
    assert resume(run_with(Submitted(), 1), Now(5, 5.0)).moves[NAME].stage == Submitted()


def test_an_election_survives_more_deaths_than_it_has_attempts() -> None:
    """It is asked for anew by each process, and does not end as failed because processes died."""
    run = run_with(Verified(), 1)
    for death in range(5):
        run = observe(resume(run, Now(death, death)), NOTHING, Now(death, death))
        assert run.elections[NAME].stage is ElectionStage.WAITING, death
        run = replace(run, elections={NAME: elect_to(run.elections[NAME], ElectionStage.REQUESTED)})


def test_a_paused_run_goes_on_when_it_is_taken_up() -> None:
    """Taking it up is the order to go on."""
    assert resume(replace(run_with(Moving(), 1), phase=Phase.PAUSED), Now(1, 1.0)).phase is Phase.RUNNING


def test_a_run_that_was_being_cancelled_is_cancelled_on() -> None:
    """Taking it up is no order to begin again."""
    for phase in (Phase.CANCELLING, Phase.RUNNING, Phase.ENDED):
        assert resume(replace(run_with(Moving(), 1), phase=phase), Now(1, 1.0)).phase is phase


@pytest.mark.parametrize(
    ("stage", "attempts", "left"), [(Submitted(), 0, 0), (Submitted(), 1, 0), (Relocating(), 1, 0), (Moving(), 1, 1)]
)
def test_a_submission_of_a_process_before_may_still_arrive(stage: Stage, attempts: int, left: int) -> None:
    """Where there has been one; no move has fewer attempts than none."""
    m = resume(run_with(stage, attempts), Now(5, 5.0)).moves[NAME]
    assert (m.unconfirmed, m.attempts) == (attempts > 0, left)


@pytest.mark.parametrize(
    ("stage", "attempts", "left"),
    [
        (ElectionStage.REQUESTED, 1, 0),
        (ElectionStage.REQUESTED, 0, 0),
        (ElectionStage.WAITING, 1, 1),
        (ElectionStage.COMPLETED, 2, 2),
    ],
)
def test_only_an_election_whose_answer_was_not_heard_gets_its_attempt_back(
    stage: ElectionStage, attempts: int, left: int
) -> None:
    """What was answered counts."""
    run = replace(run_with(Verified(), 1), elections={NAME: ElectionRun(stage, attempts)})
    assert resume(run, Now(5, 5.0)).elections == {NAME: ElectionRun(stage, left)}


def test_what_is_left_to_copy_is_what_open_moves_copy() -> None:
    """Rates begin by it: what has ended counts no longer."""
    moves = (Move("t", 0, (1,), (2,), 100), Move("t", 1, (3,), (4,), 50), Move("t", 2, (1,), (4,), 7))
    run = new_run("r", Plan("test", "c", "f", moves), ExecutionPolicy(), Now(0, 0.0))
    assert run.copies == {1: 107, 2: 100, 3: 50, 4: 57}
    ended = {moves[0].name: Verified(), moves[2].name: RolledBack()}
    run = with_moves(run, {n: replace(run.moves[n], stage=stage) for n, stage in ended.items()})
    assert resume(run, Now(5, 5.0)).copies == {3: 50, 4: 50}


def test_every_wait_of_a_copy_begins_with_the_process() -> None:
    """Its clock and its last growth are of another process's clock; what stands in the stage besides is kept."""
    stage = Stalled(90.0, 80.0, 10, (1,), raced=True, cancel_at_s=70.0, cause="slow")
    run = run_with(stage, 1)
    m = replace(run.moves[NAME], move=Move("t", 0, (1,), (2,), 100), copied_bytes=40)
    found = resume(with_moves(run, {NAME: m}), Now(5, 5.0)).moves[NAME]
    assert found.stage == Stalled(5.0, 5.0, 60, (1,), raced=True, cancel_at_s=70.0, cause="slow")


def test_a_new_run_holds_what_its_plan_says() -> None:
    """Its moves wait in the plan's order with their topics' ids, its elections wait, and it says what it undoes."""
    moves = (Move("t", 1, (1,), (2,), 100), Move("u", 0, (1,), (2,), 50))
    plan = Plan(
        "intent",
        "c",
        "f",
        moves,
        elections=(NAME,),
        in_order=True,
        topic_ids={"t": "T"},
        purpose=Purpose("replace", (2, 1)),
    )
    policy = ExecutionPolicy(max_attempts=2)
    run = new_run("r", plan, policy, Now(7, 5.0), rollback_of="q")
    assert run == Run(
        "r",
        "intent",
        "c",
        policy,
        {
            moves[0].name: MoveRun(moves[0], since_ms=7, topic_id="T", entered_s=5.0),
            moves[1].name: MoveRun(moves[1], since_ms=7, entered_s=5.0),
        },
        {NAME: ElectionRun()},
        purpose=Purpose("replace", (2, 1)),
        in_order=True,
        started_ms=7,
        rollback_of="q",
    )
    assert list(run.moves) == [m.name for m in moves]
    assert run.copies == {1: 150, 2: 150}

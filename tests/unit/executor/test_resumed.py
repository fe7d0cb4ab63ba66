"""What a process that takes a run up makes of attempts whose end no process saw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.observe import observe
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import ElectionRun, ElectionStage, Now, Phase, Run, new_run, resumed, with_moves
from ballast.executor.machine.stages import Moving, Planned, Relocating, Stage, Submitted, Throttled, Verified
from ballast.executor.machine.transitions import elect_to

NAME = TopicPartition("t", 0)
NOTHING = Picture(reassignments={}, partitions={}, names=frozenset(), alive=frozenset({1, 2}))


def run_with(stage: Stage, attempts: int) -> Run:
    """A run of one move and one election that has been asked for as often."""
    plan = Plan("test", "c", "f", (Move("t", 0, (1,), (2,)),), elections=(NAME,))
    run = new_run("r", plan, ExecutionPolicy(max_attempts=2), Now(0, 0.0))
    run = with_moves(run, {NAME: replace(run.moves[NAME], stage=stage, attempts=attempts)})
    return replace(run, elections={NAME: ElectionRun(ElectionStage.ASKED, attempts)})


@pytest.mark.parametrize(
    ("stage", "left"),
    [(Submitted(), 1), (Relocating(), 1), (Planned(), 2), (Moving(), 2), (Throttled(), 2)],
)
def test_an_attempt_that_a_dead_process_may_not_have_made_is_not_counted(stage: Stage, left: int) -> None:
    """Where a process dies right after it has journaled its intent, again and again, the cluster has refused nothing."""
    run = resumed(run_with(stage, 2), Now(5, 5.0))
    assert run.moves[NAME].attempts == left
    assert run.moves[NAME].entered_s == 5.0
    assert run.elections[NAME].attempts == 1


def test_an_election_survives_more_deaths_than_it_has_attempts() -> None:
    """It is asked for anew by each process, and does not end as failed because processes died."""
    run = run_with(Verified(), 1)
    for death in range(5):
        run = observe(resumed(run, Now(death, death)), NOTHING, Now(death, death))
        assert run.elections[NAME].stage is ElectionStage.WAITING, death
        run = replace(run, elections={NAME: elect_to(run.elections[NAME], ElectionStage.ASKED)})


def test_a_paused_run_goes_on_when_it_is_taken_up() -> None:
    """Taking it up is the order to go on."""
    assert resumed(replace(run_with(Moving(), 1), phase=Phase.PAUSED), Now(1, 1.0)).phase is Phase.RUNNING

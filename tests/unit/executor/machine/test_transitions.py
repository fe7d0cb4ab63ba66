"""The table of transitions."""

from __future__ import annotations

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import ElectionStage, Now, new_run
from ballast.executor.machine.stages import STAGES, Failed, RolledBack, Unthrottled, Verified
from ballast.executor.machine.transitions import ELECTION_TRANSITIONS, TRANSITIONS, EffectKind, elect_to, move_to

NOW = Now(1000, 1.0)


def test_table_of_transitions_is_whole() -> None:
    """Every stage but the first is reached, final stages are left by nothing, every effect carries something across."""
    assert {to for _, to in TRANSITIONS} == set(STAGES)
    final = {Verified, RolledBack, Failed}
    assert not {(a, b) for a, b in TRANSITIONS if a in final}
    assert {a for a, _ in TRANSITIONS} == set(STAGES) - final
    carried = {e for e in (*TRANSITIONS.values(), *ELECTION_TRANSITIONS.values()) if e is not None}
    assert carried == set(EffectKind)
    for stage in set(STAGES) - final:
        reached, front = {stage}, {stage}
        while front:
            front = {b for a, b in TRANSITIONS if a in front} - reached
            reached |= front
        assert reached & final, f"{stage} has a way out"


def test_transition_outside_the_table_is_a_bug() -> None:
    """Neither a move nor an election can take a step that the table does not have."""
    run = new_run(
        "r", Plan("x", "c", "f", (Move("t", 0, (1,), (2,)),), (TopicPartition("t", 0),)), ExecutionPolicy(), NOW
    )
    m, e = run.moves[TopicPartition("t", 0)], run.elections[TopicPartition("t", 0)]
    with pytest.raises(ValueError, match="no transition"):
        move_to(m, Unthrottled(), NOW)
    with pytest.raises(ValueError, match="no transition"):
        elect_to(e, ElectionStage.COMPLETED)

"""What the driver tells its listeners of a move that goes on standing still."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.executor.scenes import T, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.executor.driver.events import MoveChanged
from ballast.executor.machine.notes import journaled_note
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, new_run, with_moves
from ballast.executor.machine.stages import Stalled

NAME = TopicPartition(T, 0)


@pytest.mark.parametrize(("cause", "news"), [("destination-down", 1), ("destination-unreachable", 0)])
def test_another_cause_of_the_same_stall_is_news(cause: str, news: int) -> None:
    """A broker that froze is found down; the same cause with other figures is told once only."""
    s = scene({0: (1, 2)})
    run = new_run("r", Plan("test", "c", "f", (Move(T, 0, (1, 2), (3, 2)),)), ExecutionPolicy(), Now(0, 0.0))
    before = with_moves(run, {NAME: replace(run.moves[NAME], stage=Stalled(cause="destination-unreachable"))})
    after = with_moves(
        before, {NAME: replace(before.moves[NAME], stage=Stalled(cause=cause), note=journaled_note("another sentence"))}
    )
    s.driver._tell(before, after)
    told = [h for h in s.ears.heard if isinstance(h, MoveChanged)]
    assert len(told) == news
    assert all(h.detail == "another sentence" for h in told)

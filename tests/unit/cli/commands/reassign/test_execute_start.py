"""``ballast reassign --execute`` starts all moves or none, also where it is paused or gives up the lock meanwhile."""

from __future__ import annotations

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.cli.commands.reassign.execute import StartWatch, start_all_or_none
from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.journal import Request
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.runs import Writer

POLICY = ExecutionPolicy(throttle=5 * MB, measure_s=0)
ONE, OTHER = Move(T, 0, (1, 2), (3, 2), 100 * MB), Move(T, 1, (2, 1), (4, 1), 100 * MB)


def started(s: Scene, *moves: Move) -> dict[TopicPartition, str]:
    """What was refused."""
    watch = StartWatch(lambda _: None)
    s.driver.listen(watch)
    own = Writer(OpenCluster(s.cluster, "sim:1"), s.journal, s.driver, s.world.clock)
    return dict(start_all_or_none(own, s.plan(*moves), POLICY, "r", watch))


def test_all_that_can_start_is_started() -> None:
    """And left in progress."""
    s = scene({0: (1, 2), 1: (2, 1)})
    assert started(s, ONE, OTHER) == {}
    assert len(s.cluster.reassignments()) == 2


@pytest.mark.parametrize(("kind", "why"), [("pause", "Paused by Ada"), ("take-over", "Another process takes the lock")])
def test_what_is_held_back_meanwhile_is_not_said_to_have_started(kind: str, why: str) -> None:
    """A pause from the page, or another process that asks for the lock: the stock tool's answer is never half true."""
    s = scene({0: (1, 2), 1: (2, 1)})
    s.journal.request(Request("q", kind, "Ada", s.world.clock.now_ms(), {"wait_s": 600}))
    found = started(s, ONE, OTHER)
    assert set(found) == {ONE.name, OTHER.name}
    assert all(reason.startswith(why) for reason in found.values())
    assert s.cluster.reassignments() == {}

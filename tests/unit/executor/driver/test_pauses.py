"""What ends the rest between two looks: time, or a cluster that tells of ISR changes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.unit.executor.scenes import MB, T, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import MoveChanged, RunEvent
from ballast.executor.driver.pauses import wait
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.stages import Submitted
from ballast.ports.time import Clock
from ballast.sim import SimClock, SimCluster, SimWorld

UNHEALTHY = TopicPartition("unhealthy", 0)


class TellingCluster(SimCluster):
    """Tells of ISR changes, as brokers before Kafka 2.4 do through ZooKeeper."""

    def await_change(self, clock: Clock, seconds: float) -> bool:
        """Wait, and less where an ISR changes."""
        until_s = clock.monotonic_s() + seconds
        before = self._isrs()
        while clock.monotonic_s() < until_s:
            clock.sleep(min(0.5, until_s - clock.monotonic_s()))
            if self._isrs() != before:
                return True
        return False

    def _isrs(self) -> list[tuple[int, ...]]:
        return [self.partitions([p.name])[p.name].isr for p in self.world.partitions()]


@dataclass
class BeginsAt:
    """Notes when the first move is submitted."""

    world: SimWorld
    moment_s: float | None = None

    def on_event(self, event: RunEvent) -> None:
        """Note it."""
        if isinstance(event, MoveChanged) and isinstance(event.after, Submitted) and self.moment_s is None:
            self.moment_s = self.world.clock.monotonic_s()


@pytest.mark.parametrize(("tells", "earliest_s", "latest_s"), [(True, 25.0, 45.0), (False, 60.0, 600.0)])
def test_a_run_that_waits_for_an_isr_looks_when_the_cluster_tells(
    *, tells: bool, earliest_s: float, latest_s: float
) -> None:
    """Refused for a unhealthy neighbour and asked to look once a minute, it begins as soon as it hears that the ISR is whole."""
    s = scene({0: (1, 2)}, brokers=5)
    s.world.add_topic(UNHEALTHY.topic, {0: (1, 4, 5)}, size_bytes=MB)
    s.world.kill(5)
    s.world.clock.sleep(30)
    began_s = s.world.clock.monotonic_s()
    s.world.clock.after(25.0, lambda: s.world.start(5))
    cluster = TellingCluster(s.world) if tells else s.cluster
    heard = BeginsAt(s.world)
    policy = ExecutionPolicy(poll_s=60.0, guard_s=60.0)
    plan = s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB))
    assert Driver(cluster, s.journal, s.world.clock, heard).execute(plan, policy, run_id="r").status == "done"
    assert heard.moment_s is not None
    assert earliest_s <= heard.moment_s - began_s <= latest_s


class Turmoil(SimCluster):
    """Its ISRs change all the time."""

    def await_change(self, clock: Clock, seconds: float) -> bool:
        """At once."""
        assert seconds >= 0
        return clock.monotonic_s() >= 0


@pytest.mark.parametrize(("look_s", "rest_s"), [(0.0, 0.0), (2.0, 6.0), (9.0, 10.0)])
def test_a_cluster_in_turmoil_does_not_cut_the_rest_that_a_dear_look_is_owed(look_s: float, rest_s: float) -> None:
    """Looking takes at most a quarter of the time, however often the cluster tells; and never less than the pause allows."""
    clock = SimClock()
    began_s = clock.monotonic_s()
    assert wait(Turmoil(SimWorld(clock, [])), clock, 10.0, look_s)
    assert clock.monotonic_s() - began_s == pytest.approx(rest_s)

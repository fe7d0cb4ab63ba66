"""Brokers show a change of settings a moment after they have acknowledged it; no throttle may stay behind for that."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.core.cluster import ConfigValue
from ballast.core.plan import Move
from ballast.executor.driver.driver import Driver
from ballast.executor.journal.ledger import load_ledger
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.cluster import ConfigChange, ConfigResource, Outcome
from ballast.sim import SimCluster, SimWorld

RATE = "follower.replication.throttled.rate"
POLICY = ExecutionPolicy(throttle=5 * MB, measure_s=0.0)


class LateConfigs(SimCluster):
    """For a while after each change, readers are told what stood before it."""

    def __init__(self, world: SimWorld, lag_s: float) -> None:
        super().__init__(world)
        self._lag_s = lag_s
        self._shown: dict[ConfigResource, tuple[float, Mapping[str, ConfigValue]]] = {}

    def configs(self, resources: Collection[ConfigResource]) -> Mapping[ConfigResource, Mapping[str, ConfigValue]]:
        """What stands, or what stood a moment ago."""
        standing = super().configs(resources)
        now_s = self.world.clock.monotonic_s()
        late = {r: old for r, (until_s, old) in self._shown.items() if now_s < until_s}
        return {r: late.get(r, values) for r, values in standing.items()}

    def alter_configs(self, changes: Collection[ConfigChange]) -> Mapping[ConfigResource, Outcome]:
        """Change them at once, and show it later."""
        before = super().configs({c.resource for c in changes})
        until_s = self.world.clock.monotonic_s() + self._lag_s
        self._shown |= {r: (until_s, values) for r, values in before.items()}
        return super().alter_configs(changes)


def late_scene(lag_s: float, *, configs: dict[str, str] | None = None) -> Scene:
    """The usual scene on a cluster whose readers lag."""
    s = scene(size_bytes=1 * MB, configs=configs)
    s.cluster = LateConfigs(s.world, lag_s)
    s.driver = Driver(s.cluster, s.journal, s.world.clock, s.ears)
    return s


@pytest.mark.parametrize("lag_s", [1.0, 4.0])
@pytest.mark.parametrize("prior", [None, "1:2,3:4"])
def test_a_move_that_ends_before_its_throttle_shows_leaves_nothing(lag_s: float, prior: str | None) -> None:
    """A reading from before our own change is not taken for "nothing of ours stands here"."""
    s = late_scene(lag_s, configs={"follower.replication.throttled.replicas": prior} if prior else None)
    before = s.throttles()
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 1 * MB)), POLICY, run_id="r")
    assert result.status == "done"
    assert s.throttles() == before
    assert load_ledger(s.journal.read()) == {}


def test_a_person_who_changes_a_rate_right_after_us_is_believed_in_the_end() -> None:
    """A value that differs from ours for longer than a broker can lag was set by another user, and stays."""
    s = late_scene(0.0)
    theirs = ConfigChange(ConfigResource("broker", "3"), RATE, "set", "7654321")
    s.world.clock.after(3.0, lambda: (s.cluster.alter_configs([theirs]), None)[1])
    assert s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 50 * MB)), POLICY, run_id="r").status == "done"
    assert s.throttles() == {f"broker 3 {RATE}": "7654321"}
    assert load_ledger(s.journal.read()) == {}

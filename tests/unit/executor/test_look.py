"""What a run remembers between two readings of the cluster, and what it must not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tests.unit.executor.scenes import MB, Scene, scene

from ballast.core.cluster import ClusterState, ConfigValue, LogDir, TopicPartition
from ballast.core.plan import Move
from ballast.executor.driver.events import Note
from ballast.executor.driver.inbound import Gauge
from ballast.executor.driver.look import FULL_EVERY_S, Looker
from ballast.executor.machine.observation import Needs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.cluster import BrokerLogs
from ballast.ports.time import Clock

NAME = TopicPartition("t", 0)
LAG_TIME = {"replica.lag.time.max.ms": ConfigValue("4000", "STATIC_BROKER_CONFIG")}


class Disks:
    """A cluster whose brokers all have one log dir with this much room; full readings alone tell configs."""

    def __init__(self, s: Scene) -> None:
        self._inner = s.cluster
        self.free = 900 * MB

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def _dirs(self) -> tuple[LogDir, ...]:
        return (LogDir("/d", total_bytes=1000 * MB, usable_bytes=self.free),)

    def snapshot(self, *, log_dirs: bool = True, configs: bool = True) -> ClusterState:
        """Light ones know neither."""
        state = self._inner.snapshot(log_dirs=log_dirs, configs=configs)
        dirs = self._dirs() if log_dirs else ()
        brokers = tuple(replace(b, log_dirs=dirs, log_dirs_known=log_dirs) for b in state.brokers)
        return replace(state, brokers=brokers, broker_configs={1: LAG_TIME} if configs else {})

    def log_dirs(self, brokers: Collection[int]) -> dict[int, BrokerLogs]:
        """As of now."""
        return {b: BrokerLogs(self._dirs(), logs.replicas) for b, logs in self._inner.log_dirs(brokers).items()}


def rests(clock: Clock, seconds: float) -> None:
    """Nothing is looked at."""
    clock.sleep(seconds)


def test_disks_that_filled_up_since_a_broker_was_last_asked_count() -> None:
    """It took part in a move an hour ago and has not been asked since: the newest whole reading says what room it has."""
    s = scene({0: (1, 2)})
    disks, clock = Disks(s), s.world.clock
    looker = Looker(disks, clock, ExecutionPolicy(measure_s=0))  # type: ignore[arg-type]
    looker.look(Needs(names=frozenset({NAME}), logs=frozenset({2})))
    disks.free = 20 * MB
    rests(clock, FULL_EVERY_S * 2)
    assert {b.usable_bytes for b in looker.state().brokers} == {20 * MB}
    rests(clock, ExecutionPolicy().guard_s + 1)
    light = looker.state()
    assert {b.usable_bytes for b in light.brokers} == {20 * MB}
    # What only whole readings tell is not forgotten in between.
    assert light.broker_configs == {1: LAG_TIME}


def test_partitions_whose_inbound_rate_was_not_measured_are_named() -> None:
    """Their leader did not tell its log dirs: nothing is known of what producers write, which is not nothing."""
    s = scene({0: (1, 2), 1: (2, 1)})
    state = s.cluster.snapshot()
    names = [TopicPartition("t", n) for n in (0, 1)]
    gauge = Gauge.begin(s.cluster, s.world.clock, state, names)
    grown = gauge.bytes_per_s(1.0)
    assert gauge.unmeasured(grown, names) == ""
    assert "t-1" in gauge.unmeasured({names[0]: 0.0}, names)


def test_a_run_tells_that_a_leader_was_not_measured() -> None:
    """In its story, before the first copy."""
    s = scene({0: (1, 2)})
    answers = s.cluster.log_dirs

    def silent(brokers: Collection[int]) -> dict[int, BrokerLogs]:
        return {b: logs for b, logs in answers(brokers).items() if b != 1}

    s.cluster.log_dirs = silent  # type: ignore[method-assign]
    s.driver.execute(s.plan(Move("t", 0, (1, 2), (3, 2))), ExecutionPolicy(throttle=50 * MB, measure_s=5), run_id="r")
    notes = [heard.text for heard in s.ears.heard if isinstance(heard, Note)]
    assert [note for note in notes if "t-0" in note and "log dirs" in note]

"""What a run remembers between two readings of the cluster, and what it must not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.core.cluster import ClusterState, ConfigValue, Gap, LogDir, TopicPartition
from ballast.core.guards import judge, rooms
from ballast.core.plan import Move
from ballast.executor.driver.events import Paced
from ballast.executor.driver.look import FULL_EVERY_S, LATE_S, FullReading, Looker
from ballast.executor.driver.pace import with_growth
from ballast.executor.machine.observation import Needs, Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, new_run
from ballast.executor.machine.stages import Planned
from ballast.executor.machine.step import Observed, step
from ballast.ports.cluster import BrokerLogs
from ballast.ports.time import Clock
from ballast.sim import SimBroker, SimClock, SimCluster, SimWorld
from ballast.wiring.runs import foreseen_pace

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


def test_a_replica_that_is_in_its_log_dir_takes_no_more_room_there() -> None:
    """Nearly full as that is, whether a full or a light reading is judged."""
    world = SimWorld(SimClock(), [SimBroker(id=b, dir_bytes=(60 * MB, 1e10)) for b in (1, 2, 3)])
    world.add_topic("t", {0: (1, 2)}, size_bytes=50 * MB)
    looker = Looker(SimCluster(world), world.clock, ExecutionPolicy())
    move = Move("t", 0, (1, 2), (3, 2), 50 * MB, log_dirs=("any", "/data/0"))
    for _ in range(2):
        state = looker.state()
        assert judge([move], state, ours={NAME: move}, room=rooms(state, {}, 0)) == {}
        rests(world.clock, ExecutionPolicy().guard_s + 1)


@pytest.mark.parametrize("moves", [1, 2])
def test_a_run_tells_that_a_leader_was_not_measured(moves: int) -> None:
    """With the throttle, before it is agreed to and before the first copy: what producers write is not known, which is not nothing."""
    s = scene({0: (1, 2), 1: (2, 1)})
    answers = s.cluster.log_dirs

    def silent(brokers: Collection[int]) -> dict[int, BrokerLogs]:
        return {b: logs for b, logs in answers(brokers).items() if b != 1}

    s.cluster.log_dirs = silent  # type: ignore[method-assign]
    plan = s.plan(*(Move("t", n, old, (3, old[1])) for n, old in enumerate([(1, 2), (2, 1)][:moves])))
    policy = ExecutionPolicy(throttle=50 * MB, measure_s=0.1)
    foreseen = foreseen_pace(s.cluster, s.cluster.snapshot(), plan, policy)
    s.driver.execute(plan, policy, run_id="r")
    (told,) = [heard.pace for heard in s.ears.heard if isinstance(heard, Paced)]
    for pace in (foreseen, told):
        assert pace.unmeasured == (TopicPartition("t", 0),)
        assert pace.unmeasured == (TopicPartition("t", 0),)
        assert any("t-0" in line for line in pace.lines())


def test_a_rate_is_checked_as_soon_as_a_reading_tells_what_producers_write() -> None:
    """The leader was silent at first: the move that was to start is refused once its log dirs show that the rate is too low."""
    s = scene({0: (1, 2)}, inbound_bytes_per_s=5 * MB)
    state = s.cluster.snapshot()
    plan, name = s.plan(Move("t", 0, (1, 2), (3, 2), MB)), TopicPartition("t", 0)
    run = with_growth(new_run("r", plan, ExecutionPolicy(throttle=MB), Now(0, 0.0)), state, {})
    assert run.unmeasured == {name}
    blind = Picture(
        reassignments={}, partitions=s.cluster.partitions([name]), names=frozenset({name}), alive=state.alive
    )
    waiting, _ = step(run, Observed(blind), Now(1, 1.0))
    assert waiting.unmeasured == {name}
    seen = replace(blind, state=state, growth={name: 5.0 * MB})
    judged, _ = step(run, Observed(seen), Now(1, 1.0))
    assert [v.code for v in judged.verdicts] == ["throttle-too-low"]
    assert isinstance(judged.moves[name].stage, Planned)
    assert judged.unmeasured == frozenset()


class SlowDisks(Disks):
    """Whose brokers take five seconds to tell of their log dirs, and a tenth of one for the rest."""

    def __init__(self, s: Scene) -> None:
        super().__init__(s)
        self._clock = s.world.clock
        self.read: list[str] = []

    def snapshot(self, *, log_dirs: bool = True, configs: bool = True) -> ClusterState:
        """Takes its time, and is noted."""
        self._clock.sleep(5.0 if log_dirs else 0.1)
        self.read.append("full" if log_dirs else "light")
        return super().snapshot(log_dirs=log_dirs, configs=configs)


def test_slow_log_dirs_do_not_age_what_guards_judge_leaders_and_isrs_by() -> None:
    """Metadata alone is read as often as ever: each reading costs what it takes itself."""
    s = scene({0: (1, 2)})
    cluster = SlowDisks(s)
    looker = Looker(cluster, s.world.clock, ExecutionPolicy(guard_s=10.0))  # type: ignore[arg-type]
    for _ in range(3):
        looker.state()
        rests(s.world.clock, 10.0)
    assert cluster.read == ["full", "light", "light"]
    looker.read_isrs_next()
    looker.state()
    assert cluster.read[3:] == ["light"]


class Shared:
    """Another part of the process that reads the same cluster."""

    def __init__(self, cluster: SlowDisks, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self.newest: FullReading | None = None

    def read(self, gaps: tuple[Gap, ...] = ()) -> None:
        """Take a full reading."""
        began_s = self._clock.monotonic_s()
        state = replace(self._cluster.snapshot(), gaps=gaps)
        self.newest = FullReading(state, began_s, self._clock.monotonic_s())
        self._cluster.read.clear()


@pytest.fixture
def beside() -> tuple[SlowDisks, Shared, Looker, SimClock]:
    """A cluster, another reader of it, and a run that has just read it."""
    s = scene({0: (1, 2)})
    cluster, clock = SlowDisks(s), s.world.clock
    shared = Shared(cluster, clock)
    shared.read()
    rests(clock, 1.0)
    looker = Looker(
        cluster,  # type: ignore[arg-type]
        clock,
        ExecutionPolicy(guard_s=10.0, measure_s=0),
        full_reading=lambda: shared.newest,
    )
    looker.state()
    # What ended between the other's reading and the first list of reassignments it would not know.
    assert cluster.read == ["full"]
    cluster.read.clear()
    return cluster, shared, looker, clock


def test_a_run_goes_by_the_full_readings_that_the_process_takes_anyway(
    beside: tuple[SlowDisks, Shared, Looker, SimClock],
) -> None:
    """Brokers are asked for sizes and configs once a minute and not twice; leaders and ISRs are read as often as ever."""
    cluster, shared, looker, clock = beside
    for free in (500 * MB, 400 * MB, 300 * MB):
        cluster.free = free
        rests(clock, FULL_EVERY_S - 5.0)
        shared.read()
        assert {b.usable_bytes for b in looker.state().brokers} == {free}
        assert cluster.read == ["light"]
    # It is late, then it does not come: the run reads for itself.
    rests(clock, FULL_EVERY_S + LATE_S - 1.0)
    looker.state()
    assert cluster.read == ["light", "light"]
    rests(clock, 1.0)
    looker.state()
    assert cluster.read == ["light", "light", "full"]


def test_a_run_does_not_go_by_a_reading_that_leaves_something_out(
    beside: tuple[SlowDisks, Shared, Looker, SimClock],
) -> None:
    """Its own asks again; nor by one that began before its own ended."""
    cluster, shared, looker, clock = beside
    cluster.free = 500 * MB
    assert shared.newest is not None
    shared.newest = shared.newest._replace(began_s=clock.monotonic_s() - 1.0, state=cluster.snapshot())
    assert {b.usable_bytes for b in looker.state().brokers} == {900 * MB}
    shared.read(gaps=(Gap.of_broker(1, "log dirs", "no answer"),))
    cluster.read.clear()
    rests(clock, 1.0)
    assert {b.usable_bytes for b in looker.state().brokers} == {900 * MB}
    rests(clock, FULL_EVERY_S)
    assert {b.usable_bytes for b in looker.state().brokers} == {500 * MB}
    assert cluster.read[-1] == "full"


def test_disks_read_after_the_shared_reading_began_count_before_it(
    beside: tuple[SlowDisks, Shared, Looker, SimClock],
) -> None:
    """A broker that takes part in a move is asked more often."""
    cluster, shared, looker, clock = beside
    rests(clock, 1.0)
    cluster.free = 500 * MB
    shared.read()
    cluster.free = 20 * MB
    assert shared.newest is not None
    late, shared.newest = shared.newest, None
    looker.look(Needs(names=frozenset({NAME}), logs=frozenset({2})))
    shared.newest = late
    assert {b.id: b.usable_bytes for b in looker.state().brokers} == {1: 500 * MB, 2: 20 * MB, 3: 500 * MB, 4: 500 * MB}


def test_two_readings_right_after_each_other_tell_no_growth() -> None:
    """One asks a broker first and one asks it last, seconds later: what is written in 8 s would be told of 4."""
    s = scene({0: (1, 2)}, inbound_bytes_per_s=10 * MB)
    clock, shared = s.world.clock, [FullReading(s.cluster.snapshot(), -10.0, -6.0)]

    class AsksFirst:
        """Takes four seconds, and has this partition's size from the first moment."""

        def __getattr__(self, name: str) -> object:
            return getattr(s.cluster, name)

        def snapshot(self, **what: bool) -> ClusterState:
            """A full reading is the slow one."""
            state = s.cluster.snapshot(**what)
            if what.get("log_dirs", True):
                clock.sleep(4.0)
            return state

    looker = Looker(AsksFirst(), clock, ExecutionPolicy(measure_s=0), full_reading=lambda: shared[0])  # type: ignore[arg-type]
    looker.state()
    for waits_s, told in ((0.0, None), (60.0, 10 * MB)):
        clock.sleep(waits_s)
        began_s = clock.monotonic_s() + 0.01
        clock.sleep(4.0)
        shared[0] = FullReading(s.cluster.snapshot(), began_s, clock.monotonic_s())
        grown = looker.look(Needs(frozenset())).growth
        found = None if grown is None else grown[TopicPartition(T, 0)]
        assert found == (told if told is None else pytest.approx(told, rel=0.1))

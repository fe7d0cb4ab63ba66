"""Moves between the log dirs of a broker that are cancelled on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest
from tests.unit.executor.scenes import MB, Ears, Scene, T, holder, reasons

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.core.throttles import LOG_DIR_RATE
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import MoveChanged, Progressed, RunResult
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.relocation import (
    QUIET_S,
    brokers_seen_with_copy,
    count_log_dir_bytes,
    find_lost_copy,
    source_log_dir,
    stop_copies,
)
from ballast.executor.machine.run import MoveRun, Now
from ballast.executor.machine.stages import Moving, Relocating
from ballast.executor.machine.step import Command
from ballast.ports.cluster import BrokerLogs, ConfigChange, ConfigResource, ReplicaLog
from ballast.sim import SimBroker, SimClock, SimCluster, SimWorld
from ballast.sim.journal import JournalStore, MemoryJournal

T0 = TopicPartition(T, 0)
SLOW = ExecutionPolicy(log_dir_throttle_bytes_per_s=MB // 10)


def two_dirs_scene() -> Scene:
    """Brokers with two log dirs each; all data lies in the first."""
    brokers = [SimBroker(id=i, rack=f"r{i}", nic_bytes_per_s=10 * MB, dir_bytes=(1e10, 1e10)) for i in (1, 2, 3)]
    world = SimWorld(SimClock(), brokers)
    world.add_topic(T, {0: (1, 2)}, size_bytes=50 * MB)
    store = JournalStore()
    journal = MemoryJournal(store, world.clock)
    journal.acquire(holder("first"))
    cluster, ears = SimCluster(world), Ears()
    return Scene(world, cluster, store, journal, ears, Driver(cluster, journal, world.clock, ears))


@pytest.fixture
def two_dirs() -> Scene:
    """The scene for the tests that take it from here."""
    return two_dirs_scene()


def cancelled(s: Scene, move: Move, *, after_s: float) -> RunResult:
    """Execute the move and ask for a cancel on the way."""
    s.world.clock.at(s.world.clock.monotonic_s() + after_s, lambda: s.driver.ask(Command.CANCEL))
    return s.driver.execute(s.plan(move), SLOW, run_id="r")


def dirs_of(s: Scene, broker: int) -> list[tuple[str, bool]]:
    """Where the replica lies and whether it is only a copy on its way."""
    return [(r.log_dir, r.is_future) for r in s.cluster.log_dirs([broker])[broker].replicas[T0]]


def test_a_cancel_stops_the_copy_and_leaves_the_replica_where_it_was(two_dirs: Scene) -> None:
    """No copy goes on in the background, and the rate is gone with it."""
    move = Move(T, 0, (1, 2), (1, 2), 50 * MB, log_dirs=("/data/1", "any"))
    result = cancelled(two_dirs, move, after_s=30)
    assert (result.status, result.rolled_back, result.failed) == ("cancelled", 1, 0)
    assert dirs_of(two_dirs, 1) == [("/data/0", False)]
    assert two_dirs.throttles() == {}
    assert result.seconds < 60


def test_a_cancel_after_the_brokers_changed_says_what_is_missing(two_dirs: Scene) -> None:
    """The replica has moved to another broker and stays there; that its log dir was not reached is told."""
    two_dirs.world.brokers[3].dir_bytes = (1e10, 1e10)
    move = Move(T, 0, (1, 2), (3, 2), 50 * MB, log_dirs=("any", "/data/1"))
    result = cancelled(two_dirs, move, after_s=60)
    assert result.status == "cancelled"
    assert [e.outcome for e in result.endings] == ["log-dir"]
    assert reasons(result) == [("log-dirs-cancelled", {})]
    assert two_dirs.cluster.partitions([T0])[T0].replicas == (3, 2)
    assert dirs_of(two_dirs, 2) == [("/data/0", False)]
    assert two_dirs.throttles() == {}


def test_a_copy_that_another_user_stops_is_not_begun_again(two_dirs: Scene) -> None:
    """A person orders the replica back to where it lies: the move ends and says so, and the rate goes."""
    clock = two_dirs.world.clock
    clock.at(clock.monotonic_s() + 100, lambda: (two_dirs.cluster.alter_log_dirs({(T0, 1): "/data/0"}), None)[1])
    move = Move(T, 0, (1, 2), (1, 2), 50 * MB, log_dirs=("/data/1", "any"))
    result = two_dirs.driver.execute(two_dirs.plan(move), SLOW, run_id="r")
    assert result.status == "incomplete"
    assert [e.outcome for e in result.endings] == ["log-dir"]
    assert reasons(result) == [("copy-gone", {"broker": 1})]
    assert dirs_of(two_dirs, 1) == [("/data/0", False)]
    assert two_dirs.throttles() == {}


def test_a_copy_that_another_user_stops_between_two_processes_is_not_begun_again(two_dirs: Scene) -> None:
    """The journal knows that it was seen: the next process does not take it for one whose order was lost."""
    clock = two_dirs.world.clock
    clock.at(clock.monotonic_s() + 100, two_dirs.driver.leave)
    move = Move(T, 0, (1, 2), (1, 2), 50 * MB, log_dirs=("/data/1", "any"))
    assert two_dirs.driver.execute(two_dirs.plan(move), SLOW, run_id="r").status == "left"
    two_dirs.journal.release()
    assert ("/data/1", True) in dirs_of(two_dirs, 1)
    two_dirs.cluster.alter_log_dirs({(T0, 1): "/data/0"})
    driver = two_dirs.process()
    (run,) = driver.open_runs()
    result = driver.resume(run)
    assert reasons(result) == [("copy-gone", {"broker": 1})]
    assert dirs_of(two_dirs, 1) == [("/data/0", False)]
    assert two_dirs.throttles() == {}


def test_bytes_between_log_dirs_are_counted(two_dirs: Scene) -> None:
    """They grow from nothing to all, and the time left can be told."""
    move = Move(T, 0, (1, 2), (1, 2), 50 * MB, log_dirs=("/data/1", "/data/1"))
    policy = ExecutionPolicy(log_dir_throttle_bytes_per_s=5 * MB)
    assert two_dirs.driver.execute(two_dirs.plan(move), policy, run_id="r").status == "done"
    seen = [h.progress for h in two_dirs.ears.heard if isinstance(h, Progressed)]
    done = [p.bytes_done for p in seen]
    assert done == sorted(done)
    assert 0 < done[len(done) // 2] < 100 * MB
    assert done[-1] == seen[-1].bytes_total == 100 * MB


STAYING = Move(T, 0, (1, 2), (1, 2), 50 * MB, log_dirs=("/data/1", "any"))
PATIENT = ExecutionPolicy(stall_after_s=60, stall_min_s=100, stall_factor=2, stall_unthrottled_bytes_per_s=MB // 10)
IMPATIENT = replace(PATIENT, cancel_stalled_after_s=40)


def crawl(s: Scene, bytes_per_s: int) -> None:
    """A rate that another user has set makes copies between the log dirs of broker 1 crawl."""
    change = ConfigChange(ConfigResource("broker", "1"), LOG_DIR_RATE, "set", str(bytes_per_s))
    assert all(o.ok for o in s.cluster.alter_configs([change]).values())


def said_of_it(s: Scene) -> list[str]:
    """What was said while it was on its way."""
    heard = [h for h in s.ears.heard if isinstance(h, MoveChanged)]
    return [h.detail for h in heard if isinstance(h.before, Relocating) and isinstance(h.after, Relocating)]


def test_a_crawling_copy_is_given_up_with_the_arithmetic() -> None:
    """Bytes arrive all the time, far too few: it is named, stopped, and ends as timed-out with the replica where it was."""
    s = two_dirs_scene()
    crawl(s, 5_000)
    result = s.driver.execute(s.plan(STAYING), IMPATIENT, run_id="r")
    assert (result.status, result.rolled_back) == ("incomplete", 1)
    (ending,) = result.endings
    assert ending.outcome == "timed-out"
    ((code, figures),) = reasons(result)
    due = {"leg": 5_000_000, "allowed_s": 100, "throttled": False, "share": 100_000}
    assert (code, {name: figures[name] for name in due}) == ("slow", due)
    assert said_of_it(s) == [ending.detail]
    assert dirs_of(s, 1) == [("/data/0", False)]
    assert s.world.brokers[1].configs == {LOG_DIR_RATE: "5000"}


def test_a_copy_has_time_for_its_bytes_at_the_rate_that_was_set() -> None:
    """A throttle between log dirs is what its time is estimated from: a slow rate of our own gives nothing up."""
    s = two_dirs_scene()
    policy = replace(IMPATIENT, log_dir_throttle_bytes_per_s=20_000)
    assert s.driver.execute(s.plan(STAYING), policy, run_id="r").status == "done"
    assert said_of_it(s) == []


def test_a_copy_that_stands_still_is_kept_and_goes_on_when_it_can() -> None:
    """Without a patience it is named once, waited for, and verified in the end."""
    s = two_dirs_scene()
    broker = s.world.brokers[1]
    fast, broker.nic_bytes_per_s = broker.nic_bytes_per_s, 0

    def recover() -> None:
        broker.nic_bytes_per_s = fast

    s.world.clock.after(500, recover)
    result = s.driver.execute(s.plan(STAYING), PATIENT, run_id="r")
    assert (result.status, result.verified) == ("done", 1)
    (said,) = said_of_it(s)
    assert "Nothing arrives in /data/1 of broker 1, although it answers" in said
    assert result.seconds > 500


def test_a_copy_on_a_down_broker_ends_with_what_may_still_happen_there() -> None:
    """The broker cannot be told to stop: the outcome says so, and the other move of the run is not held up."""
    s = two_dirs_scene()
    crawl(s, 100_000)
    s.world.clock.after(30, lambda: s.world.kill(1))
    result = s.driver.execute(s.plan(STAYING), IMPATIENT, run_id="r")
    assert (result.status, result.failed) == ("incomplete", 1)
    (ending,) = result.endings
    assert ending.outcome == "log-dir"
    assert reasons(result) == [("copy-not-stopped", {"broker": 1, "path": "/data/1"})]
    assert "Broker 1, which is to copy it to /data/1, is not alive" in said_of_it(s)[0]
    assert result.seconds < 300


# By single looks.

BOTH: Final = Move(T, 0, (1, 2), (1, 2), 100, log_dirs=("/data/1", "/data/1"))
SECOND: Final = Move(T, 0, (1, 2), (1, 2), 100, log_dirs=("any", "/data/1"))
HERE: Final = ReplicaLog("/data/0", 100, 0)
COPY: Final = ReplicaLog("/data/1", 40, 0, is_future=True)
THERE: Final = ReplicaLog("/data/1", 100, 0)
NOW: Final = Now(1_000_000, 1_000.0)


def told(**of: tuple[ReplicaLog, ...]) -> dict[int, BrokerLogs]:
    """What brokers ``b1``, ``b2``, … say of the partition; nothing where they have no replica of it."""
    return {int(b[1:]): BrokerLogs((), {T0: places} if places else {}) for b, places in of.items()}


def look(logs: Mapping[int, BrokerLogs] | None) -> Picture:
    """A look that read these log dirs."""
    return Picture({}, {}, frozenset({T0}), frozenset({1, 2}), logs=logs)


@pytest.mark.parametrize(
    ("places", "home"),
    [
        pytest.param((HERE, COPY), "/data/0", id="on-its-way"),
        pytest.param((HERE,), None, id="no-copy"),
        pytest.param((THERE,), None, id="arrived"),
        pytest.param((HERE, replace(COPY, log_dir="/data/2")), None, id="a-copy-to-another-log-dir"),
        pytest.param((COPY,), None, id="its-own-log-dir-is-not-told"),
        pytest.param((), None, id="no-replica"),
    ],
)
def test_a_replica_is_ordered_home_only_from_the_copy_that_was_asked_for(
    places: tuple[ReplicaLog, ...], home: str | None
) -> None:
    """One that has arrived, that goes elsewhere or that is not there gets no order."""
    assert source_log_dir(told(b1=places)[1], T0, "/data/1") == home


def test_copies_are_stopped_by_one_order_that_has_time_to_show() -> None:
    """Every broker that copies gets its order; until it has had its time nothing is ordered again, and what was given up stays so."""
    stage = Relocating(given_up=True)
    m = MoveRun(BOTH, Relocating(), entered_s=900.0)
    places: dict[tuple[TopicPartition, int], str] = {}
    ordered = stop_copies(m, stage, look(told(b1=(HERE, COPY), b2=(HERE, COPY))), NOW, places)
    assert places == {(T0, 1): "/data/0", (T0, 2): "/data/0"}
    assert ordered.stage == Relocating(retry_at_s=NOW.s + QUIET_S, given_up=True)
    for retry_at_s, again in ((NOW.s + 1, {}), (NOW.s, {(T0, 1): "/data/0"})):
        places = {}
        waiting = replace(stage, retry_at_s=retry_at_s)
        found = stop_copies(m, waiting, look(told(b1=(HERE, COPY), b2=(HERE,))), NOW, places)
        assert places == again
        assert found.stage == (replace(waiting, retry_at_s=NOW.s + QUIET_S) if again else waiting)


@pytest.mark.parametrize(("entered_s", "over"), [(NOW.s - QUIET_S + 0.5, False), (NOW.s - QUIET_S, True)])
def test_copies_that_do_not_show_are_over_once_an_order_has_had_its_time(entered_s: float, *, over: bool) -> None:
    """One that was journaled and perhaps sent late may begin until then."""
    m = MoveRun(STAYING, Relocating(), entered_s=entered_s)
    places: dict[tuple[TopicPartition, int], str] = {}
    found = stop_copies(m, Relocating(), look(told(b1=(HERE,))), NOW, places)
    assert (type(found.stage) is not Relocating) is over
    assert places == {}


@pytest.mark.parametrize(
    ("move", "logs", "figures"),
    [
        pytest.param(BOTH, told(b1=(HERE, COPY), b2=(HERE, COPY)), (80, 200), id="both"),
        pytest.param(BOTH, told(b1=(THERE,), b2=(HERE, COPY)), (140, 200), id="one-is-there"),
        pytest.param(SECOND, told(b2=(HERE, COPY)), (40, 100), id="the-second"),
        pytest.param(SECOND, told(b1=(HERE,)), None, id="not-read"),
        pytest.param(SECOND, None, None, id="none-was-read"),
        pytest.param(SECOND, told(b2=()), (0, 0), id="no-replica"),
        pytest.param(Move(T, 0, (1, 2), (2, 1), 100), told(b1=(HERE,)), (0, 0), id="names-no-log-dir"),
    ],
)
def test_bytes_in_log_dirs_are_counted_on_every_broker_that_is_named(
    move: Move, logs: Mapping[int, BrokerLogs] | None, figures: tuple[int, int] | None
) -> None:
    """A log dir that the broker chooses counts for nothing; a broker that was not read leaves all unknown."""
    assert count_log_dir_bytes(MoveRun(move, Moving()), look(logs)) == figures


@pytest.mark.parametrize(
    ("move", "logs", "stopped"),
    [
        pytest.param(SECOND, told(b2=(HERE,)), 2, id="gone"),
        pytest.param(SECOND, told(b1=(HERE,), b2=(HERE,)), 2, id="gone-beside-one-that-is-not-named"),
        pytest.param(SECOND, told(b2=()), 2, id="gone-with-its-replica"),
        pytest.param(SECOND, told(b2=(HERE, replace(COPY, size_bytes=30))), None, id="smaller-than-it-was"),
        pytest.param(SECOND, told(b2=(THERE,)), None, id="arrived"),
        pytest.param(BOTH, told(b1=(HERE, replace(COPY, size_bytes=95)), b2=(HERE,)), 2, id="one-of-two"),
        pytest.param(BOTH, told(b1=(HERE,), b2=(HERE, COPY)), None, id="the-other-was-never-seen"),
        pytest.param(SECOND, None, None, id="not-read"),
        pytest.param(SECOND, told(b1=(HERE,)), None, id="its-broker-was-not-read"),
        pytest.param(replace(SECOND, old=(3, 2)), told(b2=(HERE,)), 2, id="gone-after-copies-from-other-brokers"),
    ],
)
def test_a_copy_that_was_seen_and_is_gone_is_told_by_its_broker(
    move: Move, logs: Mapping[int, BrokerLogs] | None, stopped: int | None
) -> None:
    """A copy that is there, however small it has become, has not been stopped."""
    stage = Relocating(seen_on=frozenset({2}))
    assert find_lost_copy(MoveRun(move, stage, copied_bytes=50), stage, look(logs)) == stopped


@pytest.mark.parametrize(
    ("logs", "seen"),
    [
        pytest.param(told(b1=(HERE, COPY), b2=(HERE,)), {1, 3}, id="a-copy"),
        pytest.param(told(b1=(THERE,), b2=(HERE, COPY)), {1, 2, 3}, id="arrived-and-a-copy"),
        pytest.param(told(b2=(HERE,)), {3}, id="none"),
        pytest.param(None, {3}, id="not-read"),
    ],
)
def test_copies_that_were_seen_are_remembered_by_broker(logs: Mapping[int, BrokerLogs] | None, seen: set[int]) -> None:
    """What was seen before stays so; another log dir than the one asked for does not count."""
    stage = Relocating(seen_on=frozenset({3}))
    assert brokers_seen_with_copy(MoveRun(BOTH, stage), stage, look(logs)) == seen

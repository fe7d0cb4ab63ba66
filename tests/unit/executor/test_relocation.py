"""Moves between the log dirs of a broker that are cancelled on the way."""

from __future__ import annotations

import pytest
from tests.unit.executor.scenes import MB, Ears, Scene, T, holder

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.executor.driver import Driver
from ballast.executor.events import Progressed, RunResult
from ballast.executor.machine import Wish
from ballast.executor.policy import ExecutionPolicy
from ballast.sim import SimBroker, SimClock, SimCluster, SimWorld
from ballast.sim.journal import JournalStore, MemoryJournal

T0 = TopicPartition(T, 0)
SLOW = ExecutionPolicy(log_dir_throttle_bytes_per_s=MB // 10)


@pytest.fixture
def two_dirs() -> Scene:
    """Brokers with two log dirs each; all data lies in the first."""
    brokers = [SimBroker(id=i, rack=f"r{i}", nic_bytes_per_s=10 * MB, dir_bytes=(1e10, 1e10)) for i in (1, 2, 3)]
    world = SimWorld(SimClock(), brokers)
    world.add_topic(T, {0: (1, 2)}, size_bytes=50 * MB)
    store = JournalStore()
    journal = MemoryJournal(store, world.clock)
    journal.acquire(holder("first"))
    cluster, ears = SimCluster(world), Ears()
    return Scene(world, cluster, store, journal, ears, Driver(cluster, journal, world.clock, ears))


def cancelled(s: Scene, move: Move, *, after_s: float) -> RunResult:
    """Carry out the move and ask for a cancel on the way."""
    s.world.clock.at(s.world.clock.monotonic_s() + after_s, lambda: s.driver.ask(Wish.CANCEL))
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
    assert "before its replicas were in the log dirs" in result.endings[0].detail
    assert two_dirs.cluster.partitions([T0])[T0].replicas == (3, 2)
    assert dirs_of(two_dirs, 2) == [("/data/0", False)]
    assert two_dirs.throttles() == {}


def test_a_copy_that_somebody_stops_is_not_begun_again(two_dirs: Scene) -> None:
    """A person orders the replica back to where it lies: the move ends and says so, and the rate goes."""
    clock = two_dirs.world.clock
    clock.at(clock.monotonic_s() + 100, lambda: (two_dirs.cluster.alter_log_dirs({(T0, 1): "/data/0"}), None)[1])
    move = Move(T, 0, (1, 2), (1, 2), 50 * MB, log_dirs=("/data/1", "any"))
    result = two_dirs.driver.execute(two_dirs.plan(move), SLOW, run_id="r")
    assert result.status == "incomplete"
    assert [e.outcome for e in result.endings] == ["log-dir"]
    assert "broker 1 is gone" in result.endings[0].detail
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

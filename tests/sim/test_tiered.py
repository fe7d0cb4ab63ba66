"""A run over tiered topics on simulated brokers: what crosses the network, and what the run says of it."""

from __future__ import annotations

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.cluster.tiered import LAST_TIERED_OFFSET
from ballast.core.plan import Move, Plan
from ballast.core.planner import Decommission, PlannerPolicy, plan
from ballast.sim import SimBroker, SimClock, SimCluster, SimWorld
from ballast.sim.model import BrokerHealth

MB = 1_000_000
CONFIGS = {"remote.storage.enable": "true", "segment.bytes": str(10 * MB), "local.retention.bytes": str(50 * MB)}
T0 = TopicPartition("t", 0)


def tiered(*, last: bool = False, inbound_bytes_per_s: float = 0.0) -> SimCluster:
    """A gigabyte on brokers 1 and 2, of which fifty megabytes and a part of a segment stay on disk."""
    static = {LAST_TIERED_OFFSET: "true"} if last else {}
    brokers = [SimBroker(id=i, rack=f"r{i}", nic_bytes_per_s=10 * MB, static_configs=static) for i in range(1, 4)]
    world = SimWorld(SimClock(), brokers)
    world.add_topic("t", {0: (1, 2)}, size_bytes=1005 * MB, inbound_bytes_per_s=inbound_bytes_per_s, configs=CONFIGS)
    world.clock.sleep(1)
    return SimCluster(world)


def moved(sim: SimCluster) -> float:
    """Carry a move from broker 2 to 3 through; returns how long it took."""
    assert sim.alter_reassignments({T0: (1, 3)})[T0].ok
    began = sim.world.clock.monotonic_s()
    while sim.reassignments():
        sim.world.clock.sleep(0.5)
        assert sim.world.clock.monotonic_s() - began < 500
    return sim.world.clock.monotonic_s() - began


@pytest.mark.parametrize(("last", "copied"), [(False, 55), (True, 5)])
def test_only_the_local_part_is_copied(last: bool, copied: int) -> None:  # noqa: FBT001
    """Of a gigabyte what the leader has on disk; with KIP-1023 the part of a segment that is not uploaded yet."""
    sim = tiered(last=last)
    assert sim.log_dirs([1])[1].replicas[T0][0].size_bytes == 55 * MB
    moved(sim)
    assert sim.world.received[3] == pytest.approx(copied * MB)
    assert sim.log_dirs([3])[3].replicas[T0][0].size_bytes == copied * MB
    assert sim.world.partition("t", 0).copies[3].end_bytes == 1005 * MB


def test_a_smaller_replica_grows_to_the_size_of_the_others() -> None:
    """So a disk must have room for what its replicas will be."""
    sim = tiered(last=True, inbound_bytes_per_s=MB)
    moved(sim)
    sim.world.clock.sleep(120)
    sizes = {logs.replicas[T0][0].size_bytes for logs in sim.log_dirs([1, 3]).values()}
    assert len(sizes) == 1
    assert min(sizes) >= 50 * MB


def test_a_follower_that_was_away_goes_on_at_the_local_log_start() -> None:
    """What it lacks and its leader has no longer on disk is in remote storage: it is not copied, and nothing is lost."""
    sim = tiered(inbound_bytes_per_s=MB)
    sim.world.kill(2)
    sim.world.clock.sleep(200)
    assert sim.world.brokers[2].health is BrokerHealth.DOWN
    sim.world.start(2)
    sim.world.clock.sleep(60)
    partition = sim.world.partition("t", 0)
    assert set(partition.isr) == {1, 2}
    assert partition.lost_bytes == 0
    assert sim.world.received[2] < 100 * MB
    assert partition.copies[2].start_bytes == partition.copies[1].start_bytes > 1005 * MB


def test_a_plan_for_tiered_topics_tells_what_its_run_then_copies() -> None:
    """To the byte where replicas begin at the local log start, and the most of it where at the last tiered offset."""
    for last in (False, True):
        sim = tiered(last=last)
        made: Plan = plan(sim.snapshot(), Decommission(frozenset({2})), policy=PlannerPolicy(prove=False))
        (move,) = made.moves
        assert isinstance(move, Move)
        moved(sim)
        assert made.summary["tiered"]["at_most_on"] == ([3] if last else [])
        assert made.bytes_moved == 55 * MB
        assert sim.world.received[3] == pytest.approx(5 * MB if last else made.bytes_moved)

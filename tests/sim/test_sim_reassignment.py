"""The simulated controller moves partitions as Kafka's does."""

from __future__ import annotations

import pytest

from ballast.core.cluster import TopicPartition
from ballast.errors import Unavailable
from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.sim import Physics, SimBroker, SimClock, SimCluster, SimWorld
from ballast.sim.traffic import fair_rates

MB = 1e6
T0 = TopicPartition("t", 0)


def cluster(*, brokers: int = 4, physics: Physics | None = None, inbound_bytes_per_s: float = 0) -> SimCluster:
    """Brokers 1..n in racks of their own, and topic ``t`` with partition 0 on brokers 1 and 2."""
    world = SimWorld(
        SimClock(),
        [SimBroker(id=i, rack=f"r{i}", nic_bytes_per_s=10 * MB) for i in range(1, brokers + 1)],
        physics=physics,
    )
    world.add_topic("t", {0: (1, 2)}, size_bytes=100 * MB, inbound_bytes_per_s=inbound_bytes_per_s)
    return SimCluster(world)


def wait(sim: SimCluster, *, limit_s: float = 1000) -> float:
    """Let time pass until nothing is reassigned; returns how long it took."""
    began = sim.world.clock.monotonic_s()
    while sim.reassignments():
        assert sim.world.clock.monotonic_s() - began < limit_s, "the move does not end"
        sim.world.clock.sleep(0.5)
    return sim.world.clock.monotonic_s() - began


def test_union_while_moving_then_target() -> None:
    """{1,2} to {3,4} passes through {3,4,1,2}, adding {3,4}, removing {1,2}, and ends with a leader of the target."""
    sim = cluster()
    assert sim.alter_reassignments({T0: (3, 4)})[T0].ok
    flight = sim.reassignments()[T0]
    assert flight.replicas == (3, 4, 1, 2)
    assert flight.adding == (3, 4)
    assert flight.removing == (1, 2)
    sim.world.clock.sleep(1)
    assert sim.partitions([T0])[T0].replicas == (3, 4, 1, 2)
    # One source with a card of 10 MB/s feeds two copies of 100 MB.
    assert wait(sim) == pytest.approx(20, abs=2)
    assert sim.partitions([T0])[T0].replicas == (3, 4, 1, 2), "metadata lags behind the empty list"
    sim.world.clock.sleep(1)
    end = sim.partitions([T0])[T0]
    assert (end.leader, end.replicas, set(end.isr)) == (3, (3, 4), {3, 4})
    assert set(sim.world.partition("t", 0).copies) == {3, 4}


def test_leader_in_target_stays() -> None:
    """A leader that is part of the target keeps leading, even where it is not the first."""
    sim = cluster()
    sim.alter_reassignments({T0: (3, 1)})
    wait(sim)
    assert sim.world.partition("t", 0).leader == 1
    assert sim.elect_leaders([T0])[T0].ok
    assert sim.world.partition("t", 0).leader == 3


def test_cancel_changes_the_order() -> None:
    """[3,1] to [1,2], cancelled, gives [1,3]: the preferred leader has changed."""
    sim = cluster()
    sim.alter_reassignments({T0: (3, 1)})
    wait(sim)
    sim.alter_reassignments({T0: (1, 2)})
    assert sim.alter_reassignments({T0: None})[T0].ok
    assert sim.world.partition("t", 0).replicas == [1, 3]
    assert sim.alter_reassignments({T0: None})[T0].code == "NO_REASSIGNMENT_IN_PROGRESS"


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ((), "INVALID_REPLICA_ASSIGNMENT"),
        ((1, 1), "INVALID_REPLICA_ASSIGNMENT"),
        ((1, -1), "INVALID_REPLICA_ASSIGNMENT"),
        ((1, 99), "INVALID_REPLICA_ASSIGNMENT"),
        ((1, 2, 3), "INVALID_REPLICATION_FACTOR"),
    ],
)
def test_bad_targets_are_refused(target: tuple[int, ...], code: str) -> None:
    """Empty, duplicate, negative, unknown and count-changing lists each get Kafka's code, and nothing starts."""
    sim = cluster()
    outcome = sim.alter_reassignments({T0: target})[T0]
    assert (outcome.ok, outcome.code) == (False, code)
    assert not sim.reassignments()


def test_partial_success() -> None:
    """One request can succeed for one partition and fail for the next."""
    sim = cluster()
    missing = TopicPartition("nope", 0)
    outcomes = sim.alter_reassignments({T0: (3, 4), missing: (1, 2)})
    assert outcomes[T0].ok
    assert outcomes[missing].code == "UNKNOWN_TOPIC_OR_PARTITION"


def test_down_destination_stays_pending_until_it_returns() -> None:
    """KRaft accepts a down destination; the move ends when the broker is back, not before."""
    sim = cluster()
    sim.world.kill(3)
    sim.world.clock.sleep(10)
    assert sim.alter_reassignments({T0: (3, 2)})[T0].ok
    sim.world.clock.sleep(200)
    assert T0 in sim.reassignments()
    sim.world.start(3)
    wait(sim)


def test_down_destination_is_refused_by_zookeeper_controllers() -> None:
    """The older controller checks that new brokers are alive."""
    sim = cluster(physics=Physics(refuse_down_targets=True))
    sim.world.kill(3)
    sim.world.clock.sleep(10)
    assert sim.alter_reassignments({T0: (3, 2)})[T0].code == "INVALID_REPLICA_ASSIGNMENT"


def test_a_replica_list_change_is_done_at_once() -> None:
    """No byte moves, no reassignment is listed, the leader stays until an election."""
    sim = cluster()
    assert sim.alter_reassignments({T0: (2, 1)})[T0].ok
    assert not sim.reassignments()
    assert sim.world.partition("t", 0).leader == 1
    assert sim.world.partition("t", 0).replicas == [2, 1]


@pytest.mark.parametrize(
    ("leader_list", "follower_list", "rate", "expected_s"),
    [
        ("0:1", "0:3", 2 * MB, 50),
        ("", "0:3", 2 * MB, 50),
        ("0:1", "", 2 * MB, 50),
        ("*", "*", 4 * MB, 25),
        ("0:2", "0:4", 2 * MB, 10),
        ("1:1", "1:3", 2 * MB, 10),
    ],
)
def test_throttles_hold_only_the_listed_replicas(
    leader_list: str, follower_list: str, rate: float, expected_s: float
) -> None:
    """A rate counts where the list names the replica; without its entry in either list the card is the limit."""
    sim = cluster()
    changes = [
        ConfigChange(ConfigResource("broker", str(b)), f"{side}.replication.throttled.rate", "set", str(int(rate)))
        for b in (1, 2, 3)
        for side in ("leader", "follower")
    ]
    for side, pairs in (("leader", leader_list), ("follower", follower_list)):
        key = f"{side}.replication.throttled.replicas"
        changes.append(ConfigChange(ConfigResource("topic", "t"), key, "append", pairs))
    assert all(o.ok for o in sim.alter_configs(changes).values())
    sim.alter_reassignments({T0: (1, 3)})
    assert wait(sim) == pytest.approx(expected_s, rel=0.1)


def test_a_rate_under_the_inbound_never_finishes() -> None:
    """The follower falls behind as fast as it copies."""
    sim = cluster(inbound_bytes_per_s=3 * MB)
    sim.alter_configs(
        [
            ConfigChange(ConfigResource("broker", "3"), "follower.replication.throttled.rate", "set", "2000000"),
            ConfigChange(ConfigResource("topic", "t"), "follower.replication.throttled.replicas", "set", "0:3"),
        ]
    )
    sim.alter_reassignments({T0: (1, 3)})
    sim.world.clock.sleep(600)
    assert T0 in sim.reassignments()
    sim.alter_configs([ConfigChange(ConfigResource("broker", "3"), "follower.replication.throttled.rate", "delete")])
    wait(sim)


def test_nothing_acked_is_lost_when_a_leader_dies_in_mid_move() -> None:
    """The next leader comes from the ISR and holds everything that was acked; writes stop until the ISR shrinks."""
    sim = cluster(inbound_bytes_per_s=1 * MB)
    sim.alter_reassignments({T0: (3, 4)})
    sim.world.clock.sleep(3)
    sim.world.kill(1)
    sim.world.clock.sleep(10)
    partition = sim.world.partition("t", 0)
    assert partition.leader == 2
    wait(sim)
    assert partition.leader in {3, 4}
    assert partition.lost_bytes == 0
    assert partition.copies[partition.leader].end_bytes >= partition.acked_bytes > 100 * MB


def test_the_last_in_sync_replica_keeps_its_place() -> None:
    """With no other replica in sync the partition has no leader, and the offline replica stays in the ISR."""
    sim = cluster()
    sim.world.kill(2)
    sim.world.clock.sleep(10)
    sim.world.kill(1)
    sim.world.clock.sleep(10)
    assert (sim.world.partition("t", 0).leader, sim.world.partition("t", 0).isr) == (-1, [1])
    sim.world.start(2)
    sim.world.clock.sleep(10)
    assert sim.world.partition("t", 0).leader == -1
    sim.world.start(1)
    sim.world.clock.sleep(10)
    assert sim.world.partition("t", 0).leader == 1
    assert sim.world.partition("t", 0).isr == [1, 2]


def test_cancel_that_would_lose_data_is_refused() -> None:
    """Only a replica that is being added is in sync: going back would be an unclean election."""
    sim = cluster()
    sim.alter_reassignments({T0: (3, 4)})
    sim.world.kill(4)
    sim.world.clock.sleep(60)
    sim.world.kill(2)
    sim.world.clock.sleep(10)
    sim.world.kill(1)
    sim.world.clock.sleep(10)
    assert sim.world.partition("t", 0).isr == [3]
    assert not sim.alter_reassignments({T0: None})[T0].ok


def test_a_frozen_broker_costs_the_timeout_and_gives_no_log_dirs() -> None:
    """It is asked, it does not answer, the others do."""
    sim = cluster()
    sim.world.freeze(3)
    began = sim.world.clock.monotonic_s()
    assert sorted(sim.log_dirs([1, 2, 3, 4])) == [1, 2, 4]
    assert sim.world.clock.monotonic_s() - began >= sim.world.physics.timeout_s
    change = ConfigChange(ConfigResource("broker", "3"), "leader.replication.throttled.rate", "set", "1")
    assert sim.alter_configs([change])[change.resource].code == "REQUEST_TIMED_OUT"


def test_an_absent_controller_stops_changes_and_not_reading() -> None:
    """Metadata goes on while every change times out."""
    sim = cluster()
    sim.world.controller_up = False
    assert T0 in sim.partitions([T0])
    with pytest.raises(Unavailable):
        sim.alter_reassignments({T0: (3, 4)})


def test_snapshot_tells_the_union_apart() -> None:
    """``target`` and ``settled`` come out of the union that metadata shows; a down broker has no host."""
    sim = cluster()
    sim.alter_reassignments({T0: (3, 2)})
    sim.world.clock.sleep(1)
    sim.world.kill(4)
    sim.world.clock.sleep(7)
    state = sim.snapshot()
    row = state.index[T0]
    assert state.replicas(row) == (3, 2, 1)
    assert state.target(row) == (3, 2)
    assert state.settled_replicas(row) == (2, 1)
    assert state.moving[row]
    assert state.alive == {1, 2, 3}


def test_a_subtracted_list_stays_set_and_empty() -> None:
    """As in Kafka; only a delete takes the entry away."""
    sim = cluster()
    topic = ConfigResource("topic", "t")
    key = "leader.replication.throttled.replicas"
    for operation, value in (("append", "0:1"), ("append", "0:2"), ("subtract", "0:1,0:2")):
        assert sim.alter_configs([ConfigChange(topic, key, operation, value)])[topic].ok
    assert sim.configs([topic])[topic][key].value == ""
    sim.alter_configs([ConfigChange(topic, key, "delete")])
    assert key not in sim.configs([topic])[topic]


def test_a_move_between_log_dirs_is_a_future_copy_until_it_is_whole() -> None:
    """The replica stays where it is until the copy is complete."""
    world = SimWorld(SimClock(), [SimBroker(id=1, nic_bytes_per_s=10 * MB, dir_bytes=(1e9, 1e9))])
    world.add_topic("t", {0: (1,)}, size_bytes=100 * MB)
    sim = SimCluster(world)
    assert sim.alter_log_dirs({(T0, 1): "/data/1"})[T0, 1].ok
    world.clock.sleep(5)
    current, future = sim.log_dirs([1])[1].replicas[T0]
    assert (current.log_dir, current.is_future, future.log_dir, future.is_future) == ("/data/0", False, "/data/1", True)
    world.clock.sleep(6)
    (only,) = sim.log_dirs([1])[1].replicas[T0]
    assert only.log_dir == "/data/1"
    assert sim.alter_log_dirs({(T0, 1): "/data/9"})[T0, 1].code == "LOG_DIR_NOT_FOUND"


def test_a_full_disk_stops_the_copy() -> None:
    """The move stays pending, and the broker gives the log dir up until there is room."""
    sim = cluster()
    sim.world.brokers[3].dir_bytes = (500 * MB, 50 * MB)
    sim.world.add_topic("in the first dir", {0: (3,)})
    sim.alter_reassignments({T0: (1, 3)})
    sim.world.clock.sleep(300)
    assert T0 in sim.reassignments()
    other, full = sim.log_dirs([3])[3].dirs
    assert full.failed
    assert other.usable_bytes == 500 * MB
    sim.world.brokers[3].dir_bytes = (500 * MB, 500 * MB)
    sim.world.repair_dirs(3)
    wait(sim)
    assert sim.world.partition("t", 0).isr == [1, 3]


def test_a_broker_ends_with_the_log_dir_of_its_metadata_log() -> None:
    """Which is the first; it does not start without it."""
    sim = cluster()
    sim.world.brokers[3].dir_bytes = (500 * MB, 500 * MB)
    sim.world.fail_dir(3, 1)
    assert 3 in sim.log_dirs([3])
    sim.world.fail_dir(3, 0)
    assert 3 not in sim.log_dirs([3])
    sim.world.start(3)
    assert 3 not in sim.log_dirs([3])
    sim.world.repair_dirs(3)
    assert 3 in sim.log_dirs([3])


def test_a_follower_that_is_cut_off_holds_producers_until_it_leaves_the_isr() -> None:
    """Nothing is acknowledged meanwhile; then the others go on, and it catches up when it reaches its leader again."""
    sim = cluster(inbound_bytes_per_s=MB, physics=Physics(replica_lag_s=30))
    partition = sim.world.partition("t", 0)
    sim.world.cut = {(2, 1)}
    sim.world.clock.sleep(25)
    assert (partition.isr, partition.acked_bytes) == ([1, 2], 100 * MB)
    sim.world.clock.sleep(35)
    assert partition.isr == [1]
    assert partition.acked_bytes > 120 * MB
    sim.world.cut.clear()
    sim.world.clock.sleep(30)
    assert partition.isr == [1, 2]


def test_a_controlled_shutdown_hands_leaderships_over_at_once() -> None:
    """No producer waits for a session to end, and nothing is lost."""
    sim = cluster(inbound_bytes_per_s=MB)
    partition = sim.world.partition("t", 0)
    sim.world.stop(1)
    assert (partition.leader, partition.isr) == (2, [2])
    sim.world.start(1)
    sim.world.clock.sleep(30)
    assert set(partition.isr) == {1, 2}
    assert partition.lost_bytes == 0


def test_rates_are_max_min_fair() -> None:
    """What one flow cannot use goes to the others."""
    a, b, slow = ("out", 1), ("in", 2), ("in", 3)
    assert fair_rates([(a, b), (a, slow)], {a: 10.0, b: 100.0, slow: 2.0}) == pytest.approx([8.0, 2.0])


def test_what_happens_in_a_long_sleep_is_dated_when_it_happens() -> None:
    """Metadata shows the end of a move a moment after it, not after the sleep in which it fell."""
    sim = cluster()
    sim.alter_reassignments({T0: (3, 4)})
    sim.world.clock.sleep(600)
    assert sim.partitions([T0])[T0].replicas == (3, 4)

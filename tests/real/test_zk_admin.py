"""Moves and elections through ZooKeeper's admin znodes, on brokers that know nothing else."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from tests.waiting import PATIENCE_S, until

from ballast.adapters.auth.security import Security
from ballast.adapters.zookeeper.admin import ZooKeeperWrites, body
from ballast.adapters.zookeeper.client import ELECTION, REASSIGN, ZooKeeper
from ballast.adapters.zookeeper.cluster import ZooKeeperCluster
from ballast.adapters.zookeeper.lock import LOCK, ZooKeeperLock
from ballast.core.cluster import TopicPartition
from ballast.errors import BallastError, Fenced, LockHeld
from ballast.ports.cluster import ClusterWriter, ConfigChange, ConfigResource
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import OpenCluster, open_cluster

pytestmark = pytest.mark.kafka


@pytest.fixture
def old(zk23: Sandbox) -> Iterator[OpenCluster]:
    """The 2.3 cluster behind the port."""
    with open_cluster(bootstrap_server=zk23.bootstrap_server, zookeeper=zk23.zookeeper) as opened:
        yield opened


@pytest.fixture
def zookeeper(zk23: Sandbox) -> Iterator[ZooKeeper]:
    """A session of the test's own."""
    assert zk23.zookeeper is not None
    session = ZooKeeper(zk23.zookeeper, Security())
    yield session
    session.close()


@pytest.fixture
def kazoo(zookeeper: ZooKeeper) -> KazooClient:
    """The raw client, to play the part of another user."""
    return zookeeper.client()


def make_topic(cluster: ClusterWriter, partitions: int, replicas: tuple[int, ...]) -> list[TopicPartition]:
    """A fresh topic whose every partition has these replicas."""
    topic = f"zk-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(topic, dict.fromkeys(range(partitions), replicas))
    return [TopicPartition(topic, p) for p in range(partitions)]


def is_settled(opened: OpenCluster) -> bool:
    """Whether all brokers are seen, and who their controller is."""
    try:
        state = opened.cluster.snapshot(log_dirs=False, configs=False)
    except BallastError:
        return False
    return len(state.alive) == 3 and state.controller_id in state.alive


def leaders(zookeeper: ZooKeeper, names: list[TopicPartition]) -> list[int]:
    """Who leads, as the controller wrote it."""
    states = zookeeper.partition_states(names)
    return [states[n].leader if n in states else -1 for n in names]


def test_a_move_happens_and_its_partitions_are_told_truly(old: OpenCluster, zookeeper: ZooKeeper) -> None:
    """Through the port: started, listed with what is added and removed, done, its leader re-elected."""
    (name,) = make_topic(old.cluster, 1, (1, 2))
    until(lambda: leaders(zookeeper, [name]) == [1], "the topic has a leader")
    assert old.cluster.alter_reassignments({name: (3, 2)})[name].ok
    until(lambda: name not in old.cluster.reassignments(), "the move is over")
    until(lambda: [s.replicas for s in old.cluster.partitions([name]).values()] == [(3, 2)], "the new list stands")
    until(lambda: [set(s.isr) for s in old.cluster.partitions([name]).values()] == [{2, 3}], "all are in sync")
    assert old.cluster.partitions([name])[name].leader in {2, 3}
    state = old.cluster.snapshot(log_dirs=False, configs=False)
    assert state.replicas(state.index[name]) == (3, 2)


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ((1, 99), "INVALID_REPLICA_ASSIGNMENT"),
        ((1, 1), "INVALID_REPLICA_ASSIGNMENT"),
        ((), "INVALID_REPLICA_ASSIGNMENT"),
        ((1, 2, 3), "INVALID_REPLICATION_FACTOR"),
        (None, "UNSUPPORTED_VERSION"),
    ],
)
def test_what_the_old_controller_would_swallow_is_refused(
    old: OpenCluster, kazoo: KazooClient, target: tuple[int, ...] | None, code: str
) -> None:
    """An unknown broker would be accepted and stay stuck; nothing of the kind is written."""
    (name,) = make_topic(old.cluster, 1, (1, 2))
    until(lambda: name in old.cluster.partitions([name]), "the topic is there")
    outcome = old.cluster.alter_reassignments({name: target})[name]
    assert (outcome.ok, outcome.code) == (False, code)
    assert kazoo.exists(REASSIGN) is None


def test_a_missing_partition_fails_alone(old: OpenCluster, zookeeper: ZooKeeper) -> None:
    """The others of the request go on."""
    (name,) = make_topic(old.cluster, 1, (1, 2))
    until(lambda: leaders(zookeeper, [name]) == [1], "the topic has a leader")
    missing = TopicPartition("never-created", 0)
    outcomes = old.cluster.alter_reassignments({missing: (1, 2), name: (2, 1)})
    assert outcomes[missing].code == "UNKNOWN_TOPIC_OR_PARTITION"
    assert outcomes[name].ok
    until(lambda: zookeeper.assignments([name.topic]).get(name) == (2, 1), "the new order stands")
    until(lambda: not zookeeper.moving(), "no batch is left")


def slow_batch_of_another_user(
    old: OpenCluster, zookeeper: ZooKeeper, kazoo: KazooClient
) -> tuple[bytes, ConfigChange]:
    """A move that a throttle keeps from ending, written as the stock tool writes it; and the change that lets it end."""
    (name,) = make_topic(old.cluster, 1, (1,))
    until(lambda: leaders(zookeeper, [name]) == [1], "their topic has a leader")
    producer = Producer({"bootstrap.servers": old.bootstrap_server, "acks": "all"})
    for _ in range(40):
        producer.produce(name.topic, b"x" * 100_000, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    broker, rate = ConfigResource("broker", "3"), "follower.replication.throttled.rate"
    lists = ConfigChange(ConfigResource("topic", name.topic), "follower.replication.throttled.replicas", "set", "0:3")
    outcomes = old.cluster.alter_configs([lists, ConfigChange(broker, rate, "set", "1000")])
    assert all(o.ok for o in outcomes.values())
    # As the broker itself tells, though an old one without the value: a batch before its rate is in force is over at once.
    assert isinstance(old.cluster, ZooKeeperCluster)
    told = old.cluster._inner.configs
    until(lambda: rate in told([broker]).get(broker, {}), "broker 3 has heard of the rate, and of the list before it")
    theirs = body([{"topic": name.topic, "partition": 0, "replicas": [1, 3]}])
    until(lambda: kazoo.exists(REASSIGN) is None, "the batch before is gone")
    kazoo.create(REASSIGN, theirs)
    return theirs, ConfigChange(broker, rate, "delete")


def test_another_users_batch_is_waited_for_and_never_touched(
    zookeeper: ZooKeeper, old: OpenCluster, kazoo: KazooClient
) -> None:
    """While it stands ours answers that it is in the way; once it has ended by itself ours follows at once."""
    (name,) = make_topic(old.cluster, 1, (1, 2))
    until(lambda: leaders(zookeeper, [name]) == [1], "the topic has a leader")
    theirs, lift = slow_batch_of_another_user(old, zookeeper, kazoo)
    try:
        hasty = ZooKeeperWrites(zookeeper, wait_s=1.0)
        assert hasty.alter_reassignments({name: (2, 3)})[name].code == "REASSIGNMENT_IN_PROGRESS"
        assert json.loads(kazoo.get(REASSIGN)[0]) == json.loads(theirs)
        assert kazoo.exists(LOCK) is None, "the lock is not kept once the waiting has ended"
    finally:
        assert all(o.ok for o in old.cluster.alter_configs([lift]).values())
    patient = ZooKeeperWrites(zookeeper, wait_s=PATIENCE_S)
    assert patient.alter_reassignments({name: (2, 3)})[name].ok
    until(lambda: zookeeper.assignments([name.topic]).get(name) == (2, 3), "ours is done")
    until(lambda: not zookeeper.moving(), "no batch is left")


def test_elections_in_pieces_really_switch_the_leaders(old: OpenCluster, zookeeper: ZooKeeper) -> None:
    """Thirty leaders that are not the preferred ones change, through several znodes of a size that is set small."""
    names = make_topic(old.cluster, 30, (1, 2))
    until(lambda: leaders(zookeeper, names) == [1] * 30, "broker 1 leads")
    assert all(o.ok for o in old.cluster.alter_reassignments(dict.fromkeys(names, (2, 1))).values())
    until(lambda: set(zookeeper.assignments([names[0].topic]).values()) == {(2, 1)}, "the order is turned")
    until(lambda: not zookeeper.moving(), "the batch is over")
    assert leaders(zookeeper, names) == [1] * 30, "a replica list change alone moves no leader"
    writes = ZooKeeperWrites(zookeeper, znode_bytes=600)
    outcomes = writes.elect_leaders([*names, TopicPartition("never-created", 0)])
    assert outcomes.pop(TopicPartition("never-created", 0)).code == "UNKNOWN_TOPIC_OR_PARTITION"
    assert all(o.ok for o in outcomes.values())
    assert leaders(zookeeper, names) == [2] * 30
    assert all(o.ok for o in old.cluster.elect_leaders(names).values()), "an election that is not needed is fine"


def test_one_znode_for_a_large_election_is_too_large_and_ours_are_not(kazoo: KazooClient) -> None:
    """What the stock tool writes for 20,000 partitions does not fit into a znode."""
    entries = [{"topic": f"a-topic-name-of-ordinary-length-{i}", "partition": i % 50} for i in range(20_000)]
    whole = body(entries)
    assert len(whole) > 1024 * 1024
    with pytest.raises((KazooException, OSError)):
        kazoo.create("/ballast-test-large", whole, ephemeral=True)
    until(lambda: bool(kazoo.connected), "the session is back")


def test_an_election_of_a_down_preferred_leader_says_so(own_cluster: Callable[..., Sandbox]) -> None:
    """Its broker is down: the outcome is Kafka's own, and the partition keeps its leader."""
    sandbox = own_cluster(kafka_version="2.3.1", mode="zookeeper")
    assert sandbox.zookeeper is not None
    session = ZooKeeper(sandbox.zookeeper, Security())
    with open_cluster(bootstrap_server=sandbox.bootstrap_server, zookeeper=sandbox.zookeeper) as opened:
        (name,) = make_topic(opened.cluster, 1, (2, 3))
        until(lambda: leaders(session, [name]) == [2], "the topic has a leader")
        sandbox.kill_broker(2)
        until(lambda: leaders(session, [name]) == [3], "the other leads")
        assert opened.cluster.elect_leaders([name])[name].code == "PREFERRED_LEADER_NOT_AVAILABLE"
        refused = opened.cluster.alter_reassignments({name: (3, 99)})[name]
        assert refused.code == "INVALID_REPLICA_ASSIGNMENT"
        sandbox.start_broker(2)
        until(lambda: any(2 in s.isr for s in opened.cluster.partitions([name]).values()), "it is back in sync")
        assert opened.cluster.elect_leaders([name])[name].ok
        assert leaders(session, [name]) == [2]
    session.close()


def test_the_lock_names_its_holder_and_dies_with_its_session(zk23: Sandbox, kazoo: KazooClient) -> None:
    """A second writer is told who writes; one whose session ended cannot write any more."""
    assert zk23.zookeeper is not None
    mine, theirs = ZooKeeper(zk23.zookeeper, Security()), ZooKeeper(zk23.zookeeper, Security())
    try:
        second = ZooKeeperLock(theirs.client, "second", wait_s=0.5)
        with ZooKeeperLock(mine.client, "ana@laptop").hold() as writer:
            with pytest.raises(LockHeld) as held, second.hold():
                pass
            assert held.value.holder == "ana@laptop"
            assert writer.create("/admin/ballast-test-a", b"x")
            assert not writer.create("/admin/ballast-test-a", b"y"), "it stands already"
            # The session's death as the server sees it: its ephemeral znodes are gone.
            for child in kazoo.get_children("/admin"):
                if child.startswith("ballast_writer"):
                    kazoo.delete(f"/admin/{child}")
            with second.hold():
                with pytest.raises(Fenced):
                    writer.create("/admin/ballast-test-b", b"x")
                assert kazoo.exists(LOCK) is not None
            assert kazoo.exists("/admin/ballast-test-b") is None
        assert kazoo.exists(LOCK) is None
    finally:
        kazoo.delete("/admin/ballast-test-a")
        mine.close()
        theirs.close()


def test_nothing_of_ours_stays_in_zookeeper(kazoo: KazooClient, old: OpenCluster, zookeeper: ZooKeeper) -> None:
    """After a move and an election no znode of ours is left."""
    (name,) = make_topic(old.cluster, 1, (1, 2))
    until(lambda: leaders(zookeeper, [name]) == [1], "the topic has a leader")
    assert old.cluster.alter_reassignments({name: (2, 1)})[name].ok
    until(
        lambda: zookeeper.assignments([name.topic]).get(name) == (2, 1) and not zookeeper.moving(),
        "the order is turned",
    )
    assert old.cluster.elect_leaders([name])[name].ok
    assert leaders(zookeeper, [name]) == [2]
    assert kazoo.exists(ELECTION) is None
    assert [c for c in kazoo.get_children("/admin") if c.startswith("ballast")] == []


def test_newer_brokers_with_zookeeper_are_moved_by_their_own_requests(zk39: Sandbox) -> None:
    """On 3.9 nothing is written to the admin znode, and a batch that a user put there is seen as a move in flight."""
    assert zk39.zookeeper is not None
    session = ZooKeeper(zk39.zookeeper, Security())
    kazoo = session.client()
    with open_cluster(bootstrap_server=zk39.bootstrap_server, zookeeper=zk39.zookeeper) as opened:
        # A cluster that has just started serves before every broker has heard of the others and of the controller.
        until(lambda: is_settled(opened), "the brokers know each other")
        (name,) = make_topic(opened.cluster, 1, (1, 2))
        until(lambda: leaders(session, [name]) == [1], "the topic has a leader")
        seen: list[object] = []
        kazoo.exists(REASSIGN, watch=seen.append)
        assert opened.cluster.alter_reassignments({name: (3, 2)})[name].ok
        until(lambda: [s.replicas for s in opened.cluster.partitions([name]).values()] == [(3, 2)], "the move is over")
        assert not seen, "the znode was never touched"
        theirs, lift = slow_batch_of_another_user(opened, session, kazoo)
        moving = {TopicPartition(e["topic"], e["partition"]) for e in json.loads(theirs)["partitions"]}
        try:
            until(lambda: set(opened.cluster.reassignments()) == moving, "their batch is listed")
        finally:
            assert all(o.ok for o in opened.cluster.alter_configs([lift]).values())
        until(lambda: not opened.cluster.reassignments(), "their batch is over")
    session.close()

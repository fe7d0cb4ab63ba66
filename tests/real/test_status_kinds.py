"""``ballast status`` and ``topics describe`` on every kind of cluster: KRaft new and old, ZooKeeper new and before KIP-455."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from tests.waiting import PATIENCE_S, until

from ballast.sandbox import Sandbox

pytestmark = pytest.mark.kafka
Run = Callable[..., tuple[int, str, str]]


def ballast(sandbox: Sandbox, *arguments: str) -> tuple[int, str, str]:
    """Run a command on the sandbox as a person would."""
    where = ["--bootstrap-server", sandbox.bootstrap_server]
    if sandbox.zookeeper:
        where += ["--zookeeper", sandbox.zookeeper]
    command = [sys.executable, "-m", "ballast", *arguments, *where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    return done.returncode, done.stdout, done.stderr


def document(sandbox: Sandbox, *arguments: str) -> dict[str, object]:
    """The JSON that a command prints."""
    code, out, err = ballast(sandbox, *arguments, "--output", "json")
    assert code == 0, err
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def new_topic(sandbox: Sandbox, assignment: list[list[int]]) -> str:
    """A topic of the test's own, once every replica is in sync."""
    topic = f"kinds-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    admin.create_topics([NewTopic(topic, len(assignment), replica_assignment=assignment)])[topic].result(60)

    def ready() -> bool:
        partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions.values()
        return len(partitions) == len(assignment) and all(set(p.isrs) == set(p.replicas) for p in partitions)

    until(ready)
    return topic


@pytest.mark.parametrize(
    ("kind", "version", "mode"),
    [
        ("kraft", "4.3", "kraft"),
        ("kraft39", "3.9", "kraft"),
        ("zk39", "3.9", "zookeeper"),
        ("zk23", "2.3", "zookeeper"),
    ],
)
def test_every_kind_of_cluster_tells_the_same_story(
    request: pytest.FixtureRequest, kind: str, version: str, mode: str
) -> None:
    """Brokers with racks, the controller, sizes, and nothing missing; what 2.3 cannot tell is null and not zero."""
    sandbox: Sandbox = request.getfixturevalue(kind)
    topic = new_topic(sandbox, [[1, 2], [2, 3]])
    told = document(sandbox, "status")
    cluster, brokers = told["cluster"], told["brokers"]
    assert isinstance(cluster, dict)
    assert isinstance(brokers, list)
    assert cluster["mode"] == mode
    assert cluster["kafkaVersion"].startswith(version)
    assert [b["id"] for b in brokers] == [1, 2, 3]
    assert {b["rack"] for b in brokers} == {"rack-1", "rack-2", "rack-3"}
    assert all(b["alive"] and b["replicaBytes"] is not None for b in brokers)
    assert told["gaps"] == []
    if mode == "zookeeper":
        assert [b["id"] for b in brokers if b["controller"]] == [cluster["controllerId"]]
    else:
        assert cluster["controllerId"] > 9000
    assert all((b["diskTotalBytes"] is None) == (version == "2.3") for b in brokers)
    described = document(sandbox, "topics", "describe", topic)
    assert [p["assignedReplicas"] for p in described["partitions"]] == [[1, 2], [2, 3]]  # type: ignore[attr-defined]
    assert (described["topicId"] is None) == (version == "2.3")


def test_a_move_that_stands_in_zookeeper_is_seen(own_cluster: Callable[..., Sandbox]) -> None:
    """Before KIP-455 a pending move shows only in the admin znode, here one that can never end (its broker is unknown)."""
    sandbox = own_cluster(kafka_version="2.3.1", mode="zookeeper", brokers=2, racks=0)
    topic = new_topic(sandbox, [[1, 2]])
    assert sandbox.zookeeper is not None
    zookeeper = KazooClient(hosts=sandbox.zookeeper)
    zookeeper.start(timeout=PATIENCE_S)
    move = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [1, 99]}]}
    zookeeper.create("/admin/reassign_partitions", json.dumps(move).encode())
    zookeeper.stop()
    zookeeper.close()

    def seen() -> list[object]:
        moving = document(sandbox, "status")["reassigning"]
        assert isinstance(moving, list)
        return [(m["topic"], m["adding"], m["removing"]) for m in moving]

    until(lambda: seen() == [(topic, [99], [2])])


def test_without_zookeeper_an_old_cluster_says_what_it_hides(zk23: Sandbox) -> None:
    """Moves in flight are then a gap with the remedy, not an empty list that means nothing moves."""
    command = [sys.executable, "-m", "ballast", "status", "-b", zk23.bootstrap_server, "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    gaps = json.loads(done.stdout)["gaps"]
    assert [g["missing"] for g in gaps] == ["reassignments in progress"]
    assert "--zookeeper" in gaps[0]["detail"]


def test_the_controller_dies_and_the_next_one_answers(own_cluster: Callable[..., Sandbox]) -> None:
    """With ZooKeeper the controller is one of the brokers: when it is killed, the same connection finds its successor."""
    from ballast.adapters.auth.security import Security
    from ballast.adapters.kafka.cluster import KafkaCluster
    from ballast.adapters.kafka.confluent import Admin
    from ballast.adapters.kafka.kafka_python import Wire

    sandbox = own_cluster(kafka_version="3.9.2", mode="zookeeper")
    security = Security()
    cluster = KafkaCluster(
        Wire(sandbox.bootstrap_server, security, timeout_s=2 * PATIENCE_S), Admin(sandbox.bootstrap_server, security)
    )
    try:
        first = cluster.snapshot().controller_id
        sandbox.kill_broker(first)
        assert cluster.reassignments() == {}
        until(lambda: cluster.snapshot(log_dirs=False, configs=False).controller_id not in {first, -1})
    finally:
        cluster.close()

"""Clusters with ZooKeeper in containers: Kafka 3.9, and 2.3.1, which takes moves and elections through znodes alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.containers.cluster import ContainerCluster
from tests.containers.docker_host import DockerHost
from tests.leash import leashed
from tests.waiting import until

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.ports.cluster import Cluster
from ballast.sandbox import SandboxSpec
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.containers


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster with ZooKeeper, connected."""

    containers: ContainerCluster
    cluster: Cluster
    folder: Path

    def ballast(self, *arguments: str) -> str:
        """A command on this cluster, which has to end well."""
        assert self.containers.zookeeper is not None
        where = {
            "BALLAST__CLUSTER__BOOTSTRAP_SERVER": self.containers.bootstrap_server,
            "BALLAST__CLUSTER__ZOOKEEPER": self.containers.zookeeper,
        }
        done = subprocess.run(
            leashed(sys.executable, "-m", "ballast", *arguments),
            cwd=self.folder,
            env={**os.environ, **where},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def topic(self, name: str, replicas: tuple[int, ...]) -> TopicPartition:
        """A partition with some data, everyone in sync and the first one leading."""
        partition = TopicPartition(name, 0)
        self.cluster.create_topic(name, {0: replicas})
        until(lambda: self.stands(partition, replicas))
        producer = Producer({"bootstrap.servers": self.containers.bootstrap_server, "acks": "all"})
        for _ in range(20):
            producer.produce(name, os.urandom(50_000), partition=0)
        assert producer.flush(60) == 0
        return partition

    def stands(self, name: TopicPartition, replicas: tuple[int, ...]) -> bool:
        """These replicas in this order, all in sync, the first one leading."""
        state = self.cluster.partitions([name]).get(name)
        return (
            state is not None
            and state.replicas == replicas
            and set(state.isr) == set(replicas)
            and state.leader == replicas[0]
        )


@pytest.fixture(scope="module", params=["3.9.2", "2.3.1"])
def containers(request: pytest.FixtureRequest, docker_host: DockerHost) -> Iterator[ContainerCluster]:
    """ZooKeeper and three brokers in three racks."""
    cluster = ContainerCluster.up(docker_host, SandboxSpec(kafka_version=request.param, mode="zookeeper"))
    yield cluster
    cluster.down()


@pytest.fixture
def site(containers: ContainerCluster, tmp_path: Path) -> Iterator[Site]:
    """The cluster with an open connection."""
    with open_cluster(bootstrap_server=containers.bootstrap_server, zookeeper=containers.zookeeper) as opened:
        yield Site(containers, opened.cluster, tmp_path)


def complete(cluster: Cluster) -> ClusterState | None:
    """The cluster where every broker has told of every replica; a new topic takes them a moment."""
    state = cluster.snapshot()
    return None if state.gaps else state


def test_it_is_read(site: Site) -> None:
    """Brokers, racks, controller, leaders and epochs; nothing is missing."""
    name = site.topic("read", (2, 3))
    until(lambda: site.stands(name, (2, 3)))
    state = until(lambda: complete(site.cluster), "nothing is missing")
    assert [(b.id, b.rack) for b in state.brokers] == [(1, "rack-1"), (2, "rack-2"), (3, "rack-3")]
    assert (state.gaps, state.controller_id in {1, 2, 3}) == ((), True)
    described = json.loads(site.ballast("topics", "describe", "read", "--output", "json"))
    (partition,) = described["partitions"]
    assert (partition["leader"], partition["controllerEpoch"] >= 1) == (2, True)
    assert {r["lag"] for r in partition["replicas"]} == {0}


def test_a_partition_is_moved(site: Site) -> None:
    """By a file, as Kafka's own tool takes it; the first replica of the new list leads once it is elected."""
    name = site.topic("moved", (1, 2))
    move = {"version": 1, "partitions": [{"topic": "moved", "partition": 0, "replicas": [3, 1]}]}
    (site.folder / "move.json").write_text(json.dumps(move))
    site.ballast("reassign", "--execute", "--reassignment-json-file", "move.json")
    until(lambda: site.cluster.partitions([name])[name].replicas == (3, 1) and not site.cluster.reassignments())
    site.ballast("reassign", "--verify", "--reassignment-json-file", "move.json")
    site.ballast("elect", "--topic", "moved", "--yes")
    until(lambda: site.stands(name, (3, 1)))


def test_a_killed_broker_is_gone_and_comes_back(site: Site) -> None:
    """Its leaders go to others, its figures are a gap; back, it is in sync again and an election gives it its leaders."""
    name = site.topic("killed", (2, 1))
    site.containers.kill(2)
    until(lambda: site.cluster.partitions([name])[name].leader == 1)
    until(lambda: 2 not in site.cluster.snapshot().alive)
    assert any(g.subject == "broker 2" and g.missing == "log dirs" for g in site.cluster.snapshot().gaps)
    site.containers.start(2)
    until(lambda: set(site.cluster.partitions([name])[name].isr) == {1, 2})
    site.ballast("elect", "--all", "--yes")
    until(lambda: site.stands(name, (2, 1)))

"""The daemon on brokers that know only ZooKeeper's admin znode: it balances them by itself, one batch at a time."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient
from tests.real.daemon_process import start, until
from tests.waiting import becomes

from ballast.core.cluster import TopicPartition
from ballast.core.throttles import LISTS, RATES
from ballast.ports.cluster import Cluster, ConfigResource
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

TOPIC = "orders"
PARTITIONS = 24
"""Far more than the replicas of the journal's and Kafka's own topics, which lie on both brokers and count as well."""
NAMES = [TopicPartition(TOPIC, p) for p in range(PARTITIONS)]
AT_ONCE = 4
ZNODES = ("/admin/reassign_partitions", "/admin/ballast_writer")
PATIENCE_S = 300
"""Far beyond what it takes on a quiet machine, since a busy one is no defect."""
SETTINGS: dict[str, Any] = {
    "mode": "auto",
    "balance": {"band": 0.15, "trigger": 0.2},
    "execution": {"throttle": 8_000_000, "moves_at_once": AT_ONCE, "poll_s": 0.2, "progress_s": 1},
}


@dataclass
class AdminZnode:
    """The znode of moves, as ZooKeeper itself tells of each change."""

    client: KazooClient
    seen: list[frozenset[int]]
    """The topic's partitions in it, one entry for each time that it changed."""

    def stands(self, path: str) -> bool:
        """Whether there is such a znode."""
        return self.client.exists(path) is not None


@contextmanager
def watched(zookeeper: str) -> Iterator[AdminZnode]:
    """A session of the test's own that hears of every change."""
    client = KazooClient(zookeeper)
    client.start(60)
    znode = AdminZnode(client, [])

    def changed(data: bytes | None, _stat: object) -> None:
        if data:
            moving = json.loads(data)["partitions"]
            znode.seen.append(frozenset(p["partition"] for p in moving if p["topic"] == TOPIC))

    try:
        client.DataWatch("/admin/reassign_partitions", changed)
        yield znode
    finally:
        client.stop()
        client.close()


def crowd(sandbox: Sandbox, cluster: Cluster) -> None:
    """Everything on broker 1, something in each partition; broker 2 has nothing."""
    cluster.create_topic(TOPIC, dict.fromkeys(range(PARTITIONS), (1,)))
    until("the topic", lambda: len(cluster.partitions(NAMES)) == PARTITIONS, [])
    producer = Producer({"bootstrap.servers": sandbox.bootstrap_server, "acks": "all", "linger.ms": 20})
    for n in range(PARTITIONS * 2):
        producer.produce(TOPIC, os.urandom(100_000), partition=n % PARTITIONS)
    assert producer.flush(120) == 0


def throttled(cluster: Cluster) -> dict[str, str | None]:
    """Throttle settings that stand."""
    resources = [ConfigResource("topic", TOPIC), ConfigResource("broker", "1"), ConfigResource("broker", "2")]
    return {
        f"{resource.kind} {resource.name} {key}": entry.value
        for resource, entries in cluster.configs(resources).items()
        for key, entry in entries.items()
        if key in (*RATES, *LISTS) and entry.source.startswith("DYNAMIC") and entry.value
    }


def submitted(messages: list[str]) -> list[set[int]]:
    """The batches that the daemon's log tells of; fails where one was sent before the last had ended."""
    begun: list[set[int]] = []
    flying: set[int] = set()
    landing = False
    for partition, stage in re.findall(rf"{TOPIC}-(\d+) is (submitted|moving|moved|unthrottled)", "\n".join(messages)):
        if stage != "submitted":
            landing = True
            flying -= {int(partition)} if stage == "unthrottled" else set()
            continue
        if landing or not begun:
            assert not flying, f"{TOPIC}-{partition} was sent while {flying} moved"
            begun.append(set())
            landing = False
        begun[-1].add(int(partition))
        flying.add(int(partition))
    return begun


def test_the_daemon_balances_a_cluster_before_2_4_one_batch_at_a_time(
    own_cluster: Callable[..., Sandbox], tmp_path: Path
) -> None:
    """Broker 2 gets its share of broker 1's partitions through the one znode, batch after batch; neither znode nor throttle stays."""
    sandbox = own_cluster(kafka_version="2.3.1", mode="zookeeper", brokers=2, racks=0)
    zookeeper = sandbox.zookeeper
    assert zookeeper is not None
    with (
        open_cluster(bootstrap_server=sandbox.bootstrap_server, zookeeper=zookeeper) as opened,
        watched(zookeeper) as znode,
    ):
        cluster = opened.cluster
        crowd(sandbox, cluster)
        daemon = start("pod-0", tmp_path, sandbox.bootstrap_server, SETTINGS, zookeeper=zookeeper)
        try:

            def settled() -> bool:
                status = daemon.status
                began = any(message.endswith("ended: done.") for message in daemon.messages())
                at_rest = began and status.get("run") is None and status.get("throttlesToRestore") == 0
                return at_rest and (status.get("balance") or {}).get("verdict") == "balanced"

            until("a balanced cluster", settled, [daemon], PATIENCE_S)

            def arrived() -> set[int]:
                return {n.partition for n, state in cluster.partitions(NAMES).items() if state.replicas == (2,)}

            assert AT_ONCE < len(arrived()) < PARTITIONS - AT_ONCE, arrived()
            batches = submitted(daemon.messages())
            assert len(batches) > 1, batches
            assert all(len(batch) <= AT_ONCE for batch in batches), batches
            assert arrived() <= set.union(*batches), batches
            # ZooKeeper tells that something changed, not what: on a busy machine a short batch may go unseen.
            assert all(any(here <= batch for batch in batches) for here in znode.seen), znode.seen
            becomes(lambda: throttled(cluster), {})
            becomes(lambda: [path for path in ZNODES if znode.stands(path)], [])

            def outcomes() -> set[str]:
                return {run["status"] for run in json.loads(daemon.get("/api/v1/history")[1])["runs"]}

            # The history is read from the journal, a check after the run has ended.
            assert until("the history", outcomes, [daemon], PATIENCE_S) == {"done"}
            assert daemon.stop() == 0
            assert not [m for m in daemon.messages() if m.startswith("A bug")]
        finally:
            if daemon.process.poll() is None:
                daemon.kill()

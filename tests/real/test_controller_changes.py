"""Requests to the controller while it changes: the client hears of the new one in time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient
from tests import waiting

from ballast.core.cluster import TopicPartition
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.kafka

PATIENCE_S = 25.0
"""Less than until a client asks for metadata by itself."""


@pytest.fixture
def sandbox(own_cluster: Callable[..., Sandbox]) -> Sandbox:
    """Kafka 3.9 with ZooKeeper: its brokers name the controller that they heard of last, or none."""
    return own_cluster(kafka_version="3.9.2", mode="zookeeper")


def test_a_topic_is_made_although_the_controller_has_just_died(sandbox: Sandbox) -> None:
    """The brokers name the dead controller for some seconds; the request waits for the next one."""
    with open_cluster(bootstrap_server=sandbox.bootstrap_server, timeout_s=PATIENCE_S) as opened:
        controller = opened.cluster.snapshot(log_dirs=False).controller_id
        sandbox.kill_broker(controller)
        others = sorted(set(sandbox.broker_ids) - {controller})
        opened.cluster.create_topic("made", {0: tuple(others)}, None)
        name = TopicPartition("made", 0)
        waiting.until(lambda: name in opened.cluster.partitions([name]), "the topic")


def test_an_election_is_held_although_the_controller_has_just_died(sandbox: Sandbox) -> None:
    """The brokers name the dead controller for some seconds; the request waits for the next one."""
    with open_cluster(bootstrap_server=sandbox.bootstrap_server, timeout_s=PATIENCE_S) as opened:
        cluster, name = opened.cluster, TopicPartition("led", 0)
        controller = cluster.snapshot(log_dirs=False).controller_id
        first, second = sorted(set(sandbox.broker_ids) - {controller})
        cluster.create_topic(name.topic, {0: (second, first)}, None)
        waiting.until(lambda: (p := cluster.partitions([name]).get(name)) and p.leader == second, "the topic")
        assert cluster.alter_reassignments({name: (first, second)})[name].ok
        waiting.until(lambda: cluster.partitions([name])[name].replicas == (first, second), "the other order")
        sandbox.kill_broker(controller)
        assert cluster.elect_leaders([name])[name].ok
        waiting.until(lambda: cluster.partitions([name])[name].leader == first, "the election")


def test_a_broker_that_the_sandbox_calls_ready_names_a_controller(sandbox: Sandbox) -> None:
    """Any client may begin with it: one that heard of no controller would wait for nothing."""
    for _ in range(5):
        sandbox.stop_broker(3)
        sandbox.start_broker(3)
        client = AdminClient({"bootstrap.servers": f"127.0.0.1:{sandbox.ports.brokers[3]}"})
        assert client.list_topics(timeout=PATIENCE_S).controller_id in sandbox.broker_ids

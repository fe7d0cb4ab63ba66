"""Requests that the controller answers, while it changes: the client hears of the new one in time."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests import waiting

from ballast.adapters.auth.security import Security
from ballast.adapters.kafka import librdkafka
from ballast.adapters.kafka.confluent import new_client
from ballast.core.cluster import TopicPartition
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.kafka

PATIENCE_S = 25.0
"""Less than until a client that does not care for the controller fetches metadata."""


@pytest.fixture
def sandbox(own_cluster: Callable[..., Sandbox]) -> Sandbox:
    """Kafka 3.9 with ZooKeeper: its brokers name the controller that they heard of last, or none."""
    return own_cluster(kafka_version="3.9.2", mode="zookeeper")


def test_a_topic_is_made_although_the_controller_has_just_died(sandbox: Sandbox) -> None:
    """The brokers name the dead controller for some seconds; the request waits for the next one, no longer than that."""
    with open_cluster(bootstrap_server=sandbox.bootstrap_server, timeout_s=PATIENCE_S) as opened:
        controller = opened.cluster.snapshot(log_dirs=False).controller_id
        sandbox.kill_broker(controller)
        others = sorted(set(sandbox.broker_ids) - {controller})
        opened.cluster.create_topic("made", {0: tuple(others)}, None)
        name = TopicPartition("made", 0)
        waiting.until(lambda: name in opened.cluster.partitions([name]), "the topic")


def test_a_client_of_a_broker_that_names_no_controller_yet_gets_its_answer(sandbox: Sandbox) -> None:
    """A broker that has just started names none, and no client would ask it again."""
    port = sandbox.ports.brokers[3]

    def listens() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    for attempt in range(3):
        sandbox.stop_broker(3)
        sandbox.start_broker(3, wait=False)
        waiting.until(listens, "the broker", every_s=0.005)
        client = new_client(f"127.0.0.1:{port}", Security(), timeout_s=PATIENCE_S, to_controller=True)
        topic = NewTopic(f"made-{attempt}", num_partitions=1, replica_assignment=[[1]])
        asked = client.create_topics([topic], request_timeout=PATIENCE_S)[topic.topic]
        librdkafka.answer_of(asked)
        sandbox.wait_until_ready()


def test_a_broker_that_the_sandbox_calls_ready_names_a_controller(sandbox: Sandbox) -> None:
    """Any client may begin with it: one that heard of no controller would wait for nothing."""
    for attempt in range(5):
        sandbox.stop_broker(3)
        sandbox.start_broker(3)
        client = AdminClient({"bootstrap.servers": f"127.0.0.1:{sandbox.ports.brokers[3]}"})
        topic = NewTopic(f"ready-{attempt}", num_partitions=1, replica_assignment=[[1]])
        librdkafka.answer_of(client.create_topics([topic], request_timeout=PATIENCE_S)[topic.topic])

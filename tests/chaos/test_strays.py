"""What Kafka with ZooKeeper does with a replica that left a broker that was down, without any Ballast."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from confluent_kafka.admin import AdminClient
from tests import waiting
from tests.chaos.strays import Strays

from ballast.core.cluster import TopicPartition
from ballast.errors import Refused
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.kafka

NAME = TopicPartition("t", 0)


def test_a_replica_of_a_deleted_topic_keeps_the_new_one_out_until_it_is_cleared_away(
    own_cluster: Callable[..., Sandbox],
) -> None:
    """The broker says so, and takes the new replica once the old one is gone."""
    sandbox = own_cluster(kafka_version="3.9.2", mode="zookeeper", brokers=4)
    with open_cluster(bootstrap_server=sandbox.bootstrap_server, timeout_s=30) as opened:
        cluster = opened.cluster

        def in_sync(count: int) -> bool:
            found = cluster.partitions([NAME]).get(NAME)
            return found is not None and len(found.isr) == count and not cluster.reassignments()

        def create(replicas: tuple[int, ...]) -> bool:
            # A topic whose deletion has not ended is still there for the controller.
            with suppress(Refused):
                cluster.create_topic("t", {0: replicas}, None)
                return True
            return False

        victim = next(b for b in sandbox.broker_ids if b != cluster.snapshot(log_dirs=False).controller_id)
        others = tuple(b for b in sandbox.broker_ids if b != victim)
        assert create((*others[:2], victim))
        waiting.until(lambda: in_sync(3), "the topic")
        sandbox.kill_broker(victim)
        waiting.until(lambda: in_sync(2), "the death of the broker")
        assert cluster.alter_reassignments({NAME: others})[NAME].ok
        waiting.until(lambda: in_sync(3), "the move")
        sandbox.start_broker(victim)
        admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
        admin.delete_topics(["t"])["t"].result()
        waiting.until(lambda: create((*others[:2], victim)), "the deletion")
        waiting.until(lambda: "Topic ID in memory" in sandbox.log_text(victim), "the refusal")
        told: list[str] = []
        strays = Strays(sandbox, told.append)
        strays.clear()
        assert (strays.cleared, told) == (1, [f"broker {victim} refused ['t-0']: its old replica is deleted"])
        sandbox.wait_until_ready([victim])
        seen = len(sandbox.log_text(victim))
        waiting.until((sandbox.log_dirs(victim)[0] / "t-0" / "partition.metadata").exists, "the new replica")
        waiting.until(lambda: in_sync(3), "the ISR")
        assert "Topic ID in memory" not in sandbox.log_text(victim)[seen:]
        strays.clear()
        assert strays.cleared == 1

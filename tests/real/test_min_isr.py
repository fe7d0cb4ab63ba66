"""Writes with ``acks=all`` to topics that ask for more replicas in sync than they have: taken or refused as we count."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import KafkaError, Producer
from tests import waiting
from tests.real.execution_scene import events, scene
from tests.waiting import becomes

from ballast.core.cluster import TopicPartition
from ballast.core.cluster.min_isr import under_min_isr
from ballast.core.status import unhealthy_partitions
from ballast.core.what_if.loss import health_of
from ballast.daemon.context.figures import Health
from ballast.ports.cluster import Cluster, ConfigChange, ConfigResource
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.kafka

TOPIC = "asks-for-two"
NAME = TopicPartition(TOPIC, 0)
MOVING = TopicPartition("moves-alone", 0)
LATE = {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART}


def refused(sandbox: Sandbox, topic: str = TOPIC, records: int = 1) -> bool:
    """Does the leader refuse records for want of replicas in sync?"""

    def answers() -> set[int | None]:
        codes: set[int | None] = set()
        producer = Producer({"bootstrap.servers": sandbox.bootstrap_server, "acks": "all", "retries": 0})
        for _ in range(records):
            producer.produce(
                topic, b"x" * 1000, partition=0, on_delivery=lambda e, _: codes.add(e.code() if e else None)
            )
        assert producer.flush(60) == 0
        return codes

    # A leader may hear of it later than the broker that told of it: then it has refused for another reason.
    (code,) = waiting.until(lambda: found if not LATE & (found := answers()) else None, "a leader that knows it is")
    assert code in {None, KafkaError.NOT_ENOUGH_REPLICAS}
    return code is not None


def counted(cluster: Cluster, name: TopicPartition = NAME) -> set[bool]:
    """What the daemon, status and what-if say of it; nothing where the broker that is asked has not heard of it."""
    state = cluster.snapshot(log_dirs=False)
    if (row := state.index.get(name)) is None:
        return set()
    return {
        bool(under_min_isr(state)[row]),
        name in unhealthy_partitions(state).under_min_isr,
        bool(Health(state).under_min_isr[row]),
        row in health_of(state).under_min_isr,
    }


def min_isr_of(cluster: Cluster, topic: str = TOPIC) -> int | None:
    """As the cluster tells it; None where the broker that is asked has not heard of the topic."""
    return {t.name: t.min_isr for t in cluster.snapshot(log_dirs=False).topics}.get(topic)


def until(what: str, held: Callable[[], bool]) -> None:
    """Wait for it."""
    waiting.until(held, what)


@pytest.mark.parametrize(("kind", "bounded"), [("kraft", True), ("zk39", True), ("zk23", False)])
def test_a_minimum_above_the_replica_count_refuses_writes_before_kafka_37_alone(
    kind: str, *, bounded: bool, request: pytest.FixtureRequest
) -> None:
    """One replica, a minimum of two: nothing is wrong with it where brokers ask for no more than there is."""
    sandbox: Sandbox = request.getfixturevalue(kind)
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
        cluster = opened.cluster
        cluster.create_topic(TOPIC, {0: (1,)}, {"min.insync.replicas": "2"})
        until("the topic", lambda: (s := cluster.partitions([NAME]).get(NAME)) is not None and s.leader == 1)
        until("its config", lambda: min_isr_of(cluster) == 2)
        assert refused(sandbox) is not bounded
        becomes(lambda: counted(cluster), {not bounded})


def test_a_copy_to_a_second_broker_counts_before_it_is_in_sync(kraft: Sandbox) -> None:
    """While such a partition moves, brokers ask for both replicas and writes are refused: it is told for as long as that lasts."""
    with open_cluster(bootstrap_server=kraft.bootstrap_server) as opened:
        cluster = opened.cluster
        cluster.create_topic(MOVING.topic, {0: (1,)}, {"min.insync.replicas": "2"})
        until("the topic", lambda: (s := cluster.partitions([MOVING]).get(MOVING)) is not None and s.leader == 1)
        assert not refused(kraft, MOVING.topic, 2_000)
        rates = [
            ConfigChange(ConfigResource("broker", str(b)), f"{side}.replication.throttled.rate", "set", "1000")
            for b, side in ((1, "leader"), (2, "follower"))
        ]
        lists = [
            ConfigChange(ConfigResource("topic", MOVING.topic), f"{side}.replication.throttled.replicas", "set", "*")
            for side in ("leader", "follower")
        ]

        def throttled() -> bool:
            found = cluster.configs(list({c.resource for c in (*rates, *lists)}))
            entries = [(found.get(c.resource, {}).get(c.key), c.value) for c in (*rates, *lists)]
            return all(entry is not None and entry.value == value for entry, value in entries)

        try:
            assert all(o.ok for o in cluster.alter_configs([*rates, *lists]).values())
            # Brokers hear of it a moment later; without it the copy would be over before anybody looks.
            until("the throttle", throttled)
            assert all(o.ok for o in cluster.alter_reassignments({MOVING: (2,)}).values())
            until("the union", lambda: bool(counted(cluster, MOVING) == {True}))
            until("the leader's refusal", lambda: refused(kraft, MOVING.topic))
        finally:
            gone = [replace(c, operation="delete", value=None) for c in (*rates, *lists)]
            assert all(o.ok for o in cluster.alter_configs(gone).values())
        until("the end of the move", lambda: counted(cluster, MOVING) == {False} and not cluster.reassignments())
        until("the leader's consent", lambda: not refused(kraft, MOVING.topic))


def test_no_plan_makes_a_partition_refuse_writes_that_it_takes(kraft: Sandbox, tmp_path: Path) -> None:
    """A person's plan waits for a word, an ordinary one leaves it in place; a producer with ``acks=all`` sees no refusal.

    With the word it is copied, and refuses writes meanwhile: what the other two are kept from.
    """
    few, plenty = "fewer-than-asked", "as-many-as-asked"
    with scene(kraft, tmp_path) as at:
        at.cluster.create_topic(few, {0: (1,)}, {"min.insync.replicas": "2"})
        at.cluster.create_topic(plenty, {0: (1, 2)}, {"min.insync.replicas": "2"})
        until(
            "the topics",
            lambda: at.in_sync(TopicPartition(few, 0)) == {1} and len(at.in_sync(TopicPartition(plenty, 0))) == 2,
        )
        at.fill(few, range(1), mib=8)
        at.fill(plenty, range(1), mib=8)
        until("its config", lambda: min_isr_of(at.cluster, few) == 2)
        both = at.plan(few, {0: (3,)}), at.plan(plenty, {0: (1, 3)})
        slowly = ("--yes", "--throttle", "1MB", "--output", "json")
        with Writes(kraft.bootstrap_server, (few, plenty)) as writes:
            at.finish("apply", str(both[1]), *slowly)
            told = events(at.finish("apply", str(both[0]), *slowly, "--guard-timeout", "5", code=5))
            assert "replicas-below-min-isr" in json.dumps(told)
            balance = json.loads(
                at.finish("plan", "balance", "--topics", f"{few}|{plenty}", "--band", "0.01", "--output", "json")
            )
            assert few not in {m["topic"] for m in balance["moves"]}
            writes.go_on()
            assert writes.refused == set()
            at.finish("apply", str(both[0]), *slowly, "--replicas-below-min-isr", "allow")
        assert writes.refused == {few}
        becomes(lambda: at.replicas(TopicPartition(few, 0)), (3,))


class Writes:
    """A record to each topic again and again, none of them tried twice, while the block lasts."""

    def __init__(self, bootstrap_server: str, topics: tuple[str, ...]) -> None:
        self.refused: set[str] = set()
        self._topics = topics
        self._rounds = 0
        self._stop = threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap_server, "acks": "all", "retries": 0})
        self._thread = threading.Thread(target=self._write, name="writes", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.go_on()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "the producer did not come to an end"

    def go_on(self) -> None:
        """Until two more rounds have been answered."""
        rounds = self._rounds
        until("an answer to its records", lambda: self._rounds >= rounds + 2)

    def _write(self) -> None:
        while not self._stop.wait(0.05):
            for topic in self._topics:
                self._producer.produce(topic, b"x" * 500, partition=0, on_delivery=partial(self._answered, topic))
            assert self._producer.flush(60) == 0
            self._rounds += 1

    def _answered(self, topic: str, error: KafkaError | None, _: object) -> None:
        if error is not None and error.code() == KafkaError.NOT_ENOUGH_REPLICAS:
            self.refused.add(topic)

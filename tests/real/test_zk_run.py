"""A whole run on brokers that know only ZooKeeper: throttled, one batch at a time, killed in the middle and finished by the next."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer
from tests.waiting import becomes, until

from ballast.adapters.clock import SystemClock
from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.core.plan.fingerprint import fingerprint
from ballast.core.throttles import RATES
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import MoveChanged, RunEvent
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.stages import Moved, Moving
from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.ports.journal import Holder
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import OpenCluster, open_cluster
from ballast.wiring.journal import journal_of

pytestmark = pytest.mark.kafka
LIMIT_S = 90.0
MIB = 1 << 20
POLICY = ExecutionPolicy(throttle=2 * MIB, one_batch_at_a_time=True, moves_at_once=2, measure_s=0.0, poll_s=0.5)


class Died(BaseException):
    """The process is killed in the middle of a step."""


class DiesWhenMoving:
    """Ends the process as soon as a move is seen in flight, or over: a busy machine may look too late for the first batch."""

    def on_event(self, event: RunEvent) -> None:
        """Die."""
        if isinstance(event, MoveChanged) and isinstance(event.after, Moving | Moved):
            raise Died


def filled_topic(opened: OpenCluster) -> list[TopicPartition]:
    """Four partitions on brokers 1 and 2 with four mebibytes each."""
    topic = f"zkrun-{uuid.uuid4().hex[:8]}"
    opened.cluster.create_topic(topic, dict.fromkeys(range(4), (1, 2)))
    names = [TopicPartition(topic, p) for p in range(4)]
    until(lambda: len(opened.cluster.partitions(names)) == 4, "the topic is there")
    producer = Producer({"bootstrap.servers": opened.bootstrap_server, "acks": "all"})
    for name in names:
        for _ in range(40):
            producer.produce(topic, b"x" * 100_000, partition=name.partition)
        producer.flush(LIMIT_S)
    return names


def holder(name: str) -> Holder:
    """A process start with a short lease."""
    return Holder(f"{name}-{uuid.uuid4().hex[:6]}", name, lease_s=5.0)


def test_a_killed_run_is_finished_by_the_next_process(zk23: Sandbox) -> None:
    """The znode's batch goes on by itself; the next process adopts it, moves the rest, and leaves the throttles as they were."""
    with open_cluster(bootstrap_server=zk23.bootstrap_server, zookeeper=zk23.zookeeper) as opened:
        cluster = opened.cluster
        names = filled_topic(opened)
        mine = ConfigChange(ConfigResource("broker", "3"), RATES[0], "set", "77777777")
        assert all(o.ok for o in cluster.alter_configs([mine]).values())
        state = cluster.snapshot()
        assert "reassign" not in state.api
        moves = tuple(Move(n.topic, n.partition, (1, 2), (3, 2)) for n in names)
        plan = Plan("a test", state.cluster_id, fingerprint(state), moves=moves, elections=(names[0],))

        dying = journal_of(opened)
        dying.acquire(holder("dying"), wait_s=60)
        with pytest.raises(Died):
            Driver(cluster, dying, SystemClock(), DiesWhenMoving()).execute(plan, POLICY, run_id="old-one")
        dying.close()

        journal = journal_of(opened)
        journal.acquire(holder("next"), wait_s=60)
        driver = Driver(cluster, journal, SystemClock())
        (run,) = driver.open_runs()
        result = driver.resume(run)
        journal.release()
        journal.close()

        assert (result.status, result.verified, result.elections_completed) == ("done", 4, 1), result.endings
        assert {s.replicas for s in cluster.partitions(names).values()} == {(3, 2)}
        assert cluster.partitions(names)[names[0]].leader == 3
        broker, topic = ConfigResource("broker", "3"), ConfigResource("topic", names[0].topic)
        becomes(
            lambda: {k: v.value for k, v in cluster.configs([broker])[broker].items() if k in RATES},
            {RATES[0]: "77777777"},
        )
        becomes(lambda: [k for k in cluster.configs([topic])[topic] if "throttled" in k], [])
        cluster.alter_configs([ConfigChange(broker, RATES[0], "delete")])

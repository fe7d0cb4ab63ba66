"""The forms of a cluster, each behind the same few calls, for the contract suite.

A form is a port (``cluster``), the time that goes with it, and the hands to disturb it.  A new form (another Kafka, the
simulator) is one more opener in ``FORMS``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from ballast.adapters.clock import SystemClock
from ballast.core.cluster import TopicPartition
from ballast.ports.cluster import Cluster
from ballast.ports.time import Clock
from ballast.sandbox import Sandbox, SandboxSpec
from ballast.wiring.cluster import open_cluster

RECORD_BYTES: Final = 50_000
WAIT_S: Final = 90.0
"""Generous: the machine may be busy; every wait ends as soon as its condition holds."""

_numbers = itertools.count(1)


def new_prefix() -> str:
    """A beginning of topic names that no other test has."""
    return f"contract-{next(_numbers)}"


class Hands(Protocol):
    """What a test does to a cluster behind the port's back."""

    def produce(self, name: TopicPartition, total_bytes: int) -> None:
        """Have this many bytes acknowledged by all in-sync replicas."""

    def delete_topic(self, topic: str) -> None:
        """Delete a topic as another user would."""

    def kill(self, broker: int) -> None:
        """End a broker without a goodbye."""

    def pause(self, broker: int) -> None:
        """Freeze a broker: its connections stand and nothing answers."""

    def stop(self, broker: int) -> None:
        """Have a broker shut down in order."""

    def fail_dir(self, broker: int, log_dir: int) -> None:
        """Make the log dir of this index one that the broker cannot write to."""

    def start(self, broker: int) -> None:
        """Start a broker that was killed, stopped or has lost a log dir, or let a frozen one go on.

        Returns when it is back in the cluster; its log dirs are whole again.
        """


class Memory:
    """Hands that remember which brokers they hold down: the cluster itself takes seconds to notice."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self.down: set[int] = set()

    def produce(self, name: TopicPartition, total_bytes: int) -> None:
        """As the hands do."""
        self._hands.produce(name, total_bytes)

    def delete_topic(self, topic: str) -> None:
        """As the hands do."""
        self._hands.delete_topic(topic)

    def kill(self, broker: int) -> None:
        """Kill, and remember."""
        self.down.add(broker)
        self._hands.kill(broker)

    def pause(self, broker: int) -> None:
        """Freeze, and remember."""
        self.down.add(broker)
        self._hands.pause(broker)

    def stop(self, broker: int) -> None:
        """Stop, and remember."""
        self.down.add(broker)
        self._hands.stop(broker)

    def fail_dir(self, broker: int, log_dir: int) -> None:
        """Break, and remember."""
        self.down.add(broker)
        self._hands.fail_dir(broker, log_dir)

    def start(self, broker: int) -> None:
        """Bring back, and forget."""
        self._hands.start(broker)
        self.down.discard(broker)

    def restore(self) -> None:
        """Bring back whatever is still down."""
        for broker in sorted(self.down):
            self.start(broker)


@dataclass(frozen=True)
class ClusterForm:
    """One cluster: brokers 1, 2, 3 in three racks, two log dirs each."""

    name: str
    cluster: Cluster
    clock: Clock
    hands: Hands
    brokers: tuple[int, ...] = (1, 2, 3)
    prefix: str = field(default_factory=new_prefix)

    @property
    def old(self) -> bool:
        """Its Kafka is older than 2.4."""
        return self.name in MOVES_ONE_BATCH_AT_A_TIME

    @property
    def has_zookeeper(self) -> bool:
        """Its controller works through ZooKeeper."""
        return self.name.startswith("zookeeper")

    def topic(
        self, assignment: dict[int, tuple[int, ...]], configs: dict[str, str] | None = None, name: str = "t"
    ) -> str:
        """A new topic with this assignment, once every replica is in sync and every first replica leads."""
        topic = f"{self.prefix}-{name}"
        self.cluster.create_topic(topic, assignment, configs)

        def ready() -> bool:
            states = self.cluster.partitions([TopicPartition(topic, p) for p in assignment])
            if len(states) < len(assignment) or any(set(s.isr) != set(s.replicas) for s in states.values()):
                return False
            # A broker that has just come back may lose its session once more: what is made then is led by another.
            astray = [name for name, s in states.items() if s.leader != s.replicas[0]]
            if astray:
                self.cluster.elect_leaders(astray)
            return not astray and shown()

        def shown() -> bool:
            # A partition's state and the whole picture may come from two brokers.
            picture = self.cluster.snapshot(log_dirs=False, configs=False)
            rows = {picture.index[TopicPartition(topic, p)]: replicas for p, replicas in assignment.items()}
            return all(
                (picture.isr(row), picture.partitions.leader[row]) == (replicas, replicas[0])
                for row, replicas in rows.items()
            )

        self.until(ready, f"topic {topic} is ready")
        return topic

    def until(self, condition: Callable[[], bool], what: str, *, wait_s: float = WAIT_S) -> None:
        """Wait for a condition; fails the test when it does not come true in time.

        What it looks up may be missing: a broker may not have heard of it yet, or may not have answered this time.
        """
        end = self.clock.monotonic_s() + wait_s
        while True:
            missing: KeyError | None = None
            try:
                if condition():
                    return
            except KeyError as failure:
                missing = failure
            if self.clock.monotonic_s() > end:
                raise AssertionError(f"waited {wait_s:g} s in vain until {what}") from missing
            self.clock.sleep(0.2)


class SandboxHands:
    """Disturbs a sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._paused: set[int] = set()
        self._broken: dict[int, tuple[Path, Path]] = {}

    def produce(self, name: TopicPartition, total_bytes: int) -> None:
        """Produce with acks=all and wait for every acknowledgement."""
        producer = Producer({"bootstrap.servers": self._sandbox.bootstrap_server, "acks": "all", "linger.ms": 5})
        failures: list[object] = []

        def delivered(error: object, _: object) -> None:
            if error is not None:
                failures.append(error)

        for _ in range(max(1, total_bytes // RECORD_BYTES)):
            producer.produce(name.topic, bytes(RECORD_BYTES), partition=name.partition, on_delivery=delivered)
        assert producer.flush(WAIT_S) == 0
        assert not failures, failures

    def delete_topic(self, topic: str) -> None:
        """Delete it with an admin client of its own."""
        admin = AdminClient({"bootstrap.servers": self._sandbox.bootstrap_server})
        admin.delete_topics([topic])[topic].result(WAIT_S)

    def kill(self, broker: int) -> None:
        """SIGKILL."""
        self._sandbox.kill_broker(broker)

    def pause(self, broker: int) -> None:
        """SIGSTOP."""
        self._sandbox.pause_broker(broker)
        self._paused.add(broker)

    def stop(self, broker: int) -> None:
        """SIGTERM."""
        self._sandbox.stop_broker(broker)

    def fail_dir(self, broker: int, log_dir: int) -> None:
        """A file stands where the dir was: the broker's next checkpoint there fails, within seconds."""
        folder = self._sandbox.log_dirs(broker)[log_dir]
        away = folder.with_name(f"{folder.name}-away")
        folder.rename(away)
        folder.touch()
        self._broken[broker] = (folder, away)

    def start(self, broker: int) -> None:
        """SIGCONT for a frozen broker, a new process for a down one or one that has lost a log dir."""
        if broker in self._paused:
            self._paused.remove(broker)
            self._sandbox.resume_broker(broker)
            return
        if broker in self._broken:
            folder, away = self._broken.pop(broker)
            if self._sandbox.running()[broker]:
                # In order: its session with ZooKeeper would stand in the way of the next process.
                self._sandbox.stop_broker(broker)
            folder.unlink()
            away.rename(folder)
        self._sandbox.start_broker(broker)


@contextmanager
def _real(name: str, spec: SandboxSpec) -> Iterator[ClusterForm]:
    with (
        Sandbox.up(spec) as sandbox,
        open_cluster(
            bootstrap_server=sandbox.bootstrap_server,
            zookeeper=sandbox.zookeeper,
            properties=sandbox.client_properties,
        ) as opened,
    ):
        yield ClusterForm(name, opened.cluster, SystemClock(), SandboxHands(sandbox))


FORMS: Final[dict[str, Callable[[], AbstractContextManager[ClusterForm]]]] = {
    "kraft": lambda: _real("kraft", SandboxSpec(log_dirs=2)),
    "kraft39": lambda: _real("kraft39", SandboxSpec(log_dirs=2, kafka_version="3.9.2")),
    "zookeeper": lambda: _real("zookeeper", SandboxSpec(log_dirs=2, kafka_version="3.9.2", mode="zookeeper")),
    "zookeeper23": lambda: _real("zookeeper23", SandboxSpec(log_dirs=2, kafka_version="2.3.1", mode="zookeeper")),
}
"""Every form that the suite runs against."""

MOVES_ONE_BATCH_AT_A_TIME: Final = frozenset({"zookeeper23"})
"""Before KIP-455 a reassignment is a znode, with semantics of its own: tests/real/test_zk_*.py hold these."""

NEEDS_KAFKA: Final = frozenset(FORMS)
"""The forms that are real."""

"""A person who works on the same cluster: what they do, and what has to be there at the end because they did it.

Everything a person does is done again until the cluster has acknowledged it: then there is no doubt about what they want.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic
from tests.chaos.unasked import Requested
from tests.chaos.verdicts import Judge, Violated, Violation
from tests.real.execution_scene import LISTS, RATES

from ballast.core.cluster import TopicPartition
from ballast.errors import BallastError
from ballast.ports.cluster import Cluster, ConfigChange, ConfigResource

T = TypeVar("T")
INSISTS_S: Final = 240.0
"""How long the cluster may be away before a person gives up; longer than any fault."""
TOPIC_VALUES: Final = {
    "retention.ms": ("1209600000", "2419200000"),
    "max.message.bytes": ("2000000", "3000000"),
    "delete.retention.ms": ("43200000", "172800000"),
    "segment.ms": ("302400000", "1209600000"),
}
BROKER_VALUES: Final = {
    "log.cleaner.threads": ("1", "2"),
    "message.max.bytes": ("2000000", "3000000"),
    "log.retention.ms": ("1209600000", "2419200000"),
}
"""Settings that Ballast has nothing to do with, and their values."""
REMADE: Final = "recreated"


class GaveUp(Violated):
    """The cluster did not take what a person wanted, for longer than any fault lasts."""


@dataclass
class Person:
    """One person and what they want."""

    cluster: Cluster
    admin: AdminClient
    server: str
    brokers: tuple[int, ...]
    factors: dict[str, int] = field(default_factory=dict)
    """Topic to replicas of each of its partitions."""
    counts: dict[str, int] = field(default_factory=dict)
    """Topic to partitions."""
    settings: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    """What they have set and not removed."""
    requested: Requested = field(default_factory=Requested)
    """Where they wanted partitions to be."""
    over: threading.Event = field(default_factory=threading.Event)

    # What they do

    def insist(self, what: str, act: Callable[[], T]) -> T:
        """Do it until the cluster has done it."""
        deadline = time.monotonic() + INSISTS_S
        while True:
            try:
                return act()
            except (BallastError, ck.KafkaException) as failure:
                if time.monotonic() > deadline or self.over.wait(1):
                    raise GaveUp(Violation(Judge.WHOLE, f"{what}: {failure}")) from failure
                # A client that was told NOT_CONTROLLER goes on asking the broker that it takes for the controller.
                with suppress(ck.KafkaException):
                    self.admin.list_topics(timeout=15)

    def make_topic(
        self, name: str, rows: list[list[int]], *, kib: int = 0, configs: Mapping[str, str] | None = None
    ) -> None:
        """Make a topic with these replicas, and write so much into each partition."""
        configs = dict(configs or {})

        def make() -> None:
            new = NewTopic(name, num_partitions=len(rows), replica_assignment=rows, config=configs)
            try:
                self.admin.create_topics([new], operation_timeout=20)[name].result(30)
            except ck.KafkaException as failure:
                if failure.args[0].code() != ck.KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
            # With ZooKeeper a topic of this name that is still being deleted exists as well, and no broker shows it.
            found = self.admin.list_topics(timeout=15).topics
            if name not in found or len(found[name].partitions) != len(rows):
                raise ck.KafkaException(ck.KafkaError(ck.KafkaError._FAIL, "it is not there"))

        self.insist(f"make topic {name}", make)
        self.factors[name], self.counts[name] = len(rows[0]), len(rows)
        self.settings[ConfigResource("topic", name)] = configs
        if kib:
            self._fill(name, len(rows), kib)

    def _fill(self, name: str, partitions: int, kib: int) -> None:
        producer = ck.Producer(
            {"bootstrap.servers": self.server, "linger.ms": 20, "message.timeout.ms": 60_000, "log_level": 0}
        )
        block = os.urandom(64 * 1024)
        for _ in range(max(1, kib // 64)):
            for partition in range(partitions):
                producer.produce(name, block, partition=partition)
            producer.poll(0)
        producer.flush(90)

    def set(self, resource: ConfigResource, key: str, value: str | None) -> None:
        """Set one setting, or delete it."""
        self._alter(ConfigChange(resource, key, "delete" if value is None else "set", value))
        wanted = self.settings.setdefault(resource, {})
        if value is None:
            wanted.pop(key, None)
        else:
            wanted[key] = value

    def _alter(self, change: ConfigChange) -> None:
        def alter() -> None:
            (outcome,) = self.cluster.alter_configs([change]).values()
            if not outcome.ok:
                raise ck.KafkaException(ck.KafkaError(ck.KafkaError._FAIL, outcome.message))

        self.insist(f"{change.operation} {change.key} of {change.resource}", alter)

    def _flip(self, rng: Random, resource: ConfigResource, key: str, values: tuple[str, ...]) -> None:
        """Another value than now, or none."""
        now = self.settings.get(resource, {}).get(key)
        self.set(resource, key, rng.choice([v for v in (*values, None) if v != now]))

    def a_topic(self, rng: Random) -> str:
        """One of those that stay."""
        return rng.choice(sorted(name for name in self.factors if not name.startswith(REMADE)))

    def change_topic_config(self, rng: Random) -> None:
        """One that Ballast has nothing to do with."""
        key = rng.choice(sorted(TOPIC_VALUES))
        self._flip(rng, ConfigResource("topic", self.a_topic(rng)), key, TOPIC_VALUES[key])

    def change_broker_config(self, rng: Random) -> None:
        """Likewise."""
        key = rng.choice(sorted(BROKER_VALUES))
        self._flip(rng, ConfigResource("broker", str(rng.choice(self.brokers))), key, BROKER_VALUES[key])

    def change_throttle_rate(self, rng: Random) -> None:
        """A rate of their own, which no run of Ballast's would choose."""
        resource = ConfigResource("broker", str(rng.choice(self.brokers)))
        self._flip(rng, resource, rng.choice(RATES), (str(50_000_000 + rng.randrange(1_000_000)),))

    def change_throttle_list(self, rng: Random) -> None:
        """An entry of their own for a partition that is not there, or everything."""
        resource, key = ConfigResource("topic", self.a_topic(rng)), rng.choice(LISTS)
        now = self.settings.get(resource, {}).get(key)
        if now is None and rng.random() < 0.3:
            self.set(resource, key, "*")
        elif now == "*":
            self.set(resource, key, None)
        elif now is None:
            entry = f"9{rng.randrange(10)}:{rng.choice(self.brokers)}"
            self._alter(ConfigChange(resource, key, "append", entry))
            self.settings.setdefault(resource, {})[key] = entry
        else:
            # The list is empty then, and stays so until a client deletes it.
            self._alter(ConfigChange(resource, key, "subtract", now))
            self.settings[resource].pop(key)

    def reassign(self, rng: Random) -> None:
        """Move a partition elsewhere, whatever anybody else wants."""
        topic = self.a_topic(rng)
        self._reassign(rng, [TopicPartition(topic, rng.randrange(self.counts[topic]))], None)

    def pile_up(self, rng: Random) -> None:
        """Have a topic's partitions all on one broker, and preferably led there."""
        topic = self.a_topic(rng)
        names = [TopicPartition(topic, p) for p in range(self.counts[topic])]
        self._reassign(rng, names, rng.choice(self.brokers))

    def _reassign(self, rng: Random, names: list[TopicPartition], first: int | None) -> None:
        def act() -> None:
            states, moving = self.cluster.partitions(names), self.cluster.reassignments()
            targets: dict[TopicPartition, tuple[int, ...] | None] = {}
            for name in names:
                now = states[name].replicas if name in states else ()
                # A target while a move is in flight may be the list before it, which no KRaft controller ever ends.
                if not now or name in moving:
                    continue
                others = rng.sample([b for b in self.brokers if b != first], self.factors[name.topic])
                target = tuple([first, *others][: len(now)]) if first is not None else tuple(others)
                if target != now:
                    targets[name] = target
                    self.requested.want(name, target)
            if targets:
                self.cluster.alter_reassignments(targets)

        self.insist(f"reassign {names[0].topic}", act)

    def remake_topic(self, rng: Random) -> None:
        """Delete a topic and make another one of the same name."""
        name = rng.choice(sorted(n for n in self.factors if n.startswith(REMADE)))

        def delete() -> None:
            try:
                self.admin.delete_topics([name], operation_timeout=20)[name].result(30)
            except ck.KafkaException as failure:
                if failure.args[0].code() != ck.KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise

        def gone() -> None:
            if name in self.admin.list_topics(timeout=15).topics:
                raise ck.KafkaException(ck.KafkaError(ck.KafkaError._FAIL, "it is still there"))

        self.insist(f"delete {name}", delete)
        self.insist(f"see {name} gone", gone)
        factor = rng.choice((2, 3))
        rows = [rng.sample(self.brokers, factor) for _ in range(rng.randint(2, 8))]
        self.make_topic(name, rows, kib=rng.choice((0, 256, 1024)))

    # What has to be there at the end

    def contradictions(self) -> list[Violation]:
        """What is not as this person left it: replica counts, settings, throttles."""
        return [*(Violation(Judge.REPLICAS, what) for what in self._miscounted()), *self._altered()]

    def _miscounted(self) -> list[str]:
        out = []
        topics = self.admin.list_topics(timeout=20).topics
        for name, factor in self.factors.items():
            found = topics[name].partitions if name in topics else {}
            if len(found) != self.counts[name]:
                out.append(f"{name} has {len(found)} partitions, not {self.counts[name]}")
            out += [
                f"{name}-{p.id} has replicas {p.replicas}, not {factor} of them"
                for p in found.values()
                if len(p.replicas) != factor
            ]
        return out

    def _altered(self) -> list[Violation]:
        resources = [ConfigResource("topic", name) for name in self.factors]
        resources += [ConfigResource("broker", str(b)) for b in self.brokers]
        configs = self.cluster.configs(resources).items()
        return [unlike for resource, entries in configs for unlike in self._unlike(resource, entries)]

    def _unlike(self, resource: ConfigResource, entries: Mapping[str, Any]) -> list[Violation]:
        source = "DYNAMIC_TOPIC_CONFIG" if resource.kind == "topic" else "DYNAMIC_BROKER_CONFIG"
        found = {key: entry.value or "" for key, entry in entries.items() if entry.source == source}
        # An empty list is no list: the last entry may have been taken out by the person or by Ballast.
        found = {key: value for key, value in found.items() if value or key not in LISTS}
        wanted = self.settings.get(resource, {})
        return [
            Violation(
                Judge.THROTTLES if key in {*LISTS, *RATES} else Judge.SETTINGS,
                f"{resource.kind} {resource.name} {key} is {found.get(key)!r}, not {wanted.get(key)!r}",
            )
            for key in sorted({*found, *wanted})
            if found.get(key) != wanted.get(key)
        ]

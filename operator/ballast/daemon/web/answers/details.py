"""What the HTTP API answers of one broker, of one topic, and of the partitions in one state."""

from __future__ import annotations

from typing import Literal

from ballast.core.document_types import Known
from ballast.daemon.web.answers.base import Answer, Part


class LogDir(Part):
    """One log directory."""

    path: str
    total_bytes: Known
    usable_bytes: Known
    cordoned: bool
    error: str | None


class Rate(Part):
    """A replication rate that is set on a broker."""

    key: str
    value: str


class Replica(Part):
    """One replica of a broker."""

    topic: str
    partition: int
    leader: bool
    preferred: bool
    in_sync: bool
    adding: bool
    removing: bool
    size_bytes: Known


class DaemonBroker(Answer):
    """One broker; the largest replicas first."""

    kind: Literal["DaemonBroker"] = "DaemonBroker"
    id: int
    rack: str | None
    host: str | None
    """Null for a broker that is down, and so is ``port``."""
    port: int | None
    alive: bool
    reachable: bool
    controller: bool
    log_dirs: list[LogDir]
    throttles: list[Rate]
    total: int
    """Replicas; at most 1000 of them are listed."""
    replicas: list[Replica]


class Partition(Part):
    """One partition; mid-move, ``replicas`` is the union of old and new."""

    topic: str
    partition: int
    leader: Known
    preferred_leader: int
    replicas: list[int]
    in_sync_replicas: list[int]
    adding: list[int]
    removing: list[int]
    size_bytes: Known
    """Of the leader's log."""
    lag: int | None
    """Messages that the slowest replica is behind its leader; null where one of their brokers has not told, and outside a topic's own answer."""


class DaemonTopic(Answer):
    """One topic and its partitions."""

    kind: Literal["DaemonTopic"] = "DaemonTopic"
    topic: str
    internal: bool
    min_isr: Known
    size_bytes: int | None
    """Of all replicas."""
    throttled: bool
    total: int
    """Partitions; at most 1000 of them are listed."""
    partitions: list[Partition]


class DaemonPartitions(Answer):
    """The partitions in one state."""

    kind: Literal["DaemonPartitions"] = "DaemonPartitions"
    state: str
    total: int
    """At most 1000 of them are listed."""
    partitions: list[Partition]

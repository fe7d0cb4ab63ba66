"""The picture of a cluster that every decision is made from.

``ClusterState`` is immutable and columnar: one NumPy array per attribute, partitions in ``(topic, number)`` order,
their replicas in one flat run addressed by ``start`` (compressed sparse rows).  It says what the cluster said and marks
what the cluster did not say: an unknown size is ``UNKNOWN``, never zero.  It decides nothing and reads nothing.

A partition that is being reassigned lists the *union* of its old and new replicas, as Kafka's metadata does (KIP-860
warns of it): ``adding`` and ``removing`` tell the two apart.  Use ``target`` for where it is going and ``settled`` for
what it was before; never treat the union as an assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ballast.core.field_types import Known
from ballast.errors import UsageError

Ints = npt.NDArray[np.int64]
SmallInts = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

UNKNOWN: Final = -1
"""A figure that the cluster did not give."""
NO_LEADER: Final = -1
"""The partition is known to have no leader now."""
STORAGE_ERROR: Final = "KAFKA_STORAGE_ERROR"
"""How a broker reports a log dir whose disk failed."""
LOG_DIRS: Final = "log dirs"
"""What is missing where a broker did not tell its log dirs: see ``Gap``."""
CONFIGS: Final = "configs"
"""The same of the configs of a broker or a topic."""
NO_LEADERSHIP_RECORD: Final = -2
"""The cluster has no leadership record for the partition at all (it is being created, or its metadata failed)."""


class TopicPartition(NamedTuple):
    """A partition's name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of a broker; sizes are not known before Kafka 3.3 (KIP-827)."""

    path: str
    total_bytes: Known = UNKNOWN
    usable_bytes: Known = UNKNOWN
    cordoned: bool = False
    error: str | None = None

    @property
    def failed(self) -> bool:
        """Its disk failed, or was taken offline by the broker; any other error says nothing about the disk."""
        return self.error == STORAGE_ERROR


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that the cluster or a replica list names; one that is down has no host."""

    id: int
    rack: str | None = None
    host: str = ""
    port: int = 0
    alive: bool = True
    controller: bool = False
    reachable: bool = True
    """False when it was asked and did not answer, whatever the cluster still says of it."""
    log_dirs: tuple[LogDir, ...] = ()
    log_dirs_known: bool = False
    """False when the broker did not answer: its replicas' sizes are then ``UNKNOWN``."""

    @property
    def bad_log_dirs(self) -> tuple[LogDir, ...]:
        """Log dirs that it reports with an error."""
        return tuple(d for d in self.log_dirs if d.error)

    @property
    def cordoned(self) -> bool:
        """No log dir of this broker takes new replicas (KIP-1066)."""
        return bool(self.log_dirs) and all(d.cordoned for d in self.log_dirs)

    @property
    def capacity_bytes(self) -> int:
        """Total size of its log dirs that have not failed, ``UNKNOWN`` unless every one of these is known."""
        totals = [d.total_bytes for d in self.log_dirs if not d.failed]
        return sum(totals) if totals and min(totals) >= 0 else UNKNOWN

    @property
    def usable_bytes(self) -> int:
        """Free space over its log dirs that have not failed, ``UNKNOWN`` unless every one of these is known."""
        free = [d.usable_bytes for d in self.log_dirs if not d.failed]
        return sum(free) if free and min(free) >= 0 else UNKNOWN

    @property
    def used_bytes(self) -> int:
        """Capacity less free space, used by Kafka or by anything else; ``UNKNOWN`` unless it told both."""
        total, free = self.capacity_bytes, self.usable_bytes
        return total - free if total >= 0 and free >= 0 else UNKNOWN


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A config entry and where it comes from; a sensitive one has no value."""

    value: str | None
    source: str
    """Kafka's ConfigSource name: DYNAMIC_TOPIC_CONFIG, DYNAMIC_BROKER_CONFIG, STATIC_BROKER_CONFIG, …"""


@dataclass(frozen=True, slots=True)
class Gap:
    """Something the cluster should have said and did not."""

    subject: str
    """For example ``broker 3`` or ``topic orders``."""
    missing: str
    """``LOG_DIRS``, ``CONFIGS``, or in words what else."""
    detail: str
    broker: int | None = None
    """The broker, where the subject is one."""

    @classmethod
    def of_broker(cls, broker: int, missing: str, detail: str) -> Gap:
        """What a broker should have said."""
        return cls(f"broker {broker}", missing, detail, broker)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and the few facts about it that decisions need."""

    name: str
    topic_id: str | None = None
    internal: bool = False
    deleting: bool = False
    min_isr: int = UNKNOWN
    configs: Mapping[str, ConfigValue] = field(default_factory=dict)
    """The topic's own (dynamic) entries only."""

    @property
    def tiered(self) -> bool:
        """Its older segments are in remote storage (KIP-405), and brokers hold the rest; False where its configs are not known."""
        entry = self.configs.get("remote.storage.enable")
        return entry is not None and entry.value == "true"


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """The partition columns (length P) and the replica columns (length R, addressed by ``start``)."""

    topic: SmallInts
    """Index into ``ClusterState.topics``."""
    number: SmallInts
    leader: SmallInts
    """A broker id, ``NO_LEADER`` or ``NO_LEADERSHIP_RECORD``."""
    start: Ints
    """Replicas of partition p are ``start[p]:start[p + 1]``; length P + 1."""
    replica: SmallInts
    """Broker ids, in assignment order; the first of the target is the preferred leader."""
    in_sync: Flags
    adding: Flags
    removing: Flags
    size_bytes: Ints
    """Size on disk or ``UNKNOWN``."""
    lag: Ints
    """Messages behind the leader or ``UNKNOWN``; a snapshot does not ask for it (``core.cluster.log_ends``)."""
    log_dir: SmallInts
    """Index into the broker's ``log_dirs`` or ``UNKNOWN``."""
    future_size_bytes: Ints
    """Size of the copy being made in another log dir of the same broker; ``UNKNOWN`` when there is none."""
    offline: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    """The cluster says that this replica cannot serve: its broker is down or its log dir has failed.

    Left out, no replica is known to be offline.
    """
    future_log_dir: SmallInts = field(default_factory=lambda: np.zeros(0, np.int32))
    """The log dir that this copy is made in, as ``log_dir``.  Left out, none is known."""

    def __post_init__(self) -> None:
        if len(self.offline) != len(self.replica):
            object.__setattr__(self, "offline", np.zeros(len(self.replica), np.bool_))
        if len(self.future_log_dir) != len(self.replica):
            object.__setattr__(self, "future_log_dir", np.full(len(self.replica), UNKNOWN, np.int32))
        for column in (
            self.offline,
            self.future_log_dir,
            self.topic,
            self.number,
            self.leader,
            self.start,
            self.replica,
            self.in_sync,
            self.adding,
            self.removing,
            self.size_bytes,
            self.lag,
            self.log_dir,
            self.future_size_bytes,
        ):
            column.setflags(write=False)

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, eq=False)
class ClusterState:
    """One reading of one cluster."""

    cluster_id: str
    taken_at_ms: int
    brokers: tuple[Broker, ...]
    """By id."""
    topics: tuple[Topic, ...]
    """By name."""
    partitions: Partitions
    broker_configs: Mapping[int, Mapping[str, ConfigValue]] = field(default_factory=dict)
    """Per broker, the entries whose source is the broker's own or the cluster-wide dynamic default, or static."""
    cluster_configs: Mapping[str, ConfigValue] = field(default_factory=dict)
    """The cluster-wide dynamic broker default (resource BROKER with an empty name)."""
    gaps: tuple[Gap, ...] = ()
    api: frozenset[str] = frozenset()
    """What the cluster can do: ``reassign`` (KIP-455), ``reassign-v1`` (replication-factor flag), ``zookeeper``, …"""
    kafka_version: str | None = None
    """The broker's version or metadata version as far as it can be told, for example ``4.3``."""
    controller_id: int = UNKNOWN
    """The active controller, which on KRaft may be a node that is no broker."""

    @cached_property
    def broker_index(self) -> dict[int, int]:
        """Broker id to position in ``brokers``."""
        return {b.id: i for i, b in enumerate(self.brokers)}

    @cached_property
    def topic_index(self) -> dict[str, int]:
        """Topic name to position in ``topics``."""
        return {t.name: i for i, t in enumerate(self.topics)}

    @cached_property
    def index(self) -> dict[TopicPartition, int]:
        """Partition name to row."""
        names = [t.name for t in self.topics]
        rows = zip(self.partitions.topic.tolist(), self.partitions.number.tolist(), strict=True)
        return {TopicPartition(names[t], n): i for i, (t, n) in enumerate(rows)}

    @property
    def alive(self) -> frozenset[int]:
        """Ids of the brokers that are registered and unfenced."""
        return frozenset(b.id for b in self.brokers if b.alive)

    @property
    def missing(self) -> frozenset[int]:
        """Ids of the brokers that are down and hold replicas.

        KRaft remembers a broker until an operator unregisters it: one that was emptied and stopped is no loss.
        """
        holding = {int(b) for b in np.unique(self.partitions.replica)}
        return frozenset(b.id for b in self.brokers if not b.alive and b.id in holding)

    def broker(self, broker_id: int) -> Broker | None:
        """The broker with this id, if the cluster or any replica list names it."""
        i = self.broker_index.get(broker_id)
        return None if i is None else self.brokers[i]

    def require_brokers(self, ids: Iterable[int]) -> None:
        """Raise ``UsageError`` where one of these is no broker of this cluster."""
        missing = sorted(set(ids) - self.broker_index.keys())
        if missing:
            known = ", ".join(map(str, sorted(self.broker_index)))
            raise UsageError(f"There is no broker {missing[0]}.", hint=f"The cluster has brokers {known}.")

    def require_topics(self, names: Iterable[str], hint: str | None = None) -> None:
        """Raise ``UsageError`` where one of these is no topic of this cluster."""
        missing = next((n for n in names if n not in self.topic_index), None)
        if missing is not None:
            raise UsageError(f"Topic {missing} does not exist.", hint=hint)

    def name(self, row: int) -> TopicPartition:
        """The name of the partition in this row."""
        p = self.partitions
        return TopicPartition(self.topics[int(p.topic[row])].name, int(p.number[row]))

    def replicas(self, row: int) -> tuple[int, ...]:
        """Every replica the metadata lists, in order: mid-move, the union of old and new."""
        p = self.partitions
        return tuple(p.replica[p.start[row] : p.start[row + 1]].tolist())

    def isr(self, row: int) -> tuple[int, ...]:
        """The replicas in sync, in assignment order."""
        p = self.partitions
        run = slice(p.start[row], p.start[row + 1])
        return tuple(p.replica[run][p.in_sync[run]].tolist())

    def target(self, row: int) -> tuple[int, ...]:
        """The assignment the partition has, or is on its way to."""
        p = self.partitions
        run = slice(p.start[row], p.start[row + 1])
        return tuple(p.replica[run][~p.removing[run]].tolist())

    def settled_replicas(self, row: int) -> tuple[int, ...]:
        """The replicas before the move in progress, in the order the union shows (Kafka may have changed it)."""
        p = self.partitions
        run = slice(p.start[row], p.start[row + 1])
        return tuple(p.replica[run][~p.adding[run]].tolist())

    @cached_property
    def moving(self) -> Flags:
        """Per partition: is a reassignment in progress?"""
        p = self.partitions
        busy = np.concatenate(([0], np.cumsum(p.adding | p.removing)))
        return np.asarray(busy[p.start[1:]] > busy[p.start[:-1]])

    @cached_property
    def preferred(self) -> SmallInts:
        """Per partition: the first replica of the target assignment, ``UNKNOWN`` where the list is empty."""
        p = self.partitions
        out = np.full(len(p), UNKNOWN, np.int32)
        row = np.repeat(np.arange(len(p)), np.diff(p.start))
        keep = ~p.removing
        # Written back to front so that the first kept replica of each row is the one that stays.
        out[row[keep][::-1]] = p.replica[keep][::-1]
        return out


@dataclass(slots=True)
class PartitionRow:
    """One partition as a reader or a test hands it to ``build``; columns not given are unknown."""

    topic: str
    number: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    sizes: tuple[int, ...] | None = None
    lags: tuple[int, ...] | None = None
    log_dirs: tuple[int, ...] | None = None
    future_sizes: tuple[int, ...] | None = None
    future_dirs: tuple[int, ...] | None = None
    offline: tuple[int, ...] = ()


def build(
    cluster_id: str,
    brokers: tuple[Broker, ...],
    topics: tuple[Topic, ...],
    rows: list[PartitionRow],
    *,
    taken_at_ms: int = 0,
    broker_configs: Mapping[int, Mapping[str, ConfigValue]] | None = None,
    cluster_configs: Mapping[str, ConfigValue] | None = None,
    gaps: tuple[Gap, ...] = (),
    api: frozenset[str] = frozenset(),
    kafka_version: str | None = None,
) -> ClusterState:
    """Sort and pack rows into columns; brokers that only a replica list names are added as down."""
    topics = tuple(sorted(topics, key=lambda t: t.name))
    at = {t.name: i for i, t in enumerate(topics)}
    rows = sorted(rows, key=lambda r: (at[r.topic], r.number))
    known = {b.id: b for b in brokers}
    for r in rows:
        for b in r.replicas:
            if b not in known:
                known[b] = Broker(b, alive=False)
    counts = [len(r.replicas) for r in rows]
    start = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(counts, out=start[1:])

    def figures(attribute: str) -> list[int]:
        out: list[int] = []
        for r in rows:
            values = getattr(r, attribute)
            out.extend(values if values is not None else (UNKNOWN,) * len(r.replicas))
        return out

    def members(attribute: str) -> Flags:
        flags = [b in getattr(r, attribute) for r in rows for b in r.replicas]
        return np.array(flags, dtype=np.bool_)

    return ClusterState(
        cluster_id=cluster_id,
        taken_at_ms=taken_at_ms,
        brokers=tuple(known[i] for i in sorted(known)),
        topics=topics,
        partitions=Partitions(
            topic=np.array([at[r.topic] for r in rows], np.int32),
            number=np.array([r.number for r in rows], np.int32),
            leader=np.array([r.leader for r in rows], np.int32),
            start=start,
            replica=np.array([b for r in rows for b in r.replicas], np.int32),
            in_sync=members("isr"),
            adding=members("adding"),
            removing=members("removing"),
            offline=members("offline"),
            size_bytes=np.array(figures("sizes"), np.int64),
            lag=np.array(figures("lags"), np.int64),
            log_dir=np.array(figures("log_dirs"), np.int32),
            future_size_bytes=np.array(figures("future_sizes"), np.int64),
            future_log_dir=np.array(figures("future_dirs"), np.int32),
        ),
        broker_configs=broker_configs or {},
        cluster_configs=cluster_configs or {},
        gaps=gaps,
        api=api,
        kafka_version=kafka_version,
    )

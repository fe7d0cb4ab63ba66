"""The tables of samples: one reading of a cluster each minute, as plain rows that any engine reads.

The daemon writes them and Spark reads them, so their columns are written down here, below both.  A row carries what the
cluster said and, because the sampler knows the sample before, the rates of the interval that ends with it
(``core.samples.rates``).  What is not known is null, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, Flags, Ints, TopicPartition
from ballast.core.cluster.external_load import ExternalLoad
from ballast.core.cluster.log_ends import LocalStarts


class Column(NamedTuple):
    """A column of a table: its name, its type in Spark's and Delta's words, what it means and in which unit."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One Delta table of the store."""

    name: str
    version: int = 1
    """Of its layout, written into the table's description; a reader refuses a newer one."""
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    """Whole partitions are replaced when a job runs again, which is what makes every job repeatable."""
    purpose: str

    @property
    def ddl(self) -> str:
        """The columns as Spark writes them."""
        return ", ".join(f"{c.name} {c.type}" for c in self.columns)

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [c.name for c in self.columns]


CLUSTER: Final = Column("cluster", "string", "cluster id as Kafka gives it")
HOUR: Final = Column("hour", "timestamp", "beginning of the UTC hour; the table is partitioned by it")
TIME: Final = Column("time", "timestamp", "when the sample was taken; one a minute and cluster")
TOPIC_PARTITION: Final = (
    Column("topic", "string", "topic name"),
    Column(
        "topic_id", "string", "topic id, empty where the cluster has none; tells a recreated topic from the old one"
    ),
    Column("partition", "int", "partition number"),
)

SAMPLES: Final = Table(
    name="samples",
    partition_by=("hour",),
    purpose="a row for each partition and minute",
    columns=(
        CLUSTER,
        HOUR,
        TIME,
        *TOPIC_PARTITION,
        Column("leader", "int", "broker id, -1 no leader; null where there is no leadership record"),
        Column("leader_before", "int", "the last leader known before this sample; null where none is"),
        Column("preferred_leader", "int", "first replica of the target assignment"),
        Column("deleting", "boolean", "the topic is queued for deletion"),
        Column("earliest_offset", "bigint", "first offset on the leader's disk; of a tiered topic its local log start"),
        Column("end_offset", "bigint", "high watermark"),
        Column("seconds", "float", "length of the interval that the rates are over; null where no rate is known"),
        Column("bytes_in", "float", "bytes/s appended since the sample before"),
        Column("records_in", "float", "records/s appended since the sample before, by offsets"),
        Column("bytes_out", "float", "bytes/s read by consumers; null without metrics of the brokers"),
        Column("replicas", "array<int>", "broker ids in assignment order; the arrays below have an entry for each"),
        Column("in_sync", "array<boolean>", "in the ISR"),
        Column("size_bytes", "array<bigint>", "bytes on disk"),
        Column("lag_records", "array<bigint>", "records from its log end to the leader's"),
        Column("log_dir", "array<string>", "path of its log directory"),
    ),
)
BROKERS: Final = Table(
    name="brokers",
    partition_by=("hour",),
    purpose="a row for each broker and minute",
    columns=(
        CLUSTER,
        HOUR,
        TIME,
        Column("broker", "int", "broker id"),
        Column("rack", "string", "rack"),
        Column("alive", "boolean", "registered and unfenced"),
        Column("controller", "boolean", "is the active controller"),
        Column("bytes_in", "double", "bytes/s from producers; null without metrics of the brokers, as those below"),
        Column("bytes_out", "double", "bytes/s to consumers"),
        Column("requests", "double", "requests/s"),
        Column("cpu", "double", "CPU seconds per second"),
    ),
)
LOG_DIRS: Final = Table(
    name="log_dirs",
    partition_by=("hour",),
    purpose="a row for each log directory and minute",
    columns=(
        CLUSTER,
        HOUR,
        TIME,
        Column("broker", "int", "broker id"),
        Column("path", "string", "log directory"),
        Column("total_bytes", "bigint", "size of its disk"),
        Column("usable_bytes", "bigint", "free space"),
        Column("cordoned", "boolean", "takes no new replicas"),
        Column("error", "string", "what the broker said of it; null where all is well"),
    ),
)
CLUSTERS: Final = Table(
    name="clusters",
    partition_by=("hour",),
    purpose="a row for each cluster and minute: what the page's charts show",
    columns=(
        CLUSTER,
        HOUR,
        Column("time", "timestamp", "when the cluster was read"),
        Column(
            "imbalance",
            "double",
            "of the partitions whose preferred leader the worst broker is, the fraction that it does not lead",
        ),
        Column(
            "disk_skew", "double", "the largest distance of a broker's disk from its fair share, part of that share"
        ),
        Column("bytes_in", "double", "bytes/s by which leaders' logs grew: the least that came in"),
        Column("moving", "bigint", "partitions being reassigned"),
        Column("under_replicated", "bigint", "partitions with a replica that is not in sync"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A cluster at one moment, as the page's charts show it; a figure that the reading did not have is None."""

    at_ms: int
    imbalance: float
    """The worst broker's share of preferred leaderships that it does not lead."""
    disk_skew: float | None
    """The largest distance of a broker's disk from its fair share, as a part of that share."""
    bytes_in_per_s: float | None
    """By how much logs grew since the point before; None for the first one, and where sizes are not known."""
    moving: int
    under_replicated: int
    measured_bytes_in_per_s: float | None = None
    """What brokers measured of producers in the minute before; None where no metrics of theirs are read, and not in the store."""


@dataclass(frozen=True, slots=True, eq=False)
class MinuteSample:
    """One reading of a cluster with its offsets, in the state's own order."""

    state: ClusterState
    earliest: Ints
    """Per partition: the first offset on the leader's disk, or ``UNKNOWN``."""
    high_watermark: Ints
    taken_at_ms: int
    """Wall clock, milliseconds since the epoch."""
    monotonic_ms: int
    """The writer's monotonic clock, comparable within one ``writer`` only."""
    writer: str
    """Unique for each start of the sampling process."""
    external: ExternalLoad | None = None

    @property
    def cluster(self) -> str:
        """The cluster's id."""
        return self.state.cluster_id

    @property
    def epoch_minute(self) -> int:
        """Minutes since the epoch: the sample's identity within its cluster."""
        return self.taken_at_ms // 60_000

    @property
    def topics(self) -> tuple[tuple[str, str], ...]:
        """Name and id of each topic; the id is empty where the cluster has none."""
        return tuple((t.name, t.topic_id or "") for t in self.state.topics)

    @property
    def compacted(self) -> Flags:
        """Per partition: the cleaner may shrink its log."""
        policies = [t.configs.get("cleanup.policy") for t in self.state.topics]
        topics = np.array([c is not None and "compact" in (c.value or "") for c in policies], np.bool_)
        return _per_partition(topics, self.state)

    @property
    def deleting(self) -> Flags:
        """Per partition: its topic is queued for deletion."""
        return _per_partition(np.array([t.deleting for t in self.state.topics], np.bool_), self.state)


def _per_partition(of_topics: Flags, state: ClusterState) -> Flags:
    return of_topics[state.partitions.topic] if len(state.partitions) else np.zeros(0, np.bool_)


def offset_columns(
    state: ClusterState, offsets: Mapping[TopicPartition, object], local_starts: LocalStarts
) -> tuple[Ints, Ints]:
    """First offset on the leader's disk and high watermark in the state's row order, ``UNKNOWN`` where no leader answered.

    ``offsets`` maps to anything with ``earliest`` and ``high_watermark``, as ``ports.cluster.Offsets`` has.  The first offset
    belongs to the sizes, which are those of local logs: for tiered topics it is the local log start alone, never the earliest.
    """
    earliest = np.full(len(state.partitions), UNKNOWN, np.int64)
    high = np.full(len(state.partitions), UNKNOWN, np.int64)
    for name, row in state.index.items():
        found = offsets.get(name)
        if found is not None:
            earliest[row] = getattr(found, "earliest", UNKNOWN)
            high[row] = getattr(found, "high_watermark", UNKNOWN)
    tiered = _per_partition(np.array([t.tiered for t in state.topics], np.bool_), state)
    for row in np.flatnonzero(tiered).tolist():
        told = local_starts.get(int(state.partitions.leader[row]), {})
        earliest[row] = told.get(state.name(row), UNKNOWN)
    return earliest, high

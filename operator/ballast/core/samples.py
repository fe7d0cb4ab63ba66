"""The minute sample: one reading of a cluster, laid out for a columnar table.

The daemon writes samples and Spark reads them, so the layout lives here, below both.  A sample is *raw*: sizes and offsets
as the cluster gave them, ``UNKNOWN`` where it did not.  Rates are computed later from consecutive samples (``core.rates``),
because only the reader of a whole hour can tell growth from retention, compaction, restarts and gaps.

One minute is a handful of rows, not one per replica: partitions are cut into ``chunks`` by a stable hash, and each row
carries one chunk as aligned arrays.  A fold then works on arrays of thousands of partitions at a time.  ``chunks`` is a power of two, so that rows of a smaller count can be folded together with rows
of a larger one: ``chunk % smaller`` names the same partitions.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, Flags, Ints, SmallInts, TopicPartition
from ballast.core.external_load import ExternalLoad

SAMPLES_VERSION: Final = 1
"""Version of the minute table's layout; a reader refuses a newer one."""
SAMPLES_TABLE: Final = "samples_minute"
BROKER_CHUNK: Final = -1
"""The chunk number of the row that carries the brokers instead of partitions."""
PARTITIONS_PER_CHUNK: Final = 4096
MOST_CHUNKS: Final = 1024
CHUNKS_PER_ROW_GROUP: Final = 8
"""Rows of a file that are read together: a fold of some chunks decodes no others, and a few megabytes are worth a seek."""
BLOCK: Final = 512
"""So many neighbouring partitions of a topic stay in one chunk; a topic larger than that spreads over chunks."""


class Column(NamedTuple):
    """A column of a table: its name, its type in Spark's and Delta's words, what it means and in which unit."""

    name: str
    type: str
    meaning: str


BROKER_TYPE: Final = (
    "array<struct<id:int,rack:string,alive:boolean,controller:boolean,"
    "dirs:array<struct<path:string,total_bytes:bigint,usable_bytes:bigint,cordoned:boolean,error:string>>,"
    "bytes_in:double,bytes_out:double,requests:double,cpu:double>>"
)
MINUTE_COLUMNS: Final = (
    Column("cluster", "string", "cluster id as Kafka gives it"),
    Column("hour", "string", "UTC hour of the sample, `2026-11-21T14`; the table is partitioned by it"),
    Column("minute", "int", "minute of that hour, 0 to 59"),
    Column("chunk", "int", "which chunk of the partitions this row carries; -1 is the row of the brokers"),
    Column("chunks", "int", "how many chunks the minute was cut into, a power of two"),
    Column("taken_at_ms", "bigint", "wall clock of the reading, milliseconds since the epoch"),
    Column("monotonic_ms", "bigint", "the writer's monotonic clock, comparable within one `writer` only"),
    Column("writer", "string", "unique for each start of the sampling process"),
    Column("topic", "array<string>", "topics of this chunk"),
    Column("topic_id", "array<string>", "their ids, empty where the cluster has none"),
    Column("compacted", "array<boolean>", "is `compact` in their cleanup policy?"),
    Column("deleting", "array<boolean>", "are they queued for deletion?"),
    Column("partition_topic", "binary", "int32 per partition: position in `topic`"),
    Column("partition", "binary", "int32 per partition: its number"),
    Column("leader", "binary", "int32 per partition: broker id, -1 no leader, -2 no record"),
    Column("earliest", "binary", "int64 per partition: first offset, -1 unknown"),
    Column("high_watermark", "binary", "int64 per partition: high watermark, -1 unknown"),
    Column(
        "bytes_out",
        "binary",
        "float32 per partition: bytes/s to consumers, -1 unknown; null where no metrics were at hand",
    ),
    Column("replica_count", "binary", "int32 per partition: how many of the following replicas are its own"),
    Column("replica", "binary", "int32 per replica: broker id, in assignment order"),
    Column("in_sync", "binary", "bool per replica: in the ISR"),
    Column("removing", "binary", "bool per replica: on its way out, so not part of the target assignment"),
    Column("size_bytes", "binary", "int64 per replica: bytes on disk, -1 unknown"),
    Column("lag", "binary", "int64 per replica: messages from its log end to the leader's, -1 unknown"),
    Column("log_dir", "binary", "int32 per replica: position in its broker's `dirs`, -1 unknown"),
    Column(
        "brokers",
        BROKER_TYPE,
        "the brokers, in the row of chunk -1 only: id, rack, alive, controller, `dirs` (path, total and usable bytes, cordoned, "
        "error), and where metrics were at hand, else null, bytes_in and bytes_out (bytes/s), requests (1/s) and cpu (seconds "
        "per second)",
    ),
)
"""The minute table: a row for each chunk of a minute, and one for the brokers.

``binary`` columns are packed little-endian arrays, one entry for each partition or replica.  To Spark each is
one value, where a list column is an array of values that it knows one by one; the fold reads them as NumPy arrays.
``samples_hour`` has the same figures as plain arrays, for people and other engines.
"""
PACKED: Final[Mapping[str, str]] = {
    "partition_topic": "<i4",
    "partition": "<i4",
    "leader": "<i4",
    "earliest": "<i8",
    "high_watermark": "<i8",
    "bytes_out": "<f4",
    "replica_count": "<i4",
    "replica": "<i4",
    "in_sync": "|b1",
    "removing": "|b1",
    "size_bytes": "<i8",
    "lag": "<i8",
    "log_dir": "<i4",
}
"""NumPy's name of the entries of each packed column."""


@dataclass(frozen=True, slots=True, eq=False)
class MinuteSample:
    """One reading in chunk order: partition columns of length P, replica columns of length R.

    Chunk c is rows ``partition_start[c]:partition_start[c + 1]`` and ``replica_start[c]:replica_start[c + 1]``.
    """

    cluster: str
    taken_at_ms: int
    monotonic_ms: int
    writer: str
    state: ClusterState
    chunks: int
    partition_start: Ints
    replica_start: Ints
    topic: SmallInts
    """Per partition: index into ``state.topics``."""
    number: SmallInts
    leader: SmallInts
    earliest: Ints
    high_watermark: Ints
    replica_count: SmallInts
    replica: SmallInts
    in_sync: Flags
    removing: Flags
    size_bytes: Ints
    lag: Ints
    log_dir: SmallInts
    compacted: Flags
    """Per topic of the state."""
    deleting: Flags
    """Per topic of the state."""
    external: ExternalLoad | None = None

    @property
    def epoch_minute(self) -> int:
        """Minutes since the epoch: the sample's identity within its cluster."""
        return self.taken_at_ms // 60_000


def chunk_count(partitions: int) -> int:
    """Return the power of two that keeps chunks near ``PARTITIONS_PER_CHUNK``."""
    wanted = -(-max(partitions, 1) // PARTITIONS_PER_CHUNK)
    return min(1 << (wanted - 1).bit_length(), MOST_CHUNKS)


def chunk_of(state: ClusterState, chunks: int) -> Ints:
    """Per partition: its chunk, from the topic's name and the partition's number alone."""
    seeds = np.array([topic_seed(t.name) for t in state.topics], np.int64)
    p = state.partitions
    return chunk_numbers(seeds[p.topic], p.number, chunks) if len(p) else np.zeros(0, np.int64)


def topic_seed(name: str) -> int:
    """What a topic's partitions have in common in their chunks' numbers."""
    return zlib.crc32(name.encode())


def chunk_numbers(seeds: Ints, number: SmallInts, chunks: int) -> Ints:
    """The chunks of partitions with these topics' seeds and these numbers; stable for ever, since tables are cut by it."""
    return (seeds + number // BLOCK) % chunks


def offset_columns(
    state: ClusterState, offsets: Mapping[TopicPartition, tuple[int, int]] | Mapping[TopicPartition, object]
) -> tuple[Ints, Ints]:
    """Earliest offset and high watermark in the state's row order, ``UNKNOWN`` where no leader answered.

    ``offsets`` maps to anything with ``earliest`` and ``high_watermark``, as ``ports.cluster.Offsets`` has.
    """
    earliest = np.full(len(state.partitions), UNKNOWN, np.int64)
    high = np.full(len(state.partitions), UNKNOWN, np.int64)
    for name, row in state.index.items():
        found = offsets.get(name)
        if found is not None:
            earliest[row] = getattr(found, "earliest", UNKNOWN)
            high[row] = getattr(found, "high_watermark", UNKNOWN)
    return earliest, high


def sample(
    state: ClusterState,
    *,
    earliest: Ints,
    high_watermark: Ints,
    taken_at_ms: int,
    monotonic_ms: int,
    writer: str,
    external: ExternalLoad | None = None,
) -> MinuteSample:
    """Lay a reading out in chunks; O(P log P + R), no Python object per partition."""
    p = state.partitions
    chunks = chunk_count(len(p))
    chunk = chunk_of(state, chunks)
    order = np.argsort(chunk, kind="stable")
    counts = np.diff(p.start)
    moved = counts[order]
    # Replica rows follow their partitions: each run starts at its old start and counts up.
    first = np.repeat(p.start[:-1][order], moved)
    within = np.arange(len(first)) - np.repeat(np.cumsum(moved) - moved, moved)
    replicas = first + within
    partition_start = np.searchsorted(chunk[order], np.arange(chunks + 1))
    replica_start = np.concatenate(([0], np.cumsum(moved)))[partition_start]
    policies = [t.configs.get("cleanup.policy") for t in state.topics]
    return MinuteSample(
        cluster=state.cluster_id,
        taken_at_ms=taken_at_ms,
        monotonic_ms=monotonic_ms,
        writer=writer,
        state=state,
        chunks=chunks,
        partition_start=partition_start.astype(np.int64),
        replica_start=replica_start.astype(np.int64),
        topic=p.topic[order],
        number=p.number[order],
        leader=p.leader[order],
        earliest=earliest[order],
        high_watermark=high_watermark[order],
        replica_count=moved.astype(np.int32),
        replica=p.replica[replicas],
        in_sync=p.in_sync[replicas],
        removing=p.removing[replicas],
        size_bytes=p.size_bytes[replicas],
        lag=p.lag[replicas],
        log_dir=p.log_dir[replicas],
        compacted=np.array([c is not None and "compact" in (c.value or "") for c in policies], np.bool_),
        deleting=np.array([t.deleting for t in state.topics], np.bool_),
        external=external,
    )

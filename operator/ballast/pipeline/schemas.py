"""Every table of the pipeline: its columns, its version, what it is partitioned by.

This is the one place where a schema is written down.  Tables are created from it, jobs ``select`` by it, and a table whose
layout is newer than ``Table.version`` is refused.  The minute table is the daemon's too and comes from ``core.samples``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ballast.core.samples import MINUTE_COLUMNS, SAMPLES_TABLE, SAMPLES_VERSION, Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One Delta table of the store."""

    name: str
    version: int
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...]
    """Whole partitions are replaced when a job runs again, which is what makes every job idempotent."""
    purpose: str

    @property
    def ddl(self) -> str:
        """The columns as Spark writes them, for ``mapInArrow`` and ``CREATE TABLE``."""
        return ", ".join(f"{c.name} {c.type}" for c in self.columns)

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [c.name for c in self.columns]


_PARTITION: Final = (
    Column("topic", "string", "topic name"),
    Column(
        "topic_id", "string", "topic id, empty where the cluster has none; tells a recreated topic from the old one"
    ),
    Column("partition", "int", "partition number"),
)
_CLUSTER: Final = Column("cluster", "string", "cluster id as Kafka gives it")
_HOUR: Final = Column("hour", "string", "UTC hour, `2026-11-21T14`")
_DATE: Final = Column("date", "string", "UTC day, `2026-11-21`")

SAMPLES_MINUTE: Final = Table(
    name=SAMPLES_TABLE,
    version=SAMPLES_VERSION,
    columns=MINUTE_COLUMNS,
    partition_by=("hour",),
    purpose="raw readings, a row for each chunk of a minute",
)
SAMPLES_HOUR: Final = Table(
    name="samples_hour",
    version=1,
    partition_by=("hour",),
    purpose="a row for each replica and hour; arrays have 60 entries, masks say which minutes are known",
    columns=(
        _CLUSTER,
        _HOUR,
        *_PARTITION,
        Column("broker", "int", "broker id of the replica"),
        Column("log_dir", "int", "position of its log dir when last seen, -1 unknown"),
        Column("sampled", "bigint", "bit m: the replica was seen in minute m"),
        Column("rated", "bigint", "bit m: the append rate of minute m is known"),
        Column("led", "bigint", "bit m: the replica led in minute m"),
        Column("in_sync", "bigint", "bit m: the replica was in the ISR in minute m"),
        Column("size_bytes", "array<bigint>", "bytes on disk in each minute, -1 unknown"),
        Column("bytes_in", "array<float>", "bytes/s appended to the partition in each minute, -1 unknown"),
        Column("bytes_out", "array<float>", "bytes/s to consumers in each minute, -1 unknown; null without Prometheus"),
        Column("records_in", "double", "records appended, by offsets, in the rated minutes in which it led"),
        Column("lag_max", "bigint", "most messages behind in the hour, -1 unknown"),
    ),
)
_ROLE_FIGURES: Final = tuple(
    Column(f"{figure}_{role}", kind, meaning.format(role=words))
    for role, words in (("led", "while it led"), ("followed", "while it followed"))
    for figure, kind, meaning in (
        ("minutes", "int", "rated minutes {role}"),
        ("bytes_in", "double", "bytes appended in those minutes {role}"),
        ("bytes_in_max", "float", "highest minute rate {role}, bytes/s, -1 unknown"),
        ("bytes_in_p95", "float", "95th percentile (nearest rank) of the minute rates {role}, -1 unknown"),
    )
)
LOAD_HOUR: Final = Table(
    name="load_hour",
    version=1,
    partition_by=("hour",),
    purpose="figures of a replica and hour, by role, mergeable over hours",
    columns=(
        _CLUSTER,
        _HOUR,
        *_PARTITION,
        Column("broker", "int", "broker id of the replica"),
        Column("log_dir", "int", "position of its log dir, -1 unknown"),
        Column("minutes_sampled", "int", "minutes in which the replica was seen"),
        Column("minutes_in_sync", "int", "minutes in which it was in the ISR"),
        *_ROLE_FIGURES,
        Column("rate_bucket", "array<int>", "histogram of the minute rates while it led: bucket numbers, ascending"),
        Column("rate_count", "array<int>", "how many minutes fell in each bucket"),
        Column("records_in", "double", "records appended in the rated minutes in which it led"),
        Column("minutes_out", "int", "minutes while it led with a known rate to consumers"),
        Column("bytes_out", "double", "bytes to consumers in those minutes"),
        Column("out_bucket", "array<int>", "histogram of those rates: bucket numbers, ascending"),
        Column("out_count", "array<int>", "how many minutes fell in each bucket"),
        Column("size_first", "bigint", "first known size of the hour, -1 unknown"),
        Column("size_last", "bigint", "last known size of the hour, -1 unknown"),
        Column("size_max", "bigint", "largest size of the hour, -1 unknown"),
        Column("growth_bytes", "bigint", "size_last - size_first, retention and compaction included"),
        Column("lag_max", "bigint", "most messages behind, -1 unknown"),
    ),
)
LOAD_DAY: Final = Table(
    name="load_day",
    version=1,
    partition_by=("date",),
    purpose="a row for each partition and day, merged exactly from its hours as leader",
    columns=(
        _CLUSTER,
        _DATE,
        *_PARTITION,
        Column("last_hour", "string", "newest hour in this row"),
        Column("minutes", "array<int>", "per hour of the day: minutes with a known rate"),
        Column("bytes_in", "array<double>", "per hour: bytes appended in those minutes"),
        Column("bytes_in_max", "float", "highest minute rate of the day, bytes/s, -1 unknown"),
        Column("rate_bucket", "array<int>", "histogram of the day's minute rates"),
        Column("rate_count", "array<int>", "minutes in each bucket"),
        Column("records_in", "double", "records appended"),
        Column("minutes_out", "int", "minutes with a known rate to consumers"),
        Column("bytes_out", "double", "bytes to consumers in those minutes"),
        Column("out_bucket", "array<int>", "histogram of the rates to consumers"),
        Column("out_count", "array<int>", "minutes in each bucket"),
        Column("size_bytes", "array<bigint>", "per hour: the leader's last known size, -1 unknown"),
    ),
)
LOAD_MODEL: Final = Table(
    name="load_model",
    version=1,
    partition_by=("cluster",),
    purpose="what the planner reads: one row for each partition",
    columns=(
        _CLUSTER,
        *_PARTITION,
        Column("as_of", "string", "newest hour that the row knows of"),
        Column("since", "string", "oldest hour within the window in which the partition was seen"),
        Column("minutes", "int", "minutes with a known rate in the window"),
        Column("coverage", "float", "minutes / all minutes from `since` to `as_of`, 0 to 1"),
        Column("confidence", "float", "coverage times the share of a week that the history spans, 0 to 1"),
        Column("bytes_in_mean", "double", "bytes/s, over the known minutes"),
        Column("bytes_in_p95", "double", "bytes/s, from the merged histogram, within 2 %; -1 unknown"),
        Column("bytes_in_peak", "double", "highest minute, bytes/s, -1 unknown"),
        Column("records_in_mean", "double", "records/s, over the known minutes"),
        Column("bytes_out_mean", "double", "bytes/s to consumers, -1 unknown"),
        Column("bytes_out_p95", "double", "bytes/s to consumers, within 2 %; -1 unknown"),
        Column("week", "array<float>", "mean bytes/s in each hour of the week (168, Monday 00 UTC first), -1 unknown"),
        Column("size_bytes", "bigint", "the leader's last known size, -1 unknown"),
        Column("growth_bytes_per_day", "double", "slope of the hourly sizes, retention included; 0 when unknown"),
    ),
)
TABLES: Final = {t.name: t for t in (SAMPLES_MINUTE, SAMPLES_HOUR, LOAD_HOUR, LOAD_DAY, LOAD_MODEL)}

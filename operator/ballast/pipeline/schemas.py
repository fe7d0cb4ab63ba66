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
        """The columns as Spark writes them, for ``mapInArrow``."""
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
        Column("bytes_out", "array<float>", "bytes/s to consumers in each minute, -1 unknown; null without metrics"),
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
LEADERSHIP_HISTORY: Final = Table(
    name="leadership_history",
    version=1,
    partition_by=("hour",),
    purpose="a row for each change of a leader that the samples saw",
    columns=(
        _CLUSTER,
        _HOUR,
        Column("minute", "int", "minute of the first sample that shows the new leader"),
        *_PARTITION,
        Column("leader_before", "int", "leader in the sample before, -1 none, -2 no record"),
        Column("leader", "int", "leader since, -1 none, -2 no record"),
    ),
)
BROKER_IMBALANCE: Final = Table(
    name="broker_imbalance",
    version=1,
    partition_by=("hour",),
    purpose="leader imbalance of each broker and hour, counted as `ballast status` counts it",
    columns=(
        _CLUSTER,
        _HOUR,
        Column("broker", "int", "broker id"),
        Column("minutes", "int", "samples in the hour"),
        Column("preferred", "bigint", "partitions whose first replica it is, in the last sample"),
        Column("not_led", "bigint", "of those, the ones it did not lead, in the last sample"),
        Column("ratio_last", "double", "not_led / preferred in the last sample"),
        Column("ratio_mean", "double", "mean of that ratio over the samples"),
        Column("ratio_max", "double", "its highest"),
        Column("minutes_over", "int", "samples in which it was strictly over 10 %"),
        Column("led_mean", "double", "partitions it led, mean over the samples"),
        Column("leader_skew", "double", "led / an equal share, mean over the samples; 1 is level"),
    ),
)
DISK_HOUR: Final = Table(
    name="disk_hour",
    version=1,
    partition_by=("hour",),
    purpose="the last known state of each log dir in each hour",
    columns=(
        _CLUSTER,
        _HOUR,
        Column("broker", "int", "broker id"),
        Column("path", "string", "log dir"),
        Column("total_bytes", "bigint", "size of its disk, -1 unknown"),
        Column("usable_bytes", "bigint", "free space, -1 unknown"),
        Column("cordoned", "boolean", "takes no new replicas"),
    ),
)
DISK_OUTLOOK: Final = Table(
    name="disk_outlook",
    version=1,
    partition_by=("cluster",),
    purpose="when each log dir is full if it goes on like this",
    columns=(
        _CLUSTER,
        Column("broker", "int", "broker id"),
        Column("path", "string", "log dir"),
        Column("as_of", "string", "newest hour"),
        Column("total_bytes", "bigint", "size of its disk, -1 unknown"),
        Column("usable_bytes", "bigint", "free space now, -1 unknown"),
        Column("growth_bytes_per_day", "double", "least-squares slope of the used bytes over the window"),
        Column("days_to_full", "double", "usable / growth; null when it does not grow or is unknown"),
    ),
)
_DIR: Final = "struct<path:string,total_bytes:bigint,usable_bytes:bigint,cordoned:boolean>"
FLEET_SNAPSHOT: Final = Table(
    name="fleet_snapshot",
    version=1,
    partition_by=(),
    purpose="a whole cluster in a row; the newest `taken_at_ms` of a name is the one that counts",
    columns=(
        _CLUSTER,
        Column("name", "string", "what the fleet's list calls it"),
        Column("taken_at_ms", "bigint", "wall clock of the reading, milliseconds since the epoch"),
        Column("kafka_version", "string", "version or metadata version, null when unknown"),
        Column("topic", "array<string>", "topics by name"),
        Column("topic_id", "array<string>", "their ids, empty where there are none"),
        Column("min_isr", "array<int>", "their min.insync.replicas, -1 unknown"),
        Column("deleting", "array<boolean>", "queued for deletion?"),
        Column("partition_topic", "array<int>", "per partition: position in `topic`"),
        Column("partition", "array<int>", "per partition: its number"),
        Column("leader", "array<int>", "per partition: broker id, -1 none, -2 no record"),
        Column("bytes_in", "array<bigint>", "per partition: bytes/s from the load model; null without one"),
        Column("bytes_out", "array<bigint>", "per partition: bytes/s that the leader sends; null without a model"),
        Column("growth", "array<bigint>", "per partition: bytes/day of one replica; null without a model"),
        Column("replica_count", "array<int>", "per partition: how many of the following replicas are its own"),
        Column("replica", "array<int>", "per replica: broker id"),
        Column("in_sync", "array<boolean>", "per replica: in the ISR"),
        Column("adding", "array<boolean>", "per replica: being added"),
        Column("removing", "array<boolean>", "per replica: being removed"),
        Column("size_bytes", "array<bigint>", "per replica: bytes on disk, -1 unknown"),
        Column("log_dir", "array<int>", "per replica: position in its broker's `dirs`"),
        Column(
            "brokers",
            f"array<struct<id:int,rack:string,alive:boolean,controller:boolean,dirs:array<{_DIR}>>>",
            "the brokers: id, rack, alive, controller and `dirs` (path, total and usable bytes, cordoned)",
        ),
    ),
)
FLEET_PLAN: Final = Table(
    name="fleet_plan",
    version=1,
    partition_by=(),
    purpose="a row for each cluster and scenario: what a plan would cost and gain",
    columns=(
        _CLUSTER,
        Column("name", "string", "what the fleet's list calls it"),
        Column("taken_at_ms", "bigint", "wall clock of the reading that was planned"),
        Column("scenario", "string", "`level`, `lose-broker`, `lose-rack`, `add-brokers`, `change-rf` or `grow`"),
        Column("subject", "string", "the broker, the rack, how many brokers, which factor, how many days"),
        Column("brokers", "int", "brokers of the cluster, before the scenario"),
        Column("partitions", "int", "partitions"),
        Column("bytes_stored", "bigint", "known bytes of all replicas"),
        Column("status", "string", "`nothing-to-do`, `complete`, `partial`, `infeasible` or `failed`"),
        Column("detail", "string", "the first obstacle or failure, empty when there is none"),
        Column("moves", "int", "moves of the plan"),
        Column("reorders", "int", "moves that copy nothing"),
        Column("bytes_moved", "bigint", "bytes that the plan copies; what has no live copy left is not counted"),
        Column("bound_bytes", "bigint", "the least that any plan could copy, null when unknown"),
        Column("worst_before", "double", "the fullest broker's disk over its fair share, before; 1 is level"),
        Column("worst_after", "double", "the same after the plan"),
        Column("leaders_before", "double", "the busiest broker's leaders over its fair share, before"),
        Column("leaders_after", "double", "the same after"),
        Column("imbalance", "double", "leader imbalance ratio of the worst broker, as `ballast status` counts it"),
        Column("offline", "int", "partitions without any live replica in sync in this scenario"),
        Column("under_min_isr", "int", "partitions below their min.insync.replicas in this scenario"),
        Column("days_to_full", "double", "until the first broker's disk is full at today's growth; null if never"),
        Column("disk_bytes", "bigint", "size of the disks of all live brokers that told it, null when none did"),
        Column("disk_free_bytes", "bigint", "free space on these disks, null when unknown"),
        Column("growth_bytes_per_day", "bigint", "growth of all replicas together; null without a model"),
        Column("digest", "string", "sha256 of the moves in their order; equal plans have equal digests"),
        Column("seconds", "double", "time that the planner took"),
    ),
)
TABLES: Final = {
    t.name: t
    for t in (
        SAMPLES_MINUTE,
        SAMPLES_HOUR,
        LOAD_HOUR,
        LOAD_DAY,
        LOAD_MODEL,
        LEADERSHIP_HISTORY,
        BROKER_IMBALANCE,
        DISK_HOUR,
        DISK_OUTLOOK,
        FLEET_SNAPSHOT,
        FLEET_PLAN,
    )
}

"""Every table of the pipeline: its columns, its version, what it is partitioned by.

This is the one place where a schema is written down.  Tables are created from it and transforms ``select`` by it.  The tables
of samples are the daemon's too and come from ``core.samples``.
"""

from __future__ import annotations

from typing import Final

from ballast.core.samples import BROKERS, CLUSTER, CLUSTERS, HOUR, LOG_DIRS, SAMPLES, TOPIC_PARTITION, Column, Table

_RATED: Final = (
    Column("seconds", "double", "how long the rate of what is appended is known"),
    Column("bytes_in", "double", "bytes appended in these seconds"),
    Column("records_in", "double", "records appended in these seconds, by offsets"),
    Column("bytes_in_max", "float", "highest rate of an interval between two samples, bytes/s"),
    Column("bytes_in_sketch", "binary", "KLL sketch (Apache DataSketches, floats) of these rates"),
    Column("seconds_out", "double", "how long the rate to consumers is known"),
    Column("bytes_out", "double", "bytes to consumers in these seconds"),
    Column("bytes_out_sketch", "binary", "KLL sketch of the rates to consumers; null where none is known"),
)

LOAD_HOUR: Final = Table(
    name="load_hour",
    partition_by=("hour",),
    purpose="a row for each partition and hour, mergeable over hours",
    columns=(
        CLUSTER,
        HOUR,
        *TOPIC_PARTITION,
        Column("leader", "int", "the leader in the last sample, -1 no leader; null where there is no record"),
        Column("samples", "bigint", "samples in which the partition was seen"),
        Column("samples_under_replicated", "bigint", "of these, the ones with a replica that was not in sync"),
        *_RATED,
        Column("bytes_in_p95", "float", "95th percentile of these rates: exact, since an hour's are few"),
        Column("size_bytes", "bigint", "last known size of the leader's log"),
        Column("size_bytes_max", "bigint", "largest size of any replica"),
        Column("lag_records_max", "bigint", "most records that a replica was behind"),
    ),
)
LOAD_DAY: Final = Table(
    name="load_day",
    partition_by=("date",),
    purpose="a row for each partition and day, merged from its hours",
    columns=(
        CLUSTER,
        Column("date", "date", "UTC day; the table is partitioned by it"),
        *TOPIC_PARTITION,
        Column("first_hour", "timestamp", "oldest hour in this row"),
        Column("last_hour", "timestamp", "newest hour in this row"),
        *_RATED,
        Column("size_bytes", "bigint", "last known size of the leader's log"),
        Column("size_hours", "bigint", "hours with a known size; what follows merges to their least-squares slope"),
        Column("size_hour_mean", "double", "mean hour of the day of these"),
        Column("size_mean", "double", "mean size at the end of these hours, bytes"),
        Column("size_sxx", "double", "sum of squares of the hours' distances from their mean"),
        Column("size_sxy", "double", "sum of the products of the hours' and the sizes' distances from their means"),
    ),
)
LOAD_MODEL: Final = Table(
    name="load_model",
    partition_by=("cluster",),
    purpose="what the planner reads: one row for each partition",
    columns=(
        CLUSTER,
        *TOPIC_PARTITION,
        Column("as_of", "timestamp", "newest hour that the row knows of"),
        Column("since", "timestamp", "oldest hour within the window in which the partition was seen"),
        Column("seconds", "double", "how long the rate is known within the window"),
        Column("coverage", "double", "seconds / all seconds from `since` to the end of `as_of`, 0 to 1"),
        Column("confidence", "double", "coverage times the fraction of a week that the history spans, 0 to 1"),
        Column("bytes_in_mean", "double", "bytes/s, over the known seconds"),
        Column("bytes_in_p95", "double", "bytes/s, from the merged sketches: its rank is within 1.7 % of 95 %"),
        Column("bytes_in_peak", "double", "highest rate between two samples, bytes/s"),
        Column("records_in_mean", "double", "records/s, over the known seconds"),
        Column("bytes_out_mean", "double", "bytes/s to consumers"),
        Column("bytes_out_p95", "double", "bytes/s to consumers, as `bytes_in_p95`"),
        Column("size_bytes", "bigint", "last known size of the leader's log"),
        Column("growth_bytes_per_day", "double", "least-squares slope of the hourly sizes, retention included"),
    ),
)
LEADERSHIP_HISTORY: Final = Table(
    name="leadership_history",
    partition_by=("hour",),
    purpose="a row for each change of a leader that the samples saw",
    columns=(
        CLUSTER,
        HOUR,
        Column("time", "timestamp", "the first sample that shows the new leader"),
        *TOPIC_PARTITION,
        Column("leader_before", "int", "the last leader known before, -1 none"),
        Column("leader", "int", "leader since, -1 none"),
    ),
)
BROKER_IMBALANCE: Final = Table(
    name="broker_imbalance",
    partition_by=("hour",),
    purpose="leader imbalance of each broker and hour, counted as `ballast status` counts it",
    columns=(
        CLUSTER,
        HOUR,
        Column("broker", "int", "broker id"),
        Column("samples", "bigint", "samples in the hour"),
        Column("preferred", "bigint", "partitions whose first replica it is, in the last sample"),
        Column("not_led", "bigint", "of those, the ones it did not lead, in the last sample"),
        Column("ratio_last", "double", "not_led / preferred in the last sample"),
        Column("ratio_mean", "double", "mean of that ratio over the samples"),
        Column("ratio_max", "double", "its highest"),
        Column("samples_over", "bigint", "samples in which it was strictly over 10 %"),
        Column("led_mean", "double", "partitions it led, mean over the samples"),
        Column("leader_skew", "double", "led / the fair share, mean over the samples; 1 is balanced"),
    ),
)
DISK_HOUR: Final = Table(
    name="disk_hour",
    partition_by=("hour",),
    purpose="the last known state of each log directory in each hour",
    columns=(
        CLUSTER,
        HOUR,
        Column("broker", "int", "broker id"),
        Column("path", "string", "log directory"),
        Column("total_bytes", "bigint", "size of its disk"),
        Column("usable_bytes", "bigint", "free space"),
        Column("cordoned", "boolean", "takes no new replicas"),
    ),
)
DISK_OUTLOOK: Final = Table(
    name="disk_outlook",
    partition_by=("cluster",),
    purpose="when each log directory is full if it goes on like this",
    columns=(
        CLUSTER,
        Column("broker", "int", "broker id"),
        Column("path", "string", "log directory"),
        Column("as_of", "timestamp", "newest hour"),
        Column("total_bytes", "bigint", "size of its disk"),
        Column("usable_bytes", "bigint", "free space now"),
        Column("growth_bytes_per_day", "double", "least-squares slope of the used bytes over the window"),
        Column("days_to_full", "double", "usable / growth; null when it does not grow or is unknown"),
    ),
)
_DIR: Final = "struct<path:string,total_bytes:bigint,usable_bytes:bigint,cordoned:boolean,error:string>"
FLEET_SNAPSHOT: Final = Table(
    name="fleet_snapshot",
    version=1,
    partition_by=(),
    purpose="a whole cluster in a row; the newest `taken_at` of a name is the one that counts",
    columns=(
        CLUSTER,
        Column("name", "string", "what the fleet's list calls it"),
        Column("taken_at", "timestamp", "wall clock of the reading"),
        Column("kafka_version", "string", "version or metadata version, null when unknown"),
        Column("topic", "array<string>", "topics by name"),
        Column("topic_id", "array<string>", "their ids, empty where there are none"),
        Column("min_isr", "array<int>", "their min.insync.replicas, null where unknown"),
        Column("deleting", "array<boolean>", "queued for deletion?"),
        Column("partition_topic", "array<int>", "per partition: position in `topic`"),
        Column("partition", "array<int>", "per partition: its number"),
        Column("leader", "array<int>", "per partition: broker id, -1 none; null without a leadership record"),
        Column("bytes_in", "array<bigint>", "per partition: bytes/s from the load model; null without one"),
        Column("bytes_out", "array<bigint>", "per partition: bytes/s that the leader sends; null without a model"),
        Column("growth", "array<bigint>", "per partition: bytes/day of one replica; null where unknown"),
        Column("replica_count", "array<int>", "per partition: how many of the following replicas are its own"),
        Column("replica", "array<int>", "per replica: broker id"),
        Column("in_sync", "array<boolean>", "per replica: in the ISR"),
        Column("adding", "array<boolean>", "per replica: being added"),
        Column("removing", "array<boolean>", "per replica: being removed"),
        Column("offline", "array<boolean>", "per replica: offline, as on a failed log dir"),
        Column("size_bytes", "array<bigint>", "per replica: bytes on disk, null where unknown"),
        Column("log_dir", "array<int>", "per replica: position in its broker's `dirs`"),
        Column(
            "brokers",
            f"array<struct<id:int,rack:string,alive:boolean,controller:boolean,dirs:array<{_DIR}>>>",
            "the brokers: id, rack, alive, controller and `dirs` (path, total and usable bytes, cordoned, error by Kafka's name or null)",
        ),
    ),
)
FLEET_CONTACT: Final = Table(
    name="fleet_contact",
    version=1,
    partition_by=(),
    purpose="how the newest `collect` of each name ended",
    columns=(
        Column("name", "string", "what the fleet's list calls it"),
        Column("cluster", "string", "cluster id as Kafka gives it, null where it did not answer"),
        Column("tried_at", "timestamp", "wall clock of the attempt"),
        Column("answered", "boolean", "was it read?"),
        Column("detail", "string", "why not; empty when it answered"),
    ),
)
FLEET_PLAN: Final = Table(
    name="fleet_plan",
    version=1,
    partition_by=(),
    purpose="a row for each cluster and scenario: what a plan would cost and gain",
    columns=(
        CLUSTER,
        Column("name", "string", "what the fleet's list calls it"),
        Column("taken_at", "timestamp", "wall clock of the reading that was planned"),
        Column("scenario", "string", "`balance`, `lose-broker`, `lose-rack`, `add-brokers`, `change-rf` or `grow`"),
        Column("subject", "string", "the broker, the rack, how many brokers, which factor, how many days"),
        Column("brokers", "int", "brokers of the cluster, before the scenario"),
        Column("partitions", "int", "partitions"),
        Column("bytes_stored", "bigint", "known bytes of all replicas"),
        Column("sizes_unknown", "int", "replicas whose size is not known: `bytes_stored` lacks them"),
        Column(
            "status",
            "string",
            "`nothing-to-do`, `meets-all-goals`, `misses-some-goals`, `no-plan-found` or `not-planned`",
        ),
        Column("detail", "string", "the first obstacle or failure, empty when there is none"),
        Column(
            "log_dir_errors",
            "array<struct<broker:int,path:string,error:string,offline_replicas:int>>",
            "log dirs that reported an error when the cluster was read, as in the plan file; `error` is Kafka's name",
        ),
        Column("moves", "int", "moves of the plan; null where planning failed"),
        Column("replica_list_changes", "int", "moves that copy nothing; null where planning failed"),
        Column(
            "bytes_moved",
            "bigint",
            "bytes that the plan copies; what has no live copy left is not counted; null where planning failed or the size of a partition is unknown",
        ),
        Column("bound_bytes", "bigint", "the least that any plan could copy, null when unknown"),
        Column("worst_before", "double", "the fullest broker's disk over its fair share, before; 1 is balanced"),
        Column("worst_after", "double", "the same after the plan"),
        Column("disk_full_before", "double", "used fraction of the fullest broker's disks before, null when unknown"),
        Column("disk_full_after", "double", "the same after the plan, null when unknown"),
        Column("preferred_leaders_before", "double", "most preferred leaders of a broker over its fair share, before"),
        Column("preferred_leaders_after", "double", "the same after"),
        Column("imbalance", "double", "leader imbalance ratio of the worst broker, as `ballast status` counts it"),
        Column("offline", "int", "partitions without any live replica in sync in this scenario, null when unknown"),
        Column("under_min_isr", "int", "partitions under min ISR in this scenario, null when unknown"),
        Column("days_to_full", "double", "until a broker's disk is full at today's growth; null if never or unknown"),
        Column("disk_bytes", "bigint", "size of the disks of all live brokers that reported it, null when none did"),
        Column("disk_free_bytes", "bigint", "free space on these disks, null when unknown"),
        Column("growth_bytes_per_day", "bigint", "known growth of all replicas together; null where none is known"),
        Column("growth_unknown", "int", "partitions whose growth is not known: they count as not growing"),
        Column("digest", "string", "sha256 of the moves in their order; equal plans have equal digests"),
        Column("seconds", "double", "time that the planner took"),
    ),
)
_TABLES: Final = (
    *(SAMPLES, BROKERS, LOG_DIRS, CLUSTERS),
    *(LOAD_HOUR, LOAD_DAY, LOAD_MODEL, LEADERSHIP_HISTORY, BROKER_IMBALANCE, DISK_HOUR, DISK_OUTLOOK),
    *(FLEET_SNAPSHOT, FLEET_CONTACT, FLEET_PLAN),
)
TABLES: Final = {table.name: table for table in _TABLES}

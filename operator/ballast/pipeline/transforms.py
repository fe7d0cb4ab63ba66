"""Each job's work as ``DataFrame -> DataFrame``: nothing here reads, writes, counts or collects.

Only what Spark Connect has: no RDD, no JVM access, no Python function that closes over a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 — the name that every Spark reader expects

from ballast.core.rates import LONGEST_INTERVAL_MIN
from ballast.core.samples import BROKER_CHUNK
from ballast.pipeline.hour_fold import GROUP, fold_hours
from ballast.pipeline.hours import shifted
from ballast.pipeline.leadership_fold import HOUR, MINUTE, fold_imbalances, fold_leaderships
from ballast.pipeline.load_fold import fold_minutes
from ballast.pipeline.model_fold import DAY_GROUP, PARTITION, fold_days, fold_models
from ballast.pipeline.schemas import (
    BROKER_IMBALANCE,
    LEADERSHIP_HISTORY,
    LOAD_DAY,
    LOAD_HOUR,
    LOAD_MODEL,
    SAMPLES_HOUR,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import Column, DataFrame

MEASURED: Final = ("leader", "earliest", "high_watermark", "bytes_out", "in_sync", "size_bytes", "lag", "log_dir")
"""The packed columns of the minute table that rates and sizes come from."""
_SAMPLE: Final = (
    *("cluster", "hour", "minute", "chunk", "taken_at_ms", "monotonic_ms", "writer"),
    *("topic", "topic_id", "compacted", "partition_topic", "partition", "replica_count", "replica"),
)
"""What every fold of minutes reads: when the row was taken, and which replicas it is about."""
LEAD_IN_FROM_MINUTE = 60 - LONGEST_INTERVAL_MIN
"""Samples from this minute on may begin a rate of the next hour."""


def next_hour(hour: Column) -> Column:
    """The name of the hour after an hour."""
    start = F.to_timestamp(hour, "yyyy-MM-dd'T'HH")
    return F.date_format(start + F.expr("INTERVAL 1 HOUR"), "yyyy-MM-dd'T'HH")


def _in_folds(minutes: DataFrame, hours: Collection[str], columns: Sequence[str]) -> DataFrame:
    """Minute rows with the hour and chunk that they are folded into, sorted for the folds.

    Chunk counts are powers of two; each cluster is folded at the smallest that its rows have, so that a cluster that grew
    within the hour still has all samples of a partition in one fold.  Rows of an hour are megabytes: ``columns`` are the
    packed ones that the fold reads, and no other is shuffled.
    """
    rows = minutes.where(F.col("chunk") >= 0).select(*_SAMPLE, "chunks", *columns)
    own = rows.withColumn("fold_hour", F.col("hour"))
    # The hours themselves are named, so that no file of another hour is opened for its lead-in.
    led_in = rows.where(
        F.col("hour").isin(sorted(shifted(hour, -1) for hour in hours)) & (F.col("minute") >= LEAD_IN_FROM_MINUTE)
    )
    wanted = own.where(F.col("hour").isin(sorted(hours))).unionByName(
        led_in.withColumn("fold_hour", next_hour(F.col("hour")))
    )
    smallest = rows.groupBy("cluster").agg(F.min("chunks").alias("fold_chunks"))
    return (
        wanted.join(F.broadcast(smallest), on="cluster", how="inner")
        .withColumn("fold_chunk", F.col("chunk") % F.col("fold_chunks"))
        .drop("chunks", "fold_chunks")
        .repartition(*GROUP)
        .sortWithinPartitions(*GROUP, "hour", "minute", "chunk", "taken_at_ms")
    )


def samples_hour(minutes: DataFrame, hours: Collection[str]) -> DataFrame:
    """``samples_minute`` to ``samples_hour``, for these hours; ``minutes`` holds the hour before each as well."""
    return _in_folds(minutes, hours, MEASURED).mapInArrow(fold_hours, SAMPLES_HOUR.ddl)


def leadership_history(minutes: DataFrame, hours: Collection[str]) -> DataFrame:
    """``samples_minute`` to the changes of leaders in these hours; ``minutes`` holds the hour before each as well."""
    return _in_folds(minutes, hours, ("leader",)).mapInArrow(fold_leaderships, LEADERSHIP_HISTORY.ddl)


def broker_imbalance(minutes: DataFrame) -> DataFrame:
    """``samples_minute`` to a row for each broker and hour."""
    return (
        minutes.where(F.col("chunk") >= 0)
        .select(
            *MINUTE, "chunk", "topic", "deleting", "partition_topic", "partition", "leader", "replica_count", "replica",
            "removing",
        )
        .repartition(*HOUR)
        .sortWithinPartitions(*MINUTE, "chunk")
        .mapInArrow(fold_imbalances, BROKER_IMBALANCE.ddl)
    )  # fmt: skip


def disk_hour(minutes: DataFrame) -> DataFrame:
    """``samples_minute`` to the last state of each log dir in each hour."""
    dirs = (
        minutes.where(F.col("chunk") == BROKER_CHUNK)
        .select("cluster", "hour", "minute", F.explode("brokers").alias("b"))
        .select("cluster", "hour", "minute", F.col("b.id").alias("broker"), F.explode("b.dirs").alias("d"))
    )
    last = dirs.groupBy("cluster", "hour", "broker", F.col("d.path").alias("path")).agg(
        F.max_by("d", "minute").alias("d")
    )
    return last.select(
        "cluster", "hour", "broker", "path", "d.total_bytes", "d.usable_bytes", "d.cordoned"
    )  # fmt: skip


def disk_outlook(disks: DataFrame) -> DataFrame:
    """``disk_hour`` to when each log dir is full."""
    day = F.unix_seconds(F.to_timestamp("hour", "yyyy-MM-dd'T'HH")) / 86_400
    known = F.col("usable_bytes") >= 0
    found = disks.groupBy("cluster", "broker", "path").agg(
        F.max("hour").alias("as_of"),
        F.max_by("total_bytes", "hour").alias("total_bytes"),
        F.max_by("usable_bytes", "hour").alias("usable_bytes"),
        F.regr_slope(F.when(known, -F.col("usable_bytes")).cast("double"), day).alias("slope"),
    )
    growth = F.coalesce(F.col("slope"), F.lit(0.0))
    fills = (F.col("usable_bytes") >= 0) & (growth > 0)
    return found.select(
        "cluster",
        "broker",
        "path",
        "as_of",
        "total_bytes",
        "usable_bytes",
        growth.alias("growth_bytes_per_day"),
        F.when(fills, F.col("usable_bytes") / growth).alias("days_to_full"),
    )


def load_hour(minutes: DataFrame, hours: Collection[str]) -> DataFrame:
    """``samples_minute`` to ``load_hour``, for these hours; ``minutes`` holds the hour before each as well.

    Folded from the minutes and not from ``samples_hour``: the same rows pass between the two folds in Python's memory, where
    a table of arrays between them would be written and read value by value.
    """
    return _in_folds(minutes, hours, MEASURED).mapInArrow(fold_minutes, LOAD_HOUR.ddl)


def load_day(hours: DataFrame) -> DataFrame:
    """``load_hour`` to ``load_day``: whole days, from the rows of the brokers that led."""
    return (
        hours.where((F.col("minutes_led") > 0) | (F.col("minutes_out") > 0))
        .withColumn("date", F.substring("hour", 1, 10))
        .select(
            *DAY_GROUP,
            "hour",
            "minutes_led",
            "bytes_in_led",
            "bytes_in_max_led",
            "rate_bucket",
            "rate_count",
            "records_in",
            "minutes_out",
            "bytes_out",
            "out_bucket",
            "out_count",
            "size_last",
        )
        .repartition(*DAY_GROUP)
        .sortWithinPartitions(*DAY_GROUP, "hour")
        .mapInArrow(fold_days, LOAD_DAY.ddl)
    )


def load_model(days: DataFrame) -> DataFrame:
    """``load_day`` to ``load_model``: every partition over the window that the days span."""
    return (
        days.select(*LOAD_DAY.names)
        .repartition(*PARTITION)
        .sortWithinPartitions(*PARTITION, "date")
        .mapInArrow(fold_models, LOAD_MODEL.ddl)
    )

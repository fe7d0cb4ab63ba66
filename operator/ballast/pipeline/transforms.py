"""Each job's work as ``DataFrame -> DataFrame``: nothing here reads, writes, counts or collects.

Only what Spark Connect has: no RDD, no JVM access, no Python function that closes over a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 — the name that every Spark reader expects

from ballast.core.rates import LONGEST_INTERVAL_MIN
from ballast.pipeline.hour_fold import GROUP, fold_hours
from ballast.pipeline.load_fold import fold_loads
from ballast.pipeline.model_fold import DAY_GROUP, PARTITION, fold_days, fold_models
from ballast.pipeline.schemas import LOAD_DAY, LOAD_HOUR, LOAD_MODEL, SAMPLES_HOUR

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame

LEAD_IN_FROM_MINUTE = 60 - LONGEST_INTERVAL_MIN
"""Samples from this minute on may begin a rate of the next hour."""


def next_hour(hour: Column) -> Column:
    """The name of the hour after an hour."""
    start = F.to_timestamp(hour, "yyyy-MM-dd'T'HH")
    return F.date_format(start + F.expr("INTERVAL 1 HOUR"), "yyyy-MM-dd'T'HH")


def touched_hours(new_minutes: DataFrame) -> DataFrame:
    """The hours that new samples change: their own, and the next one when they lie in its lead-in."""
    own = new_minutes.select(F.col("hour"))
    led_in = new_minutes.where(F.col("minute") >= LEAD_IN_FROM_MINUTE).select(next_hour(F.col("hour")).alias("hour"))
    return own.unionByName(led_in).distinct()


def samples_hour(minutes: DataFrame, hours: Collection[str]) -> DataFrame:
    """``samples_minute`` to ``samples_hour``, for these hours.

    Chunk counts are powers of two; each cluster is folded at the smallest that its rows have, so that a cluster that grew
    within the hour still has all samples of a partition in one fold.
    """
    rows = minutes.where(F.col("chunk") >= 0)
    own = rows.withColumn("fold_hour", F.col("hour"))
    led_in = rows.where(F.col("minute") >= LEAD_IN_FROM_MINUTE).withColumn("fold_hour", next_hour(F.col("hour")))
    wanted = own.unionByName(led_in).where(F.col("fold_hour").isin(sorted(hours)))
    smallest = rows.groupBy("cluster").agg(F.min("chunks").alias("fold_chunks"))
    return (
        wanted.join(F.broadcast(smallest), on="cluster", how="inner")
        .withColumn("fold_chunk", F.col("chunk") % F.col("fold_chunks"))
        .drop("brokers", "fold_chunks")
        .repartition(*GROUP)
        .sortWithinPartitions(*GROUP, "hour", "minute", "chunk", "taken_at_ms")
        .mapInArrow(fold_hours, SAMPLES_HOUR.ddl)
    )


def load_hour(samples: DataFrame) -> DataFrame:
    """``samples_hour`` to ``load_hour``, row by row."""
    return samples.select(*SAMPLES_HOUR.names).mapInArrow(fold_loads, LOAD_HOUR.ddl)


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

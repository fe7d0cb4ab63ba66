"""What jobs make of folded tables, as ``DataFrame -> DataFrame``: nothing here reads, writes, counts or collects.

Jobs that fold raw samples are in ``minute_reader``, since workers read those themselves.
Only what Spark Connect has: no RDD, no JVM access, no Python function that closes over a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 — the name that every Spark reader expects

from ballast.pipeline.model_fold import DAY_GROUP, PARTITION, fold_days, fold_models
from ballast.pipeline.schemas import LOAD_DAY, LOAD_MODEL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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

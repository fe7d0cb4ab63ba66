"""``disk_hour`` and ``disk_outlook``: the log directories of each hour, and when they are full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ballast.pipeline.schemas import DISK_HOUR, DISK_OUTLOOK
from ballast.pipeline.transforms.columns import HOUR_S, contract

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOG_DIR = ("cluster", "broker", "path")


def disk_hour(log_dirs: DataFrame) -> DataFrame:
    """A broker that was away at the end of the hour keeps what was last known of it."""
    figures = ("total_bytes", "usable_bytes", "cordoned")
    hours = log_dirs.groupBy(*_LOG_DIR, "hour").agg(*(F.max_by(name, "time").alias(name) for name in figures))
    return contract(hours, DISK_HOUR)


def disk_outlook(hours: DataFrame) -> DataFrame:
    """What is used grows as what is usable shrinks; the size of the disk may change in between and says nothing."""
    day = F.unix_timestamp("hour") / (24 * HOUR_S)
    dirs = hours.groupBy(*_LOG_DIR).agg(
        F.max("hour").alias("as_of"),
        *(F.max_by(name, "hour").alias(name) for name in ("total_bytes", "usable_bytes")),
        (-F.regr_slope(F.col("usable_bytes").cast("double"), day)).alias("growth_bytes_per_day"),
    )
    growing = (F.col("growth_bytes_per_day") > 0) & (F.col("usable_bytes") >= 0)
    full = F.when(growing, F.col("usable_bytes") / F.col("growth_bytes_per_day"))
    return contract(dirs.withColumn("days_to_full", full), DISK_OUTLOOK)

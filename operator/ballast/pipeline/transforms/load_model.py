"""``load_model``: the days of the window merged into what the planner reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from ballast.pipeline.schemas import LOAD_MODEL
from ballast.pipeline.transforms.columns import HOUR_S, PARTITION, contract, merged_rates, percentile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WEEK_S: Final = 7 * 24 * HOUR_S


def load_model(days: DataFrame) -> DataFrame:
    """One row for each partition of the window."""
    merged = days.groupBy(*PARTITION).agg(
        F.max("last_hour").alias("as_of"),
        F.min("first_hour").alias("since"),
        *merged_rates(),
        F.max_by("size_bytes", F.when(F.col("size_bytes").isNotNull(), F.col("date"))).alias("size_bytes"),
        (_slope_per_hour() * 24).alias("growth_bytes_per_day"),
    )
    spanned_s = F.unix_timestamp("as_of") - F.unix_timestamp("since") + HOUR_S
    known_s = F.coalesce("seconds", F.lit(0.0))
    coverage = F.least(known_s / spanned_s, F.lit(1.0))
    model = merged.select(
        *PARTITION,
        "as_of",
        "since",
        known_s.alias("seconds"),
        coverage.alias("coverage"),
        (coverage * F.least(spanned_s / WEEK_S, F.lit(1.0))).alias("confidence"),
        (F.col("bytes_in") / F.col("seconds")).alias("bytes_in_mean"),
        percentile("bytes_in_sketch").alias("bytes_in_p95"),
        F.col("bytes_in_max").alias("bytes_in_peak"),
        (F.col("records_in") / F.col("seconds")).alias("records_in_mean"),
        (F.col("bytes_out") / F.col("seconds_out")).alias("bytes_out_mean"),
        percentile("bytes_out_sketch").alias("bytes_out_p95"),
        "size_bytes",
        "growth_bytes_per_day",
    )
    return contract(model, LOAD_MODEL)


def _slope_per_hour() -> Column:
    """The slope of all hourly sizes from each day's own sums: those within the days, and those of the days' means.

    Hours are counted from 2020, days are whole, so means of a window of weeks lose no digit that a slope could miss.
    """
    count = F.col("size_hours")
    day = F.datediff("date", F.lit("2020-01-01").cast("date"))
    hour, size = day * 24 + F.col("size_hour_mean"), F.col("size_mean")
    total = F.sum(count)
    x, y = F.sum(count * hour) / total, F.sum(count * size) / total
    sxx = F.sum("size_sxx") + F.sum(count * hour * hour) - total * x * x
    sxy = F.sum("size_sxy") + F.sum(count * hour * size) - total * x * y
    return F.when(sxx > 0, sxy / sxx)

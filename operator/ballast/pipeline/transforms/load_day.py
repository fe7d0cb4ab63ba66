"""``load_day``: the hours of each partition merged into days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ballast.pipeline.schemas import LOAD_DAY
from ballast.pipeline.transforms.columns import PARTITION, contract, merged_rates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def load_day(hours: DataFrame) -> DataFrame:
    """Everything adds, is a maximum or merges: a day of twenty hours and the four that are missing are the day of all."""
    size = F.col("size_bytes").cast("double")
    hour = F.hour("hour").cast("double")
    days = (
        hours.withColumn("date", F.to_date("hour"))
        .groupBy(*PARTITION, "date")
        .agg(
            F.min("hour").alias("first_hour"),
            F.max("hour").alias("last_hour"),
            *merged_rates(),
            F.max_by("size_bytes", F.when(F.col("size_bytes").isNotNull(), F.col("hour"))).alias("size_bytes"),
            F.regr_count(size, hour).alias("size_hours"),
            F.regr_avgx(size, hour).alias("size_hour_mean"),
            F.regr_avgy(size, hour).alias("size_mean"),
            F.regr_sxx(size, hour).alias("size_sxx"),
            F.regr_sxy(size, hour).alias("size_sxy"),
        )
    )
    return contract(days, LOAD_DAY)

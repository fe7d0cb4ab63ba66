"""``load_hour``: what each partition did in each hour, from its samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ballast.pipeline.schemas import LOAD_HOUR
from ballast.pipeline.transforms.columns import PARTITION, contract, exact_sketch, percentile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def load_hour(samples: DataFrame, *, consumers: bool = True) -> DataFrame:
    """One pass over the samples; an interval counts in the hour in which it ends.

    ``consumers`` says whether any sample has a rate to consumers: without one, their sketches cost a third of the whole.
    """
    out_sketch = exact_sketch("bytes_out") if consumers else F.max(F.lit(None).cast("binary"))
    leaders_log = F.try_element_at("size_bytes", F.array_position("replicas", F.col("leader")).cast("int"))
    measured = samples.select(
        *PARTITION,
        "hour",
        "time",
        "leader",
        "seconds",
        "bytes_in",
        (F.col("bytes_in").cast("double") * F.col("seconds")).alias("bytes"),
        (F.col("records_in").cast("double") * F.col("seconds")).alias("records"),
        "bytes_out",
        (F.col("bytes_out").cast("double") * F.col("seconds")).alias("consumed"),
        leaders_log.alias("size_bytes"),
        F.array_max("size_bytes").alias("largest"),
        F.array_max("lag_records").alias("lag"),
        F.array_contains("in_sync", False).alias("under_replicated"),
    )
    hours = measured.groupBy(*PARTITION, "hour").agg(
        F.max_by("leader", "time").alias("leader"),
        F.count(F.lit(1)).alias("samples"),
        F.count_if("under_replicated").alias("samples_under_replicated"),
        F.sum("seconds").alias("seconds"),
        F.sum("bytes").alias("bytes_in"),
        F.sum("records").alias("records_in"),
        F.max("bytes_in").alias("bytes_in_max"),
        exact_sketch("bytes_in").alias("bytes_in_sketch"),
        F.sum(F.when(F.col("consumed").isNotNull(), F.col("seconds"))).alias("seconds_out"),
        F.sum("consumed").alias("bytes_out"),
        out_sketch.alias("bytes_out_sketch"),
        F.max_by("size_bytes", F.when(F.col("size_bytes").isNotNull(), F.col("time"))).alias("size_bytes"),
        F.max("largest").alias("size_bytes_max"),
        F.max("lag").alias("lag_records_max"),
    )
    return contract(hours.withColumn("bytes_in_p95", percentile("bytes_in_sketch")), LOAD_HOUR)

"""``broker_imbalance``: each broker's leader imbalance in each hour, by the rules of ``core.leadership``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ballast.core.leadership import DEFAULT_THRESHOLD_PERCENT
from ballast.pipeline.schemas import BROKER_IMBALANCE
from ballast.pipeline.transforms.columns import contract

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SAMPLE = ("cluster", "hour", "minute")
"""A sample's minute is its identity; where one writer was killed and another went on, its tables have two times within it."""


def broker_imbalance(samples: DataFrame, brokers: DataFrame) -> DataFrame:
    """Samples are counted once for each pair of preferred leader and leader; the rest is arithmetic on that handful of rows."""
    minute = F.date_trunc("minute", "time").alias("minute")
    pairs = samples.groupBy("cluster", "hour", minute, "preferred_leader", "leader").agg(
        F.count(F.lit(1)).alias("partitions"), F.count_if("deleting").alias("deleting")
    )
    counted = F.col("partitions") - F.col("deleting")
    preferred = pairs.groupBy(*_SAMPLE, F.col("preferred_leader").alias("broker")).agg(
        F.sum(counted).alias("preferred"),
        # Without a leadership record (null) nobody knows that another broker leads.
        F.sum(F.when(F.col("leader") != F.col("preferred_leader"), counted).otherwise(0)).alias("not_led"),
    )
    led = pairs.groupBy(*_SAMPLE, F.col("leader").alias("broker")).agg(F.sum("partitions").alias("led"))
    listed = brokers.select("cluster", "hour", minute, "broker")
    known = listed.join(pairs.select(*_SAMPLE).distinct(), on=[*_SAMPLE], how="left_semi")
    each = (
        known.join(preferred, on=[*_SAMPLE, "broker"], how="left")
        .join(led, on=[*_SAMPLE, "broker"], how="left")
        .na.fill(0, ["preferred", "not_led", "led"])
        .withColumn("ratio", F.col("not_led") / F.greatest("preferred", F.lit(1)))
    )
    return contract(_hours(each), BROKER_IMBALANCE)


def _hours(each: DataFrame) -> DataFrame:
    """Rows of a broker and sample to rows of a broker and hour."""
    shares = each.groupBy(*_SAMPLE).agg(F.avg("led").alias("fair"))
    skewed = each.join(shares, on=[*_SAMPLE], how="inner").withColumn(
        "skew", F.when(F.col("fair") > 0, F.col("led") / F.col("fair")).otherwise(F.col("led"))
    )
    return skewed.groupBy("cluster", "hour", "broker").agg(
        F.count(F.lit(1)).alias("samples"),
        *(F.max_by(name, "minute").alias(name) for name in ("preferred", "not_led")),
        F.max_by("ratio", "minute").alias("ratio_last"),
        F.avg("ratio").alias("ratio_mean"),
        F.max("ratio").alias("ratio_max"),
        F.count_if(F.col("ratio") > DEFAULT_THRESHOLD_PERCENT / 100).alias("samples_over"),
        F.avg("led").alias("led_mean"),
        F.avg("skew").alias("leader_skew"),
    )

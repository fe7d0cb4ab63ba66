"""``broker_imbalance``: each broker's leader imbalance in each hour, by the rules of ``core.leadership``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ballast.core.leadership import DEFAULT_THRESHOLD_PERCENT
from ballast.pipeline.schemas import BROKER_IMBALANCE
from ballast.pipeline.transforms.columns import contract

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SAMPLE = ("cluster", "hour", "minute")
"""A sample's minute is its identity; where one writer was killed and another went on, its tables have two times within it."""
_COUNTS = ("preferred", "not_led", "led", "sampled", "listed")


def broker_imbalance(samples: DataFrame, brokers: DataFrame) -> DataFrame:
    """Samples are read once and counted for each pair of preferred leader and leader; the rest is that handful of rows."""
    pairs = samples.groupBy("cluster", "hour", "time", "preferred_leader", "leader").agg(
        F.count(F.lit(1)).alias("partitions"), F.count_if("deleting").alias("deleting")
    )
    counted = F.col("partitions") - F.col("deleting")
    # Without a leadership record (null) it is unknown whether another broker leads.
    not_led = F.when(F.col("leader") != F.col("preferred_leader"), counted).otherwise(0)
    counts = _explode_counts(
        pairs,
        _counts("preferred_leader", preferred=counted, not_led=not_led, sampled=F.lit(1)),
        _counts("leader", led=F.col("partitions")),
    ).unionByName(_explode_counts(brokers, _counts("broker", listed=F.lit(1))))
    each = counts.groupBy(*_SAMPLE, "broker").agg(*(F.sum(name).alias(name) for name in _COUNTS))
    return contract(_hours(each), BROKER_IMBALANCE)


def _explode_counts(rows: DataFrame, *counts: Column) -> DataFrame:
    """What each row counts for brokers in its minute."""
    return rows.select("cluster", "hour", F.date_trunc("minute", "time").alias("minute"), F.inline(F.array(*counts)))


def _counts(broker: str, **known: Column) -> Column:
    columns = (known.get(name, F.lit(0)).cast("bigint").alias(name) for name in _COUNTS)
    return F.struct(F.col(broker).alias("broker"), *columns)


def _hours(each: DataFrame) -> DataFrame:
    """Rows of a broker and minute to rows of a broker and hour: of listed brokers, in minutes that have samples."""
    listed = F.col("listed") > 0
    minutes = each.groupBy(*_SAMPLE).agg(
        F.collect_list(F.when(listed, F.struct("broker", "preferred", "not_led", "led"))).alias("brokers"),
        F.avg(F.when(listed, F.col("led"))).alias("fair"),
        F.sum("sampled").alias("sampled"),
    )
    brokers = minutes.where("sampled > 0").select(*_SAMPLE, "fair", F.inline("brokers"))
    rated = brokers.withColumn("ratio", F.col("not_led") / F.greatest("preferred", F.lit(1))).withColumn(
        "skew", F.when(F.col("fair") > 0, F.col("led") / F.col("fair")).otherwise(F.col("led"))
    )
    return rated.groupBy("cluster", "hour", "broker").agg(
        F.count(F.lit(1)).alias("samples"),
        *(F.max_by(name, "minute").alias(name) for name in ("preferred", "not_led")),
        F.max_by("ratio", "minute").alias("ratio_last"),
        F.avg("ratio").alias("ratio_mean"),
        F.max("ratio").alias("ratio_max"),
        F.count_if(F.col("ratio") > DEFAULT_THRESHOLD_PERCENT / 100).alias("samples_over"),
        F.avg("led").alias("led_mean"),
        F.avg("skew").alias("leader_skew"),
    )

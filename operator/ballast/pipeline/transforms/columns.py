"""Expressions that several tables share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from ballast.core.samples import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PARTITION: Final = ("cluster", "topic", "topic_id", "partition")
"""What names a partition for ever: a recreated topic has another id."""
P95: Final = 0.95
EXACT_K: Final = 64
"""A KLL sketch of so many values at most has them all: an hour's rates are one a minute.  A small one costs a third of the memory."""
MERGED_K: Final = 200
"""DataSketches' usual size; what is merged from exact sketches has the rank error of this one."""
HOUR_S: Final = 3600


def contract(rows: DataFrame, table: Table) -> DataFrame:
    """Exactly the table's columns, in its order and types."""
    return rows.select(*(F.col(c.name).cast(c.type).alias(c.name) for c in table.columns))


def exact_sketch(rates: str) -> Column:
    """Every rate of an hour."""
    return F.kll_sketch_agg_float(rates, EXACT_K)


def merged_rates() -> tuple[Column, ...]:
    """The figures of rates in rows of hours or days, merged over a group of them."""
    return (
        *(F.sum(name).alias(name) for name in ("seconds", "bytes_in", "records_in", "seconds_out", "bytes_out")),
        F.max("bytes_in_max").alias("bytes_in_max"),
        *(F.kll_merge_agg_float(name, MERGED_K).alias(name) for name in ("bytes_in_sketch", "bytes_out_sketch")),
    )


def percentile(sketch: str) -> Column:
    """The 95th percentile of the rates in a sketch; null where the sketch is missing or has seen no rate."""
    return F.when(F.kll_sketch_get_n_float(sketch) > 0, F.kll_sketch_get_quantile_float(sketch, F.lit(P95)))

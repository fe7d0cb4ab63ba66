"""The folds without Spark: the same functions over Arrow tables, sorted as workers read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tests.spark.series import HOUR_MS, START_MS

from ballast.adapters.samples_delta import hour_name, minute_table
from ballast.core.samples import MinuteSample
from ballast.pipeline.hour_fold import fold_hours
from ballast.pipeline.load_fold import fold_minutes
from ballast.pipeline.model_fold import fold_days, fold_models

HOUR = hour_name(START_MS)


def minutes_of(samples: Iterable[MinuteSample | pa.Table], hour_ms: int = START_MS) -> Any:
    """The minute rows that the fold of one hour sees: its own and the lead-in of the hour before."""
    table = pa.concat_tables(minute_table(s) if isinstance(s, MinuteSample) else s for s in samples)
    hour, before = hour_name(hour_ms), hour_name(hour_ms - HOUR_MS)
    own = pc.equal(table["hour"], hour)
    lead_in = pc.and_(pc.equal(table["hour"], before), pc.greater_equal(table["minute"], 50))
    table = table.filter(pc.and_(pc.or_(own, lead_in), pc.greater_equal(table["chunk"], 0)))
    chunks = pc.min(table["chunks"]).as_py()
    table = table.append_column("fold_hour", pa.repeat(hour, len(table)))
    table = table.append_column("fold_chunk", pc.bit_wise_and(table["chunk"], chunks - 1))
    return table.sort_by([(k, "ascending") for k in ("cluster", "fold_hour", "fold_chunk", "hour", "minute", "chunk")])


def hour_rows(
    samples: Iterable[MinuteSample | pa.Table], hour_ms: int = START_MS, *, batch: int = 1000
) -> list[dict[str, Any]]:
    """``samples_hour`` rows of one hour."""
    return [row for part in fold_hours(minutes_of(samples, hour_ms).to_batches(batch)) for row in part.to_pylist()]


def load_rows(samples: Iterable[MinuteSample | pa.Table], hour_ms: int = START_MS) -> Any:
    """``load_hour`` of one hour, as a table."""
    return pa.Table.from_batches(list(fold_minutes(minutes_of(samples, hour_ms).to_batches())))


def model_rows(hours: Iterable[Any]) -> list[dict[str, Any]]:
    """``load_model`` rows from tables of ``load_hour``."""
    table = pa.concat_tables(hours)
    table = table.filter(pc.greater(table["minutes_led"], 0))
    table = table.append_column("date", pc.utf8_slice_codeunits(table["hour"], 0, 10))
    keys = [(k, "ascending") for k in ("cluster", "date", "topic", "topic_id", "partition", "hour")]
    days = pa.Table.from_batches(list(fold_days(table.sort_by(keys).to_batches(7))))
    keys = [(k, "ascending") for k in ("cluster", "topic", "topic_id", "partition", "date")]
    return [row for part in fold_models(days.sort_by(keys).to_batches(3)) for row in part.to_pylist()]

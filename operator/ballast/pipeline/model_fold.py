"""Hours to days, and days to the model: groups of rows are merged with reductions over their run, exactly.

Everything merged here adds or takes a maximum.  Percentiles come from the summed histograms; the growth is a least-squares
slope over hourly sizes, which needs sums only as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ballast.core.cluster import UNKNOWN, Ints
from ballast.pipeline import arrow, histograms
from ballast.pipeline.histograms import Sparse
from ballast.pipeline.load_fold import P95
from ballast.pipeline.schemas import LOAD_DAY, LOAD_MODEL

PARTITION: Final = ["cluster", "topic", "topic_id", "partition"]
DAY_GROUP: Final = ["cluster", "date", "topic", "topic_id", "partition"]
HOURS: Final = 24
WEEK_HOURS: Final = 168
_MONDAY: Final = datetime(2024, 1, 1, tzinfo=UTC)


def fold_days(batches: Iterable[Any]) -> Iterator[Any]:
    """Fold leader rows of ``load_hour`` (with ``date``), sorted by ``DAY_GROUP``, into ``load_day``."""
    for table in arrow.whole_groups(batches, DAY_GROUP):
        yield _day(table.combine_chunks())


def fold_models(batches: Iterable[Any]) -> Iterator[Any]:
    """Fold ``load_day`` rows, sorted by partition and date, into ``load_model``."""
    for table in arrow.whole_groups(batches, PARTITION):
        yield _model(table.combine_chunks())


def hour_number(column: Any) -> Ints:
    """Hours since a Monday, from a column of names such as ``2026-11-21T14`` or ``2026-11-21``."""
    coded = column.combine_chunks().dictionary_encode()
    known = np.array([_number(name) for name in coded.dictionary.to_pylist()], np.int64)
    numbers: Ints = known[arrow.numbers(coded.indices)]
    return numbers


def _number(name: str) -> int:
    day, _, hour = name.partition("T")
    return int((datetime.fromisoformat(day).replace(tzinfo=UTC) - _MONDAY).days) * HOURS + int(hour or 0)


def hour_word(number: int) -> str:
    """The name of an hour, back from its number."""
    return datetime.fromtimestamp(_MONDAY.timestamp() + number * 3600, UTC).strftime("%Y-%m-%dT%H")


def _histogram(table: Any, kind: str, group: Ints, groups: int) -> Sparse:
    bucket, count = table.column(f"{kind}_bucket"), table.column(f"{kind}_count")
    parts = Sparse(arrow.starts(bucket), arrow.values(bucket).astype(np.int64), arrow.values(count).astype(np.int64))
    return histograms.merge(parts, group, groups)


def _sums(table: Any, name: str, begin: Ints) -> npt.NDArray[Any]:
    return np.add.reduceat(arrow.numbers(table.column(name)), begin)


def _keys(table: Any, begin: Ints, names: list[str]) -> dict[str, Any]:
    first = pa.array(begin)
    return {name: table.column(name).combine_chunks().take(first) for name in names}


def _day(table: Any) -> Any:
    cuts = arrow.boundaries(table, DAY_GROUP)
    begin, groups = cuts[:-1], len(cuts) - 1
    group = np.repeat(np.arange(groups), np.diff(cuts))
    hours = hour_number(table.column("hour"))
    slot = hours % HOURS
    minutes = np.zeros((groups, HOURS), np.int32)
    np.add.at(minutes, (group, slot), arrow.numbers(table.column("minutes_led")))
    bytes_in = np.zeros((groups, HOURS))
    np.add.at(bytes_in, (group, slot), arrow.numbers(table.column("bytes_in_led")))
    # Where two brokers led within the hour, the one with more minutes says how large the log is.
    size = np.full((groups, HOURS), UNKNOWN, np.int64)
    order = np.argsort(arrow.numbers(table.column("minutes_led")), kind="stable")
    known = order[arrow.numbers(table.column("size_last"))[order] >= 0]
    size[group[known], slot[known]] = arrow.numbers(table.column("size_last"))[known]
    newest = np.maximum.reduceat(hours, begin)
    rates, consumed = _histogram(table, "rate", group, groups), _histogram(table, "out", group, groups)
    return arrow.batch(
        LOAD_DAY,
        {
            **_keys(table, begin, DAY_GROUP),
            "last_hour": [hour_word(int(n)) for n in newest],
            "minutes": arrow.rows(minutes),
            "bytes_in": arrow.rows(bytes_in),
            "bytes_in_max": np.maximum.reduceat(arrow.numbers(table.column("bytes_in_max_led")), begin),
            "rate_bucket": arrow.lists(rates.start, rates.bucket.astype(np.int32)),
            "rate_count": arrow.lists(rates.start, rates.tally.astype(np.int32)),
            "records_in": _sums(table, "records_in", begin),
            "minutes_out": _sums(table, "minutes_out", begin),
            "bytes_out": _sums(table, "bytes_out", begin),
            "out_bucket": arrow.lists(consumed.start, consumed.bucket.astype(np.int32)),
            "out_count": arrow.lists(consumed.start, consumed.tally.astype(np.int32)),
            "size_bytes": arrow.rows(size),
        },
    )


def _model(table: Any) -> Any:
    cuts = arrow.boundaries(table, PARTITION)
    begin, groups = cuts[:-1], len(cuts) - 1
    group = np.repeat(np.arange(groups), np.diff(cuts))
    day = hour_number(table.column("date"))
    hour = day[:, None] + np.arange(HOURS)
    minutes = arrow.matrix(table.column("minutes"), HOURS)
    bytes_in = arrow.matrix(table.column("bytes_in"), HOURS)
    size = arrow.matrix(table.column("size_bytes"), HOURS)
    seen = (size >= 0) | (minutes > 0)
    as_of = np.maximum.reduceat(hour_number(table.column("last_hour")), begin)
    since = np.minimum.reduceat(np.where(seen, hour, as_of[group][:, None]).min(axis=1), begin)
    total = np.add.reduceat(minutes.sum(axis=1, dtype=np.int64), begin)
    hours_spanned = as_of - since + 1
    coverage = np.minimum(total / (hours_spanned * 60.0), 1.0)
    rates, consumed = _histogram(table, "rate", group, groups), _histogram(table, "out", group, groups)
    seconds = np.where(total > 0, total * 60.0, 1.0)
    out_minutes = _sums(table, "minutes_out", begin)
    peak = np.maximum.reduceat(arrow.numbers(table.column("bytes_in_max")), begin).astype(np.float64)
    return arrow.batch(
        LOAD_MODEL,
        {
            **_keys(table, begin, PARTITION),
            "as_of": [hour_word(int(n)) for n in as_of],
            "since": [hour_word(int(n)) for n in since],
            "minutes": total,
            "coverage": coverage,
            "confidence": coverage * np.minimum(hours_spanned / WEEK_HOURS, 1.0),
            "bytes_in_mean": np.add.reduceat(bytes_in.sum(axis=1), begin) / seconds,
            # A bucket's value may lie above the highest rate that fell in it.
            "bytes_in_p95": np.minimum(histograms.quantile(rates, P95), peak),
            "bytes_in_peak": peak,
            "records_in_mean": _sums(table, "records_in", begin) / seconds,
            "bytes_out_mean": np.where(
                out_minutes > 0, _sums(table, "bytes_out", begin) / np.maximum(out_minutes * 60.0, 1), UNKNOWN
            ),
            "bytes_out_p95": histograms.quantile(consumed, P95),
            "week": arrow.rows(_week(group, groups, hour, minutes, bytes_in)),
            "size_bytes": _last_size(group, groups, hour, size),
            "growth_bytes_per_day": slope(group, groups, hour - since[group][:, None], size) * HOURS,
        },
    )


def _week(
    group: Ints, groups: int, hour: Ints, minutes: npt.NDArray[Any], bytes_in: npt.NDArray[Any]
) -> npt.NDArray[np.float32]:
    """Mean rate of each hour of the week; days are at most a few per group, so a day at a time is added."""
    slot = (group[:, None] * WEEK_HOURS + hour % WEEK_HOURS).ravel()
    size = groups * WEEK_HOURS
    seconds = np.bincount(slot, minutes.ravel(), size) * 60.0
    total = np.bincount(slot, bytes_in.ravel(), size)
    mean = np.where(seconds > 0, total / np.where(seconds > 0, seconds, 1), UNKNOWN)
    return mean.reshape(groups, WEEK_HOURS).astype(np.float32)


def _last_size(group: Ints, groups: int, hour: Ints, size: Ints) -> Ints:
    """The newest known size of each group; rows of a group are in the order of time."""
    out = np.full(groups, UNKNOWN, np.int64)
    row, column = np.nonzero(size >= 0)
    order = np.lexsort((hour[row, column], group[row]))
    out[group[row[order]]] = size[row[order], column[order]]
    return out


def slope(group: Ints, groups: int, hour: Ints, size: Ints) -> npt.NDArray[np.float64]:
    """Least-squares slope of size over hours, bytes per hour; 0 where fewer than two hours are known."""
    row, column = np.nonzero(size >= 0)
    g, x, y = group[row], hour[row, column].astype(np.float64), size[row, column].astype(np.float64)
    n = np.maximum(np.bincount(g, minlength=groups), 1)
    mean_x, mean_y = np.bincount(g, x, groups) / n, np.bincount(g, y, groups) / n
    dx, dy = x - mean_x[g], y - mean_y[g]
    spread = np.bincount(g, dx * dx, groups)
    return np.where(spread > 0, np.bincount(g, dx * dy, groups) / np.where(spread > 0, spread, 1), 0.0)

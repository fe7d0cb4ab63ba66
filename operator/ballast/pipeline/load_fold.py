"""Hours to figures: each fold works on whole batches of rows with NumPy, no Python object per sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import UNKNOWN, Flags, Ints
from ballast.pipeline import arrow, histograms
from ballast.pipeline.hour_fold import MINUTES, fold_hours, unpack
from ballast.pipeline.schemas import LOAD_HOUR

P95: Final = 0.95


def fold_loads(batches: Iterable[Any]) -> Iterator[Any]:
    """Fold ``samples_hour`` rows into ``load_hour`` rows, one for one; for ``mapInArrow``."""
    for rows in batches:
        if rows.num_rows:
            yield _fold(rows)


def fold_minutes(batches: Iterable[Any]) -> Iterator[Any]:
    """Fold sorted minute rows into ``load_hour`` rows; for ``mapInArrow``."""
    return fold_loads(fold_hours(batches))


def nearest_rank(values: npt.NDArray[Any], known: Flags, q: float) -> npt.NDArray[Any]:
    """Exact quantile of each row's known entries, the smallest value that at least q of them do not exceed; -1 if none."""
    ordered = np.sort(np.where(known, values, np.inf), axis=1)
    n = known.sum(axis=1)
    at = np.maximum(np.ceil(q * n - 1e-9).astype(np.int64) - 1, 0)
    found = np.take_along_axis(ordered, at[:, None], axis=1)[:, 0]
    return np.where(n > 0, found, UNKNOWN)


def _edge(sizes: Ints, known: Flags, *, last: bool) -> Ints:
    """First or last known entry of each row, -1 where none is."""
    flags, values = (known[:, ::-1], sizes[:, ::-1]) if last else (known, sizes)
    at = flags.argmax(axis=1)
    return np.where(known.any(axis=1), np.take_along_axis(values, at[:, None], axis=1)[:, 0], UNKNOWN)


def _fold(rows: Any) -> Any:
    sampled = unpack(arrow.numbers(rows.column("sampled")))
    rated = unpack(arrow.numbers(rows.column("rated")))
    led = unpack(arrow.numbers(rows.column("led")))
    rate = arrow.matrix(rows.column("bytes_in"), MINUTES)
    size = arrow.matrix(rows.column("size_bytes"), MINUTES)
    sized = sampled & (size >= 0)
    first, final = _edge(size, sized, last=False), _edge(size, sized, last=True)
    counts = histograms.count_rows(rate, rated & led)
    columns: dict[str, Any] = {
        name: rows.column(name)
        for name in ("cluster", "hour", "topic", "topic_id", "partition", "broker", "log_dir", "records_in", "lag_max")
    }
    columns |= {
        "minutes_sampled": sampled.sum(axis=1),
        "minutes_in_sync": unpack(arrow.numbers(rows.column("in_sync"))).sum(axis=1),
        "rate_bucket": arrow.lists(counts.start, counts.bucket.astype(np.int32)),
        "rate_count": arrow.lists(counts.start, counts.tally.astype(np.int32)),
        "size_first": first,
        "size_last": final,
        "size_max": np.where(sized, size, UNKNOWN).max(axis=1),
        "growth_bytes": final - first,
        **_role("led", rate, rated & led),
        **_role("followed", rate, rated & ~led),
        **_consumed(rows, led),
    }
    return arrow.batch(LOAD_HOUR, columns)


def _role(role: str, rate: npt.NDArray[Any], known: Flags) -> dict[str, Any]:
    return {
        f"minutes_{role}": known.sum(axis=1),
        f"bytes_in_{role}": np.where(known, rate, 0).sum(axis=1, dtype=np.float64) * 60.0,
        f"bytes_in_max_{role}": np.where(known, rate, UNKNOWN).max(axis=1),
        f"bytes_in_p95_{role}": nearest_rank(rate, known, P95).astype(np.float32),
    }


def _consumed(rows: Any, led: Flags) -> dict[str, Any]:
    """The rates to consumers, where the samples carry them."""
    given = rows.column("bytes_out")
    rate = np.full(led.shape, UNKNOWN, np.float32)
    have = np.asarray(given.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    if have.any():
        rate[have] = arrow.matrix(given.drop_null(), MINUTES)
    known = led & (rate >= 0)
    counts = histograms.count_rows(rate, known)
    return {
        "minutes_out": known.sum(axis=1),
        "bytes_out": np.where(known, rate, 0).sum(axis=1, dtype=np.float64) * 60.0,
        "out_bucket": arrow.lists(counts.start, counts.bucket.astype(np.int32)),
        "out_count": arrow.lists(counts.start, counts.tally.astype(np.int32)),
    }

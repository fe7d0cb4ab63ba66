"""Hours to figures: each fold works on whole blocks of replicas with NumPy, no Python object per sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import UNKNOWN, Flags, Ints
from ballast.pipeline import arrow, histograms
from ballast.pipeline.hour_fold import Hour, hours_of
from ballast.pipeline.schemas import LOAD_HOUR

P95: Final = 0.95


def fold_minutes(batches: Iterable[Any]) -> Iterator[Any]:
    """Fold sorted minute rows into ``load_hour`` rows."""
    return map(_fold, hours_of(batches))


def nearest_rank(values: npt.NDArray[Any], known: Flags, q: float) -> npt.NDArray[Any]:
    """Exact quantile of each row's known entries, the smallest value that at least q of them do not exceed; -1 if none."""
    n = known.sum(axis=1)
    some = np.flatnonzero(n)
    ordered = np.sort(np.where(known[some], values[some], np.inf), axis=1)
    at = np.maximum(np.ceil(q * n[some] - 1e-9).astype(np.int64) - 1, 0)
    found = np.full(len(values), UNKNOWN, ordered.dtype)
    found[some] = np.take_along_axis(ordered, at[:, None], axis=1)[:, 0]
    return found


def _edge(sizes: Ints, known: Flags, *, last: bool) -> Ints:
    """First or last known entry of each column, -1 where none is."""
    flags, values = (known[::-1], sizes[::-1]) if last else (known, sizes)
    at = flags.argmax(axis=0)
    return np.where(known.any(axis=0), values[at, np.arange(values.shape[1])], UNKNOWN)


def _fold(hour: Hour) -> Any:
    size, sized = hour.size_bytes, hour.sampled & (hour.size_bytes >= 0)
    first, final = _edge(size, sized, last=False), _edge(size, sized, last=True)
    counts = histograms.count_rows(hour.bytes_in.T, (hour.rated & hour.led).T)
    return arrow.batch(
        LOAD_HOUR,
        {
            **hour.keys,
            "log_dir": hour.log_dir,
            "records_in": hour.records_in,
            "lag_max": hour.lag_max,
            "minutes_sampled": hour.sampled.sum(axis=0),
            "minutes_in_sync": hour.in_sync.sum(axis=0),
            "rate_bucket": arrow.lists(counts.start, counts.bucket.astype(np.int32)),
            "rate_count": arrow.lists(counts.start, counts.tally.astype(np.int32)),
            "size_first": first,
            "size_last": final,
            "size_max": np.where(sized, size, UNKNOWN).max(axis=0),
            "growth_bytes": final - first,
            **_role("led", hour.bytes_in, hour.rated & hour.led),
            **_role("followed", hour.bytes_in, hour.rated & ~hour.led),
            **_consumed(hour),
        },
    )


def _role(role: str, rate: npt.NDArray[np.float32], known: Flags) -> dict[str, Any]:
    return {
        f"minutes_{role}": known.sum(axis=0),
        f"bytes_in_{role}": np.where(known, rate, 0).sum(axis=0, dtype=np.float64) * 60.0,
        f"bytes_in_max_{role}": np.where(known, rate, np.float32(UNKNOWN)).max(axis=0),
        f"bytes_in_p95_{role}": nearest_rank(rate.T, known.T, P95).astype(np.float32),
    }


def _consumed(hour: Hour) -> dict[str, Any]:
    """The rates to consumers, where the samples carry them."""
    rate = np.full(hour.led.shape, UNKNOWN, np.float32) if hour.bytes_out is None else hour.bytes_out
    known = hour.led & (rate >= 0)
    counts = histograms.count_rows(rate.T, known.T)
    return {
        "minutes_out": known.sum(axis=0),
        "bytes_out": np.where(known, rate, 0).sum(axis=0, dtype=np.float64) * 60.0,
        "out_bucket": arrow.lists(counts.start, counts.bucket.astype(np.int32)),
        "out_count": arrow.lists(counts.start, counts.tally.astype(np.int32)),
    }

"""Sparse logarithmic histograms: quantiles of many windows that merge exactly.

Bucket b > 0 holds rates in ``(G^(b-1), G^b]``, bucket 0 everything up to 1 byte/s.  Counts add, so a day is the sum of its
hours whatever the order; a quantile read from it is within ``ERROR`` of the true one.  Averages of percentiles would be
within nothing at all.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import Ints

ERROR: Final = 0.02
_GROWTH: Final = (1 + ERROR) / (1 - ERROR)
_LOG_GROWTH: Final = float(np.log(_GROWTH))
_WIDTH: Final = 1 << 16
"""More buckets than any rate can reach; pairs (row, bucket) are packed into one integer by it."""


class Sparse(NamedTuple):
    """Histograms of many rows: those of row i are ``start[i]:start[i + 1]``, buckets ascending."""

    start: Ints
    bucket: Ints
    tally: Ints


def bucket_of(rates: npt.NDArray[Any]) -> Ints:
    """Bucket numbers of rates in bytes/s."""
    with np.errstate(divide="ignore"):
        at = np.ceil(np.log(np.maximum(rates, 1e-300).astype(np.float64)) / _LOG_GROWTH - 1e-9)
    found: Ints = np.maximum(at, 0).astype(np.int64)
    return found


def value_of(bucket: Ints) -> npt.NDArray[np.float64]:
    """The rate that stands for a bucket: at most ``ERROR`` away from any rate in it."""
    value = np.exp(bucket * _LOG_GROWTH) * (1 - ERROR)
    return np.where(bucket == 0, 0.0, value)


def count_rows(rates: npt.NDArray[Any], known: npt.NDArray[np.bool_]) -> Sparse:
    """Histogram of each row of a matrix, counting its known entries."""
    row, _ = np.nonzero(known)
    keys = np.sort(row * _WIDTH + bucket_of(rates[known]))
    cuts = np.flatnonzero(np.diff(keys, prepend=-1, append=-1))
    return _sparse(len(rates), keys[cuts[:-1]], np.diff(cuts))


def merge(parts: Sparse, group: Ints, groups: int) -> Sparse:
    """Add the histograms of rows that share a group."""
    rows = np.repeat(group, np.diff(parts.start))
    return _pack(groups, rows, parts.bucket, parts.tally)


def quantile(parts: Sparse, q: float) -> npt.NDArray[np.float64]:
    """Nearest-rank quantile of each row; -1 for an empty one."""
    rows = len(parts.start) - 1
    running = np.concatenate(([0], np.cumsum(parts.tally)))
    total = running[parts.start[1:]] - running[parts.start[:-1]]
    wanted = running[parts.start[:-1]] + np.maximum(np.ceil(q * total - 1e-9), 1)
    at = np.searchsorted(running[1:], wanted, side="left")
    out = np.full(rows, -1.0)
    filled = total > 0
    out[filled] = value_of(parts.bucket[at[filled]])
    return out


def _pack(rows: int, row: Ints, bucket: Ints, count: Ints) -> Sparse:
    keys, inverse = np.unique(row * _WIDTH + bucket, return_inverse=True)
    return _sparse(rows, keys, np.bincount(inverse, weights=count, minlength=len(keys)).astype(np.int64))


def _sparse(rows: int, keys: Ints, counts: Ints) -> Sparse:
    """Histograms from distinct ascending keys, each a row and a bucket packed into one integer."""
    row, bucket = np.divmod(keys, _WIDTH)
    start = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=rows))))
    return Sparse(start, bucket, counts)

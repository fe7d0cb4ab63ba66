"""Append rates from consecutive samples: what was really written, whatever happened to the log meanwhile.

The log's growth is the truth while nothing is deleted.  Where the first offset moved (retention, delete-records) or the
topic is compacted, growth understates what came in; the records are then counted by offsets and weighed with the bytes per
record seen in clean intervals of the same partition.  An interval is unknown, never guessed, when it is longer than
``LONGEST_INTERVAL_MIN``, when the clock stepped, when the high watermark went back (a recreated topic, an unclean
election), or when neither size nor offsets were given.

All functions are pure and work on whole blocks: T samples x P partitions x R replicas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import UNKNOWN, Flags, Ints

LONGEST_INTERVAL_MIN: Final = 10
"""Two samples further apart than this are a gap: nothing is said about the time between."""
HALF: Final = 0.5
"""A compacted topic's interval that grew less than this share of its usual bytes per record was cut by the cleaner."""
CLOCK_SLACK_S: Final = 90.0
"""The wall clock may disagree by so much with the difference of minutes before the interval counts as a clock step."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Per sample and partition, the interval that ends there; NaN where unknown."""

    bytes_per_s: Floats
    records_per_s: Floats
    since: Ints
    """Index of the sample that the interval starts at; -1 where there is none."""


def timeline_s(taken_at_ms: Ints, monotonic_ms: Ints, writers: npt.NDArray[np.int64]) -> Floats:
    """Seconds since the first sample, immune to clock steps within one writer.

    ``writers`` holds a number per writing process.  Between two processes only the wall clocks compare.  A step that
    leaves no believable elapsed time is NaN *difference*: the timeline jumps by infinity, so that no interval spans it.
    """
    out = np.zeros(len(taken_at_ms))
    wall = np.diff(taken_at_ms) / 1000.0
    own = np.diff(monotonic_ms) / 1000.0
    same = np.diff(writers) == 0
    elapsed = np.where(same, own, wall)
    broken = (elapsed <= 0) | (same & (np.abs(own - wall) > CLOCK_SLACK_S))
    np.cumsum(np.where(broken, 1e12, elapsed), out=out[1:])
    return out


def previous(valid: Flags) -> Ints:
    """Per (t, p): the last valid t' < t, or -1."""
    at = np.where(valid, np.arange(len(valid))[:, None], -1)
    filled = np.maximum.accumulate(at, axis=0)
    out = np.full(valid.shape, -1, np.int64)
    out[1:] = filled[:-1]
    return out


def bytes_per_record(grown: Floats, records: Floats, clean: Flags) -> Floats:
    """Per (t, p): bytes of a record as last seen in a clean interval (else the next one); NaN where never seen."""
    ratio = np.where(clean, grown / np.where(records > 0, records, 1), np.nan)
    return _fill(_fill(ratio)[::-1])[::-1]


def _fill(values: Floats) -> Floats:
    """Carry the last known value of each column forward."""
    at = np.where(np.isnan(values), 0, np.arange(len(values))[:, None])
    np.maximum.accumulate(at, axis=0, out=at)
    filled: Floats = np.take_along_axis(values, at, axis=0)
    return filled


def append_rates(
    *,
    seconds: Floats,
    earliest: Ints,
    high_watermark: Ints,
    led_size: Ints,
    led_size_before: Ints,
    since: Ints,
    compacted: Flags,
) -> Rates:
    """Compute what came in between each sample and the one before it.

    ``led_size`` is the size of the replica that leads at t, ``led_size_before`` the size of *that same replica* at the
    earlier sample ``since`` (so a change of leader compares no two different logs); both ``UNKNOWN`` where not given.
    """
    known = since >= 0
    before = np.maximum(since, 0)
    elapsed = np.where(known, seconds[:, None] - seconds[before], np.nan)
    known &= (elapsed > 0) & (elapsed < LONGEST_INTERVAL_MIN * 60 + CLOCK_SLACK_S)

    high_before = np.take_along_axis(high_watermark, before, axis=0)
    first_before = np.take_along_axis(earliest, before, axis=0)
    counted = known & (high_watermark >= 0) & (high_before >= 0)
    records = np.where(counted, high_watermark - high_before, 0).astype(np.float64)
    reset = counted & (records < 0)
    counted &= ~reset

    sized = known & ~reset & (led_size >= 0) & (led_size_before >= 0)
    grown = np.where(sized, led_size - led_size_before, 0).astype(np.float64)
    trimmed = (earliest != first_before) & (earliest >= 0) & (first_before >= 0)
    clean = sized & counted & ~trimmed & (grown > 0) & (records > 0)
    weight = _usual_weight(grown, records, clean, compacted)

    span = (high_watermark - earliest).astype(np.float64)
    whole = (led_size > 0) & (span > 0) & (earliest >= 0) & ~compacted[None, :]
    weight = np.where(np.isnan(weight) & whole, led_size / np.where(span > 0, span, 1), weight)
    by_count = records * weight

    cut = trimmed | (grown < 0) | (compacted[None, :] & (grown < HALF * by_count))
    produced = np.where(
        sized & ~cut, grown, np.where(counted & (records == 0), 0.0, np.where(counted, by_count, np.nan))
    )
    known &= ~reset & (sized | counted)
    per_s = np.where(known & (elapsed > 0), 1.0 / np.where(elapsed > 0, elapsed, 1.0), np.nan)
    return Rates(
        bytes_per_s=produced * per_s,
        records_per_s=np.where(counted, records, np.nan) * per_s,
        since=np.where(known, since, UNKNOWN),
    )


def _usual_weight(grown: Floats, records: Floats, clean: Flags, compacted: Flags) -> Floats:
    """Bytes per record; for compacted topics the median of the clean intervals, since any one may have been cut."""
    weight = bytes_per_record(grown, records, clean)
    columns = np.flatnonzero(compacted & clean.any(axis=0))
    if len(columns):
        ratio = np.where(clean[:, columns], grown[:, columns] / np.maximum(records[:, columns], 1), np.nan)
        weight[:, columns] = np.nanmedian(ratio, axis=0)
    return weight

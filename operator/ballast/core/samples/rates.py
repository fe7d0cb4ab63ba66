"""Append rates from two samples: what was really written in between, whatever happened to the log meanwhile.

The log's growth is the truth while nothing is deleted and nothing is copied.  Where the first offset on the leader's disk moved
(retention, delete-records, a tiered topic's local retention) or is not told, or where the topic is compacted, growth may
understate what came in; where the leader was not in sync at the sample before, its log also grew by what it copied.  The records
are then counted by offsets and weighed with the bytes per record seen in clean intervals of the same partition.  An interval is unknown, never guessed, when it is longer than
``LONGEST_INTERVAL_MIN``, when the clock stepped, when the high watermark went back (a recreated topic, an unclean
election), or when neither size nor offsets were given.

All functions are pure and work on whole columns: P partitions, at most R replicas each.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import NO_LEADERSHIP_RECORD, UNKNOWN, Flags, Ints
from ballast.core.samples.minute import MinuteSample

LONGEST_INTERVAL_MIN: Final = 10
"""Two samples further apart than this are a gap: nothing is said about the time between."""
HALF: Final = 0.5
"""A compacted topic's interval that grew less than this share of its usual bytes per record was cut by the cleaner."""
CLOCK_SLACK_S: Final = 90.0
"""The wall clock may disagree by so much with the monotonic one before the interval counts as a clock step."""
WEIGHTS: Final = 9
"""Clean intervals of a partition that are remembered; of compacted topics their median counts, since any one may have been cut."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """The last usable reading of each partition, from which the next sample is measured.  Columns have a row for each."""

    topics: tuple[tuple[str, str], ...]
    """Name and id of each topic."""
    topic: Ints
    """Index into ``topics``."""
    number: Ints
    leader: Ints
    """The last that was known: a record that is lost for a while is no change of leader, and hides none."""
    earliest: Ints
    high_watermark: Ints
    replica: Ints
    """P x R broker ids, ``UNKNOWN`` where a partition has fewer replicas."""
    size_bytes: Ints
    """P x R; ``UNKNOWN`` where the replica is not in sync, since its log also grows by what it copies."""
    taken_at_ms: Ints
    monotonic_ms: Floats
    """NaN where another process took the reading."""
    weights: Floats
    """P x ``WEIGHTS`` bytes per record of clean intervals, the newest first; NaN where there was none."""
    writer: str
    epoch_minute: int
    """Of the newest sample."""


class Rates(NamedTuple):
    """Per partition, the interval that ends with this sample; NaN where unknown."""

    seconds: Floats
    bytes_per_s: Floats
    records_per_s: Floats


class Measured(NamedTuple):
    """What a sample and the readings before it say together."""

    rates: Rates
    leader_before: Ints
    """The last leader that was known; ``NOT_SEEN`` where the partition was not in the readings."""
    readings: Readings
    """From which the next sample is measured."""


NOT_SEEN: Final = -3


def measure(sample: MinuteSample, before: Readings | None) -> Measured:
    """Measure a sample from the readings before it; O(P log P + P R)."""
    now = _readings(sample)
    if before is None:
        unknown = np.full(len(now.number), np.nan)
        return Measured(Rates(unknown, unknown, unknown), np.full(len(now.number), NOT_SEEN), now)
    row = _rows(now, before)
    seen = row >= 0
    old = _take(before, np.maximum(row, 0), now.replica.shape[1])
    rates, clean_weight = _rates(now, old, seen, sample.compacted)
    leader_before = np.where(seen, old.leader, NOT_SEEN)
    return Measured(rates, leader_before, _carry(now, old, seen, clean_weight))


def _readings(sample: MinuteSample) -> Readings:
    p = sample.state.partitions
    rows = len(p)
    return Readings(
        topics=sample.topics,
        topic=p.topic.astype(np.int64),
        number=p.number.astype(np.int64),
        leader=p.leader.astype(np.int64),
        earliest=sample.earliest,
        high_watermark=sample.high_watermark,
        replica=matrix(p.start, p.replica.astype(np.int64)),
        size_bytes=matrix(p.start, np.where(p.in_sync, p.size_bytes, UNKNOWN)),
        taken_at_ms=np.full(rows, sample.taken_at_ms, np.int64),
        monotonic_ms=np.full(rows, float(sample.monotonic_ms)),
        weights=np.full((rows, WEIGHTS), np.nan),
        writer=sample.writer,
        epoch_minute=sample.epoch_minute,
    )


def matrix(start: Ints, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Runs of values, the i-th from ``start[i]`` to ``start[i + 1]``, as rows padded with ``UNKNOWN``."""
    counts = np.diff(start)
    width = int(counts.max()) if len(counts) else 0
    if len(values) == len(counts) * width:
        return values.reshape(len(counts), width)
    out = np.full((len(counts), width), UNKNOWN, values.dtype)
    out[np.arange(width) < counts[:, None]] = values
    return out


def _rows(now: Readings, before: Readings) -> Ints:
    """Per partition of ``now``: its row in ``before``, or -1.  A topic of another id is another topic."""
    place = {topic: at for at, topic in enumerate(before.topics)}
    topic = np.array([place.get(t, -1) for t in now.topics], np.int64)[now.topic] if now.topics else now.topic
    mine, theirs = (topic << 32) | now.number, (before.topic << 32) | before.number
    if len(mine) == len(theirs) and (mine == theirs).all():
        return np.arange(len(mine))
    order = np.argsort(theirs, kind="stable")
    if not len(order):
        return np.full(len(mine), -1, np.int64)
    at = np.minimum(np.searchsorted(theirs[order], mine), len(order) - 1)
    return np.where((topic >= 0) & (theirs[order][at] == mine), order[at], -1)


_PER_ROW: Final = tuple(f.name for f in fields(Readings) if f.name not in ("topics", "topic", "writer", "epoch_minute"))


def _take(before: Readings, row: Ints, width: int) -> Readings:
    """The rows of ``before`` in this order, with room for as many replicas."""
    columns = {name: getattr(before, name)[row] for name in _PER_ROW} if len(before.number) else _empty(before, row)
    for name in ("replica", "size_bytes"):
        missing = width - columns[name].shape[1]
        if missing > 0:
            columns[name] = np.pad(columns[name], ((0, 0), (0, missing)), constant_values=UNKNOWN)
    return Readings(topics=before.topics, topic=row, writer=before.writer, epoch_minute=before.epoch_minute, **columns)


def _empty(before: Readings, row: Ints) -> dict[str, Any]:
    shapes = {name: getattr(before, name) for name in _PER_ROW}
    return {name: np.full((len(row), *old.shape[1:]), UNKNOWN, old.dtype) for name, old in shapes.items()}


def _leader_sizes(replica: Ints, size: Ints, leader: Ints) -> Ints:
    """Size of this leader's replica; ``UNKNOWN`` where there is no leader, it was not in sync or it did not say."""
    if not replica.shape[1]:
        return np.full(len(leader), UNKNOWN, np.int64)
    is_leader = (replica == leader[:, None]) & (leader >= 0)[:, None]
    found = np.take_along_axis(size, is_leader.argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(is_leader.any(axis=1), found, UNKNOWN)


def _elapsed_s(now: Readings, old: Readings) -> Floats:
    """Seconds between the readings, NaN where no clock can be believed."""
    wall = (now.taken_at_ms - old.taken_at_ms) / 1000.0
    own = (now.monotonic_ms - old.monotonic_ms) / 1000.0 if now.writer == old.writer else np.full(len(wall), np.nan)
    same = ~np.isnan(own)
    elapsed = np.where(same, own, wall)
    believed = (elapsed > 0) & (elapsed < LONGEST_INTERVAL_MIN * 60 + CLOCK_SLACK_S)
    believed &= ~(same & (np.abs(own - wall) > CLOCK_SLACK_S))
    return np.where(believed, elapsed, np.nan)


def _rates(now: Readings, old: Readings, seen: Flags, compacted: Flags) -> tuple[Rates, Floats]:
    """The rates, and the bytes per record where this interval was clean (else NaN).

    Growth is that of the replica that leads now, so a change of leader compares no two different logs; where it was not in
    sync before, nothing is known of its growth by appends.
    """
    elapsed = _elapsed_s(now, old)
    known = seen & ~np.isnan(elapsed)
    size = _leader_sizes(now.replica, now.size_bytes, now.leader)
    size_before = _leader_sizes(old.replica, old.size_bytes, now.leader)

    counted = known & (now.high_watermark >= 0) & (old.high_watermark >= 0)
    records = np.where(counted, now.high_watermark - old.high_watermark, 0).astype(np.float64)
    went_back = counted & (records < 0)
    counted &= ~went_back
    sized = known & ~went_back & (size >= 0) & (size_before >= 0)
    grown = np.where(sized, size - size_before, 0).astype(np.float64)
    # Where it begins is not told, while it is told where it ends: what was deleted meanwhile is unknown.
    untold = counted & ((now.earliest < 0) | (old.earliest < 0))
    trimmed = untold | (now.earliest != old.earliest) & (now.earliest >= 0) & (old.earliest >= 0)
    clean = sized & counted & ~trimmed & (grown > 0) & (records > 0)
    clean_weight = np.where(clean, grown / np.where(records > 0, records, 1), np.nan)

    by_count = records * _weight(now, old, size, clean_weight, compacted)
    cut = trimmed | (grown < 0) | (compacted & (grown < HALF * by_count))
    appended = np.where(
        sized & ~cut, grown, np.where(counted & (records == 0), 0.0, np.where(counted, by_count, np.nan))
    )
    seconds = np.where(known & ~went_back & (sized | counted) & ~np.isnan(appended), elapsed, np.nan)
    return Rates(seconds, appended / seconds, np.where(counted, records, np.nan) / seconds), clean_weight


def _weight(now: Readings, old: Readings, size: Ints, clean_weight: Floats, compacted: Flags) -> Floats:
    """Bytes of a record: of this interval where it was clean, else as last seen, else the log's own average."""
    weight = np.where(np.isnan(clean_weight), old.weights[:, 0], clean_weight)
    many = np.flatnonzero(compacted)
    if len(many):
        weight[many] = _median(np.column_stack([clean_weight[many], old.weights[many]]))
    span = (now.high_watermark - now.earliest).astype(np.float64)
    whole = np.isnan(weight) & (size > 0) & (span > 0) & (now.earliest >= 0) & ~compacted
    return np.where(whole, size / np.where(span > 0, span, 1), weight)


def _median(values: Floats) -> Floats:
    """Median of each row's numbers, NaN where it has none; a sort puts NaN last."""
    ordered, count = np.sort(values, axis=1), (~np.isnan(values)).sum(axis=1)
    rows = np.arange(len(values))
    return np.asarray((ordered[rows, np.maximum(count - 1, 0) // 2] + ordered[rows, count // 2]) / 2)


def _carry(now: Readings, old: Readings, seen: Flags, clean_weight: Floats) -> Readings:
    """Readings for the next sample: where this one says nothing of a partition, the one before stays."""
    usable = ~seen | (now.high_watermark >= 0) | (_leader_sizes(now.replica, now.size_bytes, now.leader) >= 0)
    kept = {}
    for name in ("earliest", "high_watermark", "replica", "size_bytes", "taken_at_ms", "monotonic_ms"):
        new, before = getattr(now, name), getattr(old, name)
        if usable.all():
            kept[name] = new
            continue
        missing = before.shape[-1] - new.shape[-1] if new.ndim > 1 else 0
        wide = np.pad(new, ((0, 0), (0, missing)), constant_values=UNKNOWN) if missing > 0 else new
        kept[name] = np.where(usable[:, None] if new.ndim > 1 else usable, wide, before)
    was = np.where(seen[:, None], old.weights, np.nan)
    fresh = ~np.isnan(clean_weight)
    weights = np.where(fresh[:, None], np.column_stack([clean_weight, was[:, :-1]]), was)
    if now.writer != old.writer and not usable.all():
        kept["monotonic_ms"] = np.where(usable, now.monotonic_ms, np.nan)
    return Readings(
        topics=now.topics,
        topic=now.topic,
        number=now.number,
        leader=np.where(seen & (now.leader == NO_LEADERSHIP_RECORD), old.leader, now.leader),
        weights=weights,
        writer=now.writer,
        epoch_minute=now.epoch_minute,
        **kept,
    )

"""Skew of preferred leadership: how unevenly the first replicas lie over brokers, racks and topics.

Leader imbalance (``core.leadership``) says whether the preferred leaders lead.  Skew says whether that would be a good
thing: with every preferred leader on one broker the imbalance is zero and the skew is as large as it can be.

Bytes are a partition's size on disk, as far as a broker said it; an unknown size counts as zero and is counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, Flags, Ints
from ballast.core.leadership.imbalance import deleting_rows


@dataclass(frozen=True, slots=True)
class Share:
    """What one broker or rack is the preferred leader of."""

    name: str
    partitions: int
    size_bytes: int
    fair_partitions: float
    """Its part if alive brokers shared equally."""
    fair_bytes: float

    @property
    def partitions_ratio(self) -> float:
        """1.0 is fair, 2.0 is twice its part; 0 where there is nothing to share."""
        return self.partitions / self.fair_partitions if self.fair_partitions else 0.0

    @property
    def bytes_ratio(self) -> float:
        """The same for bytes."""
        return self.size_bytes / self.fair_bytes if self.fair_bytes else 0.0


@dataclass(frozen=True, slots=True)
class TopicSkew:
    """A topic whose preferred leaders are spread unevenly over the alive brokers."""

    topic: str
    partitions: int
    maximum: int
    """The largest number on one broker."""
    on: int
    """That broker's id, the lowest of equals."""
    ideal: int
    """The least that the largest number could be, if replicas lay ideally: partitions over alive brokers, rounded up."""


@dataclass(frozen=True, slots=True)
class Skew:
    """The skew of a cluster; topics being deleted are left out."""

    brokers: tuple[Share, ...]
    racks: tuple[Share, ...]
    topics: tuple[TopicSkew, ...]
    """Those whose largest number is above the least possible one, worst first."""
    unknown_sizes: int
    """Partitions whose size is unknown."""


def partition_bytes(state: ClusterState) -> Ints:
    """Per partition the largest size that one of its replicas has, ``UNKNOWN`` where no broker said."""
    p = state.partitions
    out = np.full(len(p), UNKNOWN, np.int64)
    rows = np.repeat(np.arange(len(p)), np.diff(p.start))
    np.maximum.at(out, rows, p.size_bytes)
    return out


def preferred_skew(state: ClusterState) -> Skew:
    """Measure it; linear in partitions and in topics times brokers."""
    counted = (state.preferred != UNKNOWN) & ~deleting_rows(state)
    sizes = partition_bytes(state)
    ids = np.array([b.id for b in state.brokers], np.int64)
    slot = np.searchsorted(ids, state.preferred[counted])
    weight = np.maximum(sizes[counted], 0)
    count = np.bincount(slot, minlength=len(ids)).astype(np.int64)
    size = np.zeros(len(ids), np.int64)
    np.add.at(size, slot, weight)
    alive = np.array([b.alive for b in state.brokers], np.bool_)
    return Skew(
        _shares([str(b.id) for b in state.brokers], count, size, alive),
        _rack_shares(state, count, size, alive),
        _topic_skews(state, counted, slot, ids, int(alive.sum())),
        int((sizes[counted] == UNKNOWN).sum()),
    )


def _shares(names: list[str], count: Ints, size: Ints, members: Flags | Ints) -> tuple[Share, ...]:
    """``members``: how many alive brokers each name stands for."""
    part = members.astype(np.float64) / max(int(members.sum()), 1)
    fair_count, fair_size = part * int(count.sum()), part * int(size.sum())
    columns = (names, count.tolist(), size.tolist(), fair_count.tolist(), fair_size.tolist())
    return tuple(Share(*row) for row in zip(*columns, strict=True))


def _rack_shares(state: ClusterState, count: Ints, size: Ints, alive: Flags) -> tuple[Share, ...]:
    names = sorted({b.rack for b in state.brokers if b.rack is not None})
    if not names:
        return ()
    # Brokers without a rack belong to none of these.
    at = np.array([names.index(b.rack) if b.rack is not None else len(names) for b in state.brokers], np.int64)
    totals = [np.zeros(len(names) + 1, np.int64) for _ in range(3)]
    for total, column in zip(totals, (count, size, alive.astype(np.int64)), strict=True):
        np.add.at(total, at, column)
    bare = ["(no rack)"] if (at == len(names)).any() else []
    kept = len(names) + len(bare)
    return _shares([*names, *bare], totals[0][:kept], totals[1][:kept], totals[2][:kept])


def _topic_skews(state: ClusterState, counted: Flags, slot: Ints, ids: Ints, alive: int) -> tuple[TopicSkew, ...]:
    topic = state.partitions.topic[counted].astype(np.int64)
    cells, numbers = np.unique(topic * len(ids) + slot, return_counts=True)
    found = []
    totals = np.bincount(topic, minlength=len(state.topics))
    most = np.zeros(len(state.topics), np.int64)
    np.maximum.at(most, cells // max(len(ids), 1), numbers)
    for t in np.flatnonzero(most > -(-totals // max(alive, 1))).tolist():
        own = cells // len(ids) == t
        on = int(ids[cells[own][np.argmax(numbers[own])] % len(ids)])
        least = -(-int(totals[t]) // max(alive, 1))
        found.append(TopicSkew(state.topics[t].name, int(totals[t]), int(most[t]), on, least))
    return tuple(sorted(found, key=lambda s: (-s.maximum / s.ideal, -s.maximum, s.topic)))

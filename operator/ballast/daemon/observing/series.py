"""How the cluster went in the last day: one point a minute in a bounded ring, for the page's charts.

What was before this process comes from the store, where there is one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ballast.core.cluster import ClusterState
from ballast.core.samples import Point
from ballast.daemon.context.figures import Figures

POINTS: Final = 1440
SPACING_MS: Final = 60_000
DAY_MS: Final = POINTS * SPACING_MS
MEASURED_MS: Final = 2 * SPACING_MS
"""Bytes in that were measured so long before a point are those of its time."""
_EARLY_MS: Final = 10_000
"""A reading so much before the full minute still counts for it."""


@dataclass(slots=True)
class Series:
    """The points of the last day, at most one a minute."""

    points: deque[Point] = field(default_factory=lambda: deque(maxlen=POINTS))
    _earlier: tuple[Point, ...] = ()
    """Points of earlier processes, oldest first, that wait to be taken in."""
    _measured: tuple[int, float] | None = None
    """The newest bytes in per second as brokers measured them, and when (milliseconds)."""
    _state: ClusterState | None = None
    _own: bool = False
    """Is the newest point of this process?"""

    def bring_back(self, points: tuple[Point, ...]) -> None:
        """Have points of earlier processes taken in with the next reading; callable from any thread."""
        self._earlier = points

    def note_measured(self, at_ms: int, bytes_in_per_s: float) -> None:
        """What brokers measured just now; callable from any thread."""
        self._measured = at_ms, bytes_in_per_s

    def add(self, state: ClusterState, figures: Figures) -> bool:
        """Take a reading in, unless the newest point is too young; has anything changed?"""
        grown = self._take_earlier()
        while self.points and self.points[-1].at_ms > figures.taken_at_ms:
            # The clock was ahead: such a point would be the newest until that time has come.
            self.points.pop()
        if self._own and self.points and figures.taken_at_ms - self.points[-1].at_ms < SPACING_MS - _EARLY_MS:
            return grown
        measured = self._measured
        timely = measured is not None and abs(figures.taken_at_ms - measured[0]) <= MEASURED_MS
        disk = next((r.skew for r in figures.ranges if r.resource == "disk"), None)
        self.points.append(
            Point(
                at_ms=figures.taken_at_ms,
                imbalance=max((b.imbalance_ratio for b in figures.brokers), default=0.0),
                disk_skew=disk,
                bytes_in_per_s=None if self._state is None else growth(self._state, state),
                moving=figures.reassigning,
                under_replicated=figures.under_replicated,
                measured_bytes_in_per_s=measured[1] if measured is not None and timely else None,
            )
        )
        self._state, self._own = state, True
        while self.points[0].at_ms <= figures.taken_at_ms - DAY_MS:
            self.points.popleft()
        return True

    def _take_earlier(self) -> bool:
        earlier, self._earlier = self._earlier, ()
        begin_ms = self.points[0].at_ms if self.points else None
        older = [p for p in earlier if begin_ms is None or p.at_ms < begin_ms]
        self.points = deque((*older, *self.points), maxlen=POINTS)
        return bool(older)


def growth(before: ClusterState, now: ClusterState) -> float | None:
    """Bytes a second by which leaders' logs grew; None where the partitions are others, or no size is known.

    A log that retention or compaction made smaller counts as not grown, so this is the least that came in.
    """
    seconds = (now.taken_at_ms - before.taken_at_ms) / 1000
    p, q = before.partitions, now.partitions
    same = np.array_equal(p.number, q.number) and [t.topic_id for t in before.topics] == [
        t.topic_id for t in now.topics
    ]
    if not same or seconds <= 0 or not len(q):
        return None
    old, new = _largest(before), _largest(now)
    known = (old >= 0) & (new >= 0)
    return float(np.maximum(new - old, 0)[known].sum() / seconds) if bool(known.any()) else None


def _largest(state: ClusterState) -> np.ndarray:
    p = state.partitions
    return np.maximum.reduceat(p.size_bytes, p.start[:-1])

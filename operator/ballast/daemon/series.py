"""How the cluster went in the last hours: one point a minute in a bounded ring, for the page's charts.

A figure that a reading did not have is None, and a gap in the chart.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ballast.core.cluster import ClusterState
from ballast.daemon.figures import Figures

POINTS: Final = 1440
SPACING_MS: Final = 60_000
_EARLY_MS: Final = 10_000
"""A reading so much before the full minute still counts for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The cluster at one moment."""

    at_ms: int
    imbalance: float
    """The worst broker's share of preferred leaderships that it does not lead."""
    disk_skew: float | None
    """The largest distance of a broker's disk from its fair share, as a part of that share."""
    bytes_in_per_s: float | None
    """By how much logs grew since the point before; None for the first one, and where sizes are not known."""
    moving: int
    under_replicated: int


@dataclass(slots=True)
class Series:
    """The newest ``POINTS`` points, at most one a minute."""

    points: deque[Point] = field(default_factory=lambda: deque(maxlen=POINTS))
    _state: ClusterState | None = None

    def add(self, state: ClusterState, figures: Figures) -> bool:
        """Take a reading in, unless the newest point is too young."""
        if self.points and figures.taken_at_ms - self.points[-1].at_ms < SPACING_MS - _EARLY_MS:
            return False
        disk = next((r.skew for r in figures.ranges if r.resource == "disk"), None)
        self.points.append(
            Point(
                at_ms=figures.taken_at_ms,
                imbalance=max((b.imbalance for b in figures.brokers), default=0.0),
                disk_skew=disk,
                bytes_in_per_s=None if self._state is None else growth(self._state, state),
                moving=figures.moving,
                under_replicated=figures.under_replicated,
            )
        )
        self._state = state
        return True


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

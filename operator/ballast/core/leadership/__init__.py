"""Preferred leaders: how far leaders are from them, how evenly they are spread, and the fewest changes that spread them."""

from __future__ import annotations

from ballast.core.leadership.imbalance import (
    DEFAULT_THRESHOLD_PERCENT,
    LeaderImbalance,
    imbalance,
    tally,
)

__all__ = ["DEFAULT_THRESHOLD_PERCENT", "LeaderImbalance", "imbalance", "tally"]

"""Prices for the bound by gradient ascent: cheap, and near the best wherever a linear program would take long.

The bound is a concave function of the prices, and what the cheapest placements load brokers with beyond their bands is its
slope.  Each step goes along the slopes seen so far, as far as the value hoped for asks, and less far whenever steps
stop paying.  Any prices give a bound that is right, so nothing here can make it wrong.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.planner.bound.kernels import SCALE, sum_loads
from ballast.core.planner.bound.value import Relaxation
from ballast.core.planner.problem.problem import SHARE, is_uniform

STEPS: Final = 800
WORK: Final = 15_000_000
"""Replica slots that all steps look at together: two or three CPU seconds."""
LEAST_STEPS: Final = 100
"""Fewer steps than this are not worth their time."""
PATIENCE: Final = 30
"""Steps without a better value after which they become shorter."""
SHORTER: Final = 0.8
MEMORY: Final = 0.85
"""The part of the last direction that is kept in the next."""
DEAREST: Final = 8.0
"""No price is higher, in bytes by byte."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def prices_by_ascent(r: Relaxation, hoped: int) -> tuple[Ints, int]:
    """The best prices found and their bound, where no bound is above ``hoped`` scaled bytes.

    Where brokers are alike the linear programs are quick or disk decides, and no step is made.
    """
    if is_uniform(r.problem):
        return np.zeros(r.low.shape, np.int64), 0
    steps = min(STEPS, WORK // max(len(r.problem.home), 1))
    price = np.zeros(r.low.shape)
    best, best_price, length, idle = -(1 << 62), price, 1.0, 0
    direction = np.zeros(r.low.shape)
    for _ in range(steps if steps >= LEAST_STEPS else 1):
        found, slope = _look(r, price)
        idle = 0 if found > best + abs(best) // 10_000 else idle + 1
        if found > best:
            best, best_price = found, price
        if idle >= PATIENCE:
            length, idle, price, direction = length * SHORTER, 0, best_price, np.zeros(r.low.shape)
            continue
        direction = slope + MEMORY * direction
        steep = float((direction * direction).sum())
        if not steep:
            break
        moved = price + length * (hoped - found) / SHARE / steep * direction
        # A price that would change its sign stops at nothing first.
        price = np.clip(np.where(moved * price < 0, 0.0, moved), -DEAREST, DEAREST)
    return np.rint(best_price * SCALE).astype(np.int64), best


def _look(r: Relaxation, price: Floats) -> tuple[int, Floats]:
    """The bound at these prices and its slope, in shares."""
    p = r.problem
    found, placement = r.evaluate(np.rint(price * SCALE).astype(np.int64))
    load = np.zeros(r.low.shape, np.int64)
    sum_loads(p.start, placement, p.lead, p.follow, load)
    above, below = load - r.high, load - r.low
    free = np.maximum(above, 0) + np.minimum(below, 0)
    return found, np.where(price > 0, above, np.where(price < 0, below, free)) / SHARE

"""The compiled choices of ``shorten``: of all changes to one copy that every rule and range allows, the one that relieves most.

``work`` is what each broker receives, then what each sends, in scaled bytes; its last place is no broker's.  ``bounds`` are the work
above which a broker is busy and the relief that a change must exceed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ballast.core.compiled import kernel, part
from ballast.core.planner.search.loops.arrays import Arrays
from ballast.core.planner.search.loops.kernels import fits, is_home

BYTES_PRICE = 2
"""Bytes that must leave busy brokers for each byte that is copied in addition."""


@part
def relief(work: Any, most: int, side: int, by: int) -> int:
    """By how much less this is too busy when its work changes so."""
    if side == len(work) - 1:
        return 0
    less: int = max(work[side] - most, 0) - max(work[side] + by - most, 0)
    return less


@part
def keeps_ranges(load: Any, low: Any, high: Any, broker: int, gets: Any, p: int, gives: Any, q: int) -> bool:
    """Is no range missed by more than it is now?"""
    for k in range(load.shape[1]):
        now = load[broker, k]
        then = now + gets[p, k] - gives[q, k]
        if then > max(now, high[broker, k]) or then < min(now, low[broker, k]):
            return False
    return True


@kernel
def best_taker(arrays: Arrays, costs: Any, work: Any, bounds: Any, takers: Any, slot: int) -> int:
    """The broker that the copy goes to instead; -1 where there is none."""
    load, lead, follow, low, high = costs
    p, here = arrays.row[slot], arrays.cur[slot]
    size = arrays.size[p]
    cost = lead if slot == arrays.start[p] else follow
    nothing = np.zeros((1, load.shape[1]), np.int64)
    best, most_relief = -1, bounds[1]
    if not keeps_ranges(load, low, high, here, nothing, 0, cost, p):
        return best
    relieved = relief(work, bounds[0], here, -size)
    for target in takers:
        score = relieved + relief(work, bounds[0], target, size)
        if score <= most_relief or target == here or is_home(arrays, p, target):
            continue
        if keeps_ranges(load, low, high, target, cost, p, nothing, 0) and fits(arrays, p, slot, target):
            best, most_relief = target, score
    return best


@kernel
def best_swap(arrays: Arrays, costs: Any, work: Any, bounds: Any, candidates: Any, slot: int) -> int:
    """The copy that changes destinations with this one; -1 where there is none."""
    start, cur, row, size = arrays.start, arrays.cur, arrays.row, arrays.size
    load, lead, follow, low, high = costs
    p, here = row[slot], cur[slot]
    cost = lead if slot == start[p] else follow
    best, most_relief = -1, bounds[1]
    for candidate in candidates:
        q, there = row[candidate], cur[candidate]
        less = size[p] - size[q]
        if less <= 0 or there == here or q == p:
            continue
        score = relief(work, bounds[0], here, -less) + relief(work, bounds[0], there, less)
        if score <= most_relief:
            continue
        other = lead if candidate == start[q] else follow
        # Written out here: as a function that takes the tuples it would cost three times as much.
        if (
            keeps_ranges(load, low, high, here, other, q, cost, p)
            and keeps_ranges(load, low, high, there, cost, p, other, q)
            and fits(arrays, p, slot, there)
            and fits(arrays, q, candidate, here)
        ):
            best, most_relief = candidate, score
    return best


@kernel
def best_stand_in(
    arrays: Arrays, costs: Any, work: Any, bounds: Any, sends: Any, candidates: Any, slot: int, home: int, more: int
) -> int:
    """The replica at home that is copied instead of this one, which stays; -1 where there is none.

    ``sends`` is by partition where in ``work`` its leader's sending is, ``more`` how many bytes more may be copied.
    """
    start, cur, row, size = arrays.start, arrays.cur, arrays.row, arrays.size
    load, lead, follow, low, high = costs
    p, here, most = row[slot], cur[slot], bounds[0]
    cost = lead if slot == start[p] else follow
    best, most_relief = -1, bounds[1]
    for candidate in candidates:
        q = row[candidate]
        added = size[q] - size[p]
        if added > more or q == p:
            continue
        score = relief(work, most, here, added) - BYTES_PRICE * max(added, 0)
        if sends[p] == sends[q]:
            score += relief(work, most, sends[p], added)
        else:
            score += relief(work, most, sends[p], -size[p]) + relief(work, most, sends[q], size[q])
        if score <= most_relief:
            continue
        other = lead if candidate == start[q] else follow
        # Written out, as above.
        if (
            keeps_ranges(load, low, high, here, other, q, cost, p)
            and keeps_ranges(load, low, high, home, cost, p, other, q)
            and fits(arrays, p, slot, home)
            and fits(arrays, q, candidate, here)
        ):
            best, most_relief = candidate, score
    return best

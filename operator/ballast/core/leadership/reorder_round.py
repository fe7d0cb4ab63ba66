"""From a split choice to a whole one, compiled: round every row to its largest part, then repair the fullest broker.

A repair is one row that leaves the fullest broker, or two at once: the second makes room where the first goes, and may
go to the broker that the first one left (a swap).  Each repair lowers the fullest broker without lifting another to its
height, so it ends; where it ends no such repair is left, and the gap to the bound says how much that could matter.
"""

from __future__ import annotations

import numpy as np

from ballast.core.cluster import Ints, SmallInts
from ballast.core.compiled import kernel


@kernel
def round_off(start: Ints, amount: Ints, home: Ints) -> Ints:
    """Per row the slot that holds most of it; home wins a tie."""
    rows = len(start) - 1
    at = np.empty(rows, np.int64)
    for r in range(rows):
        best = home[r] if home[r] >= 0 else start[r]
        for slot in range(start[r], start[r + 1]):
            if amount[slot] > amount[best]:
                best = slot
        at[r] = best
    return at


@kernel
def repair(start: Ints, option: SmallInts, weight: Ints, at: Ints, load: Ints, bound: int, most: int) -> int:
    """Lower the fullest broker until it is at ``bound``, nothing helps, or ``most`` repairs are made; how many were."""
    brokers = len(load)
    begin, rows = _candidates(option, brokers, start)
    for step in range(most):
        full = 0
        for b in range(brokers):
            if load[b] > load[full]:
                full = b
        if load[full] <= bound:
            return step
        first = _single(full, start, option, weight, at, load, begin, rows)
        if first >= 0:
            _change(first, start, option, weight, at, load)
            continue
        first, second = _pair(full, start, option, weight, at, load, begin, rows)
        if first < 0:
            return step
        _change(first, start, option, weight, at, load)
        _change(second, start, option, weight, at, load)
    return most


@kernel
def _candidates(option: SmallInts, brokers: int, start: Ints) -> tuple[Ints, Ints]:
    """Slots grouped by broker, with their rows: who could lead there."""
    begin = np.zeros(brokers + 1, np.int64)
    for slot in range(len(option)):
        begin[option[slot] + 1] += 1
    for b in range(brokers):
        begin[b + 1] += begin[b]
    fill = begin[:-1].copy()
    rows = np.empty(len(option), np.int64)
    for r in range(len(start) - 1):
        for slot in range(start[r], start[r + 1]):
            rows[fill[option[slot]]] = r
            fill[option[slot]] += 1
    return begin, rows


@kernel
def _change(slot: int, start: Ints, option: SmallInts, weight: Ints, at: Ints, load: Ints) -> None:
    """Let the row of a slot choose it."""
    row = np.searchsorted(start, slot, side="right") - 1
    load[option[at[row]]] -= weight[row]
    load[option[slot]] += weight[row]
    at[row] = slot


@kernel
def _single(
    full: int, start: Ints, option: SmallInts, weight: Ints, at: Ints, load: Ints, begin: Ints, rows: Ints
) -> int:
    """The slot of the row whose leaving the fullest broker keeps both brokers lowest; -1 where none does."""
    lowest = load[full]
    found = -1
    for i in range(begin[full], begin[full + 1]):
        r = rows[i]
        if option[at[r]] != full or weight[r] == 0:
            continue
        for slot in range(start[r], start[r + 1]):
            peak = max(load[full] - weight[r], load[option[slot]] + weight[r])
            if slot != at[r] and peak < lowest:
                lowest = peak
                found = slot
    return found


@kernel
def _pair(
    full: int, start: Ints, option: SmallInts, weight: Ints, at: Ints, load: Ints, begin: Ints, rows: Ints
) -> tuple[int, int]:
    """The slots of two rows that change together and leave the brokers they touch lowest; -1 where none do."""
    lowest = load[full]
    first = -1
    second = -1
    for i in range(begin[full], begin[full + 1]):
        r = rows[i]
        if option[at[r]] != full or weight[r] == 0:
            continue
        for slot in range(start[r], start[r + 1]):
            if slot == at[r]:
                continue
            peak, other = _room(full, option[slot], weight[r], lowest, start, option, weight, at, load, begin, rows)
            if other >= 0:
                lowest = peak
                first = slot
                second = other
    return first, second


@kernel
def _room(
    full: int,
    there: int,
    coming: int,
    lowest: int,
    start: Ints,
    option: SmallInts,
    weight: Ints,
    at: Ints,
    load: Ints,
    begin: Ints,
    rows: Ints,
) -> tuple[int, int]:
    """The row that should leave ``there`` as ``coming`` arrives from ``full``, if all three then stay below ``lowest``."""
    found = -1
    for j in range(begin[there], begin[there + 1]):
        q = rows[j]
        if option[at[q]] != there:
            continue
        stays = load[there] + coming - weight[q]
        for slot in range(start[q], start[q + 1]):
            if slot == at[q]:
                continue
            if option[slot] == full:
                peak = max(stays, load[full] - coming + weight[q])
            else:
                peak = max(stays, load[full] - coming, load[option[slot]] + weight[q])
            if peak < lowest:
                lowest = peak
                found = slot
    return lowest, found

"""The compiled swaps: two replicas change places, for what one copy each way repairs.

The same function descends as in ``kernels``.
"""

from __future__ import annotations

# ruff: noqa: FBT001 — compiled loops: no keyword arguments, no generators, one flat body.
from typing import Any

import numpy as np

from ballast.core.compiled import kernel, part
from ballast.core.planner.search.loops.arrays import Arrays
from ballast.core.planner.search.loops.kernels import (
    copy_cost,
    crosses,
    excess_of,
    excesses,
    fits,
    is_home,
    put,
    worth,
)


@part
def find_ends(load: Any, low: Any, high: Any, a: int, b: int, cost: Any, p: int, ends: Any) -> None:
    """Write down what a replica on b may load a broker with, so that a and b are inside their ranges once p's replica on a has its place.

    By resource the most and the least for a, then for b.  Nothing changes them while b's replicas are looked at.
    """
    for k in range(load.shape[1]):
        left, joined = load[a, k] - cost[p, k], load[b, k] + cost[p, k]
        ends[k, 0], ends[k, 1] = high[a, k] - left, low[a, k] - left
        ends[k, 2], ends[k, 3] = joined - low[b, k], joined - high[b, k]


@part
def pair_gain(ends: Any, off: int, least: int, costs: Any, at: int) -> int:
    """Excess removed by the exchange with this replica, at two brokers that are ``off`` now; not looked at further once it is ``least`` at most."""
    gain = off
    for k in range(len(ends)):
        more = costs[at, k]
        gain -= max(more - ends[k, 0], ends[k, 1] - more, 0) + max(more - ends[k, 2], ends[k, 3] - more, 0)
        if gain <= least:
            break
    return gain


@part
def breaks_pair(
    arrays: Arrays, load: Any, low: Any, high: Any, a: int, b: int, cost_a: Any, p: int, cost_b: Any, q: int
) -> bool:
    """Does the exchange of p's replica on a with q's on b cross a hard limit?"""
    hard = arrays.hard
    for k in range(load.shape[1]):
        d = cost_b[q, k] - cost_a[p, k]
        if hard[a, k] and crosses(hard[a, k], load[a, k], d, low, high, a, k):
            return True
        if hard[b, k] and crosses(hard[b, k], load[b, k], -d, low, high, b, k):
            return True
    return False


@part
def write_costs(arrays: Arrays, lead: Any, follow: Any, slots: Any, costs: Any, sizes: Any) -> None:
    """Write down what these slots load their broker with, once: no exchange changes that, and every size is at least 1."""
    if sizes[0] > 0:
        return
    for n in range(len(slots)):
        p = arrays.row[slots[n]]
        cost = lead if slots[n] == arrays.start[p] else follow
        for k in range(costs.shape[1]):
            costs[n, k] = cost[p, k]
        sizes[n] = arrays.size[p]


@part
def best_exchange(
    arrays: Arrays,
    load: Any,
    lead: Any,
    follow: Any,
    low: Any,
    high: Any,
    slot: int,
    b: int,
    off: int,
    candidates: Any,
    costs: Any,
    sizes: Any,
    ends: Any,
    samples: int,
    offset: int,
    price: int,
    roam: bool,
) -> tuple[int, int]:
    """The best of some of broker b's replicas to change places with this slot's, and its score; -1 for none.

    ``costs`` and ``sizes`` are what each of these loads b with, side by side: nearly all are refused by them alone.  ``ends`` is written.
    """
    start, cur, row = arrays.start, arrays.cur, arrays.row
    gives, movable, budget = arrays.gives, arrays.movable, arrays.budget
    p = row[slot]
    a = cur[slot]
    cost_a = lead if slot == start[p] else follow
    to_b = copy_cost(arrays, p, a, b)
    tries = min(len(candidates), samples)
    # The broker's replicas lie in the order of their sizes: strides try every size.
    stride = len(candidates) // tries
    find_ends(load, low, high, a, b, cost_a, p, ends)
    best, best_score = -1, 0
    at = offset - stride
    for _ in range(tries):
        at += stride
        if at >= len(candidates):
            at -= len(candidates)
        least = best_score + worth(price, to_b - sizes[at])
        gain = pair_gain(ends, off, least, costs, at)
        if gain <= least:
            continue
        other = candidates[at]
        q = row[other]
        if cur[other] != b or q == p or not movable[q]:
            continue
        cost_b = lead if other == start[q] else follow
        added = to_b + copy_cost(arrays, q, b, a)
        score = gain - worth(price, added)
        if score <= best_score or added > budget[0]:
            continue
        if not (roam and gives[b]) and is_home(arrays, q, b):
            continue
        if fits(arrays, q, other, a) and not breaks_pair(arrays, load, low, high, a, b, cost_a, p, cost_b, q):
            best, best_score = other, score
    return best, best_score


@kernel
def swap_scan(
    arrays: Arrays,
    load: Any,
    lead: Any,
    follow: Any,
    low: Any,
    high: Any,
    slots: Any,
    by_start: Any,
    by_slot: Any,
    near: Any,
    near_start: Any,
    partners: int,
    samples: int,
    seed: int,
    price: int,
    roam: bool,
) -> int:
    """For each of these slots, look for a replica elsewhere to change places with; returns how many did.

    Partners are the homes of a replica that left home (undoing one move while making a smaller one) and a few
    brokers drawn from ``seed``, among those that its class may be on; of each partner's replicas ``samples`` of all
    sizes are tried.
    """
    cur, row, old_start, old = arrays.cur, arrays.row, arrays.old_start, arrays.old
    gives, movable, masks = arrays.gives, arrays.movable, arrays.masks
    draw = np.uint64(seed * 2 + 1)
    off = excesses(load, low, high)
    by_cost, by_size = np.empty((len(by_slot), load.shape[1]), np.int64), np.zeros(len(by_slot), np.int64)
    ends = np.empty((load.shape[1], 4), np.int64)
    changed = 0
    for n in range(len(slots)):
        slot = slots[n]
        p = row[slot]
        if not movable[p]:
            continue
        a = cur[slot]
        away = not is_home(arrays, p, a)
        if not away and not (roam and gives[a]):
            continue
        best, best_score = -1, 0
        homes = old_start[p + 1] - old_start[p] if away else 0
        c = masks[p] // len(load)
        first, count = near_start[c], near_start[c + 1] - near_start[c]
        for j in range(homes + partners):
            draw ^= draw << np.uint64(13)
            draw ^= draw >> np.uint64(7)
            draw ^= draw << np.uint64(17)
            if j < homes:
                b = np.int64(old[old_start[p] + j])
            elif c > 0 and count > 0:
                b = np.int64(near[first + np.int64(draw % np.uint64(count))])
            else:
                b = np.int64(draw % np.uint64(len(load)))
            here = by_start[b + 1] - by_start[b]
            if b == a or here == 0 or not fits(arrays, p, slot, b):
                continue
            # No exchange repairs more than what is wrong at its two ends.
            if not away and off[a] + off[b] <= worth(price, copy_cost(arrays, p, a, b)):
                continue
            if price == 0 and off[a] + off[b] <= best_score:
                continue
            run = slice(by_start[b], by_start[b + 1])
            candidates, costs, sizes = by_slot[run], by_cost[run], by_size[run]
            write_costs(arrays, lead, follow, candidates, costs, sizes)
            offset = np.int64((draw >> np.uint64(20)) % np.uint64(here))
            other, score = best_exchange(
                arrays,
                load,
                lead,
                follow,
                low,
                high,
                slot,
                b,
                off[a] + off[b],
                candidates,
                costs,
                sizes,
                ends,
                samples,
                offset,
                price,
                roam,
            )
            if score > best_score:
                best, best_score = other, score
        if best >= 0:
            target = cur[best]
            put(arrays, load, lead, follow, slot, target)
            put(arrays, load, lead, follow, best, a)
            off[a] = excess_of(load, low, high, a)
            off[target] = excess_of(load, low, high, target)
            changed += 1
    return changed

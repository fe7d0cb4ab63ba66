"""The fewest changes that bring every broker under a cap, compiled: a minimum-cost flow with unit weights.

Rows, slots and positions are those of ``core.leadership.reorder_relax``.  A row that leaves its home costs one, one that returns
gives one back, one that has no home is free.  The successive shortest path method, in its primal-dual form, starts from
the present choice, which is the cheapest while caps do not count, and sends the excess along the cheapest chains: all
chains of one cost at a time.  It stays optimal at every step, so the end is the cheapest choice within the cap.
"""

from __future__ import annotations

import numpy as np

from ballast.core.cluster import Ints, SmallInts
from ballast.core.compiled import kernel
from ballast.core.leadership.reorder_relax import by_broker

_FAR = np.int64(1) << 40


@kernel
def least_changes(start: Ints, option: SmallInts, at: Ints, home: Ints, load: Ints, cap: int) -> bool:
    """Bring every broker to ``cap`` rows or fewer by changing ``at`` (slot per row) and ``load`` in place.

    ``home`` is the slot that a row should keep, or -1 where any is as good; ``at`` must start as ``home`` where there is
    one.  The result has the fewest rows away from home of all choices within the cap.  False when none exists.
    """
    brokers = len(load)
    price = np.zeros(brokers, np.int64)
    while True:
        above = False
        for b in range(brokers):
            above = above or load[b] > cap
        if not above:
            return True
        begin, rows = by_broker(option[at], brokers)
        far = _distances(start, option, at, home, load, cap, price, begin, rows)
        nearest = _FAR
        for b in range(brokers):
            if load[b] < cap and far[b] < nearest:
                nearest = far[b]
        if nearest == _FAR:
            return False
        for b in range(brokers):
            price[b] += min(far[b], nearest)
        while _send(start, option, at, home, load, cap, price, begin, rows):
            begin, rows = by_broker(option[at], brokers)


@kernel
def _cost(row: int, slot: int, at: Ints, home: Ints) -> int:
    """What it costs that a row changes to this slot: one, nothing, or one back."""
    if home[row] < 0:
        return 0
    return int(slot != home[row]) - int(at[row] != home[row])


@kernel
def _distances(
    start: Ints, option: SmallInts, at: Ints, home: Ints, load: Ints, cap: int, price: Ints, begin: Ints, rows: Ints
) -> Ints:
    """Cheapest chain to each broker from any broker above the cap, in costs reduced by ``price`` (Dijkstra)."""
    brokers = len(load)
    far = np.full(brokers, _FAR, np.int64)
    settled = np.zeros(brokers, np.bool_)
    for b in range(brokers):
        if load[b] > cap:
            far[b] = 0
    while True:
        b = -1
        for c in range(brokers):
            if not settled[c] and far[c] < _FAR and (b < 0 or far[c] < far[b]):
                b = c
        if b < 0:
            return far
        settled[b] = True
        for i in range(begin[b], begin[b + 1]):
            r = rows[i]
            for t in range(start[r], start[r + 1]):
                d = option[t]
                far[d] = min(far[d], far[b] + _cost(r, t, at, home) + price[b] - price[d])


@kernel
def _send(
    start: Ints, option: SmallInts, at: Ints, home: Ints, load: Ints, cap: int, price: Ints, begin: Ints, rows: Ints
) -> bool:
    """One round of Dinic's algorithm over the chains of reduced cost zero; False when there is none."""
    brokers = len(load)
    level = np.full(brokers, np.int64(-1))
    if not _measure(start, option, at, home, load, cap, price, begin, rows, level):
        return False
    next_row = begin[:-1].copy()
    next_option = start[:-1].copy()
    path = np.empty(brokers + 1, np.int64)
    for root in range(brokers):
        while load[root] > cap:
            depth = _find(
                root, start, option, at, home, load, cap, price, begin, rows, level, next_row, next_option, path
            )
            if depth == 0:
                break
            load[root] -= 1
            load[option[next_option[path[depth - 1]]]] += 1
            for i in range(depth):
                # A row changes hands at most once in a round: it lies on one level.
                r = path[i]
                at[r] = next_option[r]
                next_option[r] = start[r + 1]
    return True


@kernel
def _measure(
    start: Ints,
    option: SmallInts,
    at: Ints,
    home: Ints,
    load: Ints,
    cap: int,
    price: Ints,
    begin: Ints,
    rows: Ints,
    level: Ints,
) -> bool:
    """Breadth first from every broker above the cap, over reduced cost zero.  Is a broker below the cap reached?"""
    queue = np.empty(len(load), np.int64)
    tail = 0
    for b in range(len(load)):
        if load[b] > cap:
            level[b] = 0
            queue[tail] = b
            tail += 1
    head = 0
    found = False
    while head < tail:
        b = queue[head]
        head += 1
        found = found or load[b] < cap
        for i in range(begin[b], begin[b + 1]):
            r = rows[i]
            for t in range(start[r], start[r + 1]):
                d = option[t]
                if level[d] < 0 and _cost(r, t, at, home) + price[b] == price[d]:
                    level[d] = level[b] + 1
                    queue[tail] = d
                    tail += 1
    return found


@kernel
def _find(
    root: int,
    start: Ints,
    option: SmallInts,
    at: Ints,
    home: Ints,
    load: Ints,
    cap: int,
    price: Ints,
    begin: Ints,
    rows: Ints,
    level: Ints,
    next_row: Ints,
    next_option: Ints,
    path: Ints,
) -> int:
    """A chain of rows from ``root`` to a broker below the cap; 0 when there is none any more."""
    depth = 0
    b = root
    while load[b] >= cap:
        row = np.int64(-1)
        while next_row[b] < begin[b + 1] and row < 0:
            r = rows[next_row[b]]
            while next_option[r] < start[r + 1]:
                t = next_option[r]
                d = option[t]
                if level[d] == level[b] + 1 and _cost(r, t, at, home) + price[b] == price[d]:
                    row = r
                    break
                next_option[r] += 1
            if row < 0:
                next_row[b] += 1
        if row >= 0:
            path[depth] = row
            b = option[next_option[row]]
            depth += 1
        elif depth == 0:
            return 0
        else:
            depth -= 1
            next_option[path[depth]] += 1
            b = option[at[path[depth]]]
    return depth

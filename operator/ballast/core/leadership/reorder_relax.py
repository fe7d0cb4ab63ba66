"""The relaxation behind replica list changes, compiled: rows may split their weight over their options.

A row is a partition; its options are the slots ``start[row]:start[row + 1]``, each a broker position, no broker twice.
``relax`` pushes what is above a cap along shortest chains of rows to brokers below it (Dinic's algorithm).  If something
stays above, the brokers that it could reach prove that no choice does better: what they carry can go nowhere else.
"""

from __future__ import annotations

import numpy as np

from ballast.core.cluster import Flags, Ints, SmallInts
from ballast.core.compiled import kernel


@kernel
def relax(start: Ints, option: SmallInts, amount: Ints, load: Ints, cap: int) -> Flags:
    """Push load above ``cap`` to brokers below it, changing ``amount`` (per slot) and ``load`` (per broker) in place.

    Returns the brokers that what is still above the cap can reach; none, if nothing is.  Time is about linear in slots
    for each of a handful of rounds.
    """
    brokers = len(load)
    row = np.empty(len(option), np.int64)
    for r in range(len(start) - 1):
        row[start[r] : start[r + 1]] = r
    begin, slots = by_broker(option, brokers)
    level = np.empty(brokers, np.int64)
    row_level = np.empty(len(start) - 1, np.int64)
    path = np.empty((2, brokers + 1), np.int64)
    while _measure(start, option, amount, load, cap, row, begin, slots, level, row_level):
        # Depth first along rising levels; these pointers only ever move on, so a dead end is met once a round.
        next_slot = begin[:-1].copy()
        next_option = start[:-1].copy()
        for root in range(brokers):
            while load[root] > cap:
                depth = _find(
                    root,
                    start,
                    option,
                    amount,
                    load,
                    cap,
                    row,
                    begin,
                    slots,
                    level,
                    row_level,
                    next_slot,
                    next_option,
                    path,
                )
                if depth == 0:
                    break
                end = option[path[1, depth - 1]]
                push = min(load[root] - cap, cap - load[end])
                for i in range(depth):
                    push = min(push, amount[path[0, i]])
                for i in range(depth):
                    amount[path[0, i]] -= push
                    amount[path[1, i]] += push
                load[root] -= push
                load[end] += push
    return level >= 0


@kernel
def by_broker(broker: SmallInts, brokers: int) -> tuple[Ints, Ints]:
    """What is listed by its broker, grouped: ``found[begin[b]:begin[b + 1]]`` are the places of ``b`` in the list, ascending."""
    begin = np.zeros(brokers + 1, np.int64)
    for place in range(len(broker)):
        begin[broker[place] + 1] += 1
    for b in range(brokers):
        begin[b + 1] += begin[b]
    fill = begin[:-1].copy()
    found = np.empty(len(broker), np.int64)
    for place in range(len(broker)):
        b = broker[place]
        found[fill[b]] = place
        fill[b] += 1
    return begin, found


@kernel
def _measure(
    start: Ints,
    option: SmallInts,
    amount: Ints,
    load: Ints,
    cap: int,
    row: Ints,
    begin: Ints,
    slots: Ints,
    level: Ints,
    row_level: Ints,
) -> bool:
    """Breadth first from every broker above the cap: how many rows away is each broker?  Is one of them below it?"""
    queue = np.empty(len(load), np.int64)
    tail = 0
    level[:] = -1
    row_level[:] = -1
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
            r = row[slots[i]]
            if amount[slots[i]] <= 0 or row_level[r] >= 0:
                continue
            row_level[r] = level[b]
            for t in range(start[r], start[r + 1]):
                if level[option[t]] < 0:
                    level[option[t]] = level[b] + 1
                    queue[tail] = option[t]
                    tail += 1
    return found


@kernel
def _find(
    root: int,
    start: Ints,
    option: SmallInts,
    amount: Ints,
    load: Ints,
    cap: int,
    row: Ints,
    begin: Ints,
    slots: Ints,
    level: Ints,
    row_level: Ints,
    next_slot: Ints,
    next_option: Ints,
    path: Ints,
) -> int:
    """A chain from ``root`` to a broker below the cap, as slots left and slots taken; 0 when there is none any more."""
    depth = 0
    b = root
    while load[b] >= cap:
        slot = np.int64(-1)
        while next_slot[b] < begin[b + 1] and slot < 0:
            s = slots[next_slot[b]]
            r = row[s]
            if amount[s] > 0 and row_level[r] == level[b]:
                while next_option[r] < start[r + 1] and level[option[next_option[r]]] != level[b] + 1:
                    next_option[r] += 1
                if next_option[r] < start[r + 1]:
                    slot = s
            if slot < 0:
                next_slot[b] += 1
        if slot >= 0:
            path[0, depth] = slot
            path[1, depth] = next_option[row[slot]]
            b = option[path[1, depth]]
            depth += 1
        elif depth == 0:
            return 0
        else:
            depth -= 1
            next_option[row[path[0, depth]]] += 1
            b = option[path[0, depth]]
    return depth

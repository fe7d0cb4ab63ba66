"""The compiled inner loops: integers over flat arrays, no allocation, no clock, no threads.

All kernels descend the same function: scaled excess over the bands, plus ``price`` (in 1/1024) times the scaled bytes
copied.  A high price lets only moves through that repair much for their bytes; as it falls to zero the bands win.  A
replica that returns to its broker gives its bytes back.

Who takes, leads and must leave or give leadership up differs between classes of partitions: these masks lie one class
after another, and ``masks[p]`` is where those of p's class begin.
"""

from __future__ import annotations

# ruff: noqa: FBT001, PLR0912, SIM110 — compiled loops: no keyword arguments, no generators, one flat body.
from typing import Any, Final

import numpy as np

from ballast.core.compiled import kernel, part
from ballast.core.planner.problem.problem import LOWER, UPPER
from ballast.core.planner.search.loops.arrays import Arrays

UNIT: Final = 1024
"""``price`` is in units of 1/1024."""
HALF_BITS: Final = 5
"""``UNIT`` is two shifts by so many bits: one before the product, so that it fits 64 bits, and one after it."""
NONE: Final = -(1 << 62)
"""A score below every other."""


@part
def excess(x: int, low: int, high: int) -> int:
    """How far x is outside its band."""
    return max(x - high, low - x, 0)


@part
def contains(values: Any, begin: int, end: int, wanted: int) -> bool:
    """Is the value in this run?"""
    for i in range(begin, end):
        if values[i] == wanted:
            return True
    return False


@part
def excess_of(load: Any, low: Any, high: Any, broker: int) -> int:
    """How far the broker is outside its bands."""
    total = 0
    for k in range(load.shape[1]):
        total += excess(load[broker, k], low[broker, k], high[broker, k])
    return total


@kernel
def excesses(load: Any, low: Any, high: Any) -> Any:
    """``excess_of`` every broker."""
    out = np.zeros(len(load), np.int64)
    for b in range(len(load)):
        out[b] = excess_of(load, low, high, b)
    return out


@part
def is_over(load: Any, high: Any, broker: int) -> bool:
    """Does the broker carry too much of anything?"""
    for k in range(load.shape[1]):
        if load[broker, k] > high[broker, k]:
            return True
    return False


@part
def is_under(load: Any, low: Any, broker: int) -> bool:
    """Does the broker carry too little of anything?"""
    for k in range(load.shape[1]):
        if load[broker, k] < low[broker, k]:
            return True
    return False


@part
def add_gain(load: Any, low: Any, high: Any, broker: int, cost: Any, row: int, sign: int) -> int:
    """Excess removed when the broker's load changes by ``sign`` times this row of cost."""
    gain = 0
    for k in range(load.shape[1]):
        x = load[broker, k]
        lo = low[broker, k]
        hi = high[broker, k]
        gain += excess(x, lo, hi) - excess(x + sign * cost[row, k], lo, hi)
    return gain


@part
def arrival_gain(load: Any, low: Any, high: Any, broker: int, off: int, least: int, cost: Any, row: int) -> int:
    """``add_gain`` of this row of cost for a broker that is ``off`` now; not looked at further once it is ``least`` at most."""
    gain = off
    for k in range(load.shape[1]):
        gain -= excess(load[broker, k] + cost[row, k], low[broker, k], high[broker, k])
        if gain <= least:
            break
    return gain


@part
def is_home(arrays: Arrays, p: int, broker: int) -> bool:
    """Had the broker a replica of the partition before?"""
    home: bool = contains(arrays.old, arrays.old_start[p], arrays.old_start[p + 1], broker)
    return home


@part
def may_lead(arrays: Arrays, p: int, broker: int) -> bool:
    """May the broker be preferred leader?  Who led before may go on, unless it must give leadership up."""
    at = arrays.masks[p] + broker
    return arrays.leads[at] or (not arrays.unlead[at] and arrays.old[arrays.old_start[p]] == broker)


@part
def count_racks(arrays: Arrays, p: int, without: int) -> int:
    """Racks that hold the partition, but for the replica in one slot."""
    start, cur, rack = arrays.start, arrays.cur, arrays.rack
    count = 0
    for i in range(start[p], start[p + 1]):
        if i == without or cur[i] < 0:
            continue
        fresh = True
        for j in range(start[p], i):
            if j != without and cur[j] >= 0 and rack[cur[j]] == rack[cur[i]]:
                fresh = False
        count += fresh
    return count


@part
def fits(arrays: Arrays, p: int, slot: int, broker: int) -> bool:
    """May this slot's replica sit on the broker: its topic's rules, no twin there, room in its rack and on its disk?"""
    start, cur, rack = arrays.start, arrays.cur, arrays.rack
    masks = arrays.masks[p]
    at_home = is_home(arrays, p, broker) and not arrays.leave[masks + broker]
    if not arrays.takes[masks + broker] and not at_home:
        return False
    # Nearly all partitions are of the first class, which has no rules.
    if masks > 0 and is_full(arrays.counted, arrays.tally, p, broker):
        return False
    if slot == start[p] and not may_lead(arrays, p, broker):
        return False
    same = 0
    for i in range(start[p], start[p + 1]):
        if i != slot:
            other = cur[i]
            if other == broker:
                return False
            if other >= 0 and rack[other] == rack[broker]:
                same += 1
    if same >= arrays.rack_limit[p] or (same > 0 and count_racks(arrays, p, slot) < arrays.rack_least[p]):
        return False
    return at_home or arrays.held[broker] + arrays.size[p] <= arrays.room[broker]


@part
def breaks(arrays: Arrays, load: Any, low: Any, high: Any, broker: int, cost: Any, p: int, sign: int) -> bool:
    """Does this change of the broker's load cross the end of a range that is a hard limit?"""
    hard = arrays.hard
    for k in range(load.shape[1]):
        if hard[broker, k] and crosses(hard[broker, k], load[broker, k], sign * cost[p, k], low, high, broker, k):
            return True
    return False


@part
def crosses(ends: int, x: int, change: int, low: Any, high: Any, broker: int, k: int) -> bool:
    """Does x leave the range by this change, at one of the ``ends`` that are hard?"""
    if change > 0:
        return ends & UPPER != 0 and x + change > high[broker, k]
    return change < 0 and ends & LOWER != 0 and x + change < low[broker, k]


@part
def is_full(counted: Any, tally: Any, p: int, broker: int) -> bool:
    """Does the broker hold as many replicas of p's topic as the topic's rules allow?  They stand in the last column."""
    topic = counted[p]
    full: bool = topic >= 0 and tally[topic, broker] >= tally[topic, tally.shape[1] - 1]
    return full


@part
def copy_cost(arrays: Arrays, p: int, source: int, target: int) -> int:
    """Scaled bytes that this change adds to the plan; negative when a replica returns to its broker."""
    cost = 0
    if not is_home(arrays, p, target):
        cost += arrays.size[p]
    if source >= 0 and not is_home(arrays, p, source):
        cost -= arrays.size[p]
    return cost


@part
def put(arrays: Arrays, load: Any, lead: Any, follow: Any, slot: int, target: int) -> None:
    """Move the slot's replica and keep every sum."""
    cur, held, budget, tally = arrays.cur, arrays.held, arrays.budget, arrays.tally
    p = arrays.row[slot]
    source, size = cur[slot], arrays.size[p]
    topic = arrays.counted[p]
    if topic >= 0:
        tally[topic, target] += 1
        if source >= 0:
            tally[topic, source] -= 1
    leader = slot == arrays.start[p]
    for k in range(load.shape[1]):
        v = lead[p, k] if leader else follow[p, k]
        if source >= 0:
            load[source, k] -= v
        load[target, k] += v
    if not is_home(arrays, p, target):
        held[target] += size
        budget[0] -= size
        budget[1] -= 1
    if source >= 0 and not is_home(arrays, p, source):
        held[source] -= size
        budget[0] += size
        budget[1] += 1
    cur[slot] = target


@part
def worth(price: int, size: int) -> int:
    """What scaled bytes are worth in scaled excess at this price."""
    return ((size >> HALF_BITS) * price) >> HALF_BITS


@part
def best_target(
    arrays: Arrays,
    load: Any,
    lead: Any,
    follow: Any,
    low: Any,
    high: Any,
    off: Any,
    slot: int,
    price: int,
    near: Any,
    window: Any,
) -> int:
    """The best broker for this slot among the candidates and the homes; -1 where staying is as good.  Each broker is ``off`` now."""
    old_start, old = arrays.old_start, arrays.old
    p = arrays.row[slot]
    source = arrays.cur[slot]
    cost = lead if slot == arrays.start[p] else follow
    given = 0
    if source >= 0:
        if breaks(arrays, load, low, high, source, cost, p, -1):
            return -1
        given = add_gain(load, low, high, source, cost, p, -1)
    best, best_score = -1, 0 if source >= 0 else NONE
    count = window[1]
    at = window[0]
    homes = old_start[p + 1] - old_start[p]
    for j in range(count + homes):
        if j < count:
            target = near[at]
            at += 1
            if at == len(near):
                at = 0
        else:
            target = old[old_start[p] + j - count]
        if target == source:
            continue
        price_of_copy = worth(price, copy_cost(arrays, p, source, target))
        least = best_score + price_of_copy - given
        gain = arrival_gain(load, low, high, target, off[target], least, cost, p)
        if gain <= least or not fits(arrays, p, slot, target):
            continue
        if not breaks(arrays, load, low, high, target, cost, p, 1):
            best, best_score = target, given + gain - price_of_copy
    return best


@kernel
def sweep(
    arrays: Arrays,
    load: Any,
    lead: Any,
    follow: Any,
    low: Any,
    high: Any,
    near: Any,
    near_start: Any,
    width: int,
    price: int,
    roam: bool,
) -> int:
    """Offer every replica a better broker, in the order of the slots; returns how many took it.

    The candidates of class c are ``near[near_start[c]:near_start[c + 1]]``.
    """
    start, cur, row, size = arrays.start, arrays.cur, arrays.row, arrays.size
    gives, movable, budget, masks = arrays.gives, arrays.movable, arrays.budget, arrays.masks
    resources = load.shape[1]
    most = np.zeros(resources, np.int64)
    for n in range(len(near)):
        for k in range(resources):
            short = low[near[n], k] - load[near[n], k]
            most[k] = max(most[k], short)
    scarce = most.max() > 0
    over = np.zeros(len(load), np.bool_)
    for b in range(len(load)):
        over[b] = is_over(load, high, b)
    off = excesses(load, low, high)
    window = np.zeros(2, np.int64)
    everyone = near[: near_start[1]]
    turn = 0
    changed = 0
    for slot in range(len(cur)):
        turn += 7
        if turn >= len(everyone):
            turn %= max(len(everyone), 1)
        source = cur[slot]
        p = row[slot]
        if not movable[p]:
            continue
        if is_home(arrays, p, source):
            # Where no broker has too much and none too little, no move from here repairs anything.
            if not (roam and gives[source] and (scarce or over[source])):
                continue
            cost = lead if slot == start[p] else follow
            # The most that this move could repair; most replicas are turned away here.
            hope = add_gain(load, low, high, source, cost, p, -1)
            for k in range(resources):
                hope += min(cost[p, k], most[k])
            if hope <= worth(price, size[p]):
                continue
            if budget[0] < size[p] or budget[1] < 1:
                continue
        c = masks[p] // len(load)
        options = everyone if c == 0 else near[near_start[c] : near_start[c + 1]]
        window[0] = turn if c == 0 else turn % max(len(options), 1)
        window[1] = min(width, len(options))
        target = best_target(arrays, load, lead, follow, low, high, off, slot, price, options, window)
        if target >= 0:
            put(arrays, load, lead, follow, slot, target)
            over[target], off[target] = is_over(load, high, target), excess_of(load, low, high, target)
            if source >= 0:
                over[source], off[source] = is_over(load, high, source), excess_of(load, low, high, source)
            changed += 1
    return changed


@kernel
def shift_leaders(
    arrays: Arrays, load: Any, lead: Any, follow: Any, low: Any, high: Any, rows: Any, leader_change_cost: int
) -> int:
    """Offer every partition a better leader among its replicas; costs no byte, only its cost for each change from before."""
    start, cur, old_start, old = arrays.start, arrays.cur, arrays.old_start, arrays.old
    unlead, gives, masks = arrays.unlead, arrays.gives, arrays.masks
    changed = 0
    out = np.zeros((len(load), 2), np.bool_)
    for b in range(len(load)):
        out[b, 0] = is_under(load, low, b)
        out[b, 1] = is_over(load, high, b)
    for n in range(len(rows)):
        p = rows[n]
        first = start[p]
        leader = cur[first]
        before = old[old_start[p]]
        best, best_score = -1, 0
        if unlead[masks[p] + leader]:
            best_score = NONE
        elif leader == before or leader_change_cost == 0:
            if leader == before and not gives[leader]:
                continue
            # Only a leader with too much, or a follower with too little, can gain.
            useful = out[leader, 1]
            for slot in range(first + 1, start[p + 1]):
                useful |= out[cur[slot], 0]
            if not useful:
                continue
        given = 0
        for k in range(load.shape[1]):
            x = load[leader, k]
            d = lead[p, k] - follow[p, k]
            given += excess(x, low[leader, k], high[leader, k]) - excess(x - d, low[leader, k], high[leader, k])
        for slot in range(first + 1, start[p + 1]):
            b = cur[slot]
            if b < 0 or not may_lead(arrays, p, b):
                continue
            if best_score > NONE and breaks_order(arrays, load, low, high, leader, b, lead, follow, p):
                continue
            score = given
            for k in range(load.shape[1]):
                x = load[b, k]
                d = lead[p, k] - follow[p, k]
                score += excess(x, low[b, k], high[b, k]) - excess(x + d, low[b, k], high[b, k])
            score -= leader_change_cost * ((b != before) - (leader != before))
            if score > best_score:
                best, best_score = slot, score
        if best >= 0:
            heir = cur[best]
            hand_over(arrays, load, lead, follow, p, best)
            for b in (leader, heir):
                out[b, 0] = is_under(load, low, b)
                out[b, 1] = is_over(load, high, b)
            changed += 1
    return changed


@part
def breaks_order(
    arrays: Arrays, load: Any, low: Any, high: Any, leader: int, heir: int, lead: Any, follow: Any, p: int
) -> bool:
    """Does handing p's leadership over cross a hard limit at either end?"""
    hard = arrays.hard
    for k in range(load.shape[1]):
        d = lead[p, k] - follow[p, k]
        if hard[leader, k] and crosses(hard[leader, k], load[leader, k], -d, low, high, leader, k):
            return True
        if hard[heir, k] and crosses(hard[heir, k], load[heir, k], d, low, high, heir, k):
            return True
    return False


@part
def hand_over(arrays: Arrays, load: Any, lead: Any, follow: Any, p: int, slot: int) -> None:
    """Make the replica in this slot the preferred leader; the two change places."""
    cur, first = arrays.cur, arrays.start[p]
    a, b = cur[first], cur[slot]
    for k in range(load.shape[1]):
        d = lead[p, k] - follow[p, k]
        load[a, k] -= d
        load[b, k] += d
    cur[first] = b
    cur[slot] = a

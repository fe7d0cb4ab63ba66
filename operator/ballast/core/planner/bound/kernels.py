"""The cheapest placement of every partition at given prices, compiled: the inner loop of the lower bound; and what brokers then carry.

Integers over flat arrays.  Nothing here comes from the search, so that no error of its can excuse itself.

A partition all of whose homes are legal moves a replica only to a broker that is cheaper than its dearest home: most
partitions are done once the least price of all has been looked at.  Elsewhere only brokers are tried that no other of
their rack undercuts on every resource.
"""

from __future__ import annotations

# ruff: noqa: FBT001, PLR0912 — compiled loops: no keyword arguments, flat bodies.
from typing import Any, Final, NamedTuple

import numpy as np

from ballast.core.compiled import kernel, part

SCALE: Final = 1 << 12
"""A price of one byte per byte."""
BARRED: Final = 1 << 60
LOW_BITS: Final = 24
"""Sums are kept in two words, the lower of so many bits: those of millions of partitions overflow one."""
CLOSED: Final = 0
"""The partition stays as it is."""
APART: Final = 1
"""Each replica in a rack of its own."""
LOOSE: Final = 2
"""Each replica on a broker of its own."""
ANYWHERE: Final = 3
"""No rule is held against it: the plan could not place it either."""


class Partitions(NamedTuple):
    """What is placed; numba sees each field with its own type."""

    start: Any
    """Slots of partition p are ``start[p]:start[p + 1]``, the leader's first."""
    old_start: Any
    """Homes of partition p are ``old[old_start[p]:old_start[p + 1]]``, the leader's first."""
    old: Any
    size: Any
    """By partition."""
    gone: Any
    """By home: the replica may not stay."""
    leads: Any
    """By broker: may lead what it did not lead."""
    group: Any
    """By broker: the rack."""
    kind: Any
    """By partition: which rule its placements keep."""


class Options(NamedTuple):
    """Who may receive a follower, or a leader, at the present prices."""

    group_of: Any
    """By broker."""
    kept_start: Any
    """Of group g these may, and none undercuts them: ``kept[kept_start[g]:kept_start[g + 1]]``."""
    kept: Any
    floor: Any
    """By group and resource the least price of those; the last row is the least of all."""


@part
def undercut(prices: Any, used: Any, a: int, b: int, first: bool) -> bool:
    """Is broker b nowhere dearer than a, and cheaper somewhere (or ``first``, where both are alike)?"""
    cheaper = first
    for k in range(prices.shape[1]):
        if used[k]:
            if prices[b, k] > prices[a, k]:
                return False
            cheaper |= prices[b, k] < prices[a, k]
    return cheaper


@kernel
def front(prices: Any, used: Any, group_start: Any, member: Any, may: Any, kept_start: Any, kept: Any) -> None:
    """Of each group the members that may and whom no other undercuts, as runs of ``kept``."""
    at = 0
    for g in range(len(group_start) - 1):
        kept_start[g] = at
        for i in range(group_start[g], group_start[g + 1]):
            beaten = not may[member[i]]
            for j in range(group_start[g], group_start[g + 1]):
                if beaten:
                    break
                beaten = i != j and may[member[j]] and undercut(prices, used, member[i], member[j], j < i)
            if not beaten:
                kept[at] = member[i]
                at += 1
    kept_start[len(group_start) - 1] = at


@kernel
def floors(prices: Any, kept_start: Any, kept: Any, floor: Any) -> None:
    """By group and resource the least price of its kept members; the last row is the least of all."""
    last = len(floor) - 1
    floor[:] = BARRED
    for g in range(last):
        for i in range(kept_start[g], kept_start[g + 1]):
            for k in range(prices.shape[1]):
                floor[g, k] = min(floor[g, k], prices[kept[i], k])
                floor[last, k] = min(floor[last, k], prices[kept[i], k])
    for k in range(prices.shape[1]):
        if floor[last, k] == BARRED:
            floor[last, k] = 0


@part
def cost_of(table: Any, at: int, cost: Any, p: int) -> int:
    """What this row of load costs at one row of prices."""
    total = 0
    for k in range(table.shape[1]):
        total += table[at, k] * cost[p, k]
    return total


@part
def offer(
    partitions: Partitions,
    prices: Any,
    cost: Any,
    p: int,
    options: Options,
    most: int,
    leading: bool,
    best: Any,
    who: Any,
) -> None:
    """By group the cheapest broker for one replica of p: a home at its price, another also at that of the copy.

    Groups where no new broker can be below ``most`` keep their homes alone.
    """
    old_start, old, group_of = partitions.old_start, partitions.old, options.group_of
    kept_start, kept = options.kept_start, options.kept
    copy = partitions.size[p] * SCALE
    for g in range(len(best)):
        best[g], who[g] = BARRED, -1
    for i in range(old_start[p], old_start[p + 1]):
        b = old[i]
        if not partitions.gone[i] and (not leading or partitions.leads[b] or i == old_start[p]):
            price = cost_of(prices, b, cost, p)
            if price < best[group_of[b]]:
                best[group_of[b]], who[group_of[b]] = price, b
    for g in range(len(best)):
        if kept_start[g] == kept_start[g + 1] or copy + cost_of(options.floor, g, cost, p) >= min(most, best[g]):
            continue
        for i in range(kept_start[g], kept_start[g + 1]):
            price = copy + cost_of(prices, kept[i], cost, p)
            if price < best[g]:
                best[g], who[g] = price, kept[i]


@part
def choose(best_f: Any, best_l: Any, factor: int, top: Any) -> tuple[int, int]:
    """The cheapest leader's group with the cheapest followers in others, and what they cost; ``top`` ranks followers."""
    count = 0
    for g in range(len(best_f)):
        if best_f[g] == BARRED:
            continue
        at = count
        while at > 0 and best_f[top[at - 1]] > best_f[g]:
            if at < factor:
                top[at] = top[at - 1]
            at -= 1
        if at < factor:
            top[at] = g
            count = min(count + 1, factor)
    followers = 0
    for j in range(min(count, factor - 1)):
        followers += best_f[top[j]]
    leader, least = -1, BARRED
    for g in range(len(best_l)):
        if best_l[g] == BARRED:
            continue
        inside = -1
        for j in range(min(count, factor - 1)):
            if top[j] == g:
                inside = j
        if count < (factor if inside >= 0 else factor - 1):
            continue
        total = best_l[g] + followers
        # A leader from among the cheapest followers frees its place for the next of them.
        if inside >= 0:
            total += best_f[top[factor - 1]] - best_f[g]
        if total < least:
            leader, least = g, total
    return leader, least


@part
def at_home(partitions: Partitions, prices: Any, lead: Any, follow: Any, p: int, placement: Any, bounds: Any) -> int:
    """Place p at its homes as cheaply as their order allows; ``bounds`` gets the dearest home of a follower and a leader.

    Returns ``BARRED`` and bounds at ``BARRED`` where its homes cannot serve as they are.
    """
    start, old, group = partitions.start, partitions.old, partitions.group
    first = partitions.old_start[p]
    factor = start[p + 1] - start[p]
    bounds[0], bounds[1] = BARRED, BARRED
    if partitions.old_start[p + 1] - first != factor:
        return BARRED
    all_follow, dear_f, dear_l, best, leader = 0, -BARRED, -BARRED, BARRED, -1
    every = True
    for i in range(first, first + factor):
        b = old[i]
        if partitions.gone[i]:
            return BARRED
        if partitions.kind[p] == APART:
            for j in range(first, i):
                if group[old[j]] == group[b]:
                    return BARRED
        f, le = cost_of(prices, b, follow, p), cost_of(prices, b, lead, p)
        all_follow += f
        dear_f = max(dear_f, f)
        if partitions.leads[b] or i == first:
            dear_l = max(dear_l, le)
            if le - f < best:
                best, leader = le - f, i
        else:
            every = False
    bounds[0] = dear_f
    bounds[1] = dear_l if every else BARRED
    at = start[p] + 1
    placement[start[p]] = old[leader]
    for i in range(first, first + factor):
        if i != leader:
            placement[at] = old[i]
            at += 1
    return all_follow + best


@part
def stay(partitions: Partitions, prices: Any, lead: Any, follow: Any, p: int, placement: Any) -> int:
    """The cost of a partition that must stay."""
    start, old_start = partitions.start, partitions.old_start
    total = 0
    for j in range(min(start[p + 1] - start[p], old_start[p + 1] - old_start[p])):
        b = partitions.old[old_start[p] + j]
        placement[start[p] + j] = b
        total += cost_of(prices, b, lead if j == 0 else follow, p)
    return total


@part
def free(partitions: Partitions, prices: Any, lead: Any, follow: Any, p: int) -> int:
    """Less than this the partition cannot cost, wherever its replicas are, and if some are nowhere."""
    followers = partitions.start[p + 1] - partitions.start[p] - 1
    leader, follower = 0, 0
    for b in range(len(prices)):
        leader = min(leader, cost_of(prices, b, lead, p))
        follower = min(follower, cost_of(prices, b, follow, p))
    total: int = leader + follower * followers
    return total


@kernel
def place_all(
    partitions: Partitions, prices: Any, lead: Any, follow: Any, racks: Any, singles: Any, scratch: Any, placement: Any
) -> tuple[int, int]:
    """Place every partition where it is cheapest; returns the sum of the costs in two words.

    ``racks`` and ``singles`` are the options of followers and of leaders, where racks and where brokers are kept apart;
    ``scratch`` is memory as large as the groups.
    """
    start, size, kind = partitions.start, partitions.size, partitions.kind
    high, low = 0, 0
    bounds = np.zeros(2, np.int64)
    for p in range(len(start) - 1):
        factor = start[p + 1] - start[p]
        if factor == 0:
            continue
        for i in range(start[p], start[p + 1]):
            placement[i] = -1
        if kind[p] == CLOSED:
            cost = stay(partitions, prices, lead, follow, p, placement)
        elif kind[p] == ANYWHERE:
            cost = free(partitions, prices, lead, follow, p)
        else:
            as_follower, as_leader = racks if kind[p] == APART else singles
            last = len(as_follower.floor) - 1
            copy = size[p] * SCALE
            cost = at_home(partitions, prices, lead, follow, p, placement, bounds)
            near_f = copy + cost_of(as_follower.floor, last, follow, p) < bounds[0]
            near_l = copy + cost_of(as_leader.floor, last, lead, p) < bounds[1]
            if near_f or near_l:
                best_f, who_f, best_l, who_l, top = (
                    scratch[0][:last],
                    scratch[1],
                    scratch[2][:last],
                    scratch[3],
                    scratch[4],
                )
                offer(partitions, prices, follow, p, as_follower, bounds[0], False, best_f, who_f)
                offer(partitions, prices, lead, p, as_leader, bounds[1], True, best_l, who_l)
                leader, cost = choose(best_f, best_l, factor, top)
                if leader < 0:
                    cost = free(partitions, prices, lead, follow, p)
                    for i in range(start[p], start[p + 1]):
                        placement[i] = -1
                else:
                    placement[start[p]] = who_l[leader]
                    at, j = start[p] + 1, 0
                    while at < start[p + 1]:
                        if top[j] != leader:
                            placement[at] = who_f[top[j]]
                            at += 1
                        j += 1
        high += cost >> LOW_BITS
        low += cost & ((1 << LOW_BITS) - 1)
    return high, low


@kernel
def sum_loads(start: Any, cur: Any, lead: Any, follow: Any, load: Any) -> None:
    """Fill ``load``, by broker and resource, from the assignment."""
    for p in range(len(start) - 1):
        for slot in range(start[p], start[p + 1]):
            b = cur[slot]
            if b >= 0:
                for k in range(load.shape[1]):
                    load[b, k] += lead[p, k] if slot == start[p] else follow[p, k]

"""Each broker's fair share of a resource: its part by capacity, as far as racks, replica counts, cordons and topics' rules allow.

What k racks together can carry is bounded by how many replicas each partition has and how many of them a rack may hold.
With replication factors side by side that is less for two racks than twice what it is for one.  These bounds are submodular, so the
most even split is found by decomposition: the racks that would carry most beyond their bound get just that, and the others the rest.
Where topics may not be everywhere, it is the most even split that their rules allow.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import Flags, Ints, SmallInts
from ballast.core.planner.goals import Resource
from ballast.core.planner.problem.scope import Scope

Floats = npt.NDArray[np.float64]

BEYOND: Final = 1e-9
"""Part of a bound by which sums of fractions may be beyond it."""
ROUNDS: Final = 2000
STILL: Final = 1e-12
"""Part of the whole by which no broker's load changes any more in a round that is the last."""
DIGITS: Final = 6
"""Decimals of a share: what whole numbers are compared with must not hang on the last bit."""


def fair_shares(
    r: Resource,
    scope: Scope,
    start: Ints,
    home: SmallInts,
    rack: SmallInts,
    rack_limit: SmallInts,
    rack_least: SmallInts,
) -> Floats:
    """By broker, in the resource's own unit; one that takes nothing cannot rise above what it holds (water filling)."""
    brokers = len(scope.shares)
    active = scope.shares & scope.leading if r.leaders_only else scope.shares
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    first = np.zeros(len(row), np.bool_)
    first[start[:-1][np.diff(start) > 0]] = True
    figure = np.where(first, r.lead[row], r.follow[row])
    inside = (home >= 0) & (scope.shares | scope.leave)[np.maximum(home, 0)]
    present = np.bincount(home[inside], weights=figure[inside], minlength=brokers)
    total = float(figure[inside | (home < 0)].sum())
    weight = np.where(active, r.capacity, 0.0)
    # By their own state: brokers that an intent gives nothing keep the share that ``status`` shows.
    closed = active & ~scope.can_rise if scope.roam and not r.leaders_only else np.zeros(brokers, np.bool_)
    most = np.where(closed, present, np.where(active, np.inf, 0.0))
    if scope.classes.any:
        classes = scope.classes
        allowed = ~(classes.barred | classes.unled) if r.leaders_only else ~classes.barred
        of, count = classes.of[row], len(allowed)
        load = np.bincount(of, weights=np.where(inside | (home < 0), figure, 0.0), minlength=count)
        held = np.bincount(of[inside] * brokers + home[inside], weights=figure[inside], minlength=count * brokers)
        share = by_rules(load, held.reshape(count, brokers), allowed, weight, closed)
    else:
        share = _fill(total, weight, most)
    if r.leaders_only or not bool(active.any()):
        return share
    racks = int(rack.max()) + 1
    bound = _bounds(r, np.diff(start), rack_limit, rack_least, racks)
    # Shares by rules are rounded: together they may be a little more than there is.
    if _excess(share, rack, bound)[0] <= brokers * 10.0**-DIGITS:
        return share
    total = min(total, float(bound[-1]))
    # Whom the topics' rules leave no share gets none by its rack.
    weight = np.where(share > 0, weight, 0.0) if scope.classes.any else weight
    return _split(total, weight, most, rack, np.arange(racks), bound)


def _bounds(r: Resource, factor: Ints, rack_limit: SmallInts, rack_least: SmallInts, racks: int) -> Floats:
    """By k from 0: the most that k racks can carry together, when each of the others that must has one replica."""
    alike, kind = kinds(factor, rack_limit, rack_least)
    lead, follow = (np.bincount(kind, weights=figures, minlength=alike.shape[1]) for figures in (r.lead, r.follow))
    out = np.zeros(racks + 1)
    for k in range(1, racks + 1):
        held = np.minimum(k * alike[1], alike[0] - np.maximum(alike[2] - k, 0))
        out[k] = float((np.where(held > 0, lead, 0.0) + np.maximum(held - 1, 0) * follow).sum())
    return out


def kinds(*columns: npt.NDArray[np.integer[Any]]) -> tuple[Ints, npt.NDArray[np.intp]]:
    """The different rows of some columns of counts in ascending order, one in each column of the answer, and which of them each row is.

    As one number a row sorts twenty times as fast as ``np.unique`` sorts along an axis.
    """
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        key = key * (int(column.max(initial=0)) + 1) + column
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns]).astype(np.int64), kind


def _excess(share: Floats, rack: SmallInts, bound: Floats) -> tuple[float, npt.NDArray[np.integer[Any]]]:
    """By how much some racks carry more than they can, and which: those that are furthest beyond."""
    by_rack = np.bincount(rack, weights=share, minlength=int(rack.max()) + 1)
    order = np.argsort(-by_rack, kind="stable")[: max(len(bound) - 2, 1)]
    beyond = np.cumsum(by_rack[order]) - bound[1 : len(order) + 1] * (1 + BEYOND)
    worst = int(np.argmax(beyond))
    return float(beyond[worst]), order[: worst + 1]


def _split(
    total: float, weight: Floats, most: Floats, rack: SmallInts, among: npt.NDArray[np.integer[Any]], bound: Floats
) -> Floats:
    """``total`` over the brokers of these racks."""
    mine = np.isin(rack, among)
    share = _fill(total, np.where(mine, weight, 0.0), most)
    beyond, full = _excess(share, rack, bound)
    if beyond <= 0 or len(full) >= len(among):
        return share
    held, rest = np.isin(rack, full), np.setdiff1d(among, full)
    carried = float(bound[len(full)])
    others = _split(max(total - carried, 0.0), weight, most, rack, rest, bound[len(full) :] - carried)
    return np.where(held, _split(carried, weight, most, rack, full, bound[: len(full) + 1]), others)


def by_rules(load: npt.NDArray[Any], held: npt.NDArray[Any], allowed: Flags, weight: Floats, closed: Flags) -> Floats:
    """By broker its share, when ``load`` of each class may be split over the brokers that ``allowed`` (C x B) says.

    A broker that is ``closed`` takes nothing: of each class it can have no more than it holds.  Of all splits the one whose fullest
    broker is least full by weight, then the next fullest, and so on.  Found by pouring one class after another afresh onto what the
    others have left there, until nothing changes; that ends at the optimum, since evenness is convex and no class's choice limits
    another's.  A class that may be nowhere counts everywhere, and what has no room where it may be counts on every open broker.
    """
    may = allowed & (weight > 0)
    may[~may.any(axis=1)] = weight > 0
    most = np.where(closed, held, np.inf)
    room = np.where(may, most, 0.0).sum(axis=1)
    may[load > room] |= (weight > 0) & ~closed
    load = np.minimum(load, np.where(may, most, 0.0).sum(axis=1))
    split = np.zeros(allowed.shape)
    for _ in range(ROUNDS):
        before = split.sum(axis=0)
        for c in np.flatnonzero(load > 0).tolist():
            others = split.sum(axis=0) - split[c]
            split[c] = _pour(float(load[c]), others, np.where(may[c], weight, 0.0), most[c])
        if float(np.abs(split.sum(axis=0) - before).max(initial=0.0)) <= STILL * float(load.sum()):
            break
    return np.asarray(np.round(split.sum(axis=0), DIGITS))


def _pour(load: float, ground: Floats, weight: Floats, most: Floats) -> Floats:
    """Pour into vessels of these widths that already hold ``ground``, to one level over the lowest of them, into none more than its ``most``."""
    out = np.zeros(len(weight))
    open_ = weight > 0
    while bool(open_.any()):
        more = _level(load, ground, np.where(open_, weight, 0.0))
        full = open_ & (more > most)
        if not bool(full.any()):
            return np.where(open_, more, out)
        out[full] = most[full]
        load = max(load - float(most[full].sum()), 0.0)
        open_ &= ~full
    return out


def _level(load: float, ground: Floats, weight: Floats) -> Floats:
    """The same where no vessel is ever full."""
    out = np.zeros(len(weight))
    members = np.flatnonzero(weight > 0)
    order = members[np.argsort(ground[members] / weight[members], kind="stable")]
    held, width = np.cumsum(ground[order]), np.cumsum(weight[order])
    level = (load + held) / width
    heights = ground[order] / weight[order]
    # The level with the first n vessels stands when the next one's ground is above it.
    enough = np.append(level[:-1] <= heights[1:], values=True)
    n = int(np.argmax(enough)) + 1
    out[order[:n]] = np.maximum(level[n - 1] * weight[order[:n]] - ground[order[:n]], 0.0)
    return out


def _fill(total: float, weight: Floats, most: Floats) -> Floats:
    """Split ``total`` by weight, to each no more than its ``most``."""
    out = np.zeros(len(weight))
    free = weight > 0
    left = total
    for _ in range(len(weight)):
        if not bool(free.any()) or left <= 0:
            break
        level = left / weight[free].sum()
        full = free & (weight * level > most)
        if not bool(full.any()):
            out[free] = weight[free] * level
            break
        out[full] = most[full]
        left -= float(most[full].sum())
        free &= ~full
    return out

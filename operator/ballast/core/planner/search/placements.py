"""What may stand where among a few brokers: every legal placement of each partition's replicas that are on them.

Replicas on other brokers stay, and so does a leader there.  The rules are those of the search; where topics have rules of
their own, nothing here is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import Flags, Ints, SmallInts
from ballast.core.planner.search.world import World


@dataclass(frozen=True, slots=True, eq=False)
class Placements:
    """Those of partitions with as many replicas inside."""

    row: Ints
    """By placement: its partition."""
    members: Ints
    """By placement and replica: which of the brokers, the leader's first where it is inside."""
    leading: bool
    arrives: Flags
    """By placement and replica: is it a copy?"""
    now: Flags
    """By placement: is it the present one?"""
    slots: Ints
    """By placement and replica: the slot."""


def placements(world: World, brokers: SmallInts) -> list[Placements]:
    """Every legal way to place what is on these brokers among them, partition by partition, and the present one."""
    p = world.problem
    at = np.full(len(p.ids), -1, np.int64)
    at[brokers] = np.arange(len(brokers))
    inside = np.where(world.cur >= 0, at[world.cur], -1) >= 0
    inside &= p.scope.open_rows[world.row]
    count = np.bincount(world.row[inside], minlength=len(p.size))
    first = np.zeros(len(p.size), np.bool_)
    filled = np.diff(p.start) > 0
    first[filled] = inside[p.start[:-1][filled]]
    slots = np.flatnonzero(inside)
    begin = np.concatenate(([0], np.cumsum(count)))
    out = []
    for m in range(1, min(int(count.max(initial=0)), len(brokers)) + 1):
        for leading in (False, True):
            rows = np.flatnonzero((count == m) & (first == leading))
            if len(rows):
                own = slots[begin[rows][:, None] + np.arange(m)]
                out.append(_block(world, brokers, rows, own, leading=leading))
    return out


def _block(world: World, brokers: SmallInts, rows: Ints, own: Ints, *, leading: bool) -> Placements:
    p, s = world.problem, world.problem.scope
    shapes = _patterns(len(brokers), own.shape[1], leading=leading)
    home, first = _homes(world, brokers, rows)
    holds = s.takes[brokers] | (home & ~s.leave[brokers])
    leads = s.leads[brokers] | (first & ~s.unlead[brokers])
    legal = holds[:, shapes].all(axis=2) & _apart(world, brokers, rows, shapes)
    if leading:
        legal &= leads[:, shapes[:, 0]]
    current = _current(world, brokers, own, shapes, leading=leading)
    which, shape = np.nonzero(legal | current)
    members = shapes[shape]
    arrives = ~home[which[:, None], members]
    # The program's rows have a tolerance; a full broker gets nothing, however small.
    full = arrives & (world.held[brokers][members] + p.size[rows[which], None] > p.room[brokers][members])
    here = (world.cur[own][which][:, :, None] == brokers[members][:, None, :]).any(axis=1)
    fits = current[which, shape] | ~(full & ~here).any(axis=1)
    which, shape = which[fits], shape[fits]
    return Placements(rows[which], members[fits], leading, arrives[fits], current[which, shape], own[which])


def _homes(world: World, brokers: SmallInts, rows: Ints) -> tuple[Flags, Flags]:
    """R x N: had the broker a replica of the partition before, and was it the first?"""
    p = world.problem
    home = np.zeros((len(rows), len(brokers)), np.bool_)
    first = home.copy()
    counts = p.old_start[rows + 1] - p.old_start[rows]
    for j in range(int(counts.max(initial=0))):
        member = np.where(counts > j, p.old[np.minimum(p.old_start[rows] + j, len(p.old) - 1)], -2)
        home |= member[:, None] == brokers
        if j == 0:
            first = home.copy()
    return home, first


def _apart(world: World, brokers: SmallInts, rows: Ints, shapes: Ints) -> Flags:
    """R x S: does no rack hold more than its limit, and racks enough a replica, with those that stay elsewhere?"""
    p = world.problem
    racks = int(p.rack.max()) + 1
    elsewhere = np.zeros((len(rows), racks), np.int64)
    lengths = p.start[rows + 1] - p.start[rows]
    for j in range(int(lengths.max())):
        broker = np.where(lengths > j, world.cur[np.minimum(p.start[rows] + j, len(world.cur) - 1)], -1)
        out = (broker >= 0) & ~np.isin(broker, brokers)
        np.add.at(elsewhere, (np.flatnonzero(out), p.rack[broker[out]]), 1)
    inside = np.zeros((len(shapes), racks), np.int64)
    for j in range(shapes.shape[1]):
        np.add.at(inside, (np.arange(len(shapes)), p.rack[brokers[shapes[:, j]]]), 1)
    legal = np.ones((len(rows), len(shapes)), np.bool_)
    held = np.repeat((elsewhere > 0).sum(axis=1)[:, None], len(shapes), axis=1)
    for rack in np.flatnonzero(inside.any(axis=0)).tolist():
        crowd = elsewhere[:, rack][:, None] + inside[:, rack]
        legal &= (inside[:, rack] == 0) | (crowd <= p.rack_limit[rows][:, None])
        held += (inside[:, rack] > 0) & (elsewhere[:, rack][:, None] == 0)
    return legal & (held >= p.rack_least[rows][:, None])


def _current(world: World, brokers: SmallInts, own: Ints, shapes: Ints, *, leading: bool) -> Flags:
    """R x S: is this where the replicas are?"""
    at = np.full(len(world.problem.ids), -1, np.int64)
    at[brokers] = np.arange(len(brokers))
    now = at[world.cur[own]]
    begin = 1 if leading else 0
    ordered = np.concatenate((now[:, :begin], np.sort(now[:, begin:], axis=1)), axis=1)
    return np.asarray((ordered[:, None, :] == shapes[None, :, :]).all(axis=2))


@cache
def _patterns(brokers: int, inside: int, *, leading: bool) -> npt.NDArray[np.int64]:
    """Who of so many brokers holds a partition's replicas that are inside; the leader first where it is among them."""
    if not leading:
        return np.array(list(combinations(range(brokers), inside)), np.int64)
    out = [
        (first, *rest)
        for first in range(brokers)
        for rest in combinations([b for b in range(brokers) if b != first], inside - 1)
    ]
    return np.array(out, np.int64)

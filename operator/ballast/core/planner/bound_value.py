"""The exact value of a lower bound at given prices: the proof, apart from the search for good prices.

For any prices ``m`` (by broker and resource, positive for the upper end of a band and negative for the lower) every plan
within the bands copies at least::

    sum over partitions of the cheapest legal placement, each replica costing its copy plus m times its load
    - sum of m * high where m > 0  + sum of -m * low where m < 0

Placements keep racks apart; where racks do not suffice that rule is dropped, which only lowers the value.  All of it is
integer arithmetic, and rounding of the loads is given away to the safe side, so the value needs no tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.planner.loads import DISK
from ballast.core.planner.problem import FREE, Problem

SCALE: Final = 1 << 12
"""A price of one byte per byte."""
BARRED: Final = 1 << 60
CHUNK: Final = 1 << 21
"""Partition-broker pairs that are held in memory at a time."""

Ints = npt.NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Relaxation:
    """What the bound is about, independent of any search."""

    problem: Problem
    low: Ints
    high: Ints
    before: Ints
    """B x K: the loads before, without what must leave."""
    forced: int
    """Scaled bytes that must be copied whatever the bands."""
    forced_bytes: int
    """The same in bytes, without rounding."""
    disk: int | None
    """The column of disk."""
    unplaced: npt.NDArray[np.bool_]
    """Partitions that the plan could not place as it should; no plan is asked to."""

    def evaluate(self, prices: Ints) -> tuple[int, npt.NDArray[np.int32]]:
        """The bound in scaled bytes, and the cheapest placement: broker by slot, leader first, -1 for none."""
        p = self.problem
        worth = -_exact_dot(np.maximum(prices, 0), self.high) + _exact_dot(np.maximum(-prices, 0), self.low)
        placement = np.full(len(p.home), -1, np.int32)
        counts = np.diff(p.start)
        step = max(CHUNK // max(len(p.ids), 1), 1)
        for factor in np.unique(counts[counts > 0]).tolist():
            rows = np.flatnonzero(counts == factor)
            for begin in range(0, len(rows), step):
                some = rows[begin : begin + step]
                cost, members = self._place(some, factor, prices)
                worth += cost
                placement[p.start[some][:, None] + np.arange(factor)] = members
        # Each copy's price was rounded by less than one unit.
        return worth // SCALE - len(p.home), placement

    def loads_of(self, placement: npt.NDArray[np.int32]) -> Ints:
        """B x K: what a placement loads the brokers with."""
        p = self.problem
        row = np.repeat(np.arange(len(p.start) - 1), np.diff(p.start))
        first = np.zeros(len(row), np.bool_)
        first[p.start[:-1][np.diff(p.start) > 0]] = True
        load = np.zeros(self.low.shape, np.int64)
        placed = placement >= 0
        np.add.at(load, placement[placed], np.where(first[:, None], p.lead[row], p.follow[row])[placed])
        return load

    def _place(self, rows: Ints, factor: int, prices: Ints) -> tuple[int, Ints]:
        """The cheapest placements of some partitions, and what they cost together."""
        p, s = self.problem, self.problem.scope
        home, first = self._homes(rows)
        follow = p.follow[rows] @ prices.T + np.where(home, 0, (p.size[rows] * SCALE)[:, None])
        lead = p.lead[rows] @ prices.T + np.where(home, 0, (p.size[rows] * SCALE)[:, None])
        may_hold = (s.takes[None, :] | home) & ~s.leave[None, :]
        closed = ~s.open_rows[rows] | self.unplaced[rows]
        may_hold[closed] = home[closed]
        may_lead = may_hold & (s.leads[None, :] | first)
        may_lead[closed] = first[closed]
        follow = np.where(may_hold, follow, BARRED)
        lead = np.where(may_lead, lead, BARRED)
        groups, group_of = self._groups(rows, factor)
        best_f, who_f = _by_group(follow, groups, group_of)
        best_l, who_l = _by_group(lead, groups, group_of)
        return _choose(factor, best_f, who_f, best_l, who_l)

    def _groups(self, rows: Ints, factor: int) -> tuple[int, npt.NDArray[np.int32]]:
        """Racks where each replica needs its own, else each broker by itself."""
        p = self.problem
        racks = len(np.unique(p.rack))
        apart = bool((p.rack_limit[rows] == 1).all()) and racks >= factor
        # A partition that breaks the rack rule now may keep doing so under some intents: the bound then forgets racks.
        if apart and bool((p.scope.open_rows[rows] & ~self.unplaced[rows]).all()):
            _, numbers = np.unique(p.rack, return_inverse=True)
            return racks, numbers.astype(np.int32)
        return len(p.ids), np.arange(len(p.ids), dtype=np.int32)

    def _homes(self, rows: Ints) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        p = self.problem
        home = np.zeros((len(rows), len(p.ids)), np.bool_)
        first = np.zeros((len(rows), len(p.ids)), np.bool_)
        counts = p.old_start[rows + 1] - p.old_start[rows]
        for j in range(int(counts.max()) if len(rows) else 0):
            has = np.flatnonzero(counts > j)
            at = p.old[p.old_start[rows[has]] + j]
            home[has, at] = True
            if j == 0:
                first[has, at] = True
        return home, first


def relaxation_of(problem: Problem, reached: Ints, placement: npt.NDArray[np.int32]) -> Relaxation:
    """Bands that the plan met count in full; where it did not, only as far as it got."""
    s = problem.scope
    row = np.repeat(np.arange(len(problem.old_start) - 1), np.diff(problem.old_start))
    first = np.zeros(len(row), np.bool_)
    first[problem.old_start[:-1][np.diff(problem.old_start) > 0]] = True
    before = np.zeros(problem.low.shape, np.int64)
    figures = np.where(first[:, None], problem.lead[row], problem.follow[row])
    stays = ~s.leave[problem.old]
    np.add.at(before, problem.old[stays], figures[stays])
    held = np.bincount(problem.old, minlength=len(problem.ids)) + len(problem.size)
    rounding = held[:, None].astype(np.int64)
    width = np.ceil(problem.share * problem.unit * 4e-5).astype(np.int64)
    low = np.maximum(np.minimum(problem.low - width, reached) - rounding, 0)
    high = np.minimum(np.maximum(problem.high + width, reached) + rounding, FREE)
    # A limit that nothing can reach would only make the numbers large.
    total = before.sum(axis=0) + figures.sum(axis=0)
    high = np.minimum(high, total[None, :] + 1)
    missing = np.maximum(np.diff(problem.start) - np.diff(problem.old_start), 0)
    leaving = np.bincount(row, weights=~stays & s.open_rows[row], minlength=len(problem.size)).astype(np.int64)
    surplus = np.maximum(np.diff(problem.old_start) - np.diff(problem.start), 0)
    slot_row = np.repeat(np.arange(len(problem.start) - 1), np.diff(problem.start))
    short = (placement < 0) | s.leave[placement]
    unplaced = np.bincount(slot_row[short], minlength=len(problem.size)) > 0
    copies = missing + np.maximum(leaving - surplus, 0)
    copies[unplaced] = 0
    names = [r.name for r in problem.resources]
    disk = names.index(DISK) if DISK in names else None
    forced_bytes = 0 if disk is None else int((problem.resources[disk].lead * copies).sum())
    return Relaxation(problem, low, high, before, int((problem.size * copies).sum()), forced_bytes, disk, unplaced)


def value(relaxation: Relaxation, prices: Ints) -> int:
    """The bound at these prices, in scaled bytes."""
    return relaxation.evaluate(prices)[0]


def _exact_dot(a: Ints, b: Ints) -> int:
    """The sum of products in unbounded integers."""
    at = np.nonzero(a)
    return sum(int(x) * int(y) for x, y in zip(a[at].tolist(), b[at].tolist(), strict=True))


def _exact_sum(a: Ints) -> int:
    return (int((a >> 24).sum()) << 24) + int((a & ((1 << 24) - 1)).sum())


def _by_group(cost: Ints, groups: int, group_of: npt.NDArray[np.int32]) -> tuple[Ints, Ints]:
    """The cheapest member of each group, and which it is."""
    if groups == cost.shape[1]:
        return cost, np.broadcast_to(np.arange(groups), cost.shape)
    best = np.empty((len(cost), groups), np.int64)
    who = np.empty((len(cost), groups), np.int64)
    for g in range(groups):
        members = np.flatnonzero(group_of == g)
        at = np.argmin(cost[:, members], axis=1)
        who[:, g] = members[at]
        best[:, g] = cost[np.arange(len(cost)), who[:, g]]
    return best, who


def _choose(factor: int, best_f: Ints, who_f: Ints, best_l: Ints, who_l: Ints) -> tuple[int, Ints]:
    """One group leads and the cheapest others follow; exact, because every group is tried as the leader's."""
    count, groups = best_f.shape
    index = np.arange(count)
    take = min(factor, groups)
    nearest = np.argpartition(best_f, take - 1, axis=1)[:, :take] if take < groups else np.argsort(best_f, axis=1)
    rank = np.argsort(np.take_along_axis(best_f, nearest, axis=1), axis=1, kind="stable")
    nearest = np.take_along_axis(nearest, rank, axis=1)
    cheapest = np.take_along_axis(best_f, nearest, axis=1)
    followers = cheapest[:, : factor - 1].sum(axis=1)
    # A leader from outside the cheapest followers is joined by the first factor - 1; one from inside frees its place.
    total = best_l + followers[:, None]
    if take == factor:
        for j in range(factor - 1):
            g = nearest[:, j]
            total[index, g] = best_l[index, g] + followers - cheapest[:, j] + cheapest[:, factor - 1]
    leader = np.argmin(total, axis=1)
    members = np.full((count, factor), -1, np.int64)
    members[:, 0] = who_l[index, leader]
    placed = np.ones(count, np.int64)
    for j in range(take):
        g = nearest[:, j]
        use = (g != leader) & (placed < factor)
        members[index[use], placed[use]] = who_f[index, g][use]
        placed += use
    return _exact_sum(np.minimum(total[index, leader], BARRED)), members

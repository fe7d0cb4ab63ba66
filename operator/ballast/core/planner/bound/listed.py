"""Placements listed one by one, of partitions that are too large for some brokers: what alone exceeds a range fits nowhere in part.

The kernel that prices every other partition knows no sizes of brokers, so it would split such a partition over brokers none of which may
hold it.  Like all of the bound this is exact: a placement is left out only where one replica alone is more than its broker's range allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import Flags, Ints, SmallInts
from ballast.core.planner.bound.kernels import APART, LOOSE, SCALE
from ballast.core.planner.problem.problem import Problem

MOST_PLACEMENTS: Final = 2_000
"""Placements of one partition up to which they are listed."""
MOST_LISTED: Final = 20
"""Partitions that are listed, the largest first."""


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """One partition and every placement that is left to it."""

    row: int
    members: SmallInts
    """By placement: its brokers, the leader first."""
    copies: Ints
    """By placement: scaled bytes that it copies."""

    def cheapest(self, p: Problem, prices: Ints) -> tuple[int, SmallInts]:
        """What the cheapest costs at these prices, and which it is."""
        as_follower, as_leader = prices @ p.follow[self.row], prices @ p.lead[self.row]
        cost = self.copies * SCALE + as_leader[self.members[:, 0]] + as_follower[self.members[:, 1:]].sum(axis=1)
        best = int(np.argmin(cost))
        return int(cost[best]), self.members[best]

    def holding(self, broker: int, *, held: bool) -> Listed | None:
        """Those with a replica there, or those without; None where there are none."""
        kept = (self.members == broker).any(axis=1) == held
        return Listed(self.row, self.members[kept], self.copies[kept]) if kept.any() else None


def list_large_partitions(p: Problem, high: Ints, kind: npt.NDArray[np.int8], gone: Flags) -> tuple[Listed, ...]:
    """The partitions of which a replica alone is more than a broker may carry, with the placements that are left."""
    used = p.scope.takes | p.scope.shares
    if not used.any():
        return ()
    least = high[used].min(axis=0)
    large = np.flatnonzero((p.follow > least).any(axis=1) | (p.lead > least).any(axis=1))
    large = large[listable(kind)[large]]
    ranked = large[np.argsort(-p.size[large], kind="stable")][:MOST_LISTED]
    out = (list_placements(p, int(row), high, kind, gone) for row in ranked.tolist())
    return tuple(found for found in out if found is not None)


def listable(kind: npt.NDArray[np.int8]) -> Flags:
    """By partition: are the rules that a listing goes by held against it?"""
    return np.isin(kind, (APART, LOOSE))


def list_placements(p: Problem, row: int, high: Ints, kind: npt.NDArray[np.int8], gone: Flags) -> Listed | None:
    """Every placement of the partition within the kernel's rules and the ranges; None where there are too many, or none."""
    s, factor = p.scope, int(p.start[row + 1] - p.start[row])
    run = slice(int(p.old_start[row]), int(p.old_start[row + 1]))
    home = np.zeros(len(p.ids), np.bool_)
    home[p.old[run][~gone[run]]] = True
    receives = s.takes & ~s.leave
    holds = (home | receives) & (p.follow[row] <= high).all(axis=1)
    leads = (receives & s.leads) | (home & s.leads)
    if home[p.old[run][:1]].any():
        leads[p.old[run][0]] = True
    leads &= (p.lead[row] <= high).all(axis=1)
    who, first = np.flatnonzero(holds).tolist(), np.flatnonzero(leads).tolist()
    if not factor or len(first) * comb(len(who), factor - 1) > MOST_PLACEMENTS:
        return None
    rack = p.rack.tolist() if kind[row] == APART else list(range(len(p.ids)))
    members = [
        (leader, *rest)
        for leader in first
        for rest in combinations(who, factor - 1)
        if len({rack[leader], *(rack[b] for b in rest)}) == factor
    ]
    if not members:
        return None
    placed = np.array(members, np.int32)
    return Listed(row, placed, p.size[row] * (~home[placed]).sum(axis=1).astype(np.int64))

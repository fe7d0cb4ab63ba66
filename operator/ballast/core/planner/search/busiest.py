"""The busiest brokers of a plan relieved by integer programs, a few brokers at a time: what exchanges of one or two copies cannot find.

A broker whose disk is too full sends a copy of all that it leads and gives away.  To send less, it keeps some of that and gives away what
others lead instead, within all its ranges at once.  The program of ``exact`` finds such a change when it is told what each broker
receives and sends.
"""

from __future__ import annotations

from typing import Final

import highspy
import numpy as np
import numpy.typing as npt

from ballast.core.cluster import Ints, SmallInts
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.problem import FREE, Problem
from ballast.core.planner.search.exact import PAIRS, TOGETHER, Effort, Model, placements_of_most
from ballast.core.planner.search.exchange import within_ranges
from ballast.core.planner.search.placements import Placements
from ballast.core.planner.search.sides import Sides
from ballast.core.planner.search.world import World

PRICE: Final = 1.0
"""What a byte is worth that a busy broker need not receive or send, in bytes copied."""
BUSY: Final = 1.06
"""A multiple of the floor up to which no program is solved."""
ROUNDS: Final = 60
PATIENCE: Final = 16
"""Programs in a row that found nothing, after which no more are tried."""
WORK: Final = 5_000_000
"""Rows times simplex steps of all programs together, after which no further one is solved: a CPU second or two."""

Floats = npt.NDArray[np.float64]


def relieve(world: World, asked: Problem, sender: SmallInts, *, most_bytes: int, seed: int) -> bool:
    """Relieve the busiest in place, on small clusters, until none has much more than the floor; up to ``most_bytes`` are copied.  Was any?"""
    p, effort = world.problem, Effort(WORK)
    if len(p.size) * len(p.ids) > PAIRS or p.scope.classes.any or int(world.budget.min()) < FREE // 2:
        return False
    sides = Sides.of(world, asked, sender)
    if int(sides.work(world).max()) <= sides.floor * BUSY:
        return False
    met = World.of(within_ranges(world, asked), PlannerPolicy())
    met.place(world.cur)
    members = np.flatnonzero(p.scope.takes & p.scope.gives).astype(np.int32)
    draw, idle = np.random.default_rng(seed), 0
    for _ in range(ROUNDS):
        work = sides.work(met)
        if idle == PATIENCE or effort.spent or int(work.max()) <= sides.floor * BUSY:
            break
        first = members[members == int(np.argmax(work)) % len(p.ids)]
        others = draw.permutation(np.setdiff1d(members, first))[: TOGETHER - len(first)]
        found = _improve(met, np.concatenate((first, others)), sides, most_bytes - met.copied, effort)
        idle = 0 if found else idle + 1
    changed = bool((met.cur != world.cur).any())
    world.place(met.cur)
    return changed


def _improve(world: World, brokers: SmallInts, sides: Sides, more: int, effort: Effort) -> bool:
    """Place what is on these brokers anew among them; is anybody less busy?"""
    brokers, blocks = placements_of_most(world, brokers)
    found = _Model(world, brokers, blocks, sides, more).solve(effort) if blocks else None
    if found is None:
        return False
    before, full = world.save(), np.maximum(world.held, world.problem.room)
    over, most = sides.over(sides.work(world)), world.copied + more
    world.place(found)
    # The program's figures are rounded; what counts is exact.
    legal = bool((world.held <= full).all()) and not world.excess
    if legal and world.copied <= most and sides.over(sides.work(world)) < over:
        return True
    world.restore(before)
    return False


class _Model(Model):
    """With a row for what each broker receives or sends, which may be too much at a price."""

    def __init__(self, world: World, brokers: SmallInts, blocks: list[Placements], sides: Sides, more: int) -> None:
        super().__init__(world, brokers, blocks)
        self.busy = 0.0
        p = world.problem
        scale = float(p.average)
        place, entry, figure = self._copies(sides, scale)
        work = sides.work(world)
        now = np.bincount(place, weights=figure * self.now[entry], minlength=len(work))
        most = np.bincount(place, weights=figure, minlength=len(work))
        base = (work - sides.most) / scale - now
        columns = np.arange(self.first, self.first + len(self.now), dtype=np.int32)
        for side in np.flatnonzero((base + most > 0) & (most > 0)).tolist():
            if side == len(work) - 1:
                continue
            mine = np.flatnonzero(place == side)
            index, value = np.unique(entry[mine], return_inverse=True)
            value = np.bincount(value, weights=figure[mine])
            self.solver.addCol(PRICE, 0, highspy.kHighsInf, 0, np.zeros(0, np.int32), np.zeros(0))
            index = np.append(columns[index], self.solver.getNumCol() - 1).astype(np.int32)
            self.solver.addRow(-highspy.kHighsInf, -base[side], len(index), index, np.append(value, -1.0))
            self.busy += PRICE * max(base[side] + now[side], 0.0)
        cap = float(self.cost[self.now].sum()) + more / scale
        self.solver.addRow(-highspy.kHighsInf, cap, len(columns), columns, self.cost)

    def _copies(self, sides: Sides, scale: float) -> tuple[Ints, Ints, Floats]:
        """Of each copy in each placement, once for its receiver and once for its sender: the place, the placement and its bytes."""
        at, parts = 0, []
        for b in self.blocks:
            which, place = np.nonzero(b.arrives)
            size = self.world.problem.size[b.row[which]] / scale
            parts.append((self.brokers[b.members[which, place]].astype(np.int64), which + at, size))
            parts.append((sides.sends[b.row[which]], which + at, size))
            at += len(b.row)
        places, entries, figures = zip(*parts, strict=True)
        return np.concatenate(places), np.concatenate(entries), np.concatenate(figures)

    def _worth(self) -> float:
        return super()._worth() + self.busy

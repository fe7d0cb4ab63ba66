"""A few brokers at a time, placed anew by an integer program: what steps of one or two replicas cannot find.

The replicas on some brokers change places among these brokers alone; everything else stays.  That is small enough to be
solved nearly exactly, and its linear program says at once where nothing is to be had.  ``placements`` lists what may stand
where.  A plan that misses a range is not made dearer to miss it by less.  How much is tried is counted in steps of the
simplex method, never in time: the same plan on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import highspy
import numpy as np
import numpy.typing as npt

from ballast.core.cluster import Flags, Ints, SmallInts
from ballast.core.planner.linear import ANSWERED, program, solve
from ballast.core.planner.problem.problem import FREE, LOWER, UPPER
from ballast.core.planner.search.placements import Placements, placements
from ballast.core.planner.search.world import World

EXCESS: Final = 50
"""What a share of excess is worth, in shares of bytes."""
PAIRS: Final = 120_000
"""Partition-broker pairs up to which brokers are looked at like this."""
TOGETHER: Final = 4
"""Brokers in one program; one less where that many have too many placements."""
FEWEST: Final = 3
ROUNDS: Final = 30
WORK: Final = 60_000_000
"""Rows times simplex steps of all programs together, after which no further one is solved: about half a minute of CPU time."""
PATIENCE: Final = 10
"""Programs in a row that found nothing, after which no more are tried."""
COLUMNS: Final = 1200
"""Placements up to which a program is solved."""
NODES: Final = 12
GAP: Final = 0.01
FEW: Final = 200
"""Placements up to which every one is looked at that a better solution may have."""
DEAR: Final = 0.05
"""Where there are more, the part of all there is to gain that the reduced cost of one may be: most better solutions lie within, and are found
much sooner."""
LEAST: Final = 1e-3
"""A gain, as a part of all bytes copied, for which no integer program is solved."""
MARGIN: Final = 1e-6
"""Part of an average share by which the program's ranges are narrower: its figures are rounded."""
ENOUGH: Final = ANSWERED | {highspy.HighsModelStatus.kSolutionLimit, highspy.HighsModelStatus.kInfeasible}
"""What a program may end with: the margin may leave none."""

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class Effort:
    """What the programs have cost so far."""

    most: int = WORK
    done: int = 0

    @property
    def spent(self) -> bool:
        """Is no further program to be solved?"""
        return self.done >= self.most

    def add(self, solver: Any) -> None:
        """Count a program that was just solved."""
        self.done += max(int(solver.getInfo().simplex_iteration_count), 0) * int(solver.getNumRow())


def refine(world: World, *, seed: int, most: int = WORK) -> bool:
    """Better placements of some brokers at a time, until several in a row have none; on small clusters alone.

    What copies nothing stays as it is: this makes plans better, and none by itself.  False where the work ended it.
    """
    p, effort = world.problem, Effort(most)
    if not world.copied:
        return True
    if len(p.size) * len(p.ids) > PAIRS or p.scope.classes.any or int(world.budget.min()) < FREE // 2:
        return True
    members = np.flatnonzero(p.scope.takes & p.scope.gives).astype(np.int32)
    count = min(TOGETHER, len(members))
    draw, idle = np.random.default_rng(seed), 0
    for n in range(ROUNDS):
        off = np.maximum(world.load - p.high, 0) + np.maximum(p.low - world.load, 0)
        worst = members[np.argsort(-off[members].sum(axis=1), kind="stable")]
        first = worst[: 1 if world.excess and n % 2 == 0 else 0]
        others = draw.permutation(np.setdiff1d(members, first))[: count - len(first)]
        if effort.spent:
            return False
        idle = 0 if improve(world, np.concatenate((first, others)), effort) else idle + 1
        if idle == PATIENCE or (idle and count == len(members)):
            return True
    return True


def improve(world: World, brokers: SmallInts, effort: Effort) -> bool:
    """Place what is on these brokers anew among them, the last left out where that is too much; was that better?"""
    brokers, blocks = placements_of_most(world, brokers)
    if not blocks:
        return False
    found = Model(world, brokers, blocks).solve(effort)
    if found is None:
        return False
    before, full, past = world.save(), np.maximum(world.held, world.problem.room), world.past_hard
    excess, copied = world.excess, world.copied
    world.place(found)
    # The program's figures are rounded; what counts is exact.
    legal = bool((world.held <= full).all() and (world.past_hard <= past).all())
    if legal and _is_better(world, excess, copied):
        return True
    world.restore(before)
    return False


def placements_of_most(world: World, brokers: SmallInts) -> tuple[SmallInts, list[Placements]]:
    """Placements among these brokers, the last left out where there are too many; none where there still are."""
    for count in range(len(brokers), min(FEWEST, len(brokers)) - 1, -1):
        blocks = placements(world, brokers[:count])
        if sum(len(b.row) for b in blocks) <= COLUMNS:
            return brokers[:count], blocks
    return brokers, []


def _is_better(world: World, excess: int, copied: int) -> bool:
    """All ranges met at last, or nothing worse: what is missed is not paid for with bytes without end."""
    now = world.excess, world.copied
    if excess and not now[0]:
        return True
    return now[0] <= excess and now[1] <= copied and now != (excess, copied)


class Model:
    """One weight for each placement, one row for each partition, range and disk."""

    def __init__(self, world: World, brokers: SmallInts, blocks: list[Placements]) -> None:
        self.world, self.brokers, self.blocks = world, brokers, blocks
        p = world.problem
        width = len(p.resources)
        scale = float(p.average)
        rows, dense = np.unique(np.concatenate([b.row for b in blocks]), return_inverse=True)
        self.count = len(rows)
        self.now = np.concatenate([b.now for b in blocks])
        # What stays on each broker whatever happens here.
        base = world.load[brokers] - self._load(self.now)
        held = world.held[brokers] - self._arrived_bytes(self.now)
        low, high = p.low[brokers] - base, p.high[brokers] - base
        counted = np.array([r.counted for r in p.resources], np.bool_)
        margin = np.where(counted, 0, int(MARGIN * p.average))
        free = p.high[brokers] >= FREE
        least = np.where(p.low[brokers] > 0, (low + margin) / scale, -highspy.kHighsInf)
        most = np.where(free, highspy.kHighsInf, (high - margin) / scale)
        room = np.where(p.room[brokers] >= FREE, highspy.kHighsInf, np.maximum(p.room[brokers] - held, 0) / scale)
        self.solver = program()
        lower = np.concatenate((np.ones(self.count), least.ravel(), np.full(len(brokers), -highspy.kHighsInf)))
        upper = np.concatenate((np.ones(self.count), most.ravel(), room))
        n = len(lower)
        self.solver.addRows(n, lower, upper, 0, np.zeros(n, np.int32), np.zeros(0, np.int32), np.zeros(0))
        self._slack(width)
        at = 0
        self.cost = np.empty(len(self.now))
        for b in blocks:
            self._add(b, dense[at : at + len(b.row)], at, width, scale)
            at += len(b.row)

    def _slack(self, width: int) -> None:
        p = self.world.problem
        bands = len(self.brokers) * width
        row = np.arange(self.count, self.count + bands, dtype=np.int32)
        hard = p.hard[self.brokers].ravel()
        load, low, high = (a[self.brokers].ravel() for a in (self.world.load, p.low, p.high))
        for sign, end, past in ((-1.0, UPPER, load - high), (1.0, LOWER, low - load)):
            firm = (hard & end > 0) | (self.world.excess == 0)
            most = np.where(firm, np.maximum(past, 0) / p.average + MARGIN, highspy.kHighsInf)
            starts = np.arange(bands, dtype=np.int32)
            self.solver.addCols(
                bands, np.full(bands, float(EXCESS)), np.zeros(bands), most, bands, starts, row, np.full(bands, sign)
            )
        self.first = 2 * bands
        """The column of the first placement; the columns behind the last one are not of placements."""

    def _add(self, b: Placements, dense: Ints, at: int, width: int, scale: float) -> None:
        p = self.world.problem
        count, m = b.members.shape
        lead, follow, size = p.lead[b.row] / scale, p.follow[b.row] / scale, p.size[b.row] / scale
        entries = 1 + m * (width + 1)
        index, figure = np.empty((count, entries), np.int32), np.ones((count, entries))
        index[:, 0] = dense
        for j in range(m):
            run = slice(1 + j * width, 1 + (j + 1) * width)
            index[:, run] = self.count + b.members[:, j][:, None] * width + np.arange(width)
            figure[:, run] = lead if b.leading and j == 0 else follow
        index[:, -m:] = self.count + len(self.brokers) * width + b.members
        figure[:, -m:] = size[:, None] * b.arrives
        cost = size * b.arrives.sum(axis=1)
        self.cost[at : at + count] = cost
        starts = np.arange(count, dtype=np.int32) * entries
        self.solver.addCols(
            count, cost, np.zeros(count), np.ones(count), count * entries, starts, index.ravel(), figure.ravel()
        )

    def _load(self, chosen: Flags) -> Ints:
        p = self.world.problem
        out = np.zeros((len(self.brokers), len(p.resources)), np.int64)
        at = 0
        for b in self.blocks:
            mine = chosen[at : at + len(b.row)]
            for j in range(b.members.shape[1]):
                figures = p.lead if b.leading and j == 0 else p.follow
                np.add.at(out, b.members[mine, j], figures[b.row[mine]])
            at += len(b.row)
        return out

    def _arrived_bytes(self, chosen: Flags) -> Ints:
        p = self.world.problem
        out = np.zeros(len(self.brokers), np.int64)
        at = 0
        for b in self.blocks:
            mine = chosen[at : at + len(b.row)]
            for j in range(b.members.shape[1]):
                np.add.at(out, b.members[mine, j], np.where(b.arrives[mine, j], p.size[b.row[mine]], 0))
            at += len(b.row)
        return out

    def _worth(self) -> float:
        """What the present placement costs."""
        p, w = self.world.problem, self.world
        load, low, high = w.load[self.brokers], p.low[self.brokers], p.high[self.brokers]
        over = (np.maximum(load - high, 0) + np.maximum(low - load, 0)).sum()
        return float(self.cost[self.now].sum()) + EXCESS * float(over) / p.average

    def _relax(self, effort: Effort) -> float | None:
        """Solve the linear program; its least cost, or None where it has no answer."""
        answered = solve(self.solver, "a few brokers", ends=ENOUGH) in ANSWERED
        effort.add(self.solver)
        return float(self.solver.getInfo().objective_function_value) if answered else None

    def _misses_ranges(self) -> bool:
        """Does the linear program miss a range, so that no placement here meets all?"""
        return float(np.array(self.solver.getSolution().col_value)[: self.first].sum()) > MARGIN

    def _forbid_more_bytes(self) -> None:
        """Nothing that copies more than now: a range missed by less is not paid for with bytes."""
        index = np.arange(self.first, self.first + len(self.cost), dtype=np.int32)
        most = float(self.cost[self.now].sum()) + MARGIN
        self.solver.addRow(-highspy.kHighsInf, most, len(index), index, self.cost)

    def _of_placements(self, columns: Sequence[float]) -> Floats:
        return np.array(columns)[self.first : self.first + len(self.now)]

    def solve(self, effort: Effort) -> SmallInts | None:
        """A better placement by slot; None where none was found."""
        worth, solver, p = self._worth(), self.solver, self.world.problem
        # What gains less than this is not looked for.
        enough = worth - LEAST * self.world.copied / p.average
        least = self._relax(effort)
        if least is not None and self._misses_ranges():
            self._forbid_more_bytes()
            least = self._relax(effort)
        if least is None or least > enough:
            return None
        reduced = self._of_placements(solver.getSolution().col_dual)
        # No placement whose reduced cost is more than all there is to gain is in any better solution.
        gain = worth - least
        dear = reduced > (gain if int((reduced <= gain).sum()) <= FEW else DEAR * gain)
        drop = np.flatnonzero(dear & ~self.now).astype(np.int32) + self.first
        solver.changeColsBounds(len(drop), drop, np.zeros(len(drop)), np.zeros(len(drop)))
        index = np.arange(self.first, self.first + len(self.now), dtype=np.int32)
        solver.changeColsIntegrality(len(index), index, np.full(len(index), highspy.HighsVarType.kInteger))
        for option, setting in (
            ("mip_max_nodes", NODES),
            ("mip_rel_gap", GAP),
            ("presolve", "off"),
            ("objective_bound", enough),
        ):
            solver.setOptionValue(option, setting)
        solve(solver, "a few brokers", ends=ENOUGH)
        effort.add(solver)
        if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        chosen = self._of_placements(solver.getSolution().col_value) > 0.5
        cur = self.world.cur.copy()
        at = 0
        for b in self.blocks:
            mine = chosen[at : at + len(b.row)]
            cur[b.slots[mine]] = self.brokers[b.members[mine]]
            at += len(b.row)
        return cur

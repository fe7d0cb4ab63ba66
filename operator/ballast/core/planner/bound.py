"""The least bytes that any plan must copy: a lower bound, and how it was found.

The bound is the value of a Lagrangian: every band gets a price, every partition then places itself where that is
cheapest, and what this costs, less what the bands are worth, no plan can undercut.  ``bound_value`` computes that value
in exact integers for *any* prices, so a bound is right however its prices were found; this module only looks for good
ones.  They come from the dual of a linear program (HiGHS) over whole placements: it starts from the cluster before and
from the plan, and is given the cheapest placement of each partition at its own prices until none is cheaper.  Where that
program would be too large, ``bound_brokers`` finds prices broker by broker.

Every step is deterministic (simplex on one thread, a limit on iterations instead of time); nothing feeds back into the
plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import highspy
import numpy as np
import numpy.typing as npt

from ballast.core.planner.bound_ascent import prices_by_ascent
from ballast.core.planner.bound_brokers import prices_by_broker
from ballast.core.planner.bound_kernels import ANYWHERE, CLOSED, SCALE
from ballast.core.planner.bound_value import Relaxation, relaxation_of, value
from ballast.core.planner.linear import ANSWERED, program, solve
from ballast.core.planner.problem import SHARE, Problem

PAIRS: Final = 120_000
"""Partition-broker pairs up to which one linear program is solved for the whole cluster."""
WHOLE: Final = "linear program over all bands, with racks"
DISK_ALONE: Final = "disk alone"
FILLING: Final = "disk alone, what brokers lack of it"
BY_BROKER: Final = "linear programs over all bands, each broker by itself"
ASCENT: Final = "prices on all bands, by steps uphill"
LIMIT: Final = highspy.HighsModelStatus.kIterationLimit
WORK: Final = 80_000_000
"""Rows times simplex steps that one bound may take: some CPU seconds."""
ROUNDS: Final = 60
CLOSE: Final = 5e-4
"""Relative gap between the program and the bound at which more rounds are not worth their time."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Bound:
    """A number of bytes below which no plan can stay, and the words for how that is known."""

    bytes: int
    method: str


def bound_of(problem: Problem, reached: Ints, placement: Slots, *, prove: bool, pairs: int = PAIRS) -> Bound:
    """The bound for plans that reach the problem's bands, or only what this plan reached where that is less.

    ``reached`` is the plan's scaled load by broker and resource, ``placement`` its broker by slot.
    """
    relaxed = relaxation_of(problem, reached, placement)
    best, method = crude(relaxed)
    if prove:
        whole = len(problem.size) * len(problem.ids) <= pairs
        hoped = _copied(relaxed.problem, placement)
        rising, proven = prices_by_ascent(relaxed, hoped)
        if proven > best:
            best, method = proven, ASCENT
        proven = value(relaxed, _prices(relaxed, placement, rising) if whole else prices_by_broker(relaxed))
        if proven > best:
            best, method = proven, WHOLE if whole else BY_BROKER
    found = max((best << relaxed.shift) // problem.byte_unit, 0)
    if relaxed.forced_bytes >= found:
        return Bound(relaxed.forced_bytes, "bytes that must leave in any case")
    return Bound(found, method)


def crude(r: Relaxation) -> tuple[int, str]:
    """What disk alone asks for, in scaled bytes: excess must leave and shortage must arrive, whichever is more."""
    if r.disk is None:
        return 0, DISK_ALONE
    load, low, high = r.before[:, r.disk], r.low[:, r.disk], r.high[:, r.disk]
    # What must leave in any case may land below the band, so it counts with the excess but not with the shortage.
    above = int(np.maximum(r.pinned[:, r.disk] - high, 0).sum()) + r.forced
    below = int(np.maximum(low - load, 0).sum())
    return max(above, below) - len(r.problem.home), FILLING if below > above else DISK_ALONE


def _copied(p: Problem, placement: Slots) -> int:
    """Scaled bytes that the plan copies."""
    homes = np.zeros(len(placement), np.bool_)
    row = np.repeat(np.arange(len(p.start) - 1), np.diff(p.start))
    counts = np.diff(p.old_start)
    for j in range(int(counts.max(initial=0))):
        at = np.where(counts > j, p.old[np.minimum(p.old_start[:-1] + j, len(p.old) - 1)], -2)
        homes |= placement == at[row]
    return int(p.size[row[~homes & (placement >= 0)]].sum())


def _prices(r: Relaxation, placement: Slots, start: Ints) -> Ints:
    """The dual prices of the bands, from column generation that begins at the prices ``start``."""
    whole = _Program(r)
    whole.add(_may_stay(r), r.problem.home)
    whole.add(_differing(r.problem, placement), placement)
    best = start
    best_value, cheapest = r.evaluate(best)
    whole.add(np.arange(len(r.problem.size)), cheapest)
    weight = 0.5
    for _ in range(ROUNDS):
        solved = whole.solve()
        if solved is None:
            break
        optimum, own, prices = solved
        # Pricing between the best prices so far and the program's own keeps the search from swinging.
        mixed = np.rint((weight * best / SCALE + (1 - weight) * prices) * SCALE).astype(np.int64)
        worth, cheapest = r.evaluate(mixed)
        if worth > best_value:
            best, best_value = mixed, worth
        if optimum * SHARE - best_value <= CLOSE * max(best_value, 1):
            break
        better = whole.better(cheapest, own, prices)
        if not len(better):
            if weight == 0:
                break
            weight = 0.0
            continue
        whole.add(better, cheapest)
    return best


def _may_stay(r: Relaxation) -> Ints:
    """Partitions that need not leave where they are, or for which the plan found nothing else either."""
    p = r.problem
    row = np.repeat(np.arange(len(p.old_start) - 1), np.diff(p.old_start))
    bound_away = np.bincount(row[r.gone], minlength=len(p.size)) > 0
    return np.flatnonzero(~bound_away | (r.kind == CLOSED) | (r.kind == ANYWHERE))


def _differing(problem: Problem, placement: Slots) -> Ints:
    row = np.repeat(np.arange(len(problem.start) - 1), np.diff(problem.start))
    return np.setdiff1d(row[placement != problem.home], row[placement < 0])


class _Program:
    """The program: one weight for every placement known, one row for every partition and every band."""

    def __init__(self, r: Relaxation) -> None:
        p = r.problem
        self.problem = p
        self.gone = r.gone
        self.partitions = len(p.size)
        self.lead, self.follow, self.size = p.lead / SHARE, p.follow / SHARE, p.size / SHARE
        self.shape = r.low.shape
        lower = np.concatenate((np.ones(self.partitions), (r.low / SHARE).ravel()))
        upper = np.concatenate((np.ones(self.partitions), (r.high / SHARE).ravel()))
        self.solver = program()
        self.steps = 0
        empty = np.zeros(len(lower), np.int32)
        self.solver.addRows(len(lower), lower, upper, 0, empty, np.zeros(0, np.int32), np.zeros(0))

    def add(self, rows: Ints, placement: Slots) -> None:
        """Let these partitions also be placed like this."""
        p = self.problem
        counts = np.diff(p.start)
        for factor in np.unique(counts[rows]).tolist():
            some = rows[counts[rows] == factor]
            members = placement[p.start[some][:, None] + np.arange(factor)]
            whole = (members >= 0).all(axis=1)
            if factor:
                self._add(some[whole], members[whole])

    def _add(self, rows: Ints, members: Slots) -> None:
        width = self.shape[1]
        count, factor = members.shape
        entries = 1 + factor * width
        index = np.empty((count, entries), np.int32)
        figure = np.empty((count, entries))
        index[:, 0], figure[:, 0] = rows, 1.0
        for j in range(factor):
            run = slice(1 + j * width, 1 + (j + 1) * width)
            index[:, run] = self.partitions + members[:, j][:, None] * width + np.arange(width)
            figure[:, run] = self.lead[rows] if j == 0 else self.follow[rows]
        starts = np.arange(count, dtype=np.int32) * entries
        free = np.full(count, highspy.kHighsInf)
        cost = self._cost(rows, members)
        self.solver.addCols(count, cost, np.zeros(count), free, count * entries, starts, index.ravel(), figure.ravel())

    def _cost(self, rows: Ints, members: Slots) -> Floats:
        p = self.problem
        copies = np.full(len(rows), members.shape[1], np.int64)
        counts = p.old_start[rows + 1] - p.old_start[rows]
        for i in range(int(counts.max()) if len(rows) else 0):
            has = counts > i
            at = np.minimum(p.old_start[rows] + i, len(p.old) - 1)
            home = np.where(has & ~self.gone[at], p.old[at], -2)
            copies -= (members == home[:, None]).any(axis=1)
        return self.size[rows] * copies

    def solve(self) -> tuple[float, Floats, Floats] | None:
        """The optimum so far, the price of each partition and the prices of the bands (positive at the upper end).

        None once the work that all rounds may take is done.
        """
        left = WORK // self.solver.getNumRow() - self.steps
        if left <= 0:
            return None
        self.solver.setOptionValue("simplex_iteration_limit", left)
        if solve(self.solver, "the bound", ends=ANSWERED | {LIMIT}) == LIMIT:
            return None
        self.steps += int(self.solver.getInfo().simplex_iteration_count)
        dual = np.array(self.solver.getSolution().row_dual)
        optimum = float(self.solver.getInfo().objective_function_value)
        return optimum, dual[: self.partitions], -dual[self.partitions :].reshape(self.shape)

    def better(self, placement: Slots, own: Floats, prices: Floats) -> Ints:
        """Partitions whose new placement undercuts the price that the program gives them."""
        p = self.problem
        counts = np.diff(p.start)
        out = []
        for factor in np.unique(counts[counts > 0]).tolist():
            rows = np.flatnonzero(counts == factor)
            members = placement[p.start[rows][:, None] + np.arange(factor)]
            reduced = self._cost(rows, members) - own[rows]
            for j in range(factor):
                figure = self.lead if j == 0 else self.follow
                reduced += (figure[rows] * prices[members[:, j]]).sum(axis=1)
            out.append(rows[(reduced < -1e-9) & (members >= 0).all(axis=1)])
        return np.sort(np.concatenate(out)) if out else np.zeros(0, np.int64)

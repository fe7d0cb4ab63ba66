"""The linear program over whole placements, and the generation of its columns.

One weight for every placement known of a partition, one row for every partition and every band.  It starts from few
placements and is given the cheapest of each partition at its own prices until none is cheaper, or its work is done.
"""

from __future__ import annotations

from typing import Final

import highspy
import numpy as np
import numpy.typing as npt

from ballast.core.planner.bound.kernels import ANYWHERE, CLOSED, SCALE
from ballast.core.planner.bound.listed import Listed
from ballast.core.planner.bound.value import Relaxation
from ballast.core.planner.linear import ANSWERED, program, solve
from ballast.core.planner.problem.problem import SHARE, Problem

LIMIT: Final = highspy.HighsModelStatus.kIterationLimit
NO_MIX: Final = highspy.HighsModelStatus.kInfeasible
WORK: Final = 80_000_000
"""Rows times simplex steps that one program may take: some CPU seconds."""
ROUNDS: Final = 60
CLOSE: Final = 5e-4
"""Relative gap between the program and the bound at which more rounds are not worth their time."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


def generate(whole: Program, r: Relaxation, placement: Slots, start: Ints) -> tuple[Ints, bool]:
    """Give the program columns, at first those of home, of a plan and of the prices ``start``.

    Returns the best prices found, and whether the program has a solution at them.
    """
    own = np.array([one.row for one in r.listed], np.int64)
    whole.add(np.setdiff1d(_may_stay(r), own), r.problem.home)
    whole.add(np.union1d(_differing(r.problem, placement), own), placement)
    whole.add(np.arange(len(r.problem.size)), r.evaluate(start)[1])
    return raise_prices(whole, r, start)


def raise_prices(whole: Program, r: Relaxation, start: Ints, *, enough: int | None = None) -> tuple[Ints, bool]:
    """Better prices than ``start``, until the program's are no better, or the bound at them is ``enough``; has it a solution?"""
    has_solution = False
    best, best_value = start, r.evaluate(start)[0]
    weight = 0.5
    for _ in range(ROUNDS):
        if enough is not None and best_value >= enough:
            break
        solved = whole.solve()
        if solved is None:
            # Columns are only added: what had a solution has one still, and only the work for a better one is spent.
            break
        has_solution = True
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
    return best, has_solution


def _may_stay(r: Relaxation) -> Ints:
    """Partitions that need not leave where they are, or for which the plan found nothing else either."""
    p = r.problem
    row = np.repeat(np.arange(len(p.old_start) - 1), np.diff(p.old_start))
    bound_away = np.bincount(row[r.gone], minlength=len(p.size)) > 0
    return np.flatnonzero(~bound_away | (r.kind == CLOSED) | (r.kind == ANYWHERE))


def _differing(problem: Problem, placement: Slots) -> Ints:
    row = np.repeat(np.arange(len(problem.start) - 1), np.diff(problem.start))
    return np.setdiff1d(row[placement != problem.home], row[placement < 0])


class Program:
    """The program: one weight for every placement known, one row for every partition and every band."""

    def __init__(
        self, r: Relaxation, *, excess: float | None = None, room: Floats | None = None, work: int | None = None
    ) -> None:
        """With a price of ``excess`` bands may be exceeded; ``room``, in shares, is the most that each broker receives."""
        p = r.problem
        self.excess = excess
        self.work = WORK if work is None else work
        self.placements: list[tuple[Ints, Slots]] = []
        self.problem = p
        self.gone = r.gone
        self.partitions = len(p.size)
        self.lead, self.follow, self.size = p.lead / SHARE, p.follow / SHARE, p.size / SHARE
        self.shape = r.low.shape
        lower = np.concatenate((np.ones(self.partitions), (r.low / SHARE).ravel()))
        upper = np.concatenate((np.ones(self.partitions), (r.high / SHARE).ravel()))
        self.room = room
        if room is not None:
            lower = np.concatenate((lower, np.full(len(room), -highspy.kHighsInf)))
            upper = np.concatenate((upper, room))
        self.solver = program()
        self.steps = 0
        self.weights: Floats = np.zeros(0)
        """Of the placements known when the program had its last solution."""
        empty = np.zeros(len(lower), np.int32)
        self.solver.addRows(len(lower), lower, upper, 0, empty, np.zeros(0, np.int32), np.zeros(0))
        if excess is not None:
            self._may_exceed(excess)

    def _may_exceed(self, price: float) -> None:
        """Let every band be exceeded at both ends, at this price a share."""
        bands = self.shape[0] * self.shape[1]
        row = np.arange(self.partitions, self.partitions + bands, dtype=np.int32)
        starts, free = np.arange(bands, dtype=np.int32), np.full(bands, highspy.kHighsInf)
        for sign in (-1.0, 1.0):
            cost = np.full(bands, price)
            self.solver.addCols(bands, cost, np.zeros(bands), free, bands, starts, row, np.full(bands, sign))

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
        self.placements.append((rows, members))
        entries = 1 + factor * width + (0 if self.room is None else factor)
        index = np.empty((count, entries), np.int32)
        figure = np.empty((count, entries))
        index[:, 0], figure[:, 0] = rows, 1.0
        for j in range(factor):
            run = slice(1 + j * width, 1 + (j + 1) * width)
            index[:, run] = self.partitions + members[:, j][:, None] * width + np.arange(width)
            figure[:, run] = self.lead[rows] if j == 0 else self.follow[rows]
        arrives = self._arrives(rows, members)
        if self.room is not None:
            index[:, -factor:] = self.partitions + self.shape[0] * width + members
            figure[:, -factor:] = self.size[rows][:, None] * arrives
        starts = np.arange(count, dtype=np.int32) * entries
        free = np.full(count, highspy.kHighsInf)
        cost = self.size[rows] * arrives.sum(axis=1)
        self.solver.addCols(count, cost, np.zeros(count), free, count * entries, starts, index.ravel(), figure.ravel())

    def _cost(self, rows: Ints, members: Slots) -> Floats:
        return np.asarray(self.size[rows] * self._arrives(rows, members).sum(axis=1))

    def _arrives(self, rows: Ints, members: Slots) -> Flags:
        """By partition and place: is it a copy?"""
        p = self.problem
        out = np.ones(members.shape, np.bool_)
        counts = p.old_start[rows + 1] - p.old_start[rows]
        for i in range(int(counts.max()) if len(rows) else 0):
            has = counts > i
            at = np.minimum(p.old_start[rows] + i, len(p.old) - 1)
            home = np.where(has & ~self.gone[at], p.old[at], -2)
            out &= members != home[:, None]
        return out

    def solve(self) -> tuple[float, Floats, Floats] | None:
        """The optimum so far, the price of each partition and the prices of the bands (positive at the upper end).

        None once the work that all rounds may take is done, or where no mix of the placements known is within all bands.
        """
        left = self.work // self.solver.getNumRow() - self.steps
        if left <= 0:
            return None
        self.solver.setOptionValue("simplex_iteration_limit", left)
        end = solve(self.solver, "the bound", ends=ANSWERED | {LIMIT, NO_MIX})
        self.steps += int(self.solver.getInfo().simplex_iteration_count)
        if end not in ANSWERED:
            return None
        self.keep_weights()
        dual = np.array(self.solver.getSolution().row_dual)
        optimum = float(self.solver.getInfo().objective_function_value)
        return (
            optimum,
            dual[: self.partitions],
            -dual[self.partitions :][: self.shape[0] * self.shape[1]].reshape(self.shape),
        )

    @property
    def spent(self) -> bool:
        """Is all its work done?"""
        return self.steps >= self.work // int(self.solver.getNumRow())

    def take(self, other: Program) -> None:
        """Know what another program knows of the same partitions."""
        for rows, members in tuple(other.placements):
            self._add(rows, members)

    def restrict(self, listed: tuple[Listed, ...]) -> None:
        """Let the partitions listed be placed as it is listed alone, all others as they like."""
        wanted = {one.row: set(map(tuple, one.members.tolist())) for one in listed}
        count = self.solver.getNumCol() - self._slack
        most = np.full(count, highspy.kHighsInf)
        at = 0
        for rows, members in self.placements:
            for i in np.flatnonzero(np.isin(rows, list(wanted))).tolist():
                if tuple(members[i].tolist()) not in wanted[int(rows[i])]:
                    most[at + i] = 0
            at += len(rows)
        index = np.arange(self._slack, self._slack + count, dtype=np.int32)
        self.solver.changeColsBounds(count, index, np.zeros(count), most)

    def replica_parts(self) -> Floats:
        """Partition by broker: the part of a replica that the last solution puts there."""
        weight = np.array(self.solver.getSolution().col_value)[self._slack :]
        out = np.zeros((self.partitions, self.shape[0]))
        at = 0
        for rows, members in self.placements:
            for j in range(members.shape[1]):
                np.add.at(out, (rows, members[:, j]), weight[at : at + len(rows)])
            at += len(rows)
        return out

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

    def make_whole(self, excess: float, *, split_only: bool, weight: float) -> None:
        """Let each partition have one placement alone, at this price of excess.

        With ``split_only`` partitions with a placement of at least this ``weight`` keep it.
        """
        slack = self._slack
        count = self.solver.getNumCol() - slack
        values = np.zeros(count)
        values[: len(self.weights)] = self.weights
        index = np.arange(slack, slack + count, dtype=np.int32)
        self.solver.changeColsIntegrality(count, index, np.full(count, highspy.HighsVarType.kInteger))
        if split_only:
            kept = index[values >= weight]
            self.solver.changeColsBounds(len(kept), kept, np.ones(len(kept)), np.ones(len(kept)))
        self.solver.changeColsCost(slack, np.arange(slack, dtype=np.int32), np.full(slack, excess))
        self.solver.setOptionValue("simplex_iteration_limit", highspy.kHighsIInf)

    def keep_weights(self) -> None:
        """Remember the solution: later columns and a run that is broken off leave none to ask for."""
        self.weights = np.array(self.solver.getSolution().col_value)[self._slack :]

    def has_answer(self) -> bool:
        """Is there a solution, the best or not?"""
        found: bool = self.solver.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        return found

    @property
    def _slack(self) -> int:
        """Columns before the placements."""
        return 0 if self.excess is None else 2 * self.shape[0] * self.shape[1]

    def heaviest(self) -> list[tuple[int, list[int]]]:
        """Of each partition the placement that weighs most, in the order of their certainty."""
        weight = self.weights.tolist()
        at = 0
        best: dict[int, tuple[float, list[int]]] = {}
        for rows, members in self.placements:
            for row, who in zip(rows.tolist(), members.tolist(), strict=True):
                if at < len(weight) and weight[at] > best.get(row, (0.0, []))[0]:
                    best[row] = weight[at], who
                at += 1
        ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
        return [(row, who) for row, (_, who) in ranked]

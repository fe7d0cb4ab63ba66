"""Leaders where less traffic crosses racks: a choice among the replicas of each partition, by an integer program.

No replica moves.  Ranges that are met stay met, and none that is missed is missed by more: the program has a row for each
broker and each resource that leaders load more than followers.  A change of leader costs ``least`` bytes per second, so that
a partition changes its leader only for more than that; and a plan on the result finds nothing, since whatever it could still
gain beyond its own changes, this one would have gained.  That holds as far as the program is solved: it ends within ``GAP`` of
the best there is, and less than ``WORTH``, which is more, is no reason to change anything.
"""

from __future__ import annotations

from typing import Any, Final

import highspy
import numpy as np
import numpy.typing as npt

from ballast.core.cluster import Flags, Ints
from ballast.core.planner.linear import ANSWERED, program, solve
from ballast.core.planner.problem.problem import FREE, Problem
from ballast.core.planner.search.world import World

GAP: Final = 5e-4
"""How far the program may end from the best, as a part of all traffic."""
WORTH: Final = 1e-3
"""The part of all traffic that a plan must save at least, beyond what its changes cost."""
COLUMNS: Final = 20_000
"""Changes of leaders up to which one program takes them all; beyond, those that save most, and as many to make room for them."""
ROUNDS: Final = 12
"""Programs that one plan solves where one does not hold them all, each on the result of the last."""
NODES: Final = 200
MARGINS: Final = (1e-6, 1e-4)
"""Part of an average share by which the program's ranges are narrower, since its figures are rounded; the next where that was too little."""
ENDS: Final = ANSWERED | {highspy.HighsModelStatus.kSolutionLimit}

Floats = npt.NDArray[np.float64]


def lead_cheaply(world: World, asked: Problem, cost: Floats, *, least: int, total: float) -> bool:
    """Change leaders in place; were any changed?

    ``cost`` is by slot what crosses racks if that replica leads, ``total`` all traffic, in bytes per second.
    """
    cost, changed = cost.copy(), False
    for _ in range(ROUNDS):
        worth = cost + least * (world.cur != _old_first(world.problem)[world.row])
        gain = worth[world.problem.start[world.row]] - worth
        slots, every = _candidates(world, gain)
        if not (gain[slots] > 0).any():
            break
        for margin in MARGINS:
            picked, proven = _solve(world, asked, slots, gain[slots], GAP * total, margin)
            chosen = slots[picked]
            if gain[chosen].sum() <= WORTH * total:
                return changed
            if _lead(world, asked, chosen):
                break
        else:
            return changed
        first, changed = world.problem.start[world.row[chosen]], True
        cost[first], cost[chosen] = cost[chosen], cost[first]
        if every and proven:
            break
    return changed


def _lead(world: World, asked: Problem, chosen: Ints) -> bool:
    """Let these replicas lead; not done where the program's figures, which are rounded, would break a range."""
    before, cur = world.save(), world.cur.copy()
    low, high = _limits(world, asked)
    first = world.problem.start[world.row[chosen]]
    cur[first], cur[chosen] = world.cur[chosen], world.cur[first]
    world.place(cur)
    if bool(((world.load > high) | (world.load < low)).any()):
        world.restore(before)
        return False
    return True


def _old_first(p: Problem) -> Ints:
    counts = np.diff(p.old_start)
    return np.where(counts > 0, p.old[np.minimum(p.old_start[:-1], max(len(p.old) - 1, 0))], -1)


def _candidates(world: World, gain: Floats) -> tuple[Ints, bool]:
    """Slots whose replica may lead instead of the one that does, where that one may step down; are they all?

    Where there are too many, those that save most, and of the others those that cost least.
    """
    p, row = world.problem, world.row
    s, c = p.scope, p.scope.classes
    whole = np.ones(len(p.size), np.bool_)
    whole[row[world.cur < 0]] = False
    first = world.cur[p.start[row]]
    may = s.open_rows[row] & whole[row] & s.gives[first] & (world.cur != first)
    may &= s.leads[world.cur] & ~c.unled[c.of[row], world.cur]
    slots = np.flatnonzero(may)
    slots = slots[np.argsort(-gain[slots], kind="stable")]
    saving = int((gain[slots] > 0).sum())
    kept = min(saving, max(COLUMNS // 2, COLUMNS - (len(slots) - saving)))
    few = np.concatenate((slots[:kept], slots[saving : saving + COLUMNS - kept]))
    return np.sort(few), len(few) == len(slots)


def _limits(world: World, asked: Problem) -> tuple[Ints, Ints]:
    """What each broker must not pass: its ranges, and what it carries where that is outside them."""
    return np.minimum(asked.low, world.load), np.maximum(asked.high, world.load)


def _solve(world: World, asked: Problem, slots: Ints, gain: Floats, gap: float, margin: float) -> tuple[Flags, bool]:
    """Which of these changes to make, and whether that is proven to be within the gap."""
    p = world.problem
    shifting = np.flatnonzero((p.lead != p.follow).any(axis=0))
    low, high = (a[:, shifting] for a in _limits(world, asked))
    load, brokers, width = world.load[:, shifting], len(p.ids), len(shifting)
    scale = float(asked.average)
    # Whole things are not rounded, and a count may be exactly at the end of its range.
    counted = np.array([p.resources[k].counted for k in shifting.tolist()], np.bool_)
    narrower = np.where(counted, 0, int(margin * asked.average))
    least = np.minimum(low - load + narrower, 0) / scale
    most = np.where(high >= FREE, highspy.kHighsInf, np.maximum(high - load - narrower, 0) / scale)
    row = world.row[slots]
    rows, dense = np.unique(row, return_inverse=True)
    lower = np.concatenate((least.ravel(), np.zeros(len(rows))))
    upper = np.concatenate((most.ravel(), np.ones(len(rows))))
    solver = program(mip_abs_gap=max(gap, 1e-6), mip_rel_gap=0.0, mip_max_nodes=NODES, presolve="off")
    solver.addRows(len(lower), lower, upper, 0, np.zeros(len(lower), np.int32), np.zeros(0, np.int32), np.zeros(0))
    moved = (p.lead - p.follow)[row][:, shifting] / scale
    index = np.empty((len(slots), 2 * width + 1), np.int32)
    figure = np.ones((len(slots), 2 * width + 1))
    for at, broker, sign in ((0, world.cur[p.start[row]], -1.0), (width, world.cur[slots], 1.0)):
        index[:, at : at + width] = broker[:, None] * width + np.arange(width)
        figure[:, at : at + width] = sign * moved
    index[:, -1] = brokers * width + dense
    return _whole(solver, index, figure, gain)


def _whole(solver: Any, index: npt.NDArray[np.int32], figure: Floats, gain: Floats) -> tuple[Flags, bool]:
    count, entries = index.shape
    starts = np.arange(count, dtype=np.int32) * entries
    solver.addCols(count, -gain, np.zeros(count), np.ones(count), index.size, starts, index.ravel(), figure.ravel())
    columns = np.arange(count, dtype=np.int32)
    solver.changeColsIntegrality(count, columns, np.full(count, highspy.HighsVarType.kInteger))
    # Nothing changed is a solution: whatever ends the program, there is one.
    nothing = highspy.HighsSolution()
    nothing.col_value = [0.0] * count
    solver.setSolution(nothing)
    proven = solve(solver, "leaders by racks", ends=ENDS) in ANSWERED
    return np.array(solver.getSolution().col_value) > 0.5, proven

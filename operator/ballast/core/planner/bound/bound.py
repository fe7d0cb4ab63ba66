"""The least bytes that any plan must copy: a lower bound, and how it was found.

The bound is the value of a Lagrangian: every band gets a price, every partition then places itself where that is
cheapest, and what this costs, less what the bands are worth, no plan can undercut.  ``value`` computes that value
in exact integers for *any* prices, so a bound is right however its prices were found; this module only looks for good
ones.  They come from the dual of a linear program (HiGHS) over whole placements: it starts from the cluster before and
from the plan, and is given the cheapest placement of each partition at its own prices until none is cheaper; where large
partitions keep it far below the plan, ``branch`` divides their placements into cases.  Where that program would be too
large, ``prices_by_broker`` finds them broker by broker.

Every step is deterministic (simplex on one thread, a limit on iterations instead of time).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import highspy
import numpy as np
import numpy.typing as npt

from ballast.core.planner import linear
from ballast.core.planner.bound.ascent import prices_by_ascent
from ballast.core.planner.bound.branch import NEAR, branch
from ballast.core.planner.bound.kernels import SCALE
from ballast.core.planner.bound.listed import list_large_partitions
from ballast.core.planner.bound.program import Program, generate
from ballast.core.planner.bound.value import Relaxation, relaxation_of, value
from ballast.core.planner.problem.problem import SHARE, Problem

PAIRS: Final = 120_000
"""Partition-broker pairs up to which one linear program is solved for the whole cluster."""
WHOLE: Final = "linear program over all bands, with racks"
BRANCHED: Final = "linear programs over all bands, with racks and large partitions whole"
DISK_ALONE: Final = "disk alone"
FILLING: Final = "disk alone, what brokers lack of it"
BY_BROKER: Final = "linear programs over all bands, each broker by itself"
ASCENT: Final = "prices on all bands, by gradient ascent"
DEAREST: Final = 8.0
"""No price is higher, in bytes by byte: prices are multiplied with loads in 64 bits."""

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
        hoped = count_copied(relaxed.problem, placement)
        if whole:
            relaxed.listed = list_large_partitions(relaxed.problem, relaxed.high, relaxed.kind, relaxed.gone)
        rising, proven = prices_by_ascent(relaxed, hoped)
        if proven > best:
            best, method = proven, ASCENT
        program = Program(relaxed) if whole else None
        prices = generate(program, relaxed, placement, rising)[0] if program else prices_by_broker(relaxed)
        proven = value(relaxed, prices)
        if proven > best:
            best, method = proven, WHOLE if whole else BY_BROKER
        if program and best * NEAR < hoped:
            proven = branch(relaxed, program, prices, hoped)
            if proven > best:
                best, method = proven, BRANCHED
    found = max((best << relaxed.shift) // problem.byte_unit, 0)
    if relaxed.forced_bytes >= found:
        return Bound(relaxed.forced_bytes, "bytes that must leave in any case")
    return Bound(found, method)


def prices_by_broker(r: Relaxation) -> Ints:
    """B x K: the price of every upper limit that a broker exceeds however leadership is handed round.

    A broker above a band must lose replicas until it is within.  Leadership it can give away for nothing, so what counts is what its
    replicas weigh as followers; the cheapest that repairs all its bands together is a covering problem with one row for each resource.
    The duals of its linear program price the broker's bands; a broker that is above none has no price.

    What a broker may lose is thus looked at with all its bands, where it goes with none: the bound is that of disk alone or better
    wherever more is too much than too little, and of no use where new brokers are to be filled.
    """
    p, s = r.problem, r.problem.scope
    row = np.repeat(np.arange(len(p.old_start) - 1), np.diff(p.old_start))
    order = np.argsort(p.old, kind="stable")
    runs = np.searchsorted(p.old[order], np.arange(len(p.ids) + 1)).tolist()
    prices = np.zeros(r.low.shape, np.int64)
    for b in np.flatnonzero((r.before > r.high).any(axis=1) & ~s.leave).tolist():
        held = row[order[runs[b] : runs[b + 1]]]
        weight = p.follow[held]
        excess = weight.sum(axis=0) - r.high[b]
        short = np.flatnonzero(excess > 0)
        may_go = s.open_rows[held]
        if len(short):
            found = _duals(p.size[held[may_go]] / SHARE, weight[may_go][:, short] / SHARE, excess[short] / SHARE)
            prices[b, short] = np.rint(np.clip(found, 0, DEAREST) * SCALE).astype(np.int64)
    return prices


def _duals(size: Floats, weight: Floats, excess: Floats) -> Floats:
    """The prices at which losing ``excess`` costs the least bytes; zero where what may go is not enough."""
    items, rows = weight.shape
    solver = linear.program(presolve="off")
    none = np.zeros(0, np.int32)
    solver.addRows(rows, excess, np.full(rows, highspy.kHighsInf), 0, np.zeros(rows, np.int32), none, np.zeros(0))
    starts = np.arange(items, dtype=np.int32) * rows
    index = np.tile(np.arange(rows, dtype=np.int32), items)
    solver.addCols(items, size, np.zeros(items), np.ones(items), items * rows, starts, index, weight.ravel())
    end = linear.solve(
        solver, "a broker's part of the bound", ends=linear.ANSWERED | {highspy.HighsModelStatus.kInfeasible}
    )
    if end == highspy.HighsModelStatus.kInfeasible:
        return np.zeros(rows)
    return np.array(solver.getSolution().row_dual)


def crude(r: Relaxation) -> tuple[int, str]:
    """What disk alone asks for, in scaled bytes: excess must leave and shortage must arrive, whichever is more."""
    if r.disk is None:
        return 0, DISK_ALONE
    load, low, high = r.before[:, r.disk], r.low[:, r.disk], r.high[:, r.disk]
    # What must leave in any case may land below the band, so it counts with the excess but not with the shortage.
    above = int(np.maximum(r.pinned[:, r.disk] - high, 0).sum()) + r.forced
    below = int(np.maximum(low - load, 0).sum())
    return max(above, below) - len(r.problem.home), FILLING if below > above else DISK_ALONE


def count_copied(p: Problem, placement: Slots) -> int:
    """Scaled bytes that the plan copies."""
    homes = np.zeros(len(placement), np.bool_)
    row = np.repeat(np.arange(len(p.start) - 1), np.diff(p.start))
    counts = np.diff(p.old_start)
    for j in range(int(counts.max(initial=0))):
        at = np.where(counts > j, p.old[np.minimum(p.old_start[:-1] + j, len(p.old) - 1)], -2)
        homes |= placement == at[row]
    return int(p.size[row[~homes & (placement >= 0)]].sum())

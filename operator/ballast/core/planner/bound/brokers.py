"""Prices for the bound on clusters too large for one linear program: a small program for each broker by itself.

A broker above a band must lose replicas until it is within.  Leadership it can give away for nothing, so what counts is
what its replicas weigh as followers; the cheapest that repairs all its bands together is a covering problem with one row
for each resource.  The duals of its linear program price the broker's bands; a broker that is above none has no price.

What a broker may lose is thus looked at with all its bands, where it goes with none: the bound is that of disk alone or
better wherever more is too much than too little, and of no use where new brokers are to be filled.
"""

from __future__ import annotations

from typing import Final

import highspy
import numpy as np
import numpy.typing as npt

from ballast.core.planner.bound.kernels import SCALE
from ballast.core.planner.bound.value import Relaxation
from ballast.core.planner.linear import ANSWERED, program, solve
from ballast.core.planner.problem.problem import SHARE

DEAREST: Final = 8.0
"""No price is higher, in bytes by byte: prices are multiplied with loads in 64 bits."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def prices_by_broker(r: Relaxation) -> Ints:
    """B x K: the price of every upper limit that a broker exceeds however leadership is handed round."""
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
    solver = program(presolve="off")
    none = np.zeros(0, np.int32)
    solver.addRows(rows, excess, np.full(rows, highspy.kHighsInf), 0, np.zeros(rows, np.int32), none, np.zeros(0))
    starts = np.arange(items, dtype=np.int32) * rows
    index = np.tile(np.arange(rows, dtype=np.int32), items)
    solver.addCols(items, size, np.zeros(items), np.ones(items), items * rows, starts, index, weight.ravel())
    end = solve(solver, "a broker's part of the bound", ends=ANSWERED | {highspy.HighsModelStatus.kInfeasible})
    if end == highspy.HighsModelStatus.kInfeasible:
        return np.zeros(rows)
    return np.array(solver.getSolution().row_dual)

"""A higher bound where large partitions decide: their placements are divided into cases, and the least of all cases is the bound.

A linear program splits a partition over brokers.  Where partitions are as large as what a broker may carry, that is far below what any
plan can do.  So a replica of one of them is once on a broker and once not; each case has prices of its own, and its bound is as exact as
any.  The lowest case is divided on, until the bound is near the plan or the work is done, which is counted and never timed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.planner.bound.listed import Listed, list_placements, listable
from ballast.core.planner.bound.program import Program, raise_prices
from ballast.core.planner.bound.value import Relaxation

CASES: Final = 30
"""Cases that are looked at."""
WORK: Final = 40_000_000
"""Rows times simplex steps of all cases together: two or three CPU seconds."""
EXCESS: Final = 50.0
"""What a share of excess costs in the program: a case that is impossible is only dear."""
NEAR: Final = 1.05
"""A plan with at most so many times the bytes of the bound is not worth more work."""
WHOLE: Final = 1e-3
"""Shares of bytes by which a replica must be split for its partition to be worth dividing."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(order=True)
class _Case:
    """Some placements of some partitions, and what is known of it."""

    value: int
    number: int
    relaxation: Relaxation = field(compare=False)
    prices: Ints = field(compare=False)
    held: Floats = field(compare=False)
    """Partition by broker: the part of a replica that the program put there."""


def branch(r: Relaxation, known: Program, prices: Ints, hoped: int) -> int:
    """The bound in scaled bytes, where a plan copies ``hoped``; ``known`` has the placements found so far."""
    program = Program(r, excess=EXCESS, work=WORK)
    program.take(known)
    cases = [_look(program, r, prices, 0, hoped)]
    number = 0
    while cases[0].value * NEAR < hoped and number < CASES and not program.spent:
        case = cases[0]
        parted = _part(case)
        if parted is None:
            break
        heappop(cases)
        rest = tuple(one for one in case.relaxation.listed if one.row != parted[0].row)
        for some in parted:
            number += 1
            relaxation = replace(case.relaxation, listed=(*rest, some))
            found = _look(program, relaxation, case.prices, number, hoped)
            # A case is part of the one that it comes from.
            found.value = max(found.value, case.value)
            heappush(cases, found)
    return cases[0].value


def _look(program: Program, r: Relaxation, prices: Ints, number: int, enough: int) -> _Case:
    """One case at the best prices that its program finds."""
    program.restrict(r.listed)
    program.add(np.array([one.row for one in r.listed], np.int64), r.evaluate(prices)[1])
    found, _ = raise_prices(program, r, prices, enough=enough)
    return _Case(r.evaluate(found)[0], number, r, found, program.replica_parts())


def _part(case: _Case) -> tuple[Listed, ...] | None:
    """The partition and broker where most bytes are split, as two cases; None where none is left."""
    r, p = case.relaxation, case.relaxation.problem
    split = np.minimum(case.held, 1 - case.held) * (p.size / max(p.average, 1))[:, None]
    by_row = np.where(listable(r.kind), split.max(axis=1), 0)
    known = {one.row: one for one in r.listed}
    for row in np.argsort(-by_row, kind="stable").tolist():
        if by_row[row] < WHOLE:
            return None
        one = known.get(row) or list_placements(p, row, r.high, r.kind, r.gone)
        if one is None:
            continue
        broker = int(np.argmax(split[row]))
        both = (one.holding(broker, held=True), one.holding(broker, held=False))
        parts = tuple(part for part in both if part is not None)
        if len(parts) == len(both):
            return parts
    return None

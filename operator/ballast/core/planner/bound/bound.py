"""The least bytes that any plan must copy: a lower bound, and how it was found.

The bound is the value of a Lagrangian: every band gets a price, every partition then places itself where that is
cheapest, and what this costs, less what the bands are worth, no plan can undercut.  ``value`` computes that value
in exact integers for *any* prices, so a bound is right however its prices were found; this module only looks for good
ones.  They come from the dual of a linear program (HiGHS) over whole placements: it starts from the cluster before and
from the plan, and is given the cheapest placement of each partition at its own prices until none is cheaper; where large
partitions keep it far below the plan, ``branch`` divides their placements into cases.  Where that program would be too
large, ``brokers`` finds prices broker by broker.

Every step is deterministic (simplex on one thread, a limit on iterations instead of time).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.planner.bound.ascent import prices_by_ascent
from ballast.core.planner.bound.branch import NEAR, branch
from ballast.core.planner.bound.brokers import prices_by_broker
from ballast.core.planner.bound.listed import list_large_partitions
from ballast.core.planner.bound.program import Program, generate
from ballast.core.planner.bound.value import Relaxation, relaxation_of, value
from ballast.core.planner.problem.problem import Problem

PAIRS: Final = 120_000
"""Partition-broker pairs up to which one linear program is solved for the whole cluster."""
WHOLE: Final = "linear program over all bands, with racks"
BRANCHED: Final = "linear programs over all bands, with racks and large partitions whole"
DISK_ALONE: Final = "disk alone"
FILLING: Final = "disk alone, what brokers lack of it"
BY_BROKER: Final = "linear programs over all bands, each broker by itself"
ASCENT: Final = "prices on all bands, by gradient ascent"

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

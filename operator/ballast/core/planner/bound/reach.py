"""How near its ranges any plan can bring a cluster, where brokers differ so much that not all ranges can be met.

A linear program over kinds of brokers and kinds of partitions finds the least excess over all ranges together: how much of
which resource must lie where it should not.  Ranges are widened by just that, so that the search pays no bytes for what
cannot be had.  What the program says is an estimate; its prices are a proof wherever ``Relaxation`` finds an excess at
them, since that looks at every partition and every broker by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import highspy
import numpy as np
import numpy.typing as npt

from ballast.core.cluster import Ints
from ballast.core.planner.bound.kernels import SCALE
from ballast.core.planner.bound.value import relaxation_of
from ballast.core.planner.linear import ANSWERED, program, solve
from ballast.core.planner.problem.problem import ALIKE, FREE, Problem, is_uniform
from ballast.core.planner.problem.shares import kinds

KINDS: Final = 48
"""Kinds of partitions: more make a closer estimate, and a larger program."""
WITHIN: Final = 0.9
"""The part of each range that the program uses: the rest is room for partitions that cannot be split."""
NO_PLACE: Final = highspy.HighsModelStatus.kInfeasible
NOTHING: Final = 1e-6
"""An excess, in shares, that is none."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """What can be reached."""

    low: Ints
    high: Ints
    """B x K: the ranges, widened where they cannot be met."""
    proven: float
    """The excess, in shares of an average broker and over all resources, below which no plan can stay."""


def reach_of(problem: Problem) -> Reach | None:
    """The ranges that can be met; None where those asked for can be, or where more than hardware stands in the way."""
    s = problem.scope
    shares = s.shares
    plain = bool(s.open_rows.all()) and not s.classes.any and bool((s.takes & s.leads)[shares].all())
    if not plain or bool((~shares & ~s.leave).any()) or not bool(shares.any()) or not len(problem.home):
        return None
    if is_uniform(problem):
        return None
    kinds = _Kinds.of(problem)
    found = _solve(problem, kinds)
    if found is None:
        return None
    over, under, prices = found
    if float(over.sum() + under.sum()) < NOTHING:
        return None
    proven = _prove(problem, prices)
    low, high = _inner(problem)
    scale = problem.average
    wide = np.where(problem.high < FREE, np.maximum(problem.high, high + np.ceil(over * scale).astype(np.int64)), FREE)
    return Reach(np.maximum(np.minimum(problem.low, low - np.ceil(under * scale).astype(np.int64)), 0), wide, proven)


def _inner(problem: Problem) -> tuple[Ints, Ints]:
    """The inner part of each range; a count keeps its whole neighbours."""
    counted = np.array([r.counted for r in problem.resources])
    share = problem.share * problem.unit
    known = problem.high < FREE
    high = np.where(known & ~counted, share + (problem.high - share) * WITHIN, problem.high)
    low = np.where(known & ~counted & (problem.low > 0), share - (share - problem.low) * WITHIN, problem.low)
    return low.astype(np.int64), high.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """Brokers and partitions, each taken together with those like it."""

    broker: npt.NDArray[np.int64]
    """By broker its kind, -1 for one that takes no part."""
    brokers: npt.NDArray[np.int64]
    """By kind: how many."""
    rack: npt.NDArray[np.int64]
    """By kind of broker, the kind of its rack."""
    racks: npt.NDArray[np.int64]
    """By kind of rack: how many."""
    partition: npt.NDArray[np.int64]
    """By partition its kind."""
    partitions: int

    @classmethod
    def of(cls, problem: Problem) -> _Kinds:
        shares = problem.scope.shares
        figures = np.concatenate((problem.low, np.minimum(problem.high, 4 * problem.average * len(shares))), axis=1)
        coarse = np.rint(figures / (ALIKE * problem.average)).astype(np.int64)
        _, alike = np.unique(coarse, axis=0, return_inverse=True)
        alike = alike.reshape(-1)
        racks: dict[tuple[int, ...], int] = {}
        kind_of_rack = {}
        for rack in np.unique(problem.rack[shares]).tolist():
            members = tuple(sorted(alike[shares & (problem.rack == rack)].tolist()))
            kind_of_rack[rack] = racks.setdefault(members, len(racks))
        kinds: dict[tuple[int, int], int] = {}
        broker = np.full(len(shares), -1, np.int64)
        for b in np.flatnonzero(shares).tolist():
            broker[b] = kinds.setdefault((kind_of_rack[int(problem.rack[b])], int(alike[b])), len(kinds))
        partition = _alike_partitions(problem)
        return cls(
            broker,
            np.bincount(broker[shares], minlength=len(kinds)),
            np.array([rack for rack, _ in kinds], np.int64),
            np.bincount(np.array(list(kind_of_rack.values()), np.int64), minlength=len(racks)),
            partition,
            int(partition.max()) + 1,
        )


def _alike_partitions(problem: Problem) -> npt.NDArray[np.int64]:
    """Kinds of partitions that load brokers in like proportions: the most unlike kind is parted until there are enough."""
    load = np.concatenate((problem.lead, problem.follow), axis=1) / problem.average
    weight = load.sum(axis=1)
    part = load / np.maximum(weight, 1e-300)[:, None]
    factor = np.diff(problem.start)
    kind = kinds(factor, problem.rack_limit, problem.rack_least)[1].astype(np.int64)
    count = int(kind.max()) + 1
    spread = {k: _spread(part, weight, np.flatnonzero(kind == k)) for k in range(count)}
    while count < KINDS:
        widest = max(spread, key=lambda k: (spread[k][0], -k))
        size, column, middle = spread[widest]
        if size <= NOTHING:
            break
        rows = np.flatnonzero(kind == widest)
        kind[rows[part[rows, column] > middle]] = count
        for k in (widest, count):
            spread[k] = _spread(part, weight, np.flatnonzero(kind == k))
        count += 1
    return kind


def _spread(part: Floats, weight: Floats, rows: npt.NDArray[np.int64]) -> tuple[float, int, float]:
    """How unlike these partitions are, in which column most, and its mean."""
    w = weight[rows]
    total = float(w.sum())
    if total <= 0:
        return 0.0, 0, 0.0
    mean = (part[rows] * w[:, None]).sum(axis=0) / total
    away = ((part[rows] - mean) ** 2 * w[:, None]).sum(axis=0)
    column = int(np.argmax(away))
    inside = bool((part[rows, column] > mean[column]).any()) and bool((part[rows, column] <= mean[column]).any())
    return (float(away.sum()) if inside else 0.0), column, float(mean[column])


def _solve(problem: Problem, kinds: _Kinds) -> tuple[Floats, Floats, Floats] | None:
    """B x K: the excess above and below each range, in shares, and the prices; None where replicas have no place."""
    groups, members, width = kinds.partitions, len(kinds.brokers), len(problem.resources)
    count = np.bincount(kinds.partition, minlength=groups)
    lead, follow = (_sums(kinds, figures) / problem.average for figures in (problem.lead, problem.follow))
    factor, limit, fewest = (np.zeros(groups) for _ in range(3))
    factor[kinds.partition], limit[kinds.partition] = np.diff(problem.start), problem.rack_limit
    fewest[kinds.partition] = np.minimum(problem.rack_least, kinds.racks.sum())
    in_rack, at_most = _of_racks(kinds.racks, factor[:, None], limit[:, None], fewest[:, None])
    low, high = _inner(problem)
    first = np.array([int(np.flatnonzero(kinds.broker == a)[0]) for a in range(members)])
    least = low[first] / problem.average * kinds.brokers[:, None]
    most = np.where(high[first] < FREE, high[first] / problem.average * kinds.brokers[:, None], highspy.kHighsInf)
    racks = len(kinds.racks)
    # Rows: leaders and followers of each kind of partition, its part of each kind of rack and of broker, the ranges.
    rack_row, broker_row = 2 * groups, 2 * groups + groups * racks
    range_row = broker_row + groups * members
    free = -highspy.kHighsInf
    lower = np.concatenate(
        (np.ones(groups), np.maximum(factor - 1, 0), in_rack.ravel(), np.full(groups * members, free), least.ravel())
    )
    upper = np.concatenate(
        (
            np.ones(groups),
            np.maximum(factor - 1, 0),
            at_most.ravel(),
            np.tile(kinds.brokers, groups).astype(np.float64),
            most.ravel(),
        )
    )
    lower[:groups][count == 0] = upper[:groups][count == 0] = 0
    solver = program()
    rows = len(lower)
    solver.addRows(rows, lower, upper, 0, np.zeros(rows, np.int32), np.zeros(0, np.int32), np.zeros(0))
    g, a = (axis.ravel() for axis in np.meshgrid(np.arange(groups), np.arange(members), indexing="ij"))
    for place, figures in ((0, lead), (groups, follow)):
        entries = 3 + width
        index = np.empty((len(g), entries), np.int32)
        value = np.ones((len(g), entries))
        index[:, 0], index[:, 1] = place + g, rack_row + g * racks + kinds.rack[a]
        index[:, 2] = broker_row + g * members + a
        index[:, 3:] = range_row + a[:, None] * width + np.arange(width)
        value[:, 3:] = figures[g]
        _add(solver, np.zeros(len(g)), index, value)
    slack = members * width
    for sign in (-1.0, 1.0):
        _add(solver, np.ones(slack), range_row + np.arange(slack)[:, None], np.full((slack, 1), sign))
    # Without brokers enough for every replica there is nothing to reach: what stands in the way is named elsewhere.
    if solve(solver, "what can be reached", ends=ANSWERED | {NO_PLACE}) == NO_PLACE:
        return None
    answer = solver.getSolution()
    columns, duals = np.array(answer.col_value), np.array(answer.row_dual)
    over = columns[2 * len(g) : 2 * len(g) + slack].reshape(members, width) / kinds.brokers[:, None]
    under = columns[2 * len(g) + slack :].reshape(members, width) / kinds.brokers[:, None]
    prices = -duals[range_row:].reshape(members, width)
    part = kinds.broker >= 0
    out = [np.zeros(problem.low.shape) for _ in range(3)]
    for into, of in zip(out, (over, under, prices), strict=True):
        into[part] = of[kinds.broker[part]]
    return out[0], out[1], out[2]


def _of_racks(racks: npt.NDArray[np.int64], factor: Floats, limit: Floats, fewest: Floats) -> tuple[Floats, Floats]:
    """The least and most that the racks of one kind hold of a partition: each rack that must have a replica has one."""

    def most(count: npt.NDArray[np.int64]) -> Floats:
        return np.asarray(np.minimum(limit * count, factor - np.maximum(fewest - count, 0)))

    least = np.where(fewest > 0, factor - most(int(racks.sum()) - racks), -highspy.kHighsInf)
    return least, np.where(fewest > 0, most(racks), limit * racks)


def _sums(kinds: _Kinds, figures: Ints) -> Floats:
    out = np.zeros((kinds.partitions, figures.shape[1]))
    for k in range(figures.shape[1]):
        out[:, k] = np.bincount(kinds.partition, weights=figures[:, k], minlength=kinds.partitions)
    return out


def _add(solver: object, cost: Floats, index: npt.NDArray[np.integer], value: Floats) -> None:
    count, entries = index.shape
    starts = np.arange(count, dtype=np.int32) * entries
    solver.addCols(  # type: ignore[attr-defined]
        count,
        cost,
        np.zeros(count),
        np.full(count, highspy.kHighsInf),
        count * entries,
        starts,
        index.astype(np.int32).ravel(),
        value.ravel(),
    )


def _prove(problem: Problem, prices: Floats) -> float:
    """The excess that is certain, from the prices: each partition where it costs least, and copies for nothing."""
    inside = problem.low
    relaxed = relaxation_of(problem, inside, problem.home)
    relaxed.problem = replace(relaxed.problem, size=np.zeros_like(relaxed.problem.size))
    whole = np.rint(np.clip(prices, -1, 1) * SCALE).astype(np.int64)
    found, _ = relaxed.evaluate(whole)
    return max((found << relaxed.shift) / problem.average, 0.0)

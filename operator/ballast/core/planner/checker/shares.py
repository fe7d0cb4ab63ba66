"""The checker's own fair shares where topics may not be everywhere: by linear programs, level by level.

The search pours until nothing changes and parts racks that carry too much from the others (both in ``problem.shares``); this
finds the same split from its definition: first how full the fullest broker must at least be, then, with those brokers done, how
full the next, and so on; and how high all may stand before some racks are full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import highspy
import numpy as np
import numpy.typing as npt

from ballast.core.cluster import ClusterState, Flags, Ints
from ballast.core.planner.checker.topics import TopicJudge
from ballast.core.planner.goals import Resource
from ballast.core.planner.linear import program, solve

Floats = npt.NDArray[np.float64]

BISECTIONS: Final = 100
"""Halvings that find a level to the last bit."""
FULL: Final = 1e-9
"""Part of a bound by which racks may be below it and are full."""

BINDING: Final = 1e-7
"""A price above this says that a broker cannot be less full."""
DIGITS: Final = 6
"""Decimals of a share that count: what whole numbers are compared with must not hang on the last bit."""


@dataclass(frozen=True, slots=True, eq=False)
class TopicSplit:
    """How much of a resource belongs to topics that may be on the same brokers."""

    load: Floats
    """By group of topics."""
    held: Floats
    """Group x broker: what each has of it now."""
    allowed: Flags
    """Group x broker."""

    @classmethod
    def of(
        cls, state: ClusterState, r: Resource, row: Ints, broker: Ints, figure: Floats, topics: TopicJudge
    ) -> TopicSplit:
        """Grouped by the rules that hold; ``figure`` is what each replica costs, of the partition in ``row`` on ``broker``."""
        number: dict[Any, int] = {}
        example: dict[Any, str] = {}
        group = np.zeros(len(state.topics), np.int64)
        for i, topic in enumerate(state.topics):
            rules = topics.rules[topic.name]
            group[i] = number.setdefault(rules, len(number))
            example.setdefault(rules, topic.name)
        held = np.zeros((len(number), len(state.brokers)))
        np.add.at(held, (group[state.partitions.topic[row]], broker), figure)

        def may(topic: str, broker: int) -> bool:
            return topics.holds(topic, broker) and (not r.leaders_only or topics.leads(topic, broker))

        allowed = [[may(topic, b.id) for b in state.brokers] for topic in example.values()]
        return cls(held.sum(axis=1), held, np.array(allowed, np.bool_))

    def shares(self, weight: Floats, closed: Flags) -> Floats:
        """By broker, by ``weight``; one that is ``closed`` has of no group more than it holds now.

        What has no room where it may be counts on every broker that is not closed.
        """
        active = np.flatnonzero(weight > 0)
        out = np.zeros(len(weight))
        shut, most = closed[active], np.where(closed, self.held, np.inf)[:, active]
        may = self.allowed[:, active].copy()
        may[~may.any(axis=1)] = True
        may[self.load > np.where(may, most, 0.0).sum(axis=1)] |= ~shut
        load = np.minimum(self.load, np.where(may, most, 0.0).sum(axis=1))
        if load.sum() <= 0:
            return out
        scale = len(active) / load.sum()
        width = weight[active] / weight[active].mean()
        height = np.full(len(active), np.nan)
        while bool(np.isnan(height).any()):
            level, binding = _least_level(load * scale, most * scale, may, width, height)
            binding &= np.isnan(height)
            # A broker that is left when nothing binds any more has nothing to carry.
            height[binding if bool(binding.any()) else np.isnan(height)] = level
        out[active] = height * width / scale
        return np.round(out, DIGITS)


def _least_level(amount: Floats, most: Floats, may: Flags, width: Floats, height: Floats) -> tuple[float, Flags]:
    """How full the brokers without a ``height`` must at least get, and who binds; the others keep to theirs."""
    group, broker = np.nonzero(may)
    groups, brokers, entries = len(amount), len(width), len(group)
    done = ~np.isnan(height)
    upper = np.where(done, np.nan_to_num(height) * width, 0.0)
    solver = program(presolve="off")
    none = np.zeros(0, np.int32)
    lower = np.concatenate((amount, np.full(brokers, -highspy.kHighsInf)))
    rows = groups + brokers
    solver.addRows(rows, lower, np.concatenate((amount, upper)), 0, np.zeros(rows, np.int32), none, np.zeros(0))
    index = np.stack((group, groups + broker), axis=1).astype(np.int32).ravel()
    starts = np.arange(entries, dtype=np.int32) * 2
    solver.addCols(
        entries, np.zeros(entries), np.zeros(entries), most[may], len(index), starts, index, np.ones(len(index))
    )
    rising = np.flatnonzero(~done)
    solver.addCol(1.0, 0.0, highspy.kHighsInf, len(rising), (groups + rising).astype(np.int32), -width[rising])
    solve(solver, "the checker's shares")
    answer = solver.getSolution()
    binding = np.abs(np.array(answer.row_dual)[groups:]) > BINDING
    return float(answer.col_value[-1]), binding


def most_on_racks(r: Resource, factor: Ints, limit: Ints, fewest: Ints, racks: int) -> Floats:
    """By k: what k racks can hold of it together, when each holds at most ``limit`` of a partition's replicas.

    Those beyond them must hold one each until ``fewest`` racks hold the partition.
    """
    out = [0.0]
    placed = np.zeros_like(factor)
    for k in range(1, racks + 1):
        more = np.minimum(limit, factor - placed - np.maximum(fewest - k, 0))
        leads = (placed == 0) & (factor > 0)
        out.append(out[-1] + float((leads * r.lead + (more - leads) * r.follow).sum()))
        placed += more
        if not bool(more.any()):
            out += [out[-1]] * (racks + 1 - len(out))
            break
    return np.array(out)


def rise(total: float, weight: Floats, most: Floats, of: Ints, bound: Floats) -> Floats:
    """The level rises everywhere at once; racks that are full together stay behind, and it goes on in the others."""
    out = np.zeros(len(weight))
    open_ = weight > 0
    done = 0
    while bool(open_.any()) and total > bound[done]:
        bounds, left = bound[done:] - bound[done], total - float(bound[done])
        width = np.where(open_, weight, 0.0)
        low, high = 0.0, left / float(weight[open_].min())
        for _ in range(BISECTIONS):
            level = (low + high) / 2
            sums = np.cumsum(_by_rack(width, most, of, level, len(bounds) - 1)[0])
            fits = bool(sums[-1] <= left) and bool((sums <= bounds[1:]).all())
            low, high = (level, high) if fits else (low, level)
        by_rack, order = _by_rack(width, most, of, low, len(bounds) - 1)
        sums = np.cumsum(by_rack)
        out = np.where(open_, np.minimum(weight * low, most), out)
        tight = np.flatnonzero(sums[:-1] >= bounds[1:-1] * (1 - FULL))
        if not len(tight):
            break
        full = order[: int(tight[-1]) + 1]
        open_ = open_ & ~np.isin(of, full)
        done += len(full)
    return out


def _by_rack(
    width: Floats, most: Floats, of: Ints, level: float, racks: int
) -> tuple[Floats, npt.NDArray[np.integer[Any]]]:
    """What so many racks hold at this level, the fullest first, and which they are."""
    total = np.bincount(of, weights=np.minimum(width * level, most))
    order = np.argsort(-total, kind="stable")[:racks]
    return total[order].astype(np.float64), order

"""The assignment while it is being searched, with the sums that the kernels keep up to date."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ballast.core.cluster import Flags, Ints, SmallInts
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.problem import FREE, LOWER, UPPER, Problem
from ballast.core.planner.search.loops.arrays import Arrays

Saved = tuple[SmallInts, Ints, Ints, Ints, Ints]


@dataclass(slots=True, eq=False)
class World:
    """A problem and where its replicas are now."""

    problem: Problem
    cur: SmallInts
    load: Ints
    held: Ints
    """By broker: scaled bytes that it holds at the worst moment, when all has arrived and nothing has left."""
    budget: Ints
    """Scaled bytes and copies that the policy still allows."""
    row: SmallInts
    tally: Ints
    """By topic whose replicas are counted, and by broker: how many it holds; the last column is the most it may hold."""

    @classmethod
    def of(cls, problem: Problem, policy: PlannerPolicy) -> World:
        """Everything at home."""
        cur = problem.home.copy()
        load = _sum_loads(problem, cur)
        old_row = np.repeat(np.arange(len(problem.old_start) - 1), np.diff(problem.old_start))
        held = np.zeros(len(problem.ids), np.int64)
        np.add.at(held, problem.old, problem.size[old_row])
        most_bytes = FREE if policy.max_bytes is None else min(policy.max_bytes * problem.byte_unit, FREE)
        most_moves = FREE if policy.max_replica_moves is None else policy.max_replica_moves
        row = np.repeat(np.arange(len(problem.start) - 1), np.diff(problem.start)).astype(np.int32)
        tally = _count(problem, row, cur)
        return cls(problem, cur, load, held, np.array([most_bytes, most_moves], np.int64), row, tally)

    @property
    def arrays(self) -> Arrays:
        """What every kernel takes; those that change here change there."""
        p = self.problem
        s, c = p.scope, p.scope.classes
        return Arrays(
            start=p.start,
            cur=self.cur,
            row=self.row,
            old_start=p.old_start,
            old=p.old,
            leave=(s.leave | c.expelled).ravel(),
            rack=p.rack,
            rack_limit=p.rack_limit,
            takes=(s.takes & ~c.barred).ravel(),
            leads=(s.leads & ~c.unled).ravel(),
            size=p.size,
            room=p.room,
            held=self.held,
            unlead=(s.unlead | c.must_step_down).ravel(),
            gives=s.gives,
            movable=s.open_rows,
            budget=self.budget,
            masks=c.of * np.int32(len(p.ids)),
            counted=c.counted,
            tally=self.tally,
            hard=p.hard,
            rack_least=p.rack_least,
        )

    @property
    def costs(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Loads and bands, as every kernel takes them after the world."""
        p = self.problem
        return self.load, p.lead, p.follow, p.low, p.high

    @property
    def excess(self) -> int:
        """How far the whole is from its bands."""
        low, high = self.problem.low, self.problem.high
        return int((np.maximum(self.load - high, 0) + np.maximum(low - self.load, 0)).sum())

    @property
    def past_hard(self) -> Ints:
        """B x K: how far each broker is past the ends of ranges that are hard limits."""
        p = self.problem
        over = np.where(p.hard & UPPER, np.maximum(self.load - p.high, 0), 0)
        return np.asarray(over + np.where(p.hard & LOWER, np.maximum(p.low - self.load, 0), 0))

    def must_act(self) -> bool:
        """Is there anything that no band excuses: a replica that must go, is missing or shares a rack, a barred leader?"""
        p, s, c = self.problem, self.problem.scope, self.problem.scope.classes
        if not len(self.cur):
            return False
        mine = s.open_rows[self.row]
        if bool((mine & ((self.cur < 0) | s.leave[self.cur] | c.expelled[c.of[self.row], self.cur])).any()):
            return True
        if s.repair_rules and len(c.most):
            topic = c.counted[self.row]
            slot = np.flatnonzero(mine & (topic >= 0) & (self.cur >= 0) & s.gives[self.cur])
            if bool((self.tally[topic[slot], self.cur[slot]] > c.most[topic[slot]]).any()):
                return True
        filled = np.flatnonzero(np.diff(p.start) > 0)
        first = self.cur[p.start[filled]]
        if bool(((s.unlead[first] | c.must_step_down[c.of[filled], first]) & s.open_rows[filled]).any()):
            return True
        if not s.repair_racks:
            return False
        keys = self.row.astype(np.int64) * (int(p.rack.max()) + 1) + p.rack[self.cur]
        which, count = np.unique(keys[mine], return_counts=True)
        return bool((count > p.rack_limit[which // (int(p.rack.max()) + 1)]).any())

    def away(self) -> Flags:
        """By slot: does its replica sit where the partition had none?"""
        p = self.problem
        home = np.zeros(len(self.row), np.bool_)
        counts = np.diff(p.old_start)
        for j in range(int(counts.max()) if len(counts) else 0):
            has = counts > j
            at = np.where(has, p.old[np.minimum(p.old_start[:-1] + j, len(p.old) - 1)], -2)
            home |= self.cur == at[self.row]
        return ~home & (self.cur >= 0)

    @property
    def copied(self) -> int:
        """Scaled bytes that the present assignment copies."""
        return int(self.problem.size[self.row[self.away()]].sum())

    def place(self, cur: SmallInts) -> None:
        """Be as this placement says, with every sum afresh."""
        p = self.problem
        self.held -= self.arrived_bytes()
        before = self.copied, int(self.away().sum())
        self.cur[...] = cur
        self.load[...] = _sum_loads(p, self.cur)
        self.tally[...] = _count(p, self.row, self.cur)
        self.held += self.arrived_bytes()
        self.budget += (before[0] - self.copied, before[1] - int(self.away().sum()))

    def arrived_bytes(self) -> Ints:
        """By broker the scaled bytes that were copied there."""
        arrived = np.zeros(len(self.held), np.int64)
        away = self.away()
        np.add.at(arrived, self.cur[away], self.problem.size[self.row[away]])
        return arrived

    def save(self) -> Saved:
        """A copy to come back to."""
        return self.cur.copy(), self.load.copy(), self.held.copy(), self.budget.copy(), self.tally.copy()

    def restore(self, saved: Saved) -> None:
        """Be as when ``saved`` was made."""
        # In place: the kernels' tuple of arrays refers to these.
        self.cur[...], self.load[...], self.held[...], self.budget[...], self.tally[...] = saved


def _count(problem: Problem, row: SmallInts, cur: SmallInts) -> Ints:
    """By topic that a rule counts and by broker, the replicas there; the most that the rule allows in the last column."""
    classes = problem.scope.classes
    tally = np.zeros((len(classes.most), len(problem.ids) + 1), np.int64)
    tally[:, -1] = classes.most
    topic = classes.counted[row]
    counts = (topic >= 0) & (cur >= 0)
    np.add.at(tally, (topic[counts], cur[counts]), 1)
    return tally


def _sum_loads(problem: Problem, cur: SmallInts) -> Ints:
    """Scaled loads by broker and resource of the assignment; slots without a broker carry nothing."""
    counts = np.diff(problem.start)
    row = np.repeat(np.arange(len(counts)), counts)
    first = np.zeros(len(row), np.bool_)
    first[problem.start[:-1][counts > 0]] = True
    placed = cur >= 0
    load = np.zeros(problem.low.shape, np.int64)
    for k in range(len(problem.resources)):
        carried = np.where(first, problem.lead[row, k], problem.follow[row, k])
        np.add.at(load[:, k], cur[placed], carried[placed])
    return load

"""A plan that takes less time for the same work: copies are taken from the broker that sends or receives the most.

How long a plan takes is set by its busiest sender or receiver.  What a plan costs and what it repairs is settled before this
begins: no range is left or missed by more, and the bytes grow by a few thousandths at most.  Three changes are tried:

- a copy goes to another broker;
- two copies change their destinations;
- a replica stays at home, and another one of its broker goes where it would have gone, led by somebody less busy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import Flags, Ints, SmallInts
from ballast.core.planner.loads import DISK
from ballast.core.planner.problem import Problem, loads_before
from ballast.core.planner.search.kernels import fits, put
from ballast.core.planner.search.world import World

MORE_BYTES: Final = 0.004
"""Part of a plan's bytes that may come on top for the sake of its time."""
NEAR: Final = 1.02
"""A multiple of the floor at which a broker is not busy."""
BYTES_PRICE: Final = 2
"""Bytes that must leave busy brokers for each byte that is copied in addition."""
DROPPED: Final = 1e-4
"""Part of the floor for which nothing is changed."""
COPIES: Final = 64
"""Copies of one broker that are looked at in one turn, of all sizes."""
MATES: Final = 3000
"""Copies elsewhere that each is offered, and replicas at home."""
LEGAL: Final = 12
"""Changes, the best first, that are tried against all rules."""
TURNS: Final = 1200
"""Brokers looked at before a plan is let be."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Where one slot's replica goes, and perhaps another's in its place."""

    slot: int
    target: int
    other: int = -1
    other_target: int = -1


def shorten(world: World, asked: Problem, sender: SmallInts) -> None:
    """Relieve the busiest brokers in place; ``sender`` is by partition who leads it now, -1 for nobody."""
    copies = np.flatnonzero(world.away())
    if len(copies):
        _Shortening(world, asked, sender, copies).run()


class _Shortening:
    """Who sends and receives how much, in scaled bytes; what does not change between turns."""

    def __init__(self, world: World, asked: Problem, sender: SmallInts, copies: Ints) -> None:
        p = world.problem
        self.world, self.asked, self.sender, self.copies = world, asked, sender, copies
        self.brokers = len(p.ids)
        row = world.row[copies]
        # Receivers first, then senders: one row of figures for both sides of every broker.
        self.work = np.zeros(2 * self.brokers + 1, np.int64)
        np.add.at(self.work, world.cur[copies], p.size[row])
        np.add.at(self.work, self._sends(row), p.size[row])
        self.work[-1] = 0
        self.takers = np.flatnonzero(p.scope.takes)
        self.floor = _floor(world, asked, copies, self.takers)
        self.most = int(self.floor * NEAR)
        self.more = int(min(p.size[row].sum() * MORE_BYTES, world.budget[0]))
        self.order = np.argsort(world.cur, kind="stable")
        self.begins = np.searchsorted(world.cur[self.order], np.arange(self.brokers + 1))

    def run(self) -> None:
        """The busiest first, until none is busy or none can be relieved."""
        stuck = np.zeros(2 * self.brokers, np.bool_)
        for _ in range(TURNS):
            work = np.where(stuck, 0, self.work[:-1])
            busiest = int(np.argmax(work))
            if work[busiest] <= self.most:
                return
            if self._relieve(busiest):
                stuck[:] = False
            stuck[busiest] = self.work[busiest] > self.most

    def _sends(self, row: Ints | SmallInts) -> npt.NDArray[np.int64]:
        """Where in ``work`` the senders of these partitions are; the last, which is not counted, where nobody leads."""
        sender = self.sender[row].astype(np.int64)
        return np.where(sender >= 0, sender + self.brokers, 2 * self.brokers)

    def _relieve(self, busiest: int) -> bool:
        w = self.world
        if busiest < self.brokers:
            mine = self.copies[w.cur[self.copies] == busiest]
        else:
            mine = self.copies[self.sender[w.row[self.copies]] == busiest - self.brokers]
        size = w.problem.size[w.row[mine]]
        mine = mine[np.argsort(-size, kind="stable")]
        mine = mine[:: max(len(mine) // COPIES, 1)]
        changed = False
        for slot in mine.tolist():
            if self.work[busiest] <= self.most:
                break
            receives = busiest < self.brokers
            if (receives and (self._elsewhere(slot) or self._exchanged(slot))) or self._replaced(slot):
                changed = True
        return changed

    def _elsewhere(self, slot: int) -> bool:
        """The copy goes to another broker."""
        w = self.world
        row, here = int(w.row[slot]), int(w.cur[slot])
        size, cost = int(w.problem.size[row]), self._cost(np.array([slot]))[0]
        old = w.problem.old[w.problem.old_start[row] : w.problem.old_start[row + 1]]
        target = self.takers[~np.isin(self.takers, old) & (self.takers != here)]
        score = self._relief(np.array([here]), np.array([-size])) + self._relief(target, np.full(len(target), size))
        if not self._holds(np.array([here]), -cost[None])[0]:
            return False
        good = np.flatnonzero(score > self._least)
        good = good[self._holds(target[good], np.broadcast_to(cost, (len(good), len(cost))))]
        ranked = good[np.argsort(-score[good], kind="stable")][:LEGAL]
        return any(self._try(_Change(slot, int(target[n]))) for n in ranked.tolist())

    def _exchanged(self, slot: int) -> bool:
        """Two copies change their destinations."""
        w, p = self.world, self.world.problem
        here, size = int(w.cur[slot]), int(p.size[w.row[slot]])
        mates = self._sample(self.copies)
        smaller = size - p.size[w.row[mates]]
        keep = (w.cur[mates] != here) & (smaller > 0) & (w.row[mates] != w.row[slot])
        mates, smaller = mates[keep], smaller[keep]
        there = w.cur[mates].astype(np.int64)
        score = self._relief(np.full(len(mates), here), -smaller) + self._relief(there, smaller)
        good = np.flatnonzero(score > self._least)
        change = self._cost(np.array([slot])) - self._cost(mates[good])
        fair = self._holds(np.full(len(good), here), -change) & self._holds(there[good], change)
        good = good[fair]
        ranked = good[np.argsort(-score[good], kind="stable")][:LEGAL]
        return any(self._try(_Change(slot, int(there[n]), int(mates[n]), here)) for n in ranked.tolist())

    def _replaced(self, slot: int) -> bool:
        """The replica stays at home, and another of its broker goes instead."""
        p, w = self.world.problem, self.world
        if not p.scope.roam:
            return False
        row, here = int(w.row[slot]), int(w.cur[slot])
        old = p.old[p.old_start[row] : p.old_start[row + 1]]
        left = old[~np.isin(old, w.cur[p.start[row] : p.start[row + 1]])]
        return any(self._replaced_at(slot, int(home), here) for home in left if p.scope.gives[home])

    def _replaced_at(self, slot: int, home: int, here: int) -> bool:
        p, w = self.world.problem, self.world
        row = w.row[slot]
        mates = self.order[self.begins[home] : self.begins[home + 1]]
        mates = self._sample(mates[(w.cur[mates] == home) & p.scope.open_rows[w.row[mates]]])
        rows = w.row[mates]
        more = p.size[rows] - p.size[row]
        sends, sent = self._sends(rows), self._sends(np.array([row]))[0]
        same = sends == sent
        score = self._relief(np.full(len(mates), here), more) - BYTES_PRICE * np.maximum(more, 0)
        score += np.where(
            same,
            self._relief(np.full(len(mates), sent), more),
            self._relief(np.array([sent]), -p.size[[row]]) + self._relief(sends, p.size[rows]),
        )
        good = np.flatnonzero((score > self._least) & (more <= self.more) & (rows != row))
        change = self._cost(np.array([slot])) - self._cost(mates[good])
        fair = self._holds(np.full(len(good), here), -change) & self._holds(np.full(len(good), home), change)
        good = good[fair]
        ranked = good[np.argsort(-score[good], kind="stable")][:LEGAL]
        return any(self._try(_Change(slot, home, int(mates[n]), here)) for n in ranked.tolist())

    @property
    def _least(self) -> int:
        return int(self.floor * DROPPED)

    def _sample(self, slots: Ints) -> Ints:
        return slots[:: max(len(slots) // MATES, 1)]

    def _relief(self, side: npt.NDArray[np.int64], by: Ints) -> Ints:
        """By how much less these are too busy when their work changes so."""
        now = self.work[side]
        then = np.maximum(now + by - self.most, 0)
        return np.asarray(np.where(side == 2 * self.brokers, 0, np.maximum(now - self.most, 0) - then))

    def _cost(self, slots: Ints) -> Ints:
        p, row = self.world.problem, self.world.row[slots]
        leading = slots == p.start[row]
        return np.where(leading[:, None], p.lead[row], p.follow[row])

    def _holds(self, broker: npt.NDArray[np.int64], change: Ints) -> Flags:
        """Is no range missed by more than it is now?"""
        low, high, now = self.asked.low[broker], self.asked.high[broker], self.world.load[broker]
        then = now + change
        return np.asarray(
            (
                (np.maximum(then - high, 0) <= np.maximum(now - high, 0))
                & (np.maximum(low - then, 0) <= np.maximum(low - now, 0))
            ).all(axis=1)
        )

    def _try(self, change: _Change) -> bool:
        """Carry it out, where every rule allows it."""
        w = self.world
        arrays, (load, lead, follow, _, _) = w.arrays, w.costs
        parts = [(change.slot, change.target)] + [(change.other, change.other_target)] * (change.other >= 0)
        if not all(fits(arrays, int(w.row[slot]), slot, target) for slot, target in parts):
            return False
        self.more += self._count(parts, -1)
        for slot, target in parts:
            put(arrays, load, lead, follow, slot, target)
        self.more -= self._count(parts, 1)
        slots = np.array([slot for slot, _ in parts])
        away = ~np.array([self._at_home(slot) for slot, _ in parts])
        self.copies = np.concatenate((self.copies[~np.isin(self.copies, slots)], slots[away]))
        return True

    def _at_home(self, slot: int) -> bool:
        p, row = self.world.problem, self.world.row[slot]
        return bool((p.old[p.old_start[row] : p.old_start[row + 1]] == self.world.cur[slot]).any())

    def _count(self, parts: list[tuple[int, int]], sign: int) -> int:
        """Add the copies among these, as they are, to the work; returns their bytes."""
        w, copied = self.world, 0
        for slot, _ in parts:
            if not self._at_home(slot):
                size = int(w.problem.size[w.row[slot]])
                self.work[w.cur[slot]] += sign * size
                self.work[self._sends(w.row[[slot]])[0]] += sign * size
                copied += size
        self.work[-1] = 0
        return copied


def _floor(world: World, asked: Problem, copies: Ints, takers: Ints) -> int:
    """Scaled bytes that some broker must receive: what one lacks on its disk, or its part of everything."""
    total = int(world.problem.size[world.row[copies]].sum())
    named = [k for k, r in enumerate(asked.resources) if r.name == DISK]
    if not named:
        return total // max(len(takers), 1)
    before = loads_before(asked)[:, named[0]]
    lacking = (asked.low[:, named[0]] - before)[takers]
    return max(int(lacking.max(initial=0)), total // max(len(takers), 1))

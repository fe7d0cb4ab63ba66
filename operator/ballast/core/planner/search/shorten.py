"""A plan that takes less time for the same work: copies are taken from the broker that sends or receives the most.

How long a plan takes is set by its busiest sender or receiver.  What a plan costs and what it repairs is settled before this
begins: no range is left or missed by more, and the bytes grow by a few thousandths at most.  Three changes are tried:

- a copy goes to another broker;
- two copies change their destinations;
- a replica stays at home, and another one of its broker goes where it would have gone, led by a broker less busy.

Where brokers are unlike, exchanges that save bytes come first (``exchange``), and on small clusters programs last (``busiest``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ballast.core.cluster import Ints, SmallInts
from ballast.core.planner.problem.problem import Problem
from ballast.core.planner.search.busiest import relieve
from ballast.core.planner.search.exchange import exchange
from ballast.core.planner.search.loops import relief
from ballast.core.planner.search.loops.kernels import put
from ballast.core.planner.search.sides import Sides
from ballast.core.planner.search.world import World

MORE_BYTES: Final = 0.004
"""Part of a plan's bytes that may come on top for the sake of its time."""
DROPPED: Final = 1e-4
"""Part of the floor for which nothing is changed."""
COPIES: Final = 64
"""Copies of one broker that are looked at in one turn, of all sizes."""
MATES: Final = 3000
"""Copies elsewhere that each is offered, and replicas at home."""
TURNS: Final = 1200
"""Brokers looked at before a plan is let be."""


def shorten(world: World, asked: Problem, sender: SmallInts, *, unlike: bool, seed: int) -> None:
    """Relieve the busiest brokers in place; ``sender`` is by partition who leads it now, -1 without a leader.

    ``unlike`` says that brokers are, and that replicas may leave them for fewer bytes.
    """
    most = _most_bytes(world)
    if not most:
        return
    if unlike:
        before, busiest = world.save(), _busiest(world, asked, sender)
        exchange(world, asked, sender, most_bytes=most, seed=seed)
        fewer = min(most, _most_bytes(world))
        _Shortening(world, asked, sender, fewer - world.copied).run()
        if relieve(world, asked, sender, most_bytes=fewer, seed=seed):
            _Shortening(world, asked, sender, fewer - world.copied).run()
        if _busiest(world, asked, sender) <= busiest:
            return
        # What the exchanges saved would be paid for in time.
        world.restore(before)
    _Shortening(world, asked, sender, most - world.copied).run()


def _busiest(world: World, asked: Problem, sender: SmallInts) -> int:
    """The most that a broker sends or receives."""
    return int(Sides.of(world, asked, sender).work(world).max())


def _most_bytes(world: World) -> int:
    """What the plan may copy in the end."""
    copied = world.copied
    return copied + int(min(copied * MORE_BYTES, world.budget[0]))


class _Shortening:
    """Who sends and receives how much, in scaled bytes; what does not change between turns."""

    def __init__(self, world: World, asked: Problem, sender: SmallInts, more: int) -> None:
        p = world.problem
        self.world, self.more = world, more
        self.copies = np.flatnonzero(world.away())
        self.arrays = world.arrays
        self.costs = (world.load, p.lead, p.follow, asked.low, asked.high)
        self.brokers = len(p.ids)
        sides = Sides.of(world, asked, sender)
        self.sends, self.most = sides.sends, sides.most
        self.work = sides.work(world)
        self.takers = np.flatnonzero(p.scope.takes)
        self.bounds = np.array([self.most, int(sides.floor * DROPPED)], np.int64)
        self.order = np.argsort(world.cur, kind="stable")
        self.begins = np.searchsorted(world.cur[self.order], np.arange(self.brokers + 1))

    def run(self) -> None:
        """The busiest first, until none is busy or none can be relieved."""
        stuck = np.zeros(2 * self.brokers, np.bool_)
        least, in_vain = int(self.work.max()), 0
        for _ in range(TURNS):
            work = np.where(stuck, 0, self.work[:-1])
            busiest = int(np.argmax(work))
            # Relieving others may make room for the copies of the busiest; each of them is tried once for that.
            if work[busiest] <= self.most or in_vain > int((self.work > self.most).sum()):
                return
            if self._relieve(busiest):
                stuck[:] = False
            stuck[busiest] = self.work[busiest] > self.most
            most = int(self.work.max())
            least, in_vain = (most, 0) if most < least else (least, in_vain + 1)

    def _relieve(self, busiest: int) -> bool:
        w = self.world
        if busiest < self.brokers:
            mine = self.copies[w.cur[self.copies] == busiest]
        else:
            mine = self.copies[self.sends[w.row[self.copies]] == busiest]
        size = w.problem.size[w.row[mine]]
        mine = mine[np.argsort(-size, kind="stable")]
        mine = mine[:: max(len(mine) // COPIES, 1)]
        changed = False
        for slot in mine.tolist():
            if self.work[busiest] <= self.most:
                break
            receives = busiest < self.brokers
            if (receives and (self._send_elsewhere(slot) or self._exchange(slot))) or self._replace(slot):
                changed = True
        return changed

    def _send_elsewhere(self, slot: int) -> bool:
        """The copy goes to another broker."""
        target = relief.best_taker(self.arrays, self.costs, self.work, self.bounds, self.takers, slot)
        return target >= 0 and self._apply((slot, target))

    def _exchange(self, slot: int) -> bool:
        """Two copies change their destinations."""
        cur = self.world.cur
        found = relief.best_swap(self.arrays, self.costs, self.work, self.bounds, _sample(self.copies), slot)
        return found >= 0 and self._apply((slot, int(cur[found])), (found, int(cur[slot])))

    def _replace(self, slot: int) -> bool:
        """The replica stays at home, and another of its broker goes instead."""
        p, w = self.world.problem, self.world
        if not p.scope.roam:
            return False
        row = w.row[slot]
        # Three brokers at most as a rule: a list is searched in no time, where NumPy takes its preparations.
        now = w.cur[p.start[row] : p.start[row + 1]].tolist()
        before = p.old[p.old_start[row] : p.old_start[row + 1]].tolist()
        return any(self._replace_at(slot, home) for home in before if home not in now and p.scope.gives[home])

    def _replace_at(self, slot: int, home: int) -> bool:
        p, w = self.world.problem, self.world
        candidates = self.order[self.begins[home] : self.begins[home + 1]]
        candidates = _sample(candidates[(w.cur[candidates] == home) & p.scope.open_rows[w.row[candidates]]])
        found = relief.best_stand_in(
            self.arrays, self.costs, self.work, self.bounds, self.sends, candidates, slot, home, int(self.more)
        )
        return found >= 0 and self._apply((slot, home), (found, int(w.cur[slot])))

    def _apply(self, *parts: tuple[int, int]) -> bool:
        """Put each slot's replica where it goes."""
        load, lead, follow, _, _ = self.costs
        self.more += self._count(parts, -1)
        for slot, target in parts:
            put(self.arrays, load, lead, follow, slot, target)
        self.more -= self._count(parts, 1)
        slots = np.array([slot for slot, _ in parts])
        away = ~np.array([self._at_home(slot) for slot, _ in parts])
        self.copies = np.concatenate((self.copies[~np.isin(self.copies, slots)], slots[away]))
        return True

    def _at_home(self, slot: int) -> bool:
        p, row = self.world.problem, self.world.row[slot]
        return bool((p.old[p.old_start[row] : p.old_start[row + 1]] == self.world.cur[slot]).any())

    def _count(self, parts: Sequence[tuple[int, int]], sign: int) -> int:
        """Add the copies among these, as they are, to the work; returns their bytes."""
        w, copied = self.world, 0
        for slot, _ in parts:
            if not self._at_home(slot):
                size = int(w.problem.size[w.row[slot]])
                self.work[w.cur[slot]] += sign * size
                self.work[self.sends[w.row[slot]]] += sign * size
                copied += size
        self.work[-1] = 0
        return copied


def _sample(slots: Ints) -> Ints:
    return np.ascontiguousarray(slots[:: max(len(slots) // MATES, 1)])

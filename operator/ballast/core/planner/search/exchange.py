"""Fewer bytes for the same plan: exchanges of two replicas that leave no range, whatever they save.

The search cares for ranges first; where brokers are unlike it ends as soon as the last one is met or given up, with bytes that it need not
copy.  Here each replica that left its broker looks for one to change places with, and no step crosses the end of a range, or takes a broker
further from one that it misses.  What busy senders send costs more than it weighs, so that others send instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from ballast.core.cluster import Flags, Ints, SmallInts
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.problem import FREE, LOWER, UPPER, Problem
from ballast.core.planner.search.order import Sorted
from ballast.core.planner.search.search import Exchanges
from ballast.core.planner.search.sides import Sides
from ballast.core.planner.search.world import World

ROUNDS: Final = 40
SLOTS: Final = 5_000_000
"""Replica slots that all rounds look at together."""
LEAST: Final = 1000
"""A round that saves less than one part in so many of the bytes, and relieves the busiest by no more, …"""
PATIENCE: Final = 2
"""… so many times in a row is the last."""
DEARER: Final = 4
"""What a busy sender sends costs a part more in so many of its size with each round, and twice more at most."""
OF_ALL: Final = (1, 16)
"""Brokers drawn for each replica that left, besides its own, and replicas tried on each."""
OF_BUSY: Final = (3, 300)
"""The same for what busy senders send."""


def within_ranges(world: World, asked: Problem) -> Problem:
    """The problem in which no broker may leave a range, and one that is missed reaches to what the broker carries now."""
    p = world.problem
    low, high = np.minimum(asked.low, world.load), np.maximum(asked.high, world.load)
    return replace(p, low=low, high=high, hard=np.full_like(p.hard, UPPER | LOWER))


def exchange(world: World, asked: Problem, sender: SmallInts, *, most_bytes: int, seed: int) -> None:
    """Copy fewer bytes in place, and let the busiest sender send less: for its sake up to ``most_bytes`` may be copied."""
    if int(world.budget.min()) < FREE // 2 or not len(world.cur):
        return
    full = np.maximum(world.held, world.problem.room)
    before = world.save()
    sides = Sides.of(world, asked, sender)
    start = World.of(within_ranges(world, asked), PlannerPolicy())
    start.place(world.cur)
    ordered = Sorted.of(start)
    _exchange(ordered, replace(sides, sends=sides.sends[ordered.rows]), seed)
    cur = world.cur.copy()
    cur[ordered.slots] = ordered.world.cur
    world.place(cur)
    # Sizes that cost more than they weigh say nothing exact of disks.
    if bool((world.held > full).any()) or world.copied > most_bytes:
        world.restore(before)


def _exchange(ordered: Sorted, sides: Sides, seed: int) -> None:
    """Round after round until little is saved."""
    w, brokers = ordered.world, len(ordered.world.problem.ids)
    more, idle = np.zeros(2 * brokers + 1, np.int64), 0
    priced, exchanges = w, Exchanges(w)
    before = w.held - w.arrived_bytes()
    work, copied = sides.work(w), w.copied
    for n in range(min(ROUNDS, max(SLOTS // len(w.cur), 1))):
        busy = work > sides.most
        busy[:brokers] = False
        dearer = np.minimum(more + busy, 2 * DEARER)
        if (dearer != more).any():
            more, priced = dearer, _dearer(w, dearer[sides.sends], before)
            exchanges = Exchanges(priced)
        for slots, (partners, samples) in ((_sent(priced, sides, busy), OF_BUSY), (_away(priced), OF_ALL)):
            exchanges.scan(slots, partners=partners, samples=samples, seed=seed + n)
        now = sides.work(w), w.copied
        gains = (work.max() - now[0].max()) * LEAST > work.max(), (copied - now[1]) * LEAST > copied
        work, copied = now
        idle = 0 if any(gains) else idle + 1
        if idle == PATIENCE:
            return


def _away(world: World) -> SmallInts:
    """Copies."""
    return np.flatnonzero(world.away()).astype(np.int32)


def _sent(world: World, sides: Sides, busy: Flags) -> SmallInts:
    """Copies that busy brokers send."""
    copies = _away(world)
    return copies[busy[sides.sends[world.row[copies]]]]


def _dearer(world: World, more: Ints, before: Ints) -> World:
    """The same placement, which changes with this one, with sizes larger by so many parts; ``before`` is what disks hold without copies."""
    p = world.problem
    dearer = replace(p, size=p.size + p.size * more // DEARER)
    out = replace(world, problem=dearer, budget=world.budget.copy())
    out.held = before + out.arrived_bytes()
    return out

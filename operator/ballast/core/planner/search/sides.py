"""What each broker receives and sends while a plan is executed: copies run side by side, so the most of it sets the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ballast.core.cluster import Ints, SmallInts
from ballast.core.planner.loads import DISK
from ballast.core.planner.problem.problem import Problem, loads_before
from ballast.core.planner.search.world import World

NEAR: Final = 1.02
"""A multiple of the floor at which a broker is not busy."""


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Both sides of every broker as places in one row: receivers first, then senders, and in the last place what no broker sends."""

    sends: Ints
    """By partition: the place of its sender."""
    floor: int
    """Scaled bytes that some broker must receive."""
    most: int
    """Above it a broker is busy."""

    @classmethod
    def of(cls, world: World, asked: Problem, sender: SmallInts) -> Sides:
        """Of the plan as it is; ``sender`` is by partition who leads it now, -1 without a leader."""
        brokers = len(world.problem.ids)
        floor = _floor(world, asked)
        return cls(np.where(sender >= 0, sender.astype(np.int64) + brokers, 2 * brokers), floor, int(floor * NEAR))

    def work(self, world: World) -> Ints:
        """By place: scaled bytes of the present placement; the last one is not counted."""
        p, copies = world.problem, np.flatnonzero(world.away())
        row = world.row[copies]
        out = np.zeros(2 * len(p.ids) + 1, np.int64)
        np.add.at(out, world.cur[copies], p.size[row])
        np.add.at(out, self.sends[row], p.size[row])
        out[-1] = 0
        return out

    def over(self, work: Ints) -> int:
        """By how much all together are too busy."""
        return int(np.maximum(work - self.most, 0).sum())


def _floor(world: World, asked: Problem) -> int:
    """Scaled bytes that some broker must receive: what one lacks on its disk, or its part of everything."""
    takers = np.flatnonzero(world.problem.scope.takes)
    total = world.copied
    named = [k for k, r in enumerate(asked.resources) if r.name == DISK]
    if not named:
        return total // max(len(takers), 1)
    before = loads_before(asked)[:, named[0]]
    lacking = (asked.low[:, named[0]] - before)[takers]
    return max(int(lacking.max(initial=0)), total // max(len(takers), 1))

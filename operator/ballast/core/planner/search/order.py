"""The problem with its partitions sorted by size, largest first: the order in which the search offers them places.

The kernels then walk memory from one end to the other, which on millions of replicas is most of their time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ballast.core.cluster import Flags, Ints
from ballast.core.planner.search.world import World


@dataclass(frozen=True, slots=True, eq=False)
class Sorted:
    """A world sorted by size, and the way back."""

    world: World
    slots: Ints
    """Where each of its slots is in the world that it was made from."""
    rows: Ints
    """The same of its partitions."""

    @classmethod
    def of(cls, world: World) -> Sorted:
        """A copy; partitions of one size keep their order."""
        p = world.problem
        rows = np.argsort(-p.size, kind="stable")
        start, slots = _runs(p.start, rows)
        old_start, old_slots = _runs(p.old_start, rows)
        problem = replace(
            p,
            start=start,
            home=p.home[slots],
            old_start=old_start,
            old=p.old[old_slots],
            rack_limit=p.rack_limit[rows],
            rack_least=p.rack_least[rows],
            topic=p.topic[rows],
            lead=p.lead[rows],
            follow=p.follow[rows],
            size=p.size[rows],
            scope=replace(
                p.scope,
                open_rows=p.scope.open_rows[rows],
                factor=p.scope.factor[rows],
                classes=p.scope.classes.reorder(rows),
            ),
        )
        row = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(start))
        copy = World(
            problem,
            world.cur[slots],
            world.load.copy(),
            world.held.copy(),
            world.budget.copy(),
            row,
            world.tally.copy(),
        )
        return cls(copy, slots, rows)

    def give_back(self, world: World, unplaced: Flags) -> Flags:
        """Put what was found into the world that this was made from; returns the marks in its order."""
        found = self.world
        world.cur[self.slots] = found.cur
        world.load[...], world.held[...], world.budget[...] = found.load, found.held, found.budget
        world.tally[...] = found.tally
        out = np.zeros(len(unplaced), np.bool_)
        out[self.slots] = unplaced
        return out


def _runs(start: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The runs of these rows one after another: their starts, and where each element came from."""
    counts = np.diff(start)[rows]
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return starts, np.repeat(start[:-1][rows] - starts[:-1], counts) + np.arange(starts[-1])

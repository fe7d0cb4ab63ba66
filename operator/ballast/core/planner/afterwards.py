"""Which ranges the next plan can meet, where this one waits for room on disks.

While a plan runs, a disk holds what arrives beside what has not left yet.  A broker whose disk is too full for that is given
nothing by this plan, however much leaves it; once the plan has run the room is there, and the next plan goes on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ballast.core.cluster import Flags
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem import FREE, Problem
from ballast.core.planner.search.run import sketch
from ballast.core.planner.search.world import World


def met_afterwards(world: World, asked: Problem, policy: PlannerPolicy, *, seed: int) -> Flags | None:
    """B x K: ranges that this plan misses and the next one can meet, as a quick search shows.

    None where no broker that misses a range is short of room now, or no more ranges are met then.
    """
    missed = _missed(asked, world)
    if bool((world.cur < 0).any()) or not bool((_short_of_room(world) & missed.any(axis=1)).any()):
        return None
    then = World.of(replace(asked, home=world.cur.copy(), old=world.cur.copy(), old_start=asked.start), policy)
    sketch(then, seed=seed)
    still = _missed(asked, then)
    return missed & ~still if int(still.sum()) < int(missed.sum()) else None


def _missed(asked: Problem, world: World) -> Flags:
    return np.asarray((world.load > asked.high) | (world.load < asked.low))


def _short_of_room(world: World) -> Flags:
    """By broker: is its disk too full for the largest partition, and is something to leave it?"""
    p = world.problem
    stays = np.zeros(len(p.ids), np.int64)
    np.add.at(stays, world.cur, p.size[world.row])
    largest = int(p.size[p.scope.open_rows].max(initial=0))
    return np.asarray(p.scope.takes & (p.room < FREE) & (world.held > stays) & (world.held + largest > p.room))

"""Other places to begin from: placements that a linear program over the whole cluster finds, made whole.

Where brokers differ, or little room is left, steps of one or two replicas end in corners.  The program of the bound knows
the way out: nearly all of its partitions are placed whole already.  What it splits is made whole in two ways, by the
placement that weighs most and by a small integer program; the search goes on from each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import highspy
import numpy as np

from ballast.core.cluster import SmallInts
from ballast.core.planner.bound.ascent import prices_by_ascent
from ballast.core.planner.bound.program import Program, generate
from ballast.core.planner.bound.value import Relaxation, relaxation_of
from ballast.core.planner.linear import ANSWERED, solve
from ballast.core.planner.problem.problem import FREE, SHARE
from ballast.core.planner.search.world import World

PAIRS: Final = 120_000
"""Partition-broker pairs up to which the program is solved."""
EXCESS: Final = 50.0
"""What a share of excess costs in the program, in shares of bytes."""
DEAR_EXCESS: Final = 1000.0
"""The same in the integer program, which ends within a part of the least cost."""
MARGIN: Final = 1e-6
"""Part of an average share by which the program's ranges are narrower: its figures are rounded."""
WHOLE: Final = 0.999
"""The weight of a placement from which a partition counts as placed."""
FEW: Final = 700
"""Up to so many partitions the integer program may place all of them anew, not only those that were split."""
NODES: Final = 30
GAP: Final = 0.003
ENOUGH: Final = ANSWERED | {highspy.HighsModelStatus.kSolutionLimit, highspy.HighsModelStatus.kInfeasible}
"""What the integer program may end with: where disks are nearly full, what is split may fit nowhere whole."""


def starts(world: World) -> Iterator[SmallInts]:
    """Up to two placements by slot; each is legal, but for what the world had no legal place for."""
    p = world.problem
    if len(p.size) * len(p.ids) > PAIRS or p.scope.classes.any or int(world.budget.min()) < FREE // 2:
        return
    relaxed = relaxation_of(p, p.low, world.cur)
    _narrow(relaxed, world)
    hoped = max(world.copied >> relaxed.shift, 1)
    prices, _ = prices_by_ascent(relaxed, hoped)
    room = np.where(p.room < FREE, (p.room - world.held + world.arrived_bytes()) / (SHARE << relaxed.shift), np.inf)
    program = Program(relaxed, excess=EXCESS, room=np.maximum(room, 0.0))
    if not generate(program, relaxed, world.cur, prices)[1]:
        return
    yield _place(world, program)
    program.make_whole(DEAR_EXCESS, split_only=len(p.size) > FEW, weight=WHOLE)
    for option, setting in (("mip_max_nodes", NODES), ("mip_rel_gap", GAP), ("presolve", "off")):
        program.solver.setOptionValue(option, setting)
    solve(program.solver, "whole placements", ends=ENOUGH)
    if program.has_answer():
        program.keep_weights()
        yield _place(world, program)


def _narrow(relaxed: Relaxation, world: World) -> None:
    """The ranges as the search has them: whole for counts, a little narrower for the rest."""
    p, shift = world.problem, relaxed.shift
    counted = np.array([r.counted for r in p.resources], np.bool_)
    by = np.where(counted, -(p.unit // 2), int(MARGIN * p.average))
    relaxed.low = np.where(p.low > 0, np.maximum(p.low + by, 0) >> shift, 0)
    relaxed.high = np.where(p.high < FREE, np.maximum(p.high - by, p.low + by) >> shift, relaxed.high)


def _place(world: World, program: Program) -> SmallInts:
    """The program's placement, but where it breaks a rule that the program does not know."""
    p = world.problem
    cur = world.cur.copy()
    held = world.held.copy()
    for row, members in program.heaviest():
        run = slice(int(p.start[row]), int(p.start[row + 1]))
        if not p.scope.open_rows[row] or _takes_away(world, cur[run], members):
            continue
        homes = set(p.old[p.old_start[row] : p.old_start[row + 1]].tolist())
        size = int(p.size[row])
        gone = [b for b in cur[run].tolist() if b not in homes]
        come = [b for b in members if b not in homes]
        for b in gone:
            held[b] -= size
        full = any(held[b] + size > p.room[b] for b in come)
        kept = come if _is_spread(world, row, cur[run], members) and not full else gone
        for b in kept:
            held[b] += size
        if kept is come:
            cur[run] = members
    return cur


def _is_spread(world: World, row: int, now: SmallInts, members: list[int]) -> bool:
    """Does no rack hold more than its limit, or than it does now, and do racks enough hold the partition?"""
    p = world.problem
    racks = int(p.rack.max()) + 1
    held, before = np.bincount(p.rack[members], minlength=racks), np.bincount(p.rack[now[now >= 0]], minlength=racks)
    crowded = bool((held > np.maximum(before, p.rack_limit[row])).any())
    return not crowded and int(np.count_nonzero(held)) >= p.rack_least[row]


def _takes_away(world: World, now: SmallInts, members: list[int]) -> bool:
    """Does it take a replica, or the lead, from a broker that the selection leaves as it is?"""
    kept = ~world.problem.scope.gives[now] & (now >= 0)
    return bool((kept & ~np.isin(now, members)).any()) or bool(kept[:1].any() and now[0] != members[0])

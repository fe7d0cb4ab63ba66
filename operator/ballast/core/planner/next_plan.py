"""The cluster as a plan leaves it, on which the next one is made.

Where a search ends with ranges missed, another that begins from its result may still find something.  A plan must not leave that to the
next one: it is made on, until the next one would be empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState
from ballast.core.plan import Move
from ballast.core.planner.moves import moves_of
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.problem import Problem
from ballast.core.planner.problem.question import Question
from ballast.core.planner.search.found import Found
from ballast.core.planner.search.freed_room import in_order
from ballast.core.planner.search.world import World

MOST: Final = 4
"""Further plans that one plan takes in."""


def is_unfinished(found: Found, problem: Problem, policy: PlannerPolicy) -> bool:
    """May a plan made on the result find a broker for what has none, or come nearer to the ranges that can be reached?"""
    missed = (found.after > problem.high) | (found.after < problem.low)
    return bool(found.moves) and not policy.is_limited and bool(missed.any() or found.unplaced.any())


def state_after(state: ClusterState, moves: Sequence[Move]) -> ClusterState:
    """The cluster with these moves made, none of which changes a number of replicas: all in sync and led by their first."""
    p = state.partitions
    replica, in_sync, log_dir, offline = p.replica.copy(), p.in_sync.copy(), p.log_dir.copy(), p.offline.copy()
    leader = p.leader.copy()
    for m in moves:
        row = state.index[m.name]
        run = slice(int(p.start[row]), int(p.start[row + 1]))
        replica[run], in_sync[run], log_dir[run], offline[run] = m.new, True, UNKNOWN, False
        leader[row] = m.new[0]
    columns = replace(p, replica=replica, in_sync=in_sync, log_dir=log_dir, offline=offline, leader=leader)
    return replace(state, partitions=columns)


def take_in(question: Question, asked: Problem, problem: Problem, found: Found, following: Found) -> Found | None:
    """Both as one plan, a replica that moves twice copied once; None where disks have no room for that."""
    policy = question.policy
    world = World.of(problem, policy)
    held = world.held.copy()
    world.place(following.world.cur)
    moves, after = moves_of(question, asked, world.cur)
    ended_early = found.ended_early or following.ended_early
    both = Found(world, moves, after, following.unplaced, later=following.later, ended_early=ended_early)
    if not found.in_order and not following.in_order and bool((world.held <= np.maximum(held, problem.room)).all()):
        return both
    if policy.at_once:
        return None
    order = in_order(question.state, asked, held, moves)
    return None if order.stuck else replace(both, moves=order.moves, in_order=True)

"""Finds the best placement: one search, and another where disks have no room until what the plan takes away has left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from ballast.core.cluster import ClusterState, Flags, Ints, SmallInts
from ballast.core.planner.intents import Balance, Leaders
from ballast.core.planner.moves import moves_of
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.problem import LOWER, UPPER, Problem, is_uniform, loads_before
from ballast.core.planner.problem.question import Question
from ballast.core.planner.search.exact import refine
from ballast.core.planner.search.found import Found
from ballast.core.planner.search.freed_room import find_missed, in_order, waits_for_room, with_room_freed
from ballast.core.planner.search.search import search
from ballast.core.planner.search.shorten import shorten
from ballast.core.planner.search.world import World

WORSE: Final = 10_000
"""A plan that adds more than one part in so many of an average share to what lies outside its ranges is none."""
ORDERS: Final = 3
"""Searches for a plan whose moves have an order, each with fewer brokers that wait for room."""
LEAST: Final = 20
"""A plan that meets no further range brings the cluster nearer to its ranges by one part in so many."""


def find(question: Question, asked: Problem, problem: Problem) -> Found:
    """The best placement by the ranges of ``problem``, which are those of ``asked`` as far as they can be reached."""
    freed: Found | None = None
    for placed in _descents(question, asked, problem):
        if freed is None and isinstance(question.intent, Balance) and waits_for_room(placed[0], problem):
            freed = _with_room_freed(question, asked, problem)
        if freed is not None and freed.in_order and _meets_more(asked, freed.after, placed[0].load):
            return freed
    placement = _shorten(question, asked, _finish(question, asked, problem, *placed))
    found = _with_moves(question, asked, placement)
    if freed is not None and _meets_more(asked, freed.after, found.after):
        return replace(found, later=find_missed(asked, found.after) & ~find_missed(asked, freed.after))
    return found


def _descents(question: Question, asked: Problem, problem: Problem) -> Iterator[tuple[World, Flags]]:
    """A placement, and the replicas that have none; another one where that breaks a range that is met."""
    policy, seed = question.policy, question.seed
    world = World.of(problem, policy)
    yield world, search(world, seed=seed)
    before = loads_before(asked)
    if isinstance(question.intent, Balance | Leaders) and bool(_find_broken(asked, before, world.load).any()):
        world = World.of(_keep(asked, problem, before), policy)
        yield world, search(world, seed=seed)


def _with_room_freed(question: Question, asked: Problem, problem: Problem) -> Found:
    """The best placement where disks have the room that its own moves free; its moves in an order in which each fits, if there is one.

    What has no order is no plan, and is not made quicker to reach.
    """
    state, policy = question.state, question.policy
    held = World.of(asked, policy).held
    stuck: frozenset[int] = frozenset()
    tried: list[Found] = []
    for _ in range(ORDERS):
        looser = with_room_freed(state, asked, stuck), with_room_freed(state, problem, stuck)
        *_, placed = _descents(question, *looser)
        placement = _finish(question, *looser, *placed)
        tried.append(_with_moves(question, looser[0], placement))
        if policy.at_once:
            break
        order = in_order(state, asked, held, tried[-1].moves)
        if not order.stuck:
            quick = _with_moves(question, looser[0], _shorten(question, looser[0], placement))
            tried[-1] = replace(tried[-1], moves=order.moves, in_order=True)
            order = in_order(state, asked, held, quick.moves)
            if not order.stuck:
                return replace(quick, moves=order.moves, in_order=True)
        stuck |= order.stuck
    return next((found for found in tried if found.in_order), tried[0])


class _Placement(NamedTuple):
    """Where everything goes, as good as the search makes it."""

    world: World
    unplaced: Flags
    whole: bool
    """The search did not end at its limit of work."""


def _finish(question: Question, asked: Problem, problem: Problem, world: World, unplaced: Flags) -> _Placement:
    """The placement made better a few brokers at a time; the one before where it is not worth its moves."""
    intent, policy = question.intent, question.policy
    before, whole = loads_before(asked), True
    start = World.of(problem, policy)
    is_balance, optional = isinstance(intent, Balance), not start.must_act()
    worth = not is_balance or policy.is_limited or _is_worth(problem, start.load, world.load)
    # What is in vain is not made better first.
    if is_balance and (worth or not optional) and (world.excess or not is_uniform(asked)):
        world, whole = _refine(world, _keep(asked, problem, before), policy, question.seed)
    worse = _excess(asked, world.load) > _excess(asked, before) + asked.average // WORSE
    if isinstance(intent, Balance | Leaders) and (worse or not worth) and optional:
        # Nearer to the ranges that can be reached is no reason to go further from those asked for.
        world, unplaced = start, np.zeros(len(world.cur), np.bool_)
    return _Placement(world, unplaced, whole)


def _shorten(question: Question, asked: Problem, placement: _Placement) -> _Placement:
    """The same, quicker to reach."""
    world = _place(placement.world.problem, question.policy, placement.world.cur)
    unlike = isinstance(question.intent, Balance) and not is_uniform(asked)
    shorten(world, asked, _senders(question.state), unlike=unlike, seed=question.seed)
    return placement._replace(world=world)


def _with_moves(question: Question, asked: Problem, placement: _Placement) -> Found:
    """The placement with the moves that lead there."""
    moves, after = moves_of(question, asked, placement.world.cur)
    return Found(placement.world, moves, after, placement.unplaced, ended_early=not placement.whole)


def _meets_more(asked: Problem, load: Ints, other: Ints) -> bool:
    """Are more of the ranges asked for met than by the other loads, and all together missed by less?"""
    fewer = int(find_missed(asked, load).sum()) < int(find_missed(asked, other).sum())
    return fewer and _excess(asked, load) < _excess(asked, other)


def _is_worth(problem: Problem, before: Ints, after: Ints) -> bool:
    """Is a further range met, or what is missed less by ``LEAST``?  A plan for less would be followed by another, and that by a third."""
    fewer = int(find_missed(problem, after).sum()) < int(find_missed(problem, before).sum())
    excess = _excess(problem, before)
    return fewer or excess - _excess(problem, after) >= max(excess // LEAST, 1)


def _excess(asked: Problem, load: Ints) -> int:
    """How far all brokers together are outside the ranges asked for."""
    return int((np.maximum(load - asked.high, 0) + np.maximum(asked.low - load, 0)).sum())


def _find_broken(asked: Problem, before: Ints, after: Ints) -> Flags:
    """B x K: ranges that were met and are no more."""
    return ~find_missed(asked, before) & find_missed(asked, after)


def is_worse(asked: Problem, before: Ints, first: Ints, both: Ints) -> bool:
    """Are brokers further outside, or ranges broken, after two plans than after the first?  A cordoned broker's share follows what it holds."""
    broken = _find_broken(asked, before, both) & ~_find_broken(asked, before, first)
    return bool(broken.any()) or _excess(asked, both) > _excess(asked, first)


def _keep(asked: Problem, problem: Problem, before: Ints) -> Problem:
    """The problem with every range that is met as a hard limit at both ends."""
    met = ~find_missed(asked, before)
    return replace(
        problem,
        low=np.where(met, asked.low, problem.low),
        high=np.where(met, asked.high, problem.high),
        hard=np.where(met, UPPER | LOWER, problem.hard).astype(np.int8),
    )


def _senders(state: ClusterState) -> SmallInts:
    """By partition the broker that copies are fetched from: its leader, -1 where none is alive."""
    leader = state.partitions.leader
    ids = np.array([b.id for b in state.brokers], np.int64)
    at = np.minimum(np.searchsorted(ids, leader), max(len(ids) - 1, 0))
    alive = np.array([b.alive for b in state.brokers], np.bool_)
    return np.where((ids[at] == leader) & alive[at], at, -1).astype(np.int32)


def _refine(world: World, problem: Problem, policy: PlannerPolicy, seed: int) -> tuple[World, bool]:
    """The same placement, made better a few brokers at a time; False where that ended at its limit of work."""
    better = _place(problem, policy, world.cur)
    whole = refine(better, seed=seed)
    return better, whole


def _place(problem: Problem, policy: PlannerPolicy, cur: SmallInts) -> World:
    """A world of its own with this placement."""
    world = World.of(problem, policy)
    world.place(cur)
    return world

"""Plans that count on room that their own moves free.

A plan whose moves may run in any order must fit as a whole beside everything that has not left yet, so a broker whose disk is
too full is given nothing, however much leaves it.  Where that leaves ranges missed, the search goes again as if those disks had
the room that there is in the end; what it finds is a plan only where its moves have an order in which each fits once all before
it have ended.  Where some have none, since full disks wait for each other, the brokers that they go to are given no more than there
is room for now, and the search goes once more.

A broker with several log dirs is given nothing in this way: which of its disks a move frees is not the plan's choice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ballast.core.cluster import ClusterState, Flags, Ints
from ballast.core.plan import Move
from ballast.core.planner.loads import DISK
from ballast.core.planner.problem.problem import FREE, Problem
from ballast.core.planner.search.world import World


def waits_for_room(world: World, problem: Problem) -> bool:
    """Does a broker miss a range that can be reached, and is its disk too full for the largest partition?"""
    p = world.problem
    if bool((world.cur < 0).any()):
        return False
    largest = int(p.size[p.scope.open_rows].max(initial=0))
    short = p.scope.takes & (p.room < FREE) & (world.held + largest > p.room)
    return bool((short & find_missed(problem, world.load).any(axis=1)).any())


def find_missed(asked: Problem, load: Ints) -> Flags:
    """B x K: ranges asked for that these loads do not meet."""
    return np.asarray((load > asked.high) | (load < asked.low))


def with_room_freed(state: ClusterState, problem: Problem, stuck: frozenset[int] = frozenset()) -> Problem:
    """The problem in which all has left already: a disk is full where its range ends, or at its limit if that comes first.

    But on the brokers that are ``stuck``.
    """
    disk = np.array([r.name == DISK for r in problem.resources])
    freed = _frees(state) & (problem.room < FREE) & ~np.isin(problem.ids, sorted(stuck))
    most = np.where(freed[:, None] & disk, problem.room[:, None], FREE)
    return replace(
        problem,
        low=np.minimum(problem.low, most),
        high=np.minimum(problem.high, most),
        room=np.where(freed & disk.any(), FREE, problem.room),
    )


class Order(NamedTuple):
    """Moves of which each fits once all before it have ended."""

    moves: tuple[Move, ...]
    stuck: frozenset[int]
    """Brokers that other moves go to, for which no place in the order was found."""


def in_order(state: ClusterState, problem: Problem, held: Ints, moves: tuple[Move, ...]) -> Order:
    """The moves in an order in which each fits once all before it have ended, as far as there is one.

    ``held`` are the scaled bytes of each broker before.  Among equals the order given stands.
    """
    frees = dict(zip(problem.ids.tolist(), _frees(state).tolist(), strict=True))
    free = dict(zip(problem.ids.tolist(), (problem.room - held).tolist(), strict=True))
    coming: Counter[int] = Counter()
    left = [_Waiting(n, int(problem.size[state.index[m.name]]), m.adding, m.removing) for n, m in enumerate(moves)]
    for m in left:
        for b in m.adding:
            coming[b] += m.size
    out: list[int] = []
    while left:
        scarce = {b for b, more in coming.items() if more > free[b]}
        for among in (
            # What only makes room, then what makes some where it is lacking, then whatever fits.
            (m for m in left if scarce.isdisjoint(m.adding)),
            (m for m in left if not scarce.isdisjoint(m.removing)),
            left,
        ):
            begun = len(out)
            for m in among:
                if all(m.size <= free[b] for b in m.adding):
                    for b in m.adding:
                        free[b] -= m.size
                        coming[b] -= m.size
                    for b in m.removing:
                        free[b] += m.size if frees[b] else 0
                    out.append(m.place)
            if len(out) > begun:
                break
        else:
            stuck = frozenset(b for m in left for b in m.adding if m.size > free[b])
            return Order(tuple([moves[n] for n in out]), stuck)
        gone = set(out[begun:])
        left = [m for m in left if m.place not in gone]
    return Order(tuple([moves[n] for n in out]), frozenset())


class _Waiting(NamedTuple):
    """A move that has no place in the order yet."""

    place: int
    """Its place among the moves given."""
    size: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def _frees(state: ClusterState) -> Flags:
    """By broker: is it certain which disk has room when a replica leaves?"""
    return np.array([len(b.log_dirs) < 2 for b in state.brokers], np.bool_)

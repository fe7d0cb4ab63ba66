"""After the ranges: leaders where less traffic crosses racks, on top of what the search found, and why each is there."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from ballast.core.cluster import ClusterState
from ballast.core.plan import Move, Reason
from ballast.core.planner.cross_rack.policy import CrossRackPolicy
from ballast.core.planner.cross_rack.traffic import Crossing, Slots, why_unknown
from ballast.core.planner.loads import Loads
from ballast.core.planner.moves import moves_of
from ballast.core.planner.problem.problem import Problem
from ballast.core.planner.problem.question import Question
from ballast.core.planner.search.cheaper_leaders import lead_cheaply
from ballast.core.planner.search.found import Found
from ballast.core.wording import human_bytes

CODE: Final = "cross-rack"


def with_cheaper_leaders(question: Question, asked: Problem, found: Found) -> Found:
    """The same replicas, led where it costs less; as it was where moves wait for room that others free, or nothing is known."""
    state, loads, wanted = question.state, question.loads, question.policy.cross_rack
    world = found.world
    if found.in_order or not len(world.cur) or why_unknown(state, loads) is not None:
        return found
    crossing = Crossing(state, loads, wanted)
    slots = Slots(world.row.astype(np.int64), np.maximum(world.cur, 0).astype(np.int64), world.cur >= 0)
    cost = sum(crossing.by_slot(slots), np.zeros(len(world.cur)))
    least, total = wanted.min_saving_bytes_per_s, crossing.total(slots)
    if not lead_cheaply(world, asked, cost, least=least, total=total):
        return found
    moves, after = moves_of(question, asked, world.cur)
    return replace(found, moves=moves, after=after)


def with_reasons(
    state: ClusterState, moves: tuple[Move, ...], loads: Loads, policy: CrossRackPolicy
) -> tuple[Move, ...]:
    """Replica list changes that no range asks for are there to save traffic: the reason of each that does says how much."""
    rows = [state.index[m.name] for m in moves if m.reason.code == "make-room" and m.is_list_change]
    if not rows or why_unknown(state, loads) is not None:
        return moves
    index = state.broker_index
    named = [m for m in moves if m.reason.code == "make-room" and m.is_list_change]
    slots = Slots(
        np.array([row for row, m in zip(rows, named, strict=True) for _ in m.new], np.int64),
        np.array([index[b] for m in named for b in m.new], np.int64),
        np.ones(sum(len(m.new) for m in named), np.bool_),
    )
    cost = sum(Crossing(state, loads, policy).by_slot(slots), np.zeros(len(slots.row)))
    saved, at = {}, 0
    for m in named:
        saved[m.name] = cost[at + m.new.index(m.old[0])] - cost[at]
        at += len(m.new)
    return tuple(
        replace(m, reason=Reason(CODE, f"{human_bytes(saved[m.name])}/s less crosses racks"))
        if saved.get(m.name, 0.0) >= 1
        else m
        for m in moves
    )

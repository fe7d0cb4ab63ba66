"""Before and after, by resource and broker: what tables, reports and the plan file show."""

from __future__ import annotations

from math import isclose
from typing import Any, Final

import numpy as np

from ballast.core.cluster import ClusterState, Ints
from ballast.core.cluster.tiered import begin_at_last_tiered
from ballast.core.copying import copying_of, leader_in
from ballast.core.plan import Move
from ballast.core.planner.intents import Decommission, Evacuate
from ballast.core.planner.problem.problem import Problem
from ballast.core.planner.problem.question import Question
from ballast.core.planner.problem.ranges import Range, ranges, ranges_of
from ballast.core.wording import human_percent

SAME: Final = 1e-6
"""Part of a share by which two ways to the same share may differ."""


def summary_of(
    question: Question, problem: Problem, moves: tuple[Move, ...], before: Ints, after: Ints
) -> dict[str, Any]:
    """Plain JSON values only."""
    state, intent, policy = question.state, question.intent, question.policy
    index = state.broker_index
    copying = copying_of(moves, leader_in(state))
    outgoing = [0] * len(state.brokers)
    for m in moves:
        size = max(m.size_bytes, 0)
        for b in m.removing:
            outgoing[index[b]] += size
    # What is told of now is what ``status`` tells, whatever the plan is going to change of the brokers' shares.
    was, will = ranges_of(state, question.loads, policy, intent.selection), ranges(problem, policy, after)
    out: dict[str, Any] = {
        "replica_moves": sum(len(m.adding) for m in moves),
        "replica_list_changes": sum(m.is_list_change for m in moves),
        "leader_changes": sum(m.old[0] != m.new[0] for m in moves),
        "bytes_moved": None if copying.unknown else sum(m.bytes_moved for m in moves),
        "busiest_bytes": copying.busiest,
        "resources": [_resource(old, new) for old, new in zip(was, will, strict=True)],
        "brokers": [
            {
                "broker": b.id,
                "rack": b.rack,
                "alive": b.alive,
                "before": _figures(problem, before, i),
                "after": _figures(problem, after, i),
                "range": {r.resource: _edges(r, b.id) for r in will if b.id in r.shares},
                "share": {r.name: round(float(problem.share[i, k])) for k, r in enumerate(problem.resources)},
                "bytes_received": copying.received[b.id],
                "bytes_sent": copying.sent[b.id],
                "bytes_deleted": outgoing[i],
            }
            for i, b in enumerate(state.brokers)
        ],
    }
    if tiered := _tiered_copies(state, moves):
        out["tiered"] = tiered
    if isinstance(intent, Decommission | Evacuate):
        out["empty_afterwards"] = _emptied_brokers(state, problem, moves)
    return out


def _tiered_copies(state: ClusterState, moves: tuple[Move, ...]) -> dict[str, Any] | None:
    """What new replicas of tiered topics copy; None where there is none."""
    copied = [m for m in moves if m.adding and state.topics[state.topic_index[m.topic]].tiered]
    if not copied:
        return None
    unknown = any(m.size_unknown for m in copied)
    return {
        "partitions": len(copied),
        "bytes_moved": None if unknown else sum(m.bytes_moved for m in copied),
        "at_most_on": list(begin_at_last_tiered(state, (b for m in copied for b in m.adding))),
    }


def _figures(problem: Problem, load: Ints, broker: int) -> dict[str, int]:
    return {r.name: int(load[broker, k] // problem.unit[k]) for k, r in enumerate(problem.resources)}


def _resource(was: Range, will: Range) -> dict[str, Any]:
    return {
        "name": was.resource,
        "label": was.label,
        "unit": was.unit,
        "band": was.target,
        "range": was.tolerance,
        "idle": round(was.idle, 4),
        "shares_change": was.shares.keys() != will.shares.keys()
        or any(not isclose(s.fair, will.shares[b].fair, rel_tol=SAME) for b, s in was.shares.items()),
        "before": _spread(was),
        "after": _spread(will),
    }


def notes(resources: list[dict[str, Any]]) -> list[str]:
    """What there is to know about these figures: ranges that are wider than what was asked for, and shares that change."""
    labels: dict[tuple[str, str], list[str]] = {}
    for r in resources:
        if idle := r.get("idle", 0.0):
            ends = human_percent(r["range"], 0), human_percent(r["range"] - idle, 0)
            labels.setdefault(ends, []).append(r["label"])
    told = [
        f"The range of {' and '.join(names)} is ±{now} instead of ±{asked}, since empty partitions count for next to nothing."
        for (now, asked), names in labels.items()
    ]
    if any(r.get("shares_change") for r in resources):
        told.append(
            "Before: compared with the brokers' shares of now, as in ballast status; after: with those that they then have."
        )
    return told


def _spread(found: Range) -> dict[str, Any]:
    """Least and most loaded broker as parts of their fair shares, and how many are out of range."""
    parts = [s.load / s.fair for s in found.shares.values()] or [1.0]
    return {"minimum": round(min(parts), 4), "maximum": round(max(parts), 4), "out_of_range": len(found.outside)}


def _edges(found: Range, broker: int) -> list[float]:
    share = found.shares[broker]
    return [share.low, share.high]


def _emptied_brokers(state: ClusterState, problem: Problem, moves: tuple[Move, ...]) -> list[int]:
    """Brokers that hold nothing once every move is made, so that they can be stopped."""
    held = {int(problem.ids[b]) for b in np.flatnonzero(problem.scope.leave)}
    moved = {m.name: m for m in moves}
    p = state.partitions
    rows = np.repeat(np.arange(len(p)), np.diff(p.start))
    busy = np.isin(p.replica, sorted(held)) & ~p.removing
    for row in np.unique(rows[busy]).tolist():
        move = moved.get(state.name(row))
        held -= set(move.new if move else state.target(row))
    return sorted(held)

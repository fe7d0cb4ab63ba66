"""Before and after, by resource and broker: what tables, reports and the plan file show."""

from __future__ import annotations

from typing import Any

import numpy as np

from ballast.core.cluster import ClusterState, Ints
from ballast.core.plan import Move
from ballast.core.planner.intents import Decommission, Evacuate, Intent
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem import Problem


def summary_of(
    state: ClusterState,
    intent: Intent,
    problem: Problem,
    policy: PlannerPolicy,
    moves: tuple[Move, ...],
    before: Ints,
    after: Ints,
) -> dict[str, Any]:
    """Plain JSON values only."""
    index = state.broker_index
    incoming = [0] * len(state.brokers)
    outgoing = [0] * len(state.brokers)
    for m in moves:
        size = max(m.size_bytes, 0)
        for b in m.adding:
            incoming[index[b]] += size
        for b in m.removing:
            outgoing[index[b]] += size
    out: dict[str, Any] = {
        "replica_moves": sum(len(m.adding) for m in moves),
        "reorders": sum(m.is_reorder for m in moves),
        "leader_changes": sum(m.old[0] != m.new[0] for m in moves),
        "bytes_moved": sum(m.bytes_moved for m in moves),
        "resources": [_resource(problem, policy, before, after, k) for k in range(len(problem.resources))],
        "brokers": [
            {
                "broker": b.id,
                "rack": b.rack,
                "alive": b.alive,
                "before": _figures(problem, before, i),
                "after": _figures(problem, after, i),
                "share": {r.name: round(float(problem.share[i, k])) for k, r in enumerate(problem.resources)},
                "bytes_in": incoming[i],
                "bytes_out": outgoing[i],
            }
            for i, b in enumerate(state.brokers)
        ],
    }
    if isinstance(intent, Decommission | Evacuate):
        out["empty_afterwards"] = _emptied(state, problem, moves)
    return out


def _figures(problem: Problem, load: Ints, broker: int) -> dict[str, int]:
    return {r.name: int(load[broker, k] // problem.unit[k]) for k, r in enumerate(problem.resources)}


def _resource(problem: Problem, policy: PlannerPolicy, before: Ints, after: Ints, k: int) -> dict[str, Any]:
    r = problem.resources[k]
    used = problem.scope.shares & (problem.share[:, k] > 0)
    share = np.where(used, problem.share[:, k] * problem.unit[k], 1.0)

    def spread(load: Ints) -> tuple[float, float, int]:
        ratio = np.where(used, load[:, k] / share, 1.0)
        out = used & ((load[:, k] < problem.low[:, k]) | (load[:, k] > problem.high[:, k]))
        return round(float(ratio.min()), 4), round(float(ratio.max()), 4), int(out.sum())

    low_before, high_before, out_before = spread(before)
    low_after, high_after, out_after = spread(after)
    return {
        "name": r.name,
        "label": r.label,
        "unit": r.unit,
        "band": policy.band_of(r.name),
        "before": {"least": low_before, "most": high_before, "outside": out_before},
        "after": {"least": low_after, "most": high_after, "outside": out_after},
    }


def _emptied(state: ClusterState, problem: Problem, moves: tuple[Move, ...]) -> list[int]:
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

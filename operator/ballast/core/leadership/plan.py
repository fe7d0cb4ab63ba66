"""A plan that balances preferred leaders by replica list changes and elections alone, and what it is worth.

``counts`` reaches the least maximum of leaders per broker with the fewest replica list changes, which is proven; ``bytes`` comes close
to a bound, and says how close.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, Ints, TopicPartition
from ballast.core.leadership.reorder import Reordering, balance_counts, balance_weights, choices, loads, reorder_moves
from ballast.core.leadership.skew import partition_bytes
from ballast.core.plan import Move, Plan, Purpose, Reason
from ballast.core.plan.fingerprint import fingerprint, with_topic_ids
from ballast.core.plan.log_dirs import with_log_dir_errors

Measure = Literal["counts", "bytes"]


@dataclass(frozen=True, slots=True)
class LeaderBalance:
    """What replica list changes can do for the eligible brokers."""

    measure: Measure
    brokers: Ints
    """Ids of the eligible brokers."""
    before: Ints
    """Per eligible broker, led partitions or bytes of those that can be balanced or count for it."""
    found: Reordering
    moves: tuple[Move, ...]
    elections: tuple[TopicPartition, ...]
    unknown_sizes: int
    """Partitions that weigh nothing since no broker said their size; 0 for counts."""

    @property
    def max_before(self) -> int:
        """The most that any broker leads now, by the measure."""
        return int(self.before.max(initial=0))


def balance(
    state: ClusterState,
    measure: Measure,
    *,
    excluded: Collection[int] = (),
    topics: Collection[str] | None = None,
) -> LeaderBalance:
    """Find the replica list changes; ``excluded`` brokers get no leaders, topics that are not among ``topics`` stay as they are."""
    problem = choices(state, excluded=excluded, topics=topics)
    sizes = partition_bytes(state)[problem.row]
    weight = np.maximum(sizes, 0) if measure == "bytes" else np.ones(len(problem), np.int64)
    found = balance_weights(problem, weight) if measure == "bytes" else balance_counts(problem)
    at_home = problem.home != UNKNOWN
    before = np.zeros(len(problem.brokers), np.int64)
    np.add.at(before, problem.option[problem.home[at_home]], weight[at_home])
    moves = reorder_moves(state, found, reason=_reason(found, measure))
    assert np.array_equal(found.load, loads(problem, found.chosen, weight))
    return LeaderBalance(
        measure,
        problem.brokers,
        before,
        found,
        moves,
        _elections(state, moves),
        int((sizes == UNKNOWN).sum()) if measure == "bytes" else 0,
    )


def leader_plan(state: ClusterState, balance: LeaderBalance, *, created_at_ms: int = 0) -> Plan:
    """The plan that executes it."""
    assumptions: tuple[str, ...] = ()
    if balance.unknown_sizes:
        assumptions = (f"{balance.unknown_sizes} partitions count as empty, since no broker said their size",)
    made = Plan(
        intent=f"leaders --minimize {balance.measure}",
        purpose=Purpose("leaders"),
        cluster_id=state.cluster_id,
        fingerprint=fingerprint(state),
        moves=balance.moves,
        elections=balance.elections,
        status="meets-all-goals" if balance.moves else "nothing-to-do",
        assumptions=assumptions,
        created_at_ms=created_at_ms,
        bound_bytes=0,
        bound_method="no byte moves",
        summary={"replica_list_changes": len(balance.moves), "leader_balance": _summary(balance)},
    )
    return with_log_dir_errors(with_topic_ids(made, state), state)


def _summary(balance: LeaderBalance) -> dict[str, Any]:
    loads = zip(balance.brokers.tolist(), balance.before.tolist(), balance.found.load.tolist(), strict=True)
    return {
        "measure": balance.measure,
        "max_before": balance.max_before,
        "max_after": balance.found.maximum,
        "bound": balance.found.bound,
        "gap": balance.found.gap,
        "brokers": [{"broker": b, "before": before, "after": after} for b, before, after in loads],
        "unknown_sizes": balance.unknown_sizes,
    }


def _reason(found: Reordering, measure: Measure) -> Reason:
    what = "preferred leaders" if measure == "counts" else "bytes led"
    return Reason("leader-balance", f"lowers the most {what} of a broker to {found.maximum}; no data moves")


def _elections(state: ClusterState, moves: tuple[Move, ...]) -> tuple[TopicPartition, ...]:
    """Where the replica list change alone does not change who leads, and the new first replica can lead at once."""
    out = []
    for move in moves:
        row = state.index[move.name]
        first = move.new[0]
        if int(state.partitions.leader[row]) != first and first in state.isr(row):
            out.append(move.name)
    return tuple(out)

"""Stock reassignment entries as a plan for the present assignment, so that they run under the same guards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ballast.core.cluster import UNKNOWN, ClusterState
from ballast.core.plan import Move, Plan, Purpose, Reason
from ballast.core.plan.fingerprint import fingerprint, with_topic_ids
from ballast.core.stock.checks import check_against, check_entries
from ballast.core.stock.checks import moves as stock_moves
from ballast.core.stock.files import ReassignmentEntry


def plan_of_entries(
    entries: Iterable[ReassignmentEntry],
    state: ClusterState,
    *,
    intent: str = "reassign",
    source: str = "reassignment JSON",
) -> Plan:
    """A plan with one move per entry; entries that change nothing are left out.

    A partition in mid-move is planned from where it was before that move, so that a rollback has a place to go back to.
    """
    listed = tuple(entries)
    check_entries(listed, source=source)
    check_against(listed, state, source=source)
    changed = tuple(replace(m, old=state.settled_replicas(state.index[m.name])) for m in stock_moves(listed, state))
    # One that is under way may have to change its log dir as well: then it is among those already.
    named = {m.name for m in changed}
    followed = tuple(_in_flight(e, state) for e in listed if e.name not in named and _is_under_way(e, state))
    moves = changed + followed
    made = Plan(
        intent=intent,
        purpose=Purpose("reassign"),
        cluster_id=state.cluster_id,
        fingerprint=fingerprint(state),
        moves=moves,
        elections=tuple(m.name for m in moves if m.is_list_change),
        allow_replication_factor_change=any(m.changes_replication_factor for m in moves),
        status="meets-all-goals" if moves else "nothing-to-do",
    )
    return with_topic_ids(made, state)


def _is_under_way(entry: ReassignmentEntry, state: ClusterState) -> bool:
    """The very move that the file asks for is in progress: it is followed, not started again."""
    row = state.index[entry.name]
    return bool(state.moving[row]) and state.target(row) == entry.replicas


def _in_flight(entry: ReassignmentEntry, state: ClusterState) -> Move:
    row = state.index[entry.name]
    run = slice(state.partitions.start[row], state.partitions.start[row + 1])
    size = max(state.partitions.size_bytes[run].tolist(), default=UNKNOWN)
    reason = Reason("file", "in progress already")
    return Move(entry.topic, entry.partition, state.settled_replicas(row), entry.replicas, size, reason)

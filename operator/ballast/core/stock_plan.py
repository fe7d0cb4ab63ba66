"""Stock reassignment entries as a plan for the present assignment, so that they run under the same guards."""

from __future__ import annotations

from collections.abc import Iterable

from ballast.core.cluster import UNKNOWN, ClusterState
from ballast.core.fingerprint import fingerprint
from ballast.core.plan import Move, Plan, Reason
from ballast.core.stock_json import ANY_LOG_DIR, ReassignmentEntry
from ballast.errors import UsageError


def plan_of_entries(entries: Iterable[ReassignmentEntry], state: ClusterState, *, intent: str = "reassign") -> Plan:
    """A plan with one move per entry; entries that change nothing are left out.

    A partition in mid-move is planned from where it was before that move, so that a rollback has a place to go back to.
    """
    moves = []
    for entry in entries:
        row = state.index.get(entry.name)
        if row is None:
            raise UsageError(
                f"{entry.name} does not exist on this cluster.", hint="Take it out of the file, or create the topic."
            )
        asks_log_dirs = entry.log_dirs is not None and any(d != ANY_LOG_DIR for d in entry.log_dirs)
        old = state.settled(row)
        if old == entry.replicas and not asks_log_dirs and not bool(state.moving[row]):
            continue
        run = slice(state.partitions.start[row], state.partitions.start[row + 1])
        size = max(state.partitions.size_bytes[run].tolist(), default=UNKNOWN)
        moves.append(
            Move(
                entry.topic,
                entry.partition,
                old,
                entry.replicas,
                size,
                Reason("file", "asked for by a reassignment file"),
                log_dirs=entry.log_dirs if asks_log_dirs else None,
            )
        )
    return Plan(
        intent=intent,
        cluster_id=state.cluster_id,
        fingerprint=fingerprint(state),
        moves=tuple(moves),
        elections=tuple(m.name for m in moves if m.is_reorder),
        allow_replication_factor_change=any(m.changes_replication_factor for m in moves),
        status="complete" if moves else "nothing-to-do",
    )

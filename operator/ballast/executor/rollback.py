"""The way back: a plan that undoes what a run has done, from nothing but the journal."""

from __future__ import annotations

from ballast.core.plan import Move, Plan, Reason
from ballast.executor.run import Run, Stage


def rollback_plan(run: Run) -> Plan:
    """Every move that arrived, turned round, newest first; then elections where the preferred leader changes back.

    Moves that found the partition in place already were not the run's doing and stay.
    """
    done = [m for m in run.moves.values() if m.stage is Stage.VERIFIED and m.outcome != "already-there"]
    moves = tuple(
        Move(
            topic=m.move.topic,
            partition=m.move.partition,
            old=m.move.new,
            new=m.move.old,
            size_bytes=m.move.size_bytes,
            reason=Reason("rollback", f"undoes run {run.id}"),
        )
        for m in reversed(done)
        if m.move.old != m.move.new
    )
    return Plan(
        intent=f"rollback {run.id}",
        cluster_id=run.cluster_id,
        fingerprint="",
        moves=moves,
        elections=tuple(m.name for m in moves if m.old[0] != m.new[0]),
        status="complete" if moves else "nothing-to-do",
        allow_replication_factor_change=any(m.changes_replication_factor for m in moves),
    )

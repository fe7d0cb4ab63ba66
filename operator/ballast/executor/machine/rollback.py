"""The way back: a plan that undoes what a run has done, from nothing but the journal."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan, Purpose, Reason
from ballast.executor.machine.run import MoveRun, Now, Run, new_run, with_moves
from ballast.executor.machine.stages import Cancelling, Failed, InFlight, Moved, Unthrottled, Verified
from ballast.ports.cluster import Reassignment

ARRIVED_ALL_THE_SAME: Final = frozenset({"out-of-sync", "log-dir"})
"""Outcomes of moves that did not end well and have changed the partition's replicas, or may have."""


def rollback_plan(run: Run) -> Plan:
    """Every move that arrived, turned round, newest first; then elections where the preferred leader changes back.

    Newest first, each fits where it was: of a run in order, the way back is in order too.
    Moves that found the partition in place already were not the run's doing and stay.  So do log dirs: where replicas lay
    before is not in the plan.
    """
    done = sorted((m for m in run.moves.values() if _has_arrived(m)), key=lambda m: m.since_ms)
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
        purpose=Purpose("rollback"),
        cluster_id=run.cluster_id,
        fingerprint="",
        moves=moves,
        elections=tuple(m.name for m in moves if m.old[0] != m.new[0]),
        status="meets-all-goals" if moves else "nothing-to-do",
        allow_replication_factor_change=any(m.changes_replication_factor for m in moves),
        in_order=run.in_order,
        topic_ids={m.move.topic: m.topic_id for m in done if m.topic_id is not None},
    )


def refilled_brokers(run: Run) -> frozenset[int]:
    """The brokers that would get replicas again by undoing this run: moves that have arrived, and those that may before they end."""
    left = {b for m in run.moves.values() if _has_arrived(m) or _may_arrive(m) for b in m.move.removing}
    return frozenset(left)


def _may_arrive(m: MoveRun) -> bool:
    return isinstance(m.stage, InFlight | Moved | Unthrottled) and not isinstance(m.stage, Cancelling)


def _has_arrived(m: MoveRun) -> bool:
    match m.stage:
        case Failed(outcome):
            return outcome in ARRIVED_ALL_THE_SAME
        case Verified(outcome):
            return outcome != "already-there"
    return False


def rollback_run(before: Run, after: Run, now: Now) -> Run | None:
    """The run that undoes a cancelled one, for the moment in which that ends; None in every other, or when none was asked for."""
    if before.ended or not after.ended or not after.rollback_when_cancelled:
        return None
    plan = rollback_plan(after)
    return new_run(f"{after.id}-back", plan, after.policy, now, rollback_of=after.id) if plan.moves else None


def mark_cancelled(run: Run, names: Collection[TopicPartition], by: str) -> Run:
    """The run with its moves of these partitions that are in flight marked as cancelled by a run of its own."""
    return with_moves(
        run, {m.move.name: replace(m, cancelled_by=by) for m in run.moves_in(InFlight) if m.move.name in names}
    )


def cancel_plan(
    active: Mapping[TopicPartition, Reassignment], before: Mapping[TopicPartition, tuple[int, ...]], cluster_id: str
) -> Plan:
    """These moves in progress as a plan, to be cancelled; ``before`` are the lists that the journal remembers."""
    moves = tuple(
        Move(
            name.topic,
            name.partition,
            before.get(name, tuple(b for b in r.replicas if b not in r.adding)),
            tuple(b for b in r.replicas if b not in r.removing),
            reason=Reason("cancel", "a person asked to cancel it"),
        )
        for name, r in active.items()
    )
    return Plan("cancel moves in progress", cluster_id, fingerprint="", moves=moves, purpose=Purpose("cancel"))

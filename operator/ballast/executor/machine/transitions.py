"""The one table of what may follow what, and which effect carries a move or an election across.

An *effect* is a write to the cluster.  A transition that names one is entered when the effect is decided, and journaled
before the effect is sent; a transition without one is something the cluster was seen to have done.  Tests enumerate
crash points from this table, so a transition that is not in it cannot happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from ballast.core.cluster import TopicPartition
from ballast.core.throttles import DesiredThrottles
from ballast.executor.machine.notes import MoveNote
from ballast.executor.machine.run import ElectionRun, ElectionStage, MoveRun, Now
from ballast.executor.machine.stages import (
    Cancelling,
    Copying,
    Ended,
    Failed,
    Moved,
    Moving,
    Planned,
    Reassigning,
    Relocating,
    Restoring,
    RolledBack,
    Stage,
    Stalled,
    Submitted,
    Throttled,
    Unthrottled,
    Verified,
)


class EffectKind(StrEnum):
    """Every kind of write that a run makes to the cluster."""

    THROTTLE = "throttle"
    """Set throttle lists and rates (also: change a rate, drop entries while others are added)."""
    UNTHROTTLE = "unthrottle"
    """Restore entries and rates, nothing added."""
    SUBMIT = "submit"
    """AlterPartitionReassignments with the new lists."""
    CANCEL = "cancel"
    """AlterPartitionReassignments that cancels."""
    RESTORE = "restore"
    """Put the old order back after a cancel; copies nothing."""
    ALTER_LOG_DIRS = "alter_log_dirs"
    """AlterReplicaLogDirs."""
    ELECT = "elect"
    """ElectLeaders."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One write to the cluster; which fields are filled follows from the kind."""

    kind: EffectKind
    targets: Mapping[TopicPartition, tuple[int, ...] | None] = field(default_factory=dict)
    """SUBMIT, RESTORE: the replica lists. CANCEL: None each."""
    allow_replication_factor_change: bool = False
    desired: DesiredThrottles = field(default_factory=dict)
    """THROTTLE, UNTHROTTLE: everything that is to stand afterwards."""
    log_dirs: Mapping[tuple[TopicPartition, int], str] = field(default_factory=dict)
    """ALTER_LOG_DIRS: the dir for each (partition, broker)."""
    names: tuple[TopicPartition, ...] = ()
    """ELECT."""
    unclean: bool = False


TRANSITIONS: Final[Mapping[tuple[type[Stage], type[Stage]], EffectKind | None]] = {
    (Planned, Throttled): EffectKind.THROTTLE,
    (Planned, Submitted): EffectKind.SUBMIT,
    # Another process, or this run before its journal was lost, has started the very same move: it is adopted.
    (Planned, Moving): None,
    (Planned, Verified): None,
    (Planned, Failed): None,
    (Planned, RolledBack): None,
    (Throttled, Planned): None,
    (Throttled, Submitted): EffectKind.SUBMIT,
    (Throttled, Moving): None,
    (Throttled, Relocating): EffectKind.ALTER_LOG_DIRS,
    (Throttled, RolledBack): None,
    (Throttled, Failed): None,
    (Submitted, Planned): None,
    (Submitted, Moving): None,
    (Submitted, Moved): None,
    # Another run of Ballast has cancelled it: see ``MoveRun.cancelled_by``.
    (Submitted, RolledBack): None,
    (Submitted, Failed): None,
    (Moving, Stalled): None,
    (Moving, Moved): None,
    (Moving, Cancelling): EffectKind.CANCEL,
    (Moving, RolledBack): None,
    (Moving, Failed): None,
    (Stalled, Moving): None,
    (Stalled, Moved): None,
    (Stalled, Cancelling): EffectKind.CANCEL,
    (Stalled, RolledBack): None,
    (Stalled, Failed): None,
    (Moved, Relocating): EffectKind.ALTER_LOG_DIRS,
    (Moved, Unthrottled): EffectKind.UNTHROTTLE,
    (Moved, Verified): None,
    (Moved, Failed): None,
    (Relocating, Moved): None,
    (Relocating, Failed): None,
    (Relocating, RolledBack): None,
    (Unthrottled, Verified): None,
    (Unthrottled, Failed): None,
    (Cancelling, Moving): None,
    (Cancelling, Moved): None,
    (Cancelling, Restoring): EffectKind.RESTORE,
    (Cancelling, RolledBack): None,
    (Cancelling, Failed): None,
    (Restoring, Moving): None,
    (Restoring, RolledBack): None,
    (Restoring, Failed): None,
}
"""``(from, to)`` to the effect that carries a move across, None where the cluster was seen to have done it."""

E = ElectionStage
ELECTION_TRANSITIONS: Final[Mapping[tuple[ElectionStage, ElectionStage], EffectKind | None]] = {
    (E.WAITING, E.REQUESTED): EffectKind.ELECT,
    (E.WAITING, E.FAILED): None,
    (E.REQUESTED, E.COMPLETED): None,
    (E.REQUESTED, E.WAITING): None,
    (E.REQUESTED, E.FAILED): None,
}

OUTCOMES: Final[Mapping[str, str]] = {
    "already-there": "the partition had the wanted replicas before the run touched it",
    "not-started": "the run ended before this move began",
    "refused": "a guard refused it for longer than the run was willing to wait",
    "deleted": "the topic or partition was deleted",
    "topic-recreated": "the topic was deleted and another one of its name was made; nothing of that is the run's",
    "modified-externally": (
        "the assignment was changed externally before the move began (or while it was sent, and it was cancelled), or after it had ended"
    ),
    "overridden": "a foreign reassignment gave the partition another target",
    "cancelled-externally": "the move was cancelled outside Ballast",
    "rejected": "the cluster refused the move, and said why",
    "not-taken": "the cluster never showed the move although it was submitted several times",
    "throttle-not-set": "its throttle could not be set, so it was not started",
    "out-of-sync": "it arrived, and a new replica then fell out of sync",
    "log-dir": "a replica could not be moved to the log dir asked for",
    "timed-out": "it made no progress, or progressed too slowly, for longer than the run waits, and is as it was before",
    "rolled-back": "it was cancelled and is as it was before",
}
"""Every outcome a move can end with besides plain success, and what it means."""


def move_to(m: MoveRun, stage: Stage, now: Now, why: MoveNote | None = None) -> MoveRun:
    """The move in its next stage; a transition that the table does not have is a bug."""
    if (type(m.stage), type(stage)) not in TRANSITIONS:
        raise ValueError(f"{m.move.name}: no transition {m.stage.code} → {stage.code}")
    if isinstance(stage, Ended) and stage.outcome and stage.outcome not in OUTCOMES:
        raise ValueError(f"{stage.outcome} is not an outcome")
    goes_on = isinstance(m.stage, Reassigning) and isinstance(stage, Reassigning)
    if isinstance(stage, Copying) and not goes_on:
        stage = replace(stage, grown_at_s=now.s, mark_s=now.s, mark_left_bytes=m.left_bytes)
    return replace(m, stage=stage, note=why, since_ms=now.ms, entered_s=now.s, down_since_s=None)


def elect_to(
    e: ElectionRun, stage: ElectionStage, why: MoveNote | None = None, *, retry_at_s: float = 0.0
) -> ElectionRun:
    """The election in its next stage."""
    if (e.stage, stage) not in ELECTION_TRANSITIONS:
        raise ValueError(f"no transition {e.stage} → {stage}")
    attempts = e.attempts + (stage is ElectionStage.REQUESTED)
    return replace(e, stage=stage, attempts=attempts, note=why, retry_at_s=retry_at_s)

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
from ballast.executor.machine.run import ElectionRun, ElectionStage, MoveRun, Now, Stage


class EffectKind(StrEnum):
    """Every kind of write that a run makes to the cluster."""

    THROTTLE = "throttle"
    """Set throttle lists and rates (also: change a rate, drop entries while others are added)."""
    UNTHROTTLE = "unthrottle"
    """Take entries and rates back, nothing added."""
    SUBMIT = "submit"
    """AlterPartitionReassignments with the new lists."""
    CANCEL = "cancel"
    """AlterPartitionReassignments that cancels."""
    RESTORE = "restore"
    """Put the old order back after a cancel; copies nothing."""
    PLACE = "place"
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
    """PLACE: the dir for each (partition, broker)."""
    names: tuple[TopicPartition, ...] = ()
    """ELECT."""
    unclean: bool = False


S = Stage
TRANSITIONS: Final[Mapping[tuple[Stage, Stage], EffectKind | None]] = {
    (S.PLANNED, S.THROTTLED): EffectKind.THROTTLE,
    (S.PLANNED, S.SUBMITTED): EffectKind.SUBMIT,
    # Somebody, perhaps this run before its journal was lost, has started the very same move: it is adopted.
    (S.PLANNED, S.MOVING): None,
    (S.PLANNED, S.VERIFIED): None,
    (S.PLANNED, S.FAILED): None,
    (S.PLANNED, S.ROLLED_BACK): None,
    (S.THROTTLED, S.PLANNED): None,
    (S.THROTTLED, S.SUBMITTED): EffectKind.SUBMIT,
    (S.THROTTLED, S.MOVING): None,
    (S.THROTTLED, S.RELOCATING): EffectKind.PLACE,
    (S.THROTTLED, S.ROLLED_BACK): None,
    (S.THROTTLED, S.FAILED): None,
    (S.SUBMITTED, S.PLANNED): None,
    (S.SUBMITTED, S.MOVING): None,
    (S.SUBMITTED, S.MOVED): None,
    (S.SUBMITTED, S.FAILED): None,
    (S.MOVING, S.STALLED): None,
    (S.MOVING, S.MOVED): None,
    (S.MOVING, S.CANCELLING): EffectKind.CANCEL,
    (S.MOVING, S.FAILED): None,
    (S.STALLED, S.MOVING): None,
    (S.STALLED, S.MOVED): None,
    (S.STALLED, S.CANCELLING): EffectKind.CANCEL,
    (S.STALLED, S.FAILED): None,
    (S.MOVED, S.RELOCATING): EffectKind.PLACE,
    (S.MOVED, S.UNTHROTTLED): EffectKind.UNTHROTTLE,
    (S.MOVED, S.VERIFIED): None,
    (S.MOVED, S.FAILED): None,
    (S.RELOCATING, S.MOVED): None,
    (S.RELOCATING, S.FAILED): None,
    (S.RELOCATING, S.ROLLED_BACK): None,
    (S.UNTHROTTLED, S.VERIFIED): None,
    (S.UNTHROTTLED, S.FAILED): None,
    (S.CANCELLING, S.MOVING): None,
    (S.CANCELLING, S.MOVED): None,
    (S.CANCELLING, S.RESTORING): EffectKind.RESTORE,
    (S.CANCELLING, S.ROLLED_BACK): None,
    (S.CANCELLING, S.FAILED): None,
    (S.RESTORING, S.ROLLED_BACK): None,
    (S.RESTORING, S.FAILED): None,
}
"""``(from, to)`` to the effect that carries a move across, None where the cluster was seen to have done it."""

E = ElectionStage
ELECTION_TRANSITIONS: Final[Mapping[tuple[ElectionStage, ElectionStage], EffectKind | None]] = {
    (E.WAITING, E.ASKED): EffectKind.ELECT,
    (E.WAITING, E.FAILED): None,
    (E.ASKED, E.HELD): None,
    (E.ASKED, E.WAITING): None,
    (E.ASKED, E.FAILED): None,
}

OUTCOMES: Final[Mapping[str, str]] = {
    "already-there": "the partition had the wanted replicas before the run touched it",
    "not-started": "the run ended before this move began",
    "refused": "a guard refused it for longer than the run was willing to wait",
    "deleted": "the topic or partition was deleted",
    "topic-recreated": "the topic was deleted and another one of its name was made; nothing of that is the run's",
    "modified-externally": "the assignment was changed externally before the move began (or while it was sent, and it was cancelled)",
    "overridden": "another tool gave the partition another target in mid-move",
    "cancelled-externally": "another tool cancelled the move",
    "rejected": "the cluster refused the move, and said why",
    "not-taken": "the cluster never showed the move although it was submitted several times",
    "throttle-not-set": "its throttle could not be set, so it was not started",
    "out-of-sync": "it arrived, and a new replica then fell out of sync",
    "log-dir": "a replica could not be moved to the log dir asked for",
    "timed-out": "it stood still, or crawled, for longer than the run waits, and is as it was before",
    "rolled-back": "it was cancelled and is as it was before",
}
"""Every outcome a move can end with besides plain success, and what it means."""


def move_to(m: MoveRun, stage: Stage, now: Now, *, outcome: str = "", detail: str = "") -> MoveRun:
    """The move in its next stage; a transition that the table does not have is a bug."""
    if (m.stage, stage) not in TRANSITIONS:
        raise ValueError(f"{m.move.name}: no transition {m.stage} → {stage}")
    if outcome and outcome not in OUTCOMES:
        raise ValueError(f"{outcome} is not an outcome")
    entered = replace(
        m,
        stage=stage,
        outcome=outcome,
        detail=detail,
        since_ms=now.ms,
        entered_s=now.s,
        grown_at_s=now.s,
        absent_since_s=None,
        cause="",
        named_s=None,
        given_up=False,
    )
    # The clock of a move goes on while it stands still, or it could stall and recover without end.
    return entered if {m.stage, stage} == {Stage.MOVING, Stage.STALLED} else entered.taken_up(now)


def elect_to(e: ElectionRun, stage: ElectionStage, *, detail: str = "", retry_at_s: float = 0.0) -> ElectionRun:
    """The election in its next stage."""
    if (e.stage, stage) not in ELECTION_TRANSITIONS:
        raise ValueError(f"no transition {e.stage} → {stage}")
    attempts = e.attempts + (stage is ElectionStage.ASKED)
    return replace(e, stage=stage, attempts=attempts, detail=detail, retry_at_s=retry_at_s)

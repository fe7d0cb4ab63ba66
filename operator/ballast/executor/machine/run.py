"""A run as a value: its moves, elections and phase.

Frozen all through: the machine answers with a new ``Run``.  What a restart must know goes into the journal (``records``);
what it can see for itself in the cluster (bytes copied, timers) is kept in memory only and marked ``transient``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from ballast.core.cluster import TopicPartition
from ballast.core.cluster.log_ends import Replica
from ballast.core.guards import Verdict
from ballast.core.plan import OTHER_PURPOSE, Move, Plan, Purpose
from ballast.core.throttles import DesiredThrottles
from ballast.core.throttles.pace import bytes_by_broker
from ballast.executor.machine.notes import MoveNote, text_of
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.stages import Copying, Ended, Planned, Relocating, Stage, Stalled, Submitted, Throttled


class Now(NamedTuple):
    """The time as the driver's clock gives it: wall milliseconds for records, monotonic seconds for waits."""

    ms: int
    s: float


class ElectionStage(StrEnum):
    """Where one election stands."""

    WAITING = "waiting"
    REQUESTED = "requested"
    COMPLETED = "completed"
    FAILED = "failed"


class Phase(StrEnum):
    """What the whole run is doing."""

    RUNNING = "running"
    PAUSED = "paused"
    """Moves in progress go on, no new one starts."""
    CANCELLING = "cancelling"
    """Reassignments in progress are cancelled, finished ones stay."""
    ENDED = "ended"


class Status(StrEnum):
    """How a run ended."""

    OPEN = "open"
    DONE = "done"
    INCOMPLETE = "incomplete"
    """Some moves or elections ended otherwise; each says how."""
    CANCELLED = "cancelled"
    REFUSED = "refused"
    """A guard kept refusing for longer than the guard timeout."""


WAITING: Final = Planned()


@dataclass(frozen=True, slots=True)
class MoveRun:
    """One move and how far it has come: what holds whatever its stage is; the stage has the rest."""

    move: Move
    stage: Stage = WAITING
    attempts: int = 0
    """Submissions and orders to log dirs so far; while restoring, of the old order."""
    note: MoveNote | None = None
    """Why it is where it is: the broker's words, the cause of a stall."""
    since_ms: int = 0
    """Wall time at which it entered its stage."""
    cancelled_by: str = ""
    """Who asked Ballast to cancel this move alone, by a run of its own; empty of every other move."""
    topic_id: str | None = None
    """The topic's id in the plan, or when the run first saw it; None where the cluster has none, or before that."""
    # Transient: seen again after a restart.
    entered_s: float = 0.0
    """Monotonic time at which it entered its stage (or the process started)."""
    down_since_s: float | None = None
    """Monotonic time since when neither metadata nor the controller's list knows the partition."""
    unconfirmed: bool = False
    """A submission of ours may still be on its way: one had no answer, or a process before this one may have sent it."""
    copied_bytes: int = 0
    """Bytes at the destinations, summed over the adding replicas."""
    total_bytes: int | None = None
    """Bytes the adding replicas will have, by the leader's present size; None until a reading tells it."""

    def begin_waits(self, now: Now) -> MoveRun:
        """The move with every wait begun now: what a process that begins with it knows."""
        stage = self.stage
        if isinstance(stage, Copying):
            stage = replace(stage, grown_at_s=now.s, mark_s=now.s, mark_left_bytes=self.left_bytes)
        return replace(self, stage=stage, entered_s=now.s)

    @property
    def detail(self) -> str:
        """The note in a sentence for people."""
        return text_of(self.note)

    @property
    def outcome(self) -> str:
        """How it ended; empty before, and for plain success."""
        return self.stage.outcome if isinstance(self.stage, Ended) else ""

    @property
    def cause(self) -> str | None:
        """Where it stands still or is over its time, the code of why; None while it is neither."""
        match self.stage:
            case Stalled(cause=cause):
                return cause
            case Relocating(cause=cause):
                return cause or None
        return None

    @property
    def found_in_place(self) -> bool:
        """Its partition had the wanted replicas before the run touched it: nothing was copied."""
        return self.outcome == "already-there"

    @property
    def size_unknown(self) -> bool:
        """It copies, and how much is unknown: neither the plan nor a reading since has told."""
        return self.total_bytes is None and self.move.size_unknown and not self.found_in_place

    @property
    def to_copy_bytes(self) -> int:
        """Bytes that it copies in all, by the newest figure; 0 with ``size_unknown``."""
        if self.found_in_place:
            return 0
        return self.move.bytes_moved if self.total_bytes is None else self.total_bytes

    @property
    def left_bytes(self) -> int:
        """Bytes still to be copied; 0 with ``size_unknown``."""
        return max(0, self.to_copy_bytes - self.copied_bytes)

    @property
    def known_left_bytes(self) -> int | None:
        """Bytes still to be copied; None with ``size_unknown``."""
        return None if self.size_unknown else self.left_bytes


@dataclass(frozen=True, slots=True)
class ElectionRun:
    """One election and how far it has come."""

    stage: ElectionStage = ElectionStage.WAITING
    attempts: int = 0
    note: MoveNote | None = None
    retry_at_s: float = 0.0

    @property
    def detail(self) -> str:
        """The note in a sentence for people."""
        return text_of(self.note)


@dataclass(frozen=True, slots=True)
class AutoReading:
    """What ``throttle_auto`` judged by last."""

    at_s: float
    arrived: Mapping[int, int]
    """Bytes at each destination broker."""
    lags: Mapping[Replica, int]
    """Messages that replicas of others are behind, as far as known."""
    unhealthy: int
    """Under-replicated partitions of others."""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a plan."""

    id: str
    intent: str
    """Its plan's, in words."""
    cluster_id: str
    policy: ExecutionPolicy
    moves: Mapping[TopicPartition, MoveRun]
    """In the plan's order."""
    elections: Mapping[TopicPartition, ElectionRun]
    purpose: Purpose = OTHER_PURPOSE
    phase: Phase = Phase.RUNNING
    status: Status = Status.OPEN
    in_order: bool = False
    """No move takes room that moves before it need: see ``Plan.in_order``."""
    unclean: bool = False
    """Elections may choose a replica out of sync (data loss; only when a person said so)."""
    started_ms: int = 0
    ended_ms: int = 0
    rollback_of: str | None = None
    """The run that this one rolls back."""
    rollback_when_cancelled: bool = False
    """After the cancel a rollback run is to follow."""
    stopped_by: str = ""
    """Who asked for the cancel or the rollback, and why where they said so."""
    unknown_settings: tuple[str, ...] = ()
    """Settings of a newer version that its policy had in the journal and does not have here; only a run that has ended has any."""
    # Transient.
    applied: DesiredThrottles | None = None
    """Throttle settings known to stand; None after a restart, when only the cluster knows."""
    rates: Mapping[int, int] = field(default_factory=dict)
    """Rates chosen by ``throttle_auto`` or raised; a broker not named has the policy's."""
    auto: AutoReading | None = None
    headroom: Mapping[int, int] = field(default_factory=dict)
    """Bytes/s that each broker's network has left for moves, as last measured; empty where no network is stated."""
    traffic: Mapping[int, float] = field(default_factory=dict)
    """Bytes/s through each broker's busier direction when the run began; absent where it was not measured, or not all of it."""
    needed: Mapping[int, int] = field(default_factory=dict)
    """Bytes/s without which a broker cannot keep up with what producers write to the moves in progress."""
    copies: Mapping[int, int] = field(default_factory=dict, compare=False)
    """Bytes that each broker receives, or may have to send, in all of the run; absent where a size is not known."""
    rates_of_others: Mapping[int, int] = field(default_factory=dict)
    """Brokers on which throttled foreign reassignments are in progress now, with their rate in bytes/s: see ``foreign_throttles``."""
    inbound: Mapping[TopicPartition, float] = field(default_factory=dict)
    """Bytes/s that producers write to each partition, as measured."""
    unmeasured: frozenset[TopicPartition] = frozenset()
    """Partitions to be copied of which a measurement did not tell that: rates are not checked against it until a later one does."""
    verdicts: tuple[Verdict, ...] = ()
    """What the guards refuse now."""
    refused_since_s: float | None = None

    @property
    def open_moves(self) -> Iterator[MoveRun]:
        """Moves that have not ended."""
        return (m for m in self.moves.values() if not isinstance(m.stage, Ended))

    def moves_in(self, *stages: type[Stage]) -> list[MoveRun]:
        """Moves in any of these stages, in the plan's order."""
        return [m for m in self.moves.values() if isinstance(m.stage, stages)]

    @property
    def ended(self) -> bool:
        """Nothing is left to do for this run."""
        return self.phase is Phase.ENDED


def new_run(run_id: str, plan: Plan, policy: ExecutionPolicy, now: Now, *, rollback_of: str | None = None) -> Run:
    """A run of this plan in which nothing has happened yet."""
    return Run(
        id=run_id,
        intent=plan.intent,
        purpose=plan.purpose,
        cluster_id=plan.cluster_id,
        policy=policy,
        moves={
            m.name: MoveRun(m, since_ms=now.ms, topic_id=plan.topic_ids.get(m.topic)).begin_waits(now)
            for m in plan.moves
        },
        elections={name: ElectionRun() for name in plan.elections},
        in_order=plan.in_order,
        started_ms=now.ms,
        rollback_of=rollback_of,
        copies=bytes_by_broker(plan.moves),
    )


def resume(run: Run, now: Now) -> Run:
    """The run as the next process goes on with it: no longer paused, and with every wait begun now.

    An attempt whose end the process before did not live to see was not the cluster's failure, and is not counted.  A move
    that was about to be submitted is planned again: what its guards said then is as old as the process that asked them.
    """
    moves = {
        n: replace(
            (replace(m, stage=Planned()) if isinstance(m.stage, Throttled) else m).begin_waits(now),
            unconfirmed=m.attempts > 0,
            attempts=m.attempts - (isinstance(m.stage, Submitted | Relocating) and m.attempts > 0),
        )
        for n, m in run.moves.items()
    }
    elections = {
        n: replace(e, attempts=e.attempts - (e.stage is ElectionStage.REQUESTED and e.attempts > 0))
        for n, e in run.elections.items()
    }
    phase = Phase.RUNNING if run.phase is Phase.PAUSED else run.phase
    copies = bytes_by_broker(m.move for m in run.open_moves)
    return replace(run, moves=moves, elections=elections, phase=phase, copies=copies)


def with_moves(run: Run, changed: Mapping[TopicPartition, MoveRun]) -> Run:
    """The run with some moves replaced."""
    return replace(run, moves={**run.moves, **changed}) if changed else run

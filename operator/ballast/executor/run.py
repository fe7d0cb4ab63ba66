"""A run as a value: its moves, elections and phase, and its form in the journal.

Frozen all through: the machine answers with a new ``Run``.  What a restart must know is in the records (``dump_*``);
what it can see for itself in the cluster (bytes copied, timers) is kept in memory only and marked ``transient``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.guards import Verdict
from ballast.core.plan import Move, Plan, Reason
from ballast.core.throttles import Aim
from ballast.errors import Refused
from ballast.executor.policy import ExecutionPolicy
from ballast.ports.journal import Record

RUN_VERSION: Final = 1


class Now(NamedTuple):
    """The time as the driver's clock gives it: wall milliseconds for records, monotonic seconds for waits."""

    ms: int
    s: float


class Stage(StrEnum):
    """Where one move stands. ``machine.TRANSITIONS`` says which may follow which, and by which effect."""

    PLANNED = "planned"
    THROTTLED = "throttled"
    """Its throttle is intended (journaled); it is set before the move is submitted."""
    SUBMITTED = "submitted"
    """Its submission is intended (journaled); whether the cluster has it, the cluster says."""
    MOVING = "moving"
    STALLED = "stalled"
    MOVED = "moved"
    """List and metadata agree that it has arrived."""
    RELOCATING = "relocating"
    """Replicas are on the right brokers and are being moved to the log dirs asked for."""
    UNTHROTTLED = "unthrottled"
    VERIFIED = "verified"
    CANCELLING = "cancelling"
    RESTORING = "restoring"
    """Cancelled, but Kafka left the old replicas in another order; the old order is being put back."""
    ROLLED_BACK = "rolled-back"
    """As it was before the run (also when it was never started)."""
    FAILED = "failed"
    """Ended otherwise; ``outcome`` says how."""


FINAL: Final = frozenset({Stage.VERIFIED, Stage.ROLLED_BACK, Stage.FAILED})
IN_FLIGHT: Final = frozenset({Stage.SUBMITTED, Stage.MOVING, Stage.STALLED, Stage.CANCELLING, Stage.RELOCATING})
"""Stages in which the cluster may be copying this partition."""
HOLDS_THROTTLE: Final = frozenset({Stage.THROTTLED, *IN_FLIGHT})
"""Stages in which the move's replicas stand in the throttle lists."""


class ElectionStage(StrEnum):
    """Where one election stands."""

    WAITING = "waiting"
    ASKED = "asked"
    HELD = "held"
    FAILED = "failed"


class Phase(StrEnum):
    """What the whole run is doing."""

    RUNNING = "running"
    PAUSED = "paused"
    """Moves in flight go on, no new one starts."""
    CANCELLING = "cancelling"
    """Moves in flight are taken back, what has arrived stays."""
    ENDED = "ended"


class Status(StrEnum):
    """How a run ended."""

    OPEN = "open"
    DONE = "done"
    INCOMPLETE = "incomplete"
    """Some moves or elections ended otherwise; each says how."""
    CANCELLED = "cancelled"
    REFUSED = "refused"
    """A guard kept refusing for longer than the policy's patience."""


@dataclass(frozen=True, slots=True)
class MoveRun:
    """One move and how far it has come."""

    move: Move
    stage: Stage = Stage.PLANNED
    attempts: int = 0
    """Submissions so far; while restoring, of the old order."""
    outcome: str = ""
    """For a final stage: a closed set of codes, see ``machine.OUTCOMES``."""
    detail: str = ""
    """A sentence for people: the broker's words, the cause of a stall."""
    since_ms: int = 0
    """Wall time at which it entered its stage."""
    # Transient: seen again after a restart.
    entered_s: float = 0.0
    """Monotonic time at which it entered its stage (or the process started)."""
    retry_at_s: float = 0.0
    copied_bytes: int = 0
    """Bytes at the destinations, summed over the adding replicas."""
    total_bytes: int = 0
    """Bytes the adding replicas will have, by the leader's present size."""
    grown_at_s: float = 0.0
    """Monotonic time at which a destination was last seen to grow."""
    mark_left_bytes: int = 0
    """Bytes that were left when its clock was last started: see ``patience``."""
    mark_s: float = 0.0
    """Monotonic time at which its clock was last started."""
    cause: str = ""
    """For a stalled move, the code of the cause that ``detail`` tells: see ``stalls.CAUSES``."""
    absent_since_s: float | None = None
    """Monotonic time since when the cluster no longer lists it and metadata does not show it done."""

    def taken_up(self, now: Now) -> MoveRun:
        """The move with every wait begun now: what a process that begins with it knows."""
        return replace(self, entered_s=now.s, grown_at_s=now.s, mark_s=now.s, mark_left_bytes=self.left_bytes)

    @property
    def left_bytes(self) -> int:
        """Bytes still to be copied, as far as sizes are known."""
        total = self.total_bytes or self.move.bytes_moved
        return max(0, total - self.copied_bytes)

    def persists_like(self, other: MoveRun) -> bool:
        """Would both write the same record?"""
        return (self.stage, self.attempts, self.outcome, self.detail) == (
            other.stage,
            other.attempts,
            other.outcome,
            other.detail,
        )


@dataclass(frozen=True, slots=True)
class ElectionRun:
    """One election and how far it has come."""

    stage: ElectionStage = ElectionStage.WAITING
    attempts: int = 0
    detail: str = ""
    retry_at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AutoReading:
    """What ``throttle_auto`` judged by last."""

    at_s: float
    arrived: Mapping[int, int]
    """Bytes at each destination broker."""
    lag: int
    """Messages that replicas of others are behind."""
    sick: int
    """Under-replicated partitions of others."""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a plan."""

    id: str
    intent: str
    cluster_id: str
    policy: ExecutionPolicy
    moves: Mapping[TopicPartition, MoveRun]
    """In the plan's order."""
    elections: Mapping[TopicPartition, ElectionRun]
    phase: Phase = Phase.RUNNING
    status: Status = Status.OPEN
    unclean: bool = False
    """Elections may choose a replica out of sync (data loss; only when a person said so)."""
    started_ms: int = 0
    ended_ms: int = 0
    undoes: str | None = None
    """The run that this one rolls back."""
    rollback_when_cancelled: bool = False
    """After the cancel a rollback run is to follow."""
    # Transient.
    applied: Aim | None = None
    """Throttle settings known to stand; None after a restart, when only the cluster knows."""
    rates: Mapping[int, int] = field(default_factory=dict)
    """Rates chosen by ``throttle_auto`` or raised; a broker not named has the policy's."""
    auto: AutoReading | None = None
    inbound: Mapping[TopicPartition, float] = field(default_factory=dict)
    """Bytes/s that producers write to each partition, as measured."""
    verdicts: tuple[Verdict, ...] = ()
    """What the guards refuse now."""
    refused_since_s: float | None = None

    @property
    def open_moves(self) -> Iterator[MoveRun]:
        """Moves that have not ended."""
        return (m for m in self.moves.values() if m.stage not in FINAL)

    @property
    def ended(self) -> bool:
        """Nothing is left to do for this run."""
        return self.phase is Phase.ENDED


def new_run(run_id: str, plan: Plan, policy: ExecutionPolicy, now: Now, *, undoes: str | None = None) -> Run:
    """A run of this plan in which nothing has happened yet."""
    return Run(
        id=run_id,
        intent=plan.intent,
        cluster_id=plan.cluster_id,
        policy=policy,
        moves={m.name: MoveRun(m, since_ms=now.ms).taken_up(now) for m in plan.moves},
        elections={name: ElectionRun() for name in plan.elections},
        started_ms=now.ms,
        undoes=undoes,
    )


def with_moves(run: Run, changed: Mapping[TopicPartition, MoveRun]) -> Run:
    """The run with some moves replaced."""
    return replace(run, moves={**run.moves, **changed}) if changed else run


def run_key(run_id: str) -> str:
    """The journal key of a run's header."""
    return f"run/{run_id}"


def move_key(run_id: str, name: TopicPartition) -> str:
    """The journal key of one move."""
    return f"move/{run_id}/{name}"


def election_key(run_id: str, name: TopicPartition) -> str:
    """The journal key of one election."""
    return f"election/{run_id}/{name}"


def dump_header(run: Run) -> Record:
    """The run without its moves."""
    return Record(
        run_key(run.id),
        {
            "version": RUN_VERSION,
            "intent": run.intent,
            "cluster_id": run.cluster_id,
            "policy": run.policy.dump(),
            "phase": run.phase.value,
            "status": run.status.value,
            "unclean": run.unclean,
            "started_ms": run.started_ms,
            "ended_ms": run.ended_ms,
            "undoes": run.undoes,
            "rollback_when_cancelled": run.rollback_when_cancelled,
            "moves": len(run.moves),
            "elections": len(run.elections),
        },
    )


def dump_move(run: Run, order: int, m: MoveRun) -> Record:
    """One move with all that its rollback needs."""
    value: dict[str, Any] = {
        "version": RUN_VERSION,
        "order": order,
        "topic": m.move.topic,
        "partition": m.move.partition,
        "old": list(m.move.old),
        "new": list(m.move.new),
        "size_bytes": m.move.size_bytes,
        "reason": [m.move.reason.code, m.move.reason.detail],
        "stage": m.stage.value,
        "attempts": m.attempts,
        "since_ms": m.since_ms,
    }
    if m.move.log_dirs is not None:
        value["log_dirs"] = list(m.move.log_dirs)
    if m.outcome:
        value["outcome"] = m.outcome
    if m.detail:
        value["detail"] = m.detail
    return Record(move_key(run.id, m.move.name), value)


def dump_election(run: Run, name: TopicPartition, e: ElectionRun) -> Record:
    """One election."""
    return Record(
        election_key(run.id, name),
        {
            "version": RUN_VERSION,
            "topic": name.topic,
            "partition": name.partition,
            "stage": e.stage.value,
            "attempts": e.attempts,
            "detail": e.detail,
        },
    )


def dump_run(run: Run) -> list[Record]:
    """Every record of a run."""
    return [
        dump_header(run),
        *(dump_move(run, i, m) for i, m in enumerate(run.moves.values())),
        *(dump_election(run, n, e) for n, e in run.elections.items()),
    ]


def changes(before: Run, after: Run) -> list[Record]:
    """The records that differ between two values of one run."""
    out: list[Record] = []
    if before.moves is not after.moves:
        for i, (name, m) in enumerate(after.moves.items()):
            was = before.moves[name]
            if was is not m and not was.persists_like(m):
                out.append(dump_move(after, i, m))
    if before.elections is not after.elections:
        for name, e in after.elections.items():
            was_e = before.elections[name]
            if (was_e.stage, was_e.attempts, was_e.detail) != (e.stage, e.attempts, e.detail):
                out.append(dump_election(after, name, e))
    header = dump_header(after)
    # The header goes last: once it says that the run has ended, every move before it in the journal has its end too.
    return out if header == dump_header(before) else [*out, header]


def _versioned(record: Record) -> Mapping[str, Any]:
    value = record.value or {}
    if value.get("version") != RUN_VERSION:
        raise Refused(
            f"The journal's record {record.key} has version {value.get('version')}, and this Ballast reads {RUN_VERSION}.",
            hint="Use the Ballast version that wrote it, or a newer one.",
        )
    return value


def _load_move(value: Mapping[str, Any], now: Now) -> MoveRun:
    code, detail = value["reason"]
    dirs = value.get("log_dirs")
    return MoveRun(
        Move(
            topic=value["topic"],
            partition=value["partition"],
            old=tuple(value["old"]),
            new=tuple(value["new"]),
            size_bytes=value.get("size_bytes", UNKNOWN),
            reason=Reason(code, detail),
            log_dirs=None if dirs is None else tuple(dirs),
        ),
        stage=Stage(value["stage"]),
        attempts=value["attempts"],
        outcome=value.get("outcome", ""),
        detail=value.get("detail", ""),
        since_ms=value["since_ms"],
    ).taken_up(now)


def load_runs(records: Iterable[Record], now: Now) -> dict[str, Run]:
    """Every run in the journal, oldest first; a record of an unknown version is refused, never guessed."""
    headers: dict[str, Mapping[str, Any]] = {}
    moves: dict[str, list[tuple[int, MoveRun]]] = {}
    elections: dict[str, dict[TopicPartition, ElectionRun]] = {}
    for record in records:
        kind, _, rest = record.key.partition("/")
        if kind == "run":
            headers[rest] = _versioned(record)
        elif kind == "move":
            value = _versioned(record)
            moves.setdefault(rest.split("/", 1)[0], []).append((value["order"], _load_move(value, now)))
        elif kind == "election":
            value = _versioned(record)
            name = TopicPartition(value["topic"], value["partition"])
            elections.setdefault(rest.split("/", 1)[0], {})[name] = ElectionRun(
                ElectionStage(value["stage"]), value["attempts"], value["detail"]
            )
    out = [
        Run(
            id=run_id,
            intent=h["intent"],
            cluster_id=h["cluster_id"],
            policy=ExecutionPolicy.load(h["policy"]),
            moves={m.move.name: m for _, m in sorted(moves.get(run_id, ()), key=lambda pair: pair[0])},
            elections=elections.get(run_id, {}),
            phase=Phase(h["phase"]),
            status=Status(h["status"]),
            unclean=h["unclean"],
            started_ms=h["started_ms"],
            ended_ms=h["ended_ms"],
            undoes=h["undoes"],
            rollback_when_cancelled=h["rollback_when_cancelled"],
        )
        for run_id, h in headers.items()
        # Journals are read in whole appends, so every record of a run is here with its header.  Should one be missing all
        # the same, somebody else took it away, and half a run is nothing to act upon.
        if (len(moves.get(run_id, ())), len(elections.get(run_id, ()))) == (h["moves"], h["elections"])
    ]
    return {r.id: r for r in sorted(out, key=lambda r: (r.started_ms, r.id))}


def expired(runs: Mapping[str, Run], keep: int) -> list[Record]:
    """Tombstones for the oldest runs that have ended, beyond the newest ``keep``; an open run never expires."""
    ended = [r for r in runs.values() if r.ended]
    old = ended[: max(0, len(ended) - keep)]
    return [Record(record.key, None) for r in old for record in dump_run(r)]

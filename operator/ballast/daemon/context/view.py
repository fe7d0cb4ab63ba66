"""What the daemon knows about itself and its cluster right now, as one frozen value.

The loop publishes; metrics, the page and the probes read.  A reader never sees half an update, holds no lock while it
renders, and can wait for the next version.  The web API writes these types as they are declared here, by the style of
documents: what is said of a field here is what its schema says.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field

from ballast.core.catalogue import Message, Said
from ballast.core.cluster.drain import Drain
from ballast.core.field_types import Moment, OneOf, Parameters, Text
from ballast.core.plan import OTHER_PURPOSE, Purpose
from ballast.core.plan.file import BrokerSummary, ResourceSummary
from ballast.core.samples import Point
from ballast.daemon.context.figures import Figures
from ballast.daemon.policy import Mode
from ballast.executor.journal.pause import Pause
from ballast.executor.journal.records import SkippedRun


class Role(StrEnum):
    """What this process is to its cluster."""

    STARTING = "starting"
    OBSERVING = "observing"
    """No kind of action may write: no lock is needed."""
    ACTIVE = "active"
    """It holds the cluster's lock and is the only one that acts."""
    STANDBY = "standby"
    """Another process holds the lock; this one is ready to take it."""
    STOPPING = "stopping"


class CheckResult(StrEnum):
    """How a check went, as its metric's label says it."""

    OK = "ok"
    FAILED = "failed"
    BUG = "bug"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A code with its figures and its sentence, as plain data."""

    code: str
    cause: Text = ""
    """Which of the code's causes; null where it has but one."""
    parameters: Parameters = field(default_factory=dict)
    """The figures of ``detail``."""
    detail: str

    @classmethod
    def of(cls, said: Message, **more: Any) -> Self:
        """What this message says, and what a kind of note has beside that."""
        return cls(code=said.code, cause=said.cause, parameters=said.parameters, detail=said.detail, **more)


def notes_of(said: Said | str) -> tuple[Note, ...]:
    """What is said by codes; nothing where it is a sentence alone."""
    return () if isinstance(said, str) else tuple(map(Note.of, (said,) if isinstance(said, Message) else said))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """How one kind of check went last time."""

    detail: str
    notes: tuple[Note, ...] = ()
    """What it decided, by codes, sentence after sentence as in ``detail``; empty where it failed, and for checks that decide nothing."""
    at_ms: Moment
    duration_s: float
    result: Annotated[CheckResult, OneOf(*CheckResult)] = CheckResult.OK
    failures: int = 0
    """Failures in a row."""
    reading_ms: Annotated[Moment | None, Field(serialization_alias="readAt")] = None
    """Time of the reading that the check used; null if it used none."""
    stale: Literal["outage", "earlier-reading"] | None = None
    """Why it no longer shows how things are; filled in whenever it is shown, null where it does."""

    @property
    def ok(self) -> bool:
        """It did what it is for."""
        return self.result is CheckResult.OK


COOLING_DOWN: Final = "cooling-down"
"""The code of a permission that waits for nothing but its cool-down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission(Note):
    """Whether one kind of action may start now, and the sentence that says why."""

    action: str
    mode: str
    allowed: bool

    def may_start(self, *, approved: bool) -> bool:
        """May it start now?  A cool-down, which is the last reason of all, holds only what no person approved."""
        return self.allowed or (approved and self.code == COOLING_DOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """Another balancer of this cluster, or a foreign reassignment."""

    code: str
    detail: str
    blocking: bool
    """Ballast starts nothing while this lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveView:
    """One partition on its way."""

    topic: str
    partition: int
    old: tuple[int, ...]
    new: tuple[int, ...]
    size_bytes: int | None
    """Null where no broker said it."""
    copied_bytes: int
    stage: str
    detail: str


SETTLING: Final = "throttles"
"""In the place of a run's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """The run that is being executed, or one of history."""

    id: str
    """``throttles`` while throttles of runs that have ended are removed: there is nothing to cancel."""
    intent: str
    purpose: Purpose = OTHER_PURPOSE
    phase: str
    started_at_ms: Moment
    ended_at_ms: Moment | None = None
    status: str = "open"
    """``open``, or how it ended: ``done``, ``incomplete``, ``cancelled``, ``refused``."""
    changes: tuple[str, ...] = ()
    """Each kind of change with its own count, in the words of its plan; empty for one that has ended."""
    moves_total: int = 0
    """Partitions that it changes, of all kinds together."""
    moves_verified: int = 0
    moves_ended_otherwise: int = 0
    moves_in_flight: int = 0
    elections_total: int = 0
    elections_completed: int = 0
    bytes_total: int | None = 0
    """Null where the size of a move is unknown, and so is ``bytesLeft``."""
    bytes_left: int | None = 0
    bytes_per_s: float | None = None
    """Null until two readings show one."""
    seconds_left: float | None = None
    throttle_bytes_per_s: int | None = None
    detail: Text = ""
    moves: tuple[MoveView, ...] = ()
    """The ones in progress, at most a page of them."""


@dataclass(frozen=True, slots=True)
class PlanReason:
    """Why moves or elections are in a plan: a resource that is out of range, or what a move is for."""

    code: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """A plan that waits for a person, or that the daemon would execute if it were allowed to."""

    id: str
    action: str
    intent: str
    purpose: Purpose = OTHER_PURPOSE
    created_at_ms: Moment
    moves: int
    """Partitions that it changes, of all kinds together."""
    elections: int
    copies: int
    """Moves that copy data; the others only change an order."""
    changes: tuple[str, ...] = ()
    """Each kind of change with its own count and what it copies, in words."""
    bytes_moved: int | None
    """Of those of them together; null where a size is unknown."""
    bound_bytes: int | None
    status: str
    pending_approval: bool
    """True when a person's approval would start it."""
    approved_by: Text = ""
    """Who approved it; null until a person has."""
    reasons: tuple[PlanReason, ...] = ()
    resources: tuple[ResourceSummary, ...] = ()
    brokers: tuple[BrokerSummary, ...] = ()
    replica_list_changes: int = 0
    """Replica lists whose order alone changes."""
    throttle: Text = ""
    """``auto``, ``none``, or ``fixed``: how copies are throttled when this plan runs."""
    throttle_bytes_per_s: int | None = None
    """The rate that ``seconds`` was computed with; null where there is none."""
    seconds: float | None = None
    """About how long its copies take at that rate; null where no rate or no size is known."""
    requested_by: Text = ""
    """Who asked for it; null for plans that Ballast made by itself."""
    blocked: Text = ""
    """Why it may not start now even when it is approved; filled in whenever it is shown, null where nothing keeps it."""
    examples: tuple[MoveView, ...] = ()
    objections: tuple[Note, ...] = ()
    """Why it waits for a person's approval whatever the mode; empty where it need not, or has it."""
    obstacles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of something that a person asked of this process."""

    request: str
    """The id that the API gave for it."""
    detail: str
    ok: bool
    at_ms: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The cluster cannot be read now; every figure is as old as the newest reading before."""

    code: Annotated[str, OneOf("unreachable", "access-denied", "refused")]
    detail: str
    since_ms: Moment
    """When reading it first failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A broker that is down and holds replicas."""

    broker: int
    since_ms: Moment
    """When it was first missed."""
    repair_at_ms: Moment
    """When its replicas are to be rebuilt on other brokers, unless it returns before: the end of its grace, later where its rack is coming back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceView:
    """What the newest balance check concluded."""

    verdict: Annotated[str, OneOf("unknown", "balanced", "unbalanced", "no-plan-found")] = "unknown"
    """``unbalanced``: a plan would help; ``no-plan-found``: out of range, and no plan helps."""
    detail: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockView:
    """The cluster's lock as far as this process can tell."""

    held: bool = False
    holder: Text = ""
    since_ms: Moment | None = None
    journal_readable: bool | None = None
    """Null when there is no journal to read (observe mode)."""
    journal_problem: Text = ""
    """Why the journal cannot be used, so that nothing starts; null while it can, or where there is none."""


NOT_READ: Final = "The journal has not been read yet."
"""Before the first time, nothing is known of runs: that is not none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the daemon knows at one moment and tells on its first page."""

    version: int = 0
    """Grows with every change."""
    name: str = ""
    """What people call the cluster."""
    instance: str = ""
    """What people call this process: the pod's name."""
    started_at_ms: Moment = 0
    role: Annotated[Role, OneOf(*Role)] = Role.STARTING
    mode: Annotated[str, OneOf(*Mode)] = "observe"
    figures: Annotated[Figures | None, Field(serialization_alias="cluster")] = None
    outage: Outage | None = None
    """Why the cluster cannot be read now, and since when; null when the newest reading succeeded."""
    absences: tuple[Absence, ...] = ()
    """Brokers that are down and hold replicas."""
    checks: Mapping[str, CheckReport] = field(default_factory=dict)
    """By the check's name."""
    permissions: tuple[Permission, ...] = ()
    others: tuple[Other, ...] = ()
    plans: tuple[PlanView, ...] = ()
    balance: BalanceView = BalanceView()
    run: RunView | None = None
    """The run that this process executes."""
    run_elsewhere: RunView | None = None
    """The run that another process executes, as far as the journal shows it: its stages, but neither rate nor time."""
    pause: Pause | None = None
    drains: tuple[Drain, ...] = ()
    """Brokers that people drained, by ``plan`` and its approval; those that the settings drain are not among them."""
    lock: LockView = LockView()
    throttles_to_restore: int = 0
    """Throttles that Ballast set and has not yet removed."""
    answers: tuple[Answer, ...] = ()
    """What came of the newest requests to this process, oldest first."""
    settings_problem: Text = ""
    """Why the newest settings file is not active; null when it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Status):
    """What the daemon knows at one moment, for the page and the metrics."""

    changed_at_ms: int | None = None
    """When the first reading was taken that shows brokers, replicas, leaders and ISRs as they are now."""
    history: tuple[RunView, ...] = ()
    history_skipped: tuple[SkippedRun, ...] = ()
    """Runs of the journal that cannot be read."""
    history_problem: str = NOT_READ
    """Why the runs that ended are not known; empty when they are."""
    sampled_at_ms: int | None = None
    """When this process recorded its newest minute for the load model; None before the first one."""
    sample_failures: int | None = None
    """How many samples in a row could not be recorded; None where none is kept."""
    requests_skipped: int | None = None
    """Requests in the journal that this version cannot read; None in a process that answers none."""
    series: tuple[Point, ...] = ()
    series_problem: str = ""
    """Why points of earlier processes are missing, or new ones are not kept; empty where nothing fails."""
    settings: tuple[tuple[str, str], ...] = ()
    """The active settings, as (name, value); no secret is ever among them."""
    settings_changed: frozenset[str] = frozenset()
    """Names of those that differ from the defaults."""


ANSWERS_KEPT: Final = 20


class Board:
    """Holds the newest view; safe to use from any thread."""

    def __init__(self, first: View | None = None) -> None:
        self._view = first or View()
        self._changed = threading.Condition()

    @property
    def view(self) -> View:
        """The newest view."""
        return self._view

    def publish(self, **changes: Any) -> View:
        """Replace some fields; wakes the threads that wait for news."""
        return self.update(lambda _: changes)

    def update(self, change: Callable[[View], Mapping[str, Any]]) -> View:
        """Replace fields by what follows from those that are there: two threads at once lose neither's change."""
        with self._changed:
            self._view = replace(self._view, version=self._view.version + 1, **change(self._view))
            self._changed.notify_all()
            return self._view

    def set_role(self, role: Role) -> None:
        """Publish the role of this process."""
        if self._view.role is not role:
            self.publish(role=role)

    def tell(self, request: str, sentence: str, *, ok: bool, at_ms: int) -> None:
        """Show what came of a request to the person who made it."""
        answer = Answer(request=request, detail=sentence, ok=ok, at_ms=at_ms)
        self.update(lambda view: {"answers": (*view.answers, answer)[-ANSWERS_KEPT:]})

    def load_answers(self, kept: tuple[Answer, ...]) -> None:
        """Show the answers that the journal keeps, beside those that only this process knows."""
        known = {answer.request for answer in kept}

        def merged(view: View) -> Mapping[str, Any]:
            own = [answer for answer in view.answers if answer.request not in known]
            return {"answers": tuple(sorted([*own, *kept], key=lambda a: a.at_ms)[-ANSWERS_KEPT:])}

        self.update(merged)

    def tell_check(self, name: str, report: CheckReport) -> None:
        """Show what a check said."""
        self.update(lambda view: {"checks": {**view.checks, name: report}})

    def tell_journal(self, problem: str = "") -> None:
        """Show that the journal can be used, or why not; whose the lock is stays as it is."""
        self.update(lambda view: {"lock": replace(view.lock, journal_readable=not problem, journal_problem=problem)})

    def wait(self, version: int, timeout_s: float) -> View:
        """Return when there is a newer view than ``version``, or after the timeout with what there is."""
        with self._changed:
            self._changed.wait_for(lambda: self._view.version > version, timeout_s)
            return self._view

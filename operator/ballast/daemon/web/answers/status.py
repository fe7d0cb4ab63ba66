"""What the HTTP API answers of the daemon: its status, its settings, and what becomes of a request."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ballast.core.document_types import OneOf
from ballast.daemon.context.view import CheckResult, Role
from ballast.daemon.web.answers.base import EMPTY, Answer, Moment, Part, Text
from ballast.daemon.web.answers.cluster import Cluster
from ballast.daemon.web.answers.runs import Plan, Run


class Outage(Part):
    """The cluster cannot be read now; every figure is as old as the newest reading before."""

    code: Annotated[str, OneOf("unreachable", "access-denied", "refused")]
    detail: str
    since_ms: Moment
    """When reading it first failed."""


class Absence(Part):
    """A broker that is down and holds replicas."""

    broker: int
    since_ms: Moment
    """When it was first missed."""
    repair_at_ms: Moment
    """When its replicas are to be rebuilt on other brokers, unless it returns before."""


class Permission(Part):
    """Whether one kind of action may start now, and the sentence that says why."""

    action: str
    mode: str
    allowed: bool
    code: str
    detail: str


class Other(Part):
    """Another balancer of this cluster, or a foreign reassignment."""

    code: str
    detail: str
    blocking: bool
    """Ballast does not act while this lasts."""


class Pause(Part):
    """The pause switch."""

    by: str
    since_ms: Moment
    reason: Text


class Drain(Part):
    """A broker that a person drained: it takes no replica until the drain is ended."""

    broker: int
    by: str
    since_ms: Moment


class Lock(Part):
    """The cluster's lock as far as this process knows."""

    held: bool
    holder: Text
    since_ms: Moment | None
    journal_readable: bool | None
    """Null when there is no journal to read (observe mode)."""
    journal_problem: Text
    """Why the journal cannot be used, so that nothing starts; null while it can."""


class Balance(Part):
    """What the newest balance check concluded."""

    verdict: Annotated[str, OneOf("unknown", "balanced", "unbalanced", "no-plan-found")]
    """``unbalanced``: a plan would help; ``no-plan-found``: out of range, and no plan helps."""
    detail: Text


class Check(Part):
    """How one kind of check went last time, in one sentence."""

    detail: str
    at_ms: Moment
    duration_s: float
    result: Annotated[str, OneOf(*(r.value for r in CheckResult))]
    failures: int
    """Failures in a row."""
    reading_ms: Annotated[Moment | None, Field(serialization_alias="readAt")]
    """When the reading was taken that it went by; null where it goes by none."""
    stale: Annotated[Literal["outage", "earlier-reading"] | None, EMPTY]
    """Why it no longer shows how things are; null where it does."""


class Outcome(Part):
    """What came of something that a person asked of this process."""

    request: str
    """The id that the API gave for it."""
    detail: str
    ok: bool
    at_ms: Moment


class DaemonStatus(Answer):
    """Everything that the page shows."""

    kind: Literal["DaemonStatus"] = "DaemonStatus"
    version: int
    """Grows with every change."""
    now_ms: Moment
    """The daemon's clock, by which ages are counted."""
    name: str
    instance: str
    started_at_ms: Moment
    role: Annotated[str, OneOf(*(r.value for r in Role))]
    mode: Annotated[str, OneOf("observe", "approve", "auto")]
    actions_enabled: bool
    """False: the page is read-only."""
    read_only: Text
    """Why no user may act; null where a user may."""
    cluster: Cluster | None
    outage: Outage | None
    absences: list[Absence]
    """Brokers that are down and hold replicas."""
    permissions: list[Permission]
    others: list[Other]
    pause: Pause | None
    drains: list[Drain]
    """Brokers that people drained, by ``plan`` and its approval."""
    lock: Lock
    balance: Balance
    run: Run | None
    """The run that this process executes."""
    run_elsewhere: Run | None
    """On a standby: the run that another process executes, as the journal shows it."""
    plans: list[Plan]
    checks: dict[str, Check]
    """By the check's name."""
    answers: list[Outcome]
    """What came of the newest requests to this process."""
    throttles_to_restore: int
    """Throttles that Ballast set and has not yet removed."""
    settings_problem: Text
    """Why the newest settings are not active; null when they are."""


class Setting(Part):
    """An active setting."""

    name: str
    value: str
    changed: bool
    """It differs from its default."""


class DaemonSettings(Answer):
    """The active settings; secrets are never among them."""

    kind: Literal["DaemonSettings"] = "DaemonSettings"
    settings: list[Setting]


class RequestAccepted(Answer):
    """A request that was taken; the next check executes it, and ``answers`` of the status say what came of it."""

    kind: Literal["RequestAccepted"] = "RequestAccepted"
    request: str
    """Its id."""


class RequestRefused(Answer):
    """Why there is no other answer."""

    kind: Literal["RequestRefused"] = "RequestRefused"
    detail: str

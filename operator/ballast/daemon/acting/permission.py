"""May this kind of action start now?  One table of reasons, read from the top; the first that holds is the answer.

``permission`` is pure: what is known goes in as a ``Situation``, a ``Permission`` with a stable code and a sentence comes out.
``Permissions`` gathers the situation from the parts that know it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final
from zoneinfo import ZoneInfo

from cronsim import CronSim

from ballast.core.catalogue import Catalogue, Message, Table, codes_of
from ballast.daemon.acting.action_history import NO_ACTIONS, ActionHistory
from ballast.daemon.acting.runs import Runs
from ballast.daemon.context.access import Access
from ballast.daemon.context.view import COOLING_DOWN, Board, Other, Outage, Permission, Role
from ballast.daemon.observing.reading import Reading
from ballast.daemon.policy import ActionKind, DaemonPolicy, LivePolicy, Mode, Window
from ballast.executor.journal.pause import Pause
from ballast.ports.time import Clock


class PermissionReason(Message):
    """Why a kind of action may start, or may not."""

    __slots__ = ()
    sentences: ClassVar[Table] = {
        "stopping": "The daemon is stopping.",
        "observe-only": "The mode for {kind} is observe: nothing is ever written.",
        "no-reading": "There is no reading of the cluster yet.",
        ("no-reading", "outage"): "The cluster cannot be read since {since_ms:clock}: {why}",
        ("no-reading", "old"): "The newest reading of the cluster is {age_s:time} old; nothing is decided from it.",
        "standby": "This process does not hold the cluster's lock.",
        ("standby", "journal"): "The journal cannot be used: {why}",
        ("standby", "held"): "Another process holds the cluster's lock: {holder}.",
        "releasing-lock": "The lock is being released for {by}.",
        "paused": "Paused by {by} since {since_ms:clock}{reason:reason}.",
        "run-in-progress": "Run {run} is in progress.",
        "foreign-activity": "Waiting for another balancer or reassignment: {what}",
        "replicas-not-in-sync": "Waiting for replicas to be in sync: {why}",
        "outside-window": "Outside its windows; the next one opens {opens_ms:clock}.",
        ("outside-window", "none"): "Outside its windows and never opens again.",
        "cap-reached": "Started {starts:times} today, the cap is {cap}.",
        COOLING_DOWN: (
            "The last one ended {since_s:time} ago; the cool-down is {cool_down_s:time}. "
            "What a person approves does not wait for it."
        ),
        "allowed": "No guard refuses it.",
    }
    catalogue = Catalogue(
        {
            "clock": lambda at_ms: datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        }
    )


CODES: Final = codes_of(PermissionReason.sentences)
"""Every code a permission can have; metrics label by them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a decision needs to know about the moment."""

    now_ms: int
    role: Role
    reading_age_s: float | None
    """Age of the newest reading; None when there is none."""
    outage: Outage | None = None
    """Why the newest attempt to read the cluster failed."""
    lock_holder: str = ""
    """The other process that holds the lock, for people; empty while none is known."""
    journal_problem: str = ""
    """Why the journal cannot be used; empty while it can."""
    pause: Pause | None = None
    run: str | None = None
    """The run in progress."""
    release_for: str = ""
    """The person for whom the lock is being released; empty while it is kept."""
    others: tuple[Other, ...] = ()
    quiet_reason: str = ""
    """Why the cluster is to be left in peace; empty when it is not."""
    acts: Mapping[ActionKind, ActionHistory] = field(default_factory=dict)


def permission(kind: ActionKind, policy: DaemonPolicy, at: Situation) -> Permission:
    """Judge one kind of action."""
    mode = policy.mode_of(kind)
    reason = next(_objections(kind, mode, policy, at), PermissionReason("allowed"))
    return Permission.of(reason, action=kind.value, mode=mode.value, allowed=reason.code == "allowed")


def permissions(policy: DaemonPolicy, at: Situation) -> tuple[Permission, ...]:
    """Judge every kind of action."""
    return tuple(permission(kind, policy, at) for kind in ActionKind)


def _objections(kind: ActionKind, mode: Mode, policy: DaemonPolicy, at: Situation) -> Iterator[PermissionReason]:
    """Everything that speaks against it, the weightiest first."""
    if at.role is Role.STOPPING:
        yield PermissionReason("stopping")
    if mode is Mode.OBSERVE:
        yield PermissionReason("observe-only", {"kind": kind.value})
    if at.outage is not None:
        yield PermissionReason("no-reading", {"since_ms": at.outage.since_ms, "why": at.outage.detail}, "outage")
    if at.reading_age_s is None:
        yield PermissionReason("no-reading")
    elif at.reading_age_s > policy.guards.max_reading_age_s:
        yield PermissionReason("no-reading", {"age_s": at.reading_age_s}, "old")
    if at.role is not Role.ACTIVE:
        if at.journal_problem:
            yield PermissionReason("standby", {"why": at.journal_problem}, "journal")
        if at.lock_holder:
            yield PermissionReason("standby", {"holder": at.lock_holder}, "held")
        yield PermissionReason("standby")
    if at.release_for:
        yield PermissionReason("releasing-lock", {"by": at.release_for})
    if (pause := at.pause) is not None:
        yield PermissionReason("paused", {"by": pause.by, "since_ms": pause.since_ms, "reason": pause.reason})
    if at.run is not None:
        yield PermissionReason("run-in-progress", {"run": at.run})
    yield from (PermissionReason("foreign-activity", {"what": other.detail}) for other in at.others if other.blocking)
    # Repair is what brings replicas back into sync; everything else waits for them.
    if at.quiet_reason and kind is not ActionKind.REPAIR:
        yield PermissionReason("replicas-not-in-sync", {"why": at.quiet_reason})
    yield from _objections_of_time(kind, policy, at)


def _objections_of_time(kind: ActionKind, policy: DaemonPolicy, at: Situation) -> Iterator[PermissionReason]:
    own = policy.actions.of(kind)
    acts = at.acts.get(kind, NO_ACTIONS)
    now = datetime.fromtimestamp(at.now_ms / 1000, UTC)
    if not is_open(own.windows, now):
        opening = next_opening(own.windows, now)
        if opening is None:
            yield PermissionReason("outside-window", cause="none")
        else:
            yield PermissionReason("outside-window", {"opens_ms": int(opening.timestamp() * 1000)})
    if own.per_day is not None and (starts := acts.starts_on(at.now_ms)) >= own.per_day:
        yield PermissionReason("cap-reached", {"starts": starts, "cap": own.per_day})
    if acts.last_end_ms is not None:
        since_s = (at.now_ms - acts.last_end_ms) / 1000
        # An end that a clock far ahead has noted says nothing: it must not hold everything until that time has come.
        if abs(since_s) < own.cool_down_s:
            yield PermissionReason(COOLING_DOWN, {"since_s": max(since_s, 0.0), "cool_down_s": own.cool_down_s})


@dataclass(frozen=True, slots=True)
class Permissions:
    """What may start now and what may not, and why."""

    clock: Clock
    board: Board
    policy: LivePolicy
    reading: Reading
    access: Access
    runs: Runs

    def of(self, kind: ActionKind) -> Permission:
        """May this kind of action start now?"""
        return permission(kind, self.policy.now, self._situation())

    def publish(self) -> None:
        """Publish the permission of every kind of action."""
        policy = self.policy.now
        self.board.publish(permissions=permissions(policy, self._situation()), mode=policy.mode.value)

    def _situation(self) -> Situation:
        view, run = self.board.view, self.access.current()
        return Situation(
            now_ms=self.clock.now_ms(),
            role=view.role,
            lock_holder="" if view.lock.held else view.lock.holder,
            journal_problem=view.lock.journal_problem,
            reading_age_s=self.reading.age_s(),
            outage=view.outage,
            pause=view.pause,
            run=run.id if run else None,
            release_for=self.access.release_for,
            others=view.others,
            quiet_reason=self.reading.quiet_reason(),
            acts=self.runs.acts,
        )


def closes_at(window: Window, now: datetime) -> datetime | None:
    """When the maintenance window that is open now closes; None when it is closed.

    The opening minute belongs to the window and the closing minute does not.  Length is real time: a window of 60 minutes
    stays open for 60 minutes on the night when the clocks change, too.
    """
    minute = now.astimezone(ZoneInfo(window.timezone)).replace(second=0, microsecond=0)
    # The iterator excludes its own starting minute, so it starts at the next one.
    latest = next(CronSim(window.opens, minute + timedelta(minutes=1), reverse=True), None)
    if latest is None:
        return None
    closes = latest.astimezone(UTC) + timedelta(minutes=window.lasts_minutes)
    return closes if latest.astimezone(UTC) <= now < closes else None


def opens_at(window: Window, now: datetime) -> datetime | None:
    """When the window opens next."""
    upcoming = next(CronSim(window.opens, now.astimezone(ZoneInfo(window.timezone))), None)
    return None if upcoming is None else upcoming.astimezone(UTC)


def is_open(windows: Iterable[Window], now: datetime) -> bool:
    """Is any open?  No windows at all means always."""
    windows = tuple(windows)
    return not windows or any(closes_at(w, now) is not None for w in windows)


def next_opening(windows: Iterable[Window], now: datetime) -> datetime | None:
    """The nearest opening of any of them."""
    return min((at for w in windows if (at := opens_at(w, now)) is not None), default=None)

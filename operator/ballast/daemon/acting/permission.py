"""May this kind of action start now?  One table of reasons, read from the top; the first that holds is the answer.

Pure: what is known goes in, a ``Permission`` with a stable code and a sentence comes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from ballast.core.document import Reader
from ballast.core.wording import human_many, human_time
from ballast.daemon.acting.policy import ActionKind, DaemonPolicy, Mode
from ballast.daemon.acting.windows import is_open, next_opening
from ballast.daemon.context.view import COOLING_DOWN, Other, Outage, Pause, Permission, Role

CODES: Final = (
    "stopping",
    "observe-only",
    "no-reading",
    "standby",
    "giving-way",
    "paused",
    "busy",
    "others",
    "quiet",
    "outside-window",
    "cap-reached",
    COOLING_DOWN,
    "allowed",
)
"""Every code a permission can have; metrics label by them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """What this cluster has seen of one kind of action; it lives in the journal, so that it survives restarts."""

    day: str = ""
    """The UTC day that ``starts`` counts, as ``2026-11-21``."""
    starts: int = 0
    last_end_ms: int | None = None
    run: str = ""
    """The run that was started last: the process that adopts it knows its kind by this."""

    def started(self, now_ms: int, run: str) -> Acts:
        """One more start."""
        today = _day(now_ms)
        return replace(self, day=today, starts=self.starts + 1 if self.day == today else 1, run=run)

    def ended(self, now_ms: int) -> Acts:
        """An end: the cool-down begins."""
        return replace(self, last_end_ms=now_ms)

    def starts_on(self, now_ms: int) -> int:
        """Starts on the day of ``now_ms``."""
        return self.starts if self.day == _day(now_ms) else 0

    def to_json(self) -> dict[str, Any]:
        """As the journal keeps it."""
        return {"day": self.day, "starts": self.starts, "last_end_ms": self.last_end_ms, "run": self.run}

    @classmethod
    def from_json(cls, r: Reader) -> Acts:
        """From the journal; what is missing is refused: as if nothing had happened, caps would let more happen."""
        return cls(
            day=r.text("day"),
            starts=r.integer("starts"),
            last_end_ms=r.integer_or_null("last_end_ms"),
            run=r.text("run"),
        )


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
    pause: Pause | None = None
    run: str | None = None
    """The run in flight."""
    give_way: str = ""
    """The person for whom the lock is being given up; empty while it is kept."""
    others: tuple[Other, ...] = ()
    quiet_reason: str = ""
    """Why the cluster is to be left in peace; empty when it is not."""
    acts: Mapping[ActionKind, Acts] = field(default_factory=dict)


def permission(kind: ActionKind, policy: DaemonPolicy, at: Situation) -> Permission:
    """Judge one kind of action."""
    mode = policy.mode_of(kind)
    code, sentence = next(_objections(kind, mode, policy, at), ("allowed", "Every safety check passes."))
    return Permission(kind=kind.value, mode=mode.value, allowed=code == "allowed", code=code, sentence=sentence)


def permissions(policy: DaemonPolicy, at: Situation) -> tuple[Permission, ...]:
    """Judge every kind of action."""
    return tuple(permission(kind, policy, at) for kind in ActionKind)


def _objections(kind: ActionKind, mode: Mode, policy: DaemonPolicy, at: Situation) -> Iterator[tuple[str, str]]:
    """Everything that speaks against it, the weightiest first."""
    if at.role is Role.STOPPING:
        yield "stopping", "The daemon is stopping."
    if mode is Mode.OBSERVE:
        yield "observe-only", f"The mode for {kind.value} is observe: nothing is ever written."
    if at.outage is not None:
        yield "no-reading", f"The cluster cannot be read since {_clock(at.outage.since_ms)}: {at.outage.sentence}"
    if at.reading_age_s is None:
        yield "no-reading", "There is no reading of the cluster yet."
    elif at.reading_age_s > policy.caution.max_snapshot_age_s:
        yield (
            "no-reading",
            f"The newest reading of the cluster is {human_time(at.reading_age_s)} old; nothing is decided from it.",
        )
    if at.role is not Role.LEADER:
        other = f"Another process holds the cluster's lock: {at.lock_holder}."
        yield "standby", other if at.lock_holder else "This process does not hold the cluster's lock."
    if at.give_way:
        yield "giving-way", f"The lock is being given up for {at.give_way}."
    if at.pause is not None:
        why = f": {at.pause.reason}" if at.pause.reason else ""
        yield "paused", f"Paused by {at.pause.by} since {_clock(at.pause.since_ms)}{why}."
    if at.run is not None:
        yield "busy", f"Run {at.run} is being carried out."
    yield from (
        ("others", f"Waiting for another balancer or reassignment: {other.sentence}")
        for other in at.others
        if other.blocking
    )
    # Repair is what makes an unquiet cluster quiet; everything else waits.
    if at.quiet_reason and kind is not ActionKind.REPAIR:
        yield "quiet", f"Waiting for replicas to be in sync: {at.quiet_reason}"
    yield from _objections_of_time(kind, policy, at)


def _objections_of_time(kind: ActionKind, policy: DaemonPolicy, at: Situation) -> Iterator[tuple[str, str]]:
    own = policy.actions.of(kind)
    acts = at.acts.get(kind, Acts())
    now = datetime.fromtimestamp(at.now_ms / 1000, UTC)
    if not is_open(own.windows, now):
        opening = next_opening(own.windows, now)
        when = f"; the next one opens {opening:%Y-%m-%d %H:%M} UTC" if opening else " and never opens again"
        yield "outside-window", f"Outside its windows{when}."
    if own.per_day is not None and acts.starts_on(at.now_ms) >= own.per_day:
        yield "cap-reached", f"Started {human_many(acts.starts_on(at.now_ms), 'time')} today, the cap is {own.per_day}."
    # A clock that jumped back must not stretch the cool-down beyond its own length.
    since_s = None if acts.last_end_ms is None else max(0.0, (at.now_ms - acts.last_end_ms) / 1000)
    if since_s is not None and since_s < own.cool_down_s:
        since, cool_down = human_time(since_s), human_time(own.cool_down_s)
        told = f"The last one ended {since} ago; the cool-down is {cool_down}."
        yield COOLING_DOWN, f"{told} What a person approves does not wait for it."


def _day(now_ms: int) -> str:
    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%d")


def _clock(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")

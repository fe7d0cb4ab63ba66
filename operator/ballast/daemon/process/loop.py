"""The loop: runs what is due, survives what fails, and shows that it lives.

A failure with a name (``BallastError``) puts one check to sleep on a rising delay while the others go on; any other
exception is a bug: logged once with its traceback, counted, and slept off the same way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ballast.core.catalogue import Said
from ballast.daemon.context.heartbeat import LONGEST_WAIT_S, Heartbeat
from ballast.daemon.context.log import FIELDS, log_event
from ballast.daemon.context.view import CheckReport, CheckResult, Note, notes_of
from ballast.errors import BallastError
from ballast.ports.time import Clock

log = logging.getLogger("ballast.daemon")

MAX_BACKOFF_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing the daemon does again and again."""

    name: str
    every_s: Callable[[], float]
    """Asked each time, so that a changed setting takes effect at once."""
    perform: Callable[[], Said | str]
    """Does it, and says what came of it: by codes where it decides, in a sentence where it only does."""
    reading_ms: Callable[[], int | None] = lambda: None
    """Asked as it begins: when the reading was taken that it goes by; None where it goes by none."""
    max_backoff_s: float = MAX_BACKOFF_S
    """Longest wait after failures, unless ``every_s`` is longer."""


@dataclass(slots=True)
class _Schedule:
    check: Check
    due_s: float
    failures: int = 0
    requested: bool = False
    """Asked for since it last began, also while it ran."""


@dataclass(slots=True)
class Loop:
    """Runs checks one at a time, in the order given where several are due."""

    clock: Clock
    report: Callable[[str, CheckReport], None]
    wait: Callable[[float], None]
    """Waits at most so many seconds; returns early when there is news."""
    checks: Sequence[Check] = ()
    heartbeat: Heartbeat = field(default_factory=Heartbeat)
    _schedule: list[_Schedule] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.beat()
        self.add(*self.checks)

    def add(self, *checks: Check) -> None:
        """More to do, due at once; before the loop runs."""
        self._schedule += [_Schedule(check, self.clock.monotonic_s()) for check in checks]

    @property
    def names(self) -> Sequence[str]:
        """The names of its checks."""
        return [entry.check.name for entry in self._schedule]

    def run(self, stopping: Callable[[], bool]) -> None:
        """Go on until told to stop."""
        while not stopping():
            self.wait(min(self.pass_once(stopping), LONGEST_WAIT_S))

    def beat(self) -> None:
        """Show that it lives while a check of it waits."""
        self.heartbeat.at_s = self.clock.monotonic_s()

    def run_now(self, name: str) -> None:
        """Make one check due now: a person asked, or something changed."""
        for entry in self._schedule:
            if entry.check.name == name:
                entry.requested = True

    def run_all_now(self) -> None:
        """Make every check due now."""
        for entry in self._schedule:
            entry.requested = True

    def pass_once(self, stopping: Callable[[], bool] = lambda: False) -> float:
        """Run everything that is due; return the seconds until something is.

        Where a check makes an earlier one due, that goes first: nothing is decided from a reading that was just dropped.
        """
        at = 0
        while at < len(self._schedule) and not stopping():
            entry = self._schedule[at]
            now = self.clock.monotonic_s()
            self.heartbeat.at_s, self.heartbeat.doing = now, ""
            at += 1
            if entry.requested or now >= entry.due_s:
                self.heartbeat.doing = entry.check.name
                self._run(entry)
                at = next((i for i, e in enumerate(self._schedule[:at]) if e.requested), at)
        now = self.clock.monotonic_s()
        self.heartbeat.at_s, self.heartbeat.doing = now, ""
        if any(e.requested for e in self._schedule):
            return 0.0
        return max(0.0, min((e.due_s for e in self._schedule), default=now) - now)

    def run_meanwhile(self, name: str) -> float:
        """Run one check if it is due, while another one waits; return the seconds until it is."""
        entry = next(e for e in self._schedule if e.check.name == name)
        doing, self.heartbeat.at_s = self.heartbeat.doing, self.clock.monotonic_s()
        if entry.requested or self.heartbeat.at_s >= entry.due_s:
            self.heartbeat.doing = name
            self._run(entry)
            self.heartbeat.at_s, self.heartbeat.doing = self.clock.monotonic_s(), doing
        return max(0.0, entry.due_s - self.heartbeat.at_s)

    def _run(self, entry: _Schedule) -> None:
        began_s, began_ms, entry.requested = self.clock.monotonic_s(), self.clock.now_ms(), False
        result, reading_ms = CheckResult.OK, entry.check.reading_ms()
        notes: tuple[Note, ...] = ()
        try:
            said = entry.check.perform()
            notes, sentence = notes_of(said), str(said)
        except BallastError as failure:
            result, sentence = CheckResult.FAILED, str(failure)
            log_event(log, sentence, level=logging.WARNING, check=entry.check.name, failure=failure.id)
        except Exception as bug:
            result = CheckResult.BUG
            sentence = f"A bug in Ballast: {type(bug).__name__}. Nothing more was done; see the log."
            log.exception(sentence, extra={FIELDS: {"check": entry.check.name}})
        ended_s, ok = self.clock.monotonic_s(), result is CheckResult.OK
        entry.failures = 0 if ok else entry.failures + 1
        every_s = entry.check.every_s()
        # From the start of this one, so that a slow check keeps its rhythm; a failing one waits twice as long each time.
        pause_s = (
            every_s if ok else min(max(entry.check.max_backoff_s, every_s), every_s * 2 ** min(entry.failures, 10))
        )
        entry.due_s = max(began_s + pause_s, ended_s)
        log_event(log, sentence, level=logging.DEBUG, check=entry.check.name, duration_s=round(ended_s - began_s, 3))
        self.report(
            entry.check.name,
            CheckReport(
                detail=sentence,
                notes=notes,
                at_ms=began_ms,
                duration_s=ended_s - began_s,
                result=result,
                failures=entry.failures,
                reading_ms=reading_ms,
            ),
        )

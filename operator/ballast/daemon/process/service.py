"""The daemon: four loops, a board, a web server, and an orderly end.

The *lock* loop keeps the lease or waits for it; the *pulse* loop answers people and follows the settings; the *journal* loop
reads the journal's history; the *work* loop reads and decides, may take as long as a slow cluster makes it, and goes on reading while
a plan is made beside it.  The lock loop writes the role and the pause that the journal tells, the pulse loop the policy and the pause
that a person asks for, the work loop readings and figures; starting a run is guarded by the executor, which executes one at a time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from ballast.core.wording import human_elections, human_time
from ballast.daemon.context import health
from ballast.daemon.context.heartbeat import Heartbeat
from ballast.daemon.context.log import log_event
from ballast.daemon.context.view import CheckReport, Role
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.observing.log_ends import LogEndReader
from ballast.daemon.planning.background import Background
from ballast.daemon.policy import Intervals, SettingsChange, WebPolicy
from ballast.daemon.process.loop import Check, Loop
from ballast.daemon.process.parts import Loops, Outside, assemble
from ballast.daemon.web.actions import ActionRequests
from ballast.daemon.web.app import WebParts, build, build_probes
from ballast.daemon.web.server import WebServer
from ballast.errors import BallastError
from ballast.executor.driver.events import RunResult
from ballast.ports.event_sink import ClusterEvent
from ballast.ports.journal import Request

log = logging.getLogger("ballast.daemon")

_JOIN_S: Final = 5.0
READ_AGAIN_S: Final = 15.0
"""A cluster that cannot be reached is asked again at least this often, so that the page soon knows of its return."""


class Credentials(Protocol):
    """Those of this process, in files."""

    @property
    def renew(self) -> bool:
        """The process is to be started anew with new ones once it has left."""
        ...

    def check(self) -> str:
        """Look whether they have changed, and whether brokers take them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """What ``wiring`` hands over."""

    outside: Outside
    web: WebPolicy
    metrics: Metrics
    settings_changed: Callable[[], SettingsChange | None] = lambda: None
    """Asked every few seconds; raises ``UsageError`` when the new file has a mistake."""
    settings_defaults: Mapping[str, str] = field(default_factory=dict)
    """By name, so that the page can mark what was changed."""
    credentials: Credentials | None = None
    """Followed where they come from files."""
    start_anew: Callable[[], None] | None = None
    """Becomes a fresh process at once: an orderly end would wait for what is stuck."""
    end_now: Callable[[], None] | None = None
    """Ends the process at once, whatever a thread waits for."""


class Service:
    """Runs until it is told to stop."""

    def __init__(self, given: ServiceParts) -> None:
        self.given = given
        self.clock, self.board, self.policy = given.outside.clock, given.outside.board, given.outside.policy
        self.metrics = given.metrics
        self._mark_changed(self.board.view.settings)
        self._stop = threading.Event()
        self._wake = threading.Event()
        # The loops first, since the parts ask them to run a check now; then the parts, and with them what the loops do.
        self.work, self.lock, self.journal_loop, self.pulse = (self._loop() for _ in range(4))
        self.planning = Background(self.clock, lambda: self.work.run_meanwhile("observe"), self._stop.is_set)
        self.parts = assemble(
            given.outside,
            Loops(
                look_again=self.check_now,
                in_background=self.planning,
                lock_waits=self.lock.beat,
                refused=lambda kind, code: self.metrics.refusals.labels(kind, code).inc(),
                run_ended=self.run_ended,
            ),
        )
        if self.policy.now.writes:
            self.parts.access.open()
        self.web = WebServer(build(web := self._web_parts()), build_probes(web), given.web)
        self._fill()
        self.metrics.expect_checks(
            name for loop in (self.work, self.lock, self.journal_loop, self.pulse) for name in loop.names
        )

    def _fill(self) -> None:
        """Give each loop its checks."""
        parts = self.parts
        taken = parts.reading.taken_at_ms

        def every() -> Intervals:
            return self.policy.now.intervals

        self.work.add(
            Check(
                name="observe",
                every_s=lambda: every().observe_s,
                perform=parts.observer.observe,
                max_backoff_s=READ_AGAIN_S,
            ),
            Check(name="requested-plan", every_s=lambda: every().act_s, perform=parts.asked.make),
            Check(name="leaders", every_s=parts.leaders.interval_s, perform=parts.leaders.check, reading_ms=taken),
            Check(name="repair", every_s=lambda: every().repair_s, perform=parts.repair.check, reading_ms=taken),
            Check(name="balance", every_s=lambda: every().balance_s, perform=parts.balance.check, reading_ms=taken),
            Check(name="act", every_s=lambda: every().act_s, perform=parts.proposals.act),
        )
        self.lock.add(Check(name="lock", every_s=lambda: every().lock_s, perform=parts.lock.keep))
        self.journal_loop.add(Check(name="journal", every_s=lambda: every().journal_s, perform=parts.journal.read))
        self.pulse.add(
            Check(name="requests", every_s=lambda: every().requests_s, perform=parts.requests.answer_all),
            Check(name="run", every_s=lambda: every().requests_s, perform=parts.journal.show_run),
            Check(name="settings", every_s=lambda: every().settings_s, perform=self._settings),
            Check(name="health", every_s=lambda: every().settings_s, perform=self._restart_stuck),
        )
        if self.given.credentials is not None:
            self.pulse.add(Check(name="credentials", every_s=lambda: every().settings_s, perform=self._credentials))
        if self.given.web.tls_certificate is not None:
            self.pulse.add(Check(name="certificate", every_s=lambda: every().settings_s, perform=self.web.renew))

    def run(self) -> None:
        """Serve and check until ``stop``; then leave within the grace period."""
        self.web.start()
        log_event(
            log,
            f"Listening on {self.web.scheme}://{self.web.host}:{self.web.port}/",
            host=self.web.host,
            port=self.web.port,
        )
        threads = [
            threading.Thread(target=loop.run, args=(self._stop.is_set,), name=name, daemon=True)
            for name, loop in (("work", self.work), ("lock", self.lock), ("journal", self.journal_loop))
        ]
        for thread in (*threads, threading.Thread(target=self._end_in_time, name="end", daemon=True)):
            thread.start()
        try:
            self.pulse.run(self._stop.is_set)
        finally:
            self._leave(threads)

    def stop(self) -> None:
        """Ask for the end; safe inside a signal handler, since it only sets flags."""
        self._stop.set()
        self._wake.set()

    @property
    def heartbeats(self) -> dict[str, Heartbeat]:
        """The signs of life of every loop."""
        loops = {"pulse": self.pulse, "work": self.work, "lock": self.lock, "journal": self.journal_loop}
        controller = self.parts.access.run_controller
        run = controller.heartbeat() if controller else None
        heartbeats = {"run": run, "plan": self.planning.heartbeat}
        return {name: loop.heartbeat for name, loop in loops.items()} | {
            n: b for n, b in heartbeats.items() if b is not None
        }

    def run_ended(self, result: RunResult) -> None:
        """Count a run, tell of it, and read the journal again soon."""
        self.metrics.runs.labels(result.status).inc()
        counts = (
            f"{result.verified_by_kind}, "
            f"{human_elections(result.elections_completed, unclean=result.unclean)} completed, {result.failed} failed"
        )
        well = result.status == "done"
        sentence = f"Run {result.run_id} ended: {result.status} ({counts})."
        self.given.outside.event_sink(
            ClusterEvent(reason="RunEnded" if well else "RunIncomplete", sentence=sentence, warning=not well)
        )
        self.journal_loop.run_now("journal")

    def check_now(self) -> None:
        """Make the reading and the checks due at once."""
        self.work.run_all_now()

    def _loop(self) -> Loop:
        return Loop(clock=self.clock, report=self._report, wait=self._wait)

    def _restart_stuck(self) -> str:
        """Restart the process where a loop or the run is stuck; the run is resumed from the journal."""
        state = health.alive(self.heartbeats, self.clock.monotonic_s())
        if state.ok or self.given.start_anew is None:
            return state.sentence
        sentence = f"{state.sentence} The process restarts itself and resumes from the journal."
        log_event(log, sentence, level=logging.ERROR)
        self.given.outside.event_sink(ClusterEvent(reason="DaemonStuck", sentence=sentence, warning=True))
        self.given.start_anew()
        return sentence

    def _wait(self, seconds: float) -> None:
        self._wake.wait(seconds)

    def _settings(self) -> str:
        try:
            change = self.given.settings_changed()
        except BallastError as mistake:
            self.board.publish(settings_problem=str(mistake))
            sentence = f"The newest settings are not active: {mistake}"
            self.given.outside.event_sink(ClusterEvent(reason="SettingsInvalid", sentence=sentence, warning=True))
            raise
        if change is None:
            return "The settings are the same."
        self.policy.now, shown, sentence = change
        self._mark_changed(shown)
        self.board.publish(settings_problem="")
        self.parts.permissions.publish()
        self.parts.runs.hold()
        # A change of mode wants the lock, or gives it back.
        self.lock.run_now("lock")
        # What the new settings ask for need not wait for the next check.
        self.check_now()
        return sentence

    def _credentials(self) -> str:
        assert self.given.credentials is not None
        sentence = self.given.credentials.check()
        if self.given.credentials.renew:
            self.stop()
        return sentence

    def _mark_changed(self, shown: Sequence[tuple[str, str]]) -> None:
        defaults = self.given.settings_defaults
        changed = frozenset(name for name, value in shown if defaults.get(name, value) != value)
        self.board.publish(settings=tuple(shown), settings_changed=changed)

    def _report(self, name: str, report: CheckReport) -> None:
        before = self.board.view.checks.get(name)
        self.board.tell_check(name, report)
        self.metrics.checks.labels(name, report.result.value).inc()
        self.metrics.durations.labels(name).observe(report.duration_s)
        if report.ok and (before is None or before.detail != report.detail):
            log_event(log, report.detail, check=name)

    def _web_parts(self) -> WebParts:
        web, board, clock = self.given.web, self.board, self.clock
        return WebParts(
            board=board,
            state=lambda: self.parts.reading.state,
            log_ends=LogEndReader(self.given.outside.cluster, clock).of,
            metrics=self.metrics,
            clock=clock,
            closing=self._stop.is_set,
            hosts=web.hosts,
            action_requests=ActionRequests(web.token_file, self._submit, clock, read_needs_token=web.read_needs_token),
            alive=lambda: health.alive(self.heartbeats, clock.monotonic_s()),
            ready=lambda: health.ready(board.view),
            healthy=lambda: health.healthy(
                board.view, now_ms=clock.now_ms(), observe_s=self.policy.now.intervals.observe_s
            ),
        )

    def _submit(self, request: Request) -> None:
        self.parts.requests.submit(request)
        self.pulse.run_now("requests")

    def _end_in_time(self) -> None:
        """End the process when its grace is over: where no broker answers, each call in the way waits for all of its own time."""
        self._stop.wait()
        grace_s = self.policy.now.stop.grace_s
        threading.Event().wait(grace_s)
        if self.given.end_now is not None:
            log_event(
                log,
                f"Not stopped within {human_time(grace_s)} (stop.grace_s): the process ends now. "
                "The lock expires by itself, and the next start resumes what is open.",
                level=logging.WARNING,
            )
            self.given.end_now()

    def _leave(self, threads: Sequence[threading.Thread]) -> None:
        """Decide nothing new, leave the run, release the lock for the next process, and stop the page."""
        access, stop = self.parts.access, self.policy.now.stop
        held = self.board.view.role is Role.ACTIVE
        self.board.set_role(Role.STOPPING)
        log_event(log, "Stopping: nothing new is decided.")
        access.stop(wait_s=max(0.0, stop.grace_s - 2 * _JOIN_S) if stop.wait_for_moves else 0.0)
        for thread in threads:
            # A standby may be waiting for the lease to run out; it is not waited for, and gives up what it gets.
            thread.join(_JOIN_S / len(threads))
        if held and access.journal is not None:
            try:
                access.journal.release()
            except BallastError as failure:
                log_event(log, f"The lock was not released and expires by itself: {failure}", level=logging.WARNING)
        self.web.stop()
        log_event(log, "Stopped.")

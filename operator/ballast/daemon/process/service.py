"""The daemon: four loops, a board, a web server, and an orderly end.

The *lock* loop keeps the lease or waits for it; the *pulse* loop answers people and follows the settings; the *journal* loop
reads the journal's history; the *work* loop reads and decides, may take as long as a slow cluster makes it, and goes on reading while
a plan is made beside it.  The lock loop writes the role, the pulse loop pause and policy, the work loop readings and figures; starting
a run is guarded by the executor, which carries out one at a time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ballast.core.wording import human_elections, human_many
from ballast.daemon.acting.journal_view import read_journal_view, show_run
from ballast.daemon.acting.policy import DaemonPolicy
from ballast.daemon.acting.propose import act
from ballast.daemon.acting.requests import Inbox, answer_requests, submit
from ballast.daemon.context.daemon_context import DaemonContext
from ballast.daemon.context.view import Role, TickReport
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.observing.observe import observe
from ballast.daemon.planning.asking import make_wanted
from ballast.daemon.planning.background import Background
from ballast.daemon.planning.leaders import check_leaders, interval_s
from ballast.daemon.planning.plans import check_balance, check_repair
from ballast.daemon.process import health
from ballast.daemon.process.lock import keep_lock
from ballast.daemon.process.logs import say
from ballast.daemon.process.loop import Beat, Loop, Tick
from ballast.daemon.web.actions import Desk
from ballast.daemon.web.app import WebParts, build, build_probes
from ballast.daemon.web.server import WebServer
from ballast.errors import BallastError
from ballast.executor.driver.events import RunResult
from ballast.ports.event_sink import ClusterEvent
from ballast.ports.journal import Holder, Request

log = logging.getLogger("ballast.daemon")

_JOIN_S: Final = 5.0
READ_AGAIN_S: Final = 15.0
"""A cluster that cannot be reached is asked again at least this often, so that the page soon knows of its return."""

SettingsChange = tuple[DaemonPolicy, tuple[tuple[str, str], ...], str]
"""The policy from now on, the settings for the page, and what changed in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """What ``wiring`` hands over."""

    context: DaemonContext
    holder: Holder
    settings_changed: Callable[[], SettingsChange | None] = lambda: None
    """Asked every few seconds; raises ``UsageError`` when the new file has a mistake."""
    settings_defaults: Mapping[str, str] = field(default_factory=dict)
    """By name, so that the page can mark what was changed."""
    credentials_changed: Callable[[], str] | None = None
    """Asked as often; stops the service where it is to be started anew with them."""
    start_anew: Callable[[], None] | None = None
    """Becomes a fresh process at once: an orderly end would wait for what is stuck."""


class Service:
    """Runs until it is told to stop."""

    def __init__(self, parts: ServiceParts) -> None:
        self.parts = parts
        self.context = parts.context
        self.metrics = Metrics(self.context.board)
        self.inbox: Inbox = Inbox()
        self._mark_changed(parts.context.board.view.settings)
        self._stop = threading.Event()
        self._wake = threading.Event()
        context = self.context
        self.work = self._loop(
            Tick(
                name="observe",
                every_s=lambda: context.policy.intervals.observe_s,
                run=lambda: observe(context),
                max_backoff_s=READ_AGAIN_S,
            ),
            Tick(name="asked", every_s=lambda: context.policy.intervals.act_s, run=lambda: make_wanted(context)),
            Tick(name="leaders", every_s=lambda: interval_s(context), run=lambda: check_leaders(context)),
            Tick(name="repair", every_s=lambda: context.policy.intervals.repair_s, run=lambda: check_repair(context)),
            Tick(
                name="balance", every_s=lambda: context.policy.intervals.balance_s, run=lambda: check_balance(context)
            ),
            Tick(name="act", every_s=lambda: context.policy.intervals.act_s, run=lambda: act(context)),
        )
        self.lock = self._loop(
            Tick(
                name="lock",
                every_s=lambda: context.policy.intervals.lock_s,
                run=lambda: keep_lock(context, parts.holder, self._lock_waits),
            )
        )
        self.journal_loop = self._loop(
            Tick(
                name="journal",
                every_s=lambda: context.policy.intervals.journal_s,
                run=lambda: read_journal_view(context),
            )
        )
        self.pulse = self._loop(
            Tick(name="requests", every_s=lambda: context.policy.intervals.requests_s, run=self._requests),
            Tick(name="run", every_s=lambda: context.policy.intervals.requests_s, run=lambda: show_run(context)),
            Tick(name="settings", every_s=lambda: context.policy.intervals.settings_s, run=self._settings),
            Tick(name="health", every_s=lambda: context.policy.intervals.settings_s, run=self._heal),
            *self._credentials(parts.credentials_changed),
            *self._certificate(),
        )
        self.planning = Background(context.clock, lambda: self.work.run_meanwhile("observe"), self._stop.is_set)
        context.in_background = self.planning
        context.look_again, context.run_ended = self.look_now, self.run_ended
        context.refused = lambda kind, code: self.metrics.refusals.labels(kind, code).inc()
        context.retried = lambda operation: self.metrics.retries.labels(operation).inc()
        self.web = WebServer(build(web := self._web_parts()), build_probes(web), context.web)

    def run(self) -> None:
        """Serve and tick until ``stop``; then leave within the grace period."""
        self.web.start()
        say(
            log,
            f"Listening on {self.web.scheme}://{self.web.host}:{self.web.port}/",
            host=self.web.host,
            port=self.web.port,
        )
        threads = [
            threading.Thread(target=loop.run, args=(self._stop.is_set,), name=name, daemon=True)
            for name, loop in (("work", self.work), ("lock", self.lock), ("journal", self.journal_loop))
        ]
        for thread in threads:
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
    def beats(self) -> dict[str, Beat]:
        """The signs of life of every loop."""
        loops = {"pulse": self.pulse, "work": self.work, "lock": self.lock, "journal": self.journal_loop}
        run = self.context.run_controller.beat() if self.context.run_controller else None
        beats = {"run": run, "plan": self.planning.beat}
        return {name: loop.beat for name, loop in loops.items()} | {n: b for n, b in beats.items() if b is not None}

    def run_ended(self, result: RunResult) -> None:
        """Count a run, tell of it, and read the journal again soon."""
        self.metrics.runs.labels(result.status).inc()
        counts = (
            f"{human_many(result.verified, 'move')} verified, "
            f"{human_elections(result.elections_held, unclean=result.unclean)} held, {result.failed} failed"
        )
        well = result.status == "done"
        sentence = f"Run {result.run_id} ended: {result.status} ({counts})."
        self.context.event_sink(
            ClusterEvent(reason="RunEnded" if well else "RunEndedOtherwise", sentence=sentence, warning=not well)
        )
        self.journal_loop.hurry("journal")

    def look_now(self) -> None:
        """Make the reading and the checks due at once."""
        for tick in self.work.ticks:
            self.work.hurry(tick.name)

    def _loop(self, *ticks: Tick) -> Loop:
        return Loop(ticks=ticks, clock=self.context.clock, report=self._report, nap=self._nap)

    def _lock_waits(self) -> None:
        self.lock.beat.at_s = self.context.clock.monotonic_s()

    def _heal(self) -> str:
        """Where a loop or the run is stuck, start again in its place: the journal knows what is open."""
        state = health.alive(self.beats, self.context.clock.monotonic_s())
        if state.ok or self.parts.start_anew is None:
            return state.sentence
        sentence = f"{state.sentence} The process restarts itself and resumes from the journal."
        say(log, sentence, level=logging.ERROR)
        self.context.event_sink(ClusterEvent(reason="Stuck", sentence=sentence, warning=True))
        self.parts.start_anew()
        return sentence

    def _nap(self, seconds: float) -> None:
        self._wake.wait(seconds)

    def _requests(self) -> str:
        return answer_requests(self.context, self.inbox)

    def _settings(self) -> str:
        try:
            change = self.parts.settings_changed()
        except BallastError as mistake:
            self.context.board.publish(settings_problem=str(mistake))
            sentence = f"The newest settings are not in force: {mistake}"
            self.context.event_sink(ClusterEvent(reason="SettingsRefused", sentence=sentence, warning=True))
            raise
        if change is None:
            return "The settings are the same."
        self.context.policy, shown, sentence = change
        self._mark_changed(shown)
        self.context.board.publish(settings_problem="")
        self.context.publish_permissions()
        self.context.hold_run()
        # A change of mode wants the lock, or gives it back.
        self.lock.hurry("lock")
        # What the new settings ask for need not wait for the next check.
        self.look_now()
        return sentence

    def _mark_changed(self, shown: Sequence[tuple[str, str]]) -> None:
        defaults = self.parts.settings_defaults
        changed = frozenset(name for name, value in shown if defaults.get(name, value) != value)
        self.context.board.publish(settings=tuple(shown), settings_changed=changed)

    def _credentials(self, look: Callable[[], str] | None) -> tuple[Tick, ...]:
        if look is None:
            return ()
        return (Tick(name="credentials", every_s=lambda: self.context.policy.intervals.settings_s, run=look),)

    def _certificate(self) -> tuple[Tick, ...]:
        if self.context.web.tls_certificate is None:
            return ()
        return (
            Tick(
                name="certificate",
                every_s=lambda: self.context.policy.intervals.settings_s,
                run=lambda: self.web.renew(),  # noqa: PLW0108 — it is made after the loops
            ),
        )

    def _report(self, name: str, report: TickReport) -> None:
        before = self.context.board.view.ticks.get(name)
        self.context.board.publish(ticks={**self.context.board.view.ticks, name: report})
        self.metrics.ticks.labels(name, report.result.value).inc()
        self.metrics.durations.labels(name).observe(report.duration_s)
        if report.ok and (before is None or before.sentence != report.sentence):
            say(log, report.sentence, tick=name)

    def _web_parts(self) -> WebParts:
        context = self.context
        return WebParts(
            board=context.board,
            state=lambda: context.memory.state,
            metrics=self.metrics,
            clock=context.clock,
            closing=self._stop.is_set,
            hosts=context.web.hosts,
            desk=Desk(
                context.web.token_file, self._submit, context.clock, read_needs_token=context.web.read_needs_token
            ),
            alive=lambda: health.alive(self.beats, context.clock.monotonic_s()),
            ready=lambda: health.ready(context.board.view),
            healthy=lambda: health.healthy(
                context.board.view, now_ms=context.clock.now_ms(), observe_s=context.policy.intervals.observe_s
            ),
        )

    def _submit(self, request: Request) -> None:
        submit(self.context, self.inbox, request)
        self.pulse.hurry("requests")

    def _leave(self, threads: Sequence[threading.Thread]) -> None:
        """Stop deciding, put the tools down, tell the successor."""
        context = self.context
        held = context.board.view.role is Role.LEADER
        context.set_role(Role.STOPPING)
        say(log, "Stopping: nothing new is decided.")
        if context.run_controller is not None:
            drain_s = max(0.0, context.policy.stop.grace_s - 2 * _JOIN_S) if context.policy.stop.drain else 0.0
            context.run_controller.stop(drain_s=drain_s)
        for thread in threads:
            # A standby may be waiting for the lease to run out; it is not waited for, and gives up what it gets.
            thread.join(_JOIN_S / len(threads))
        if held and context.journal is not None:
            try:
                context.journal.release()
            except BallastError as failure:
                say(log, f"The lock was not released and expires by itself: {failure}", level=logging.WARNING)
        self.web.stop()
        say(log, "Stopped.")

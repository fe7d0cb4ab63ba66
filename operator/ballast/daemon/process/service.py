"""The daemon: four loops, a board, a web server, and an orderly end.

The *lock* loop keeps the lease or waits for it; the *pulse* loop answers people and follows the settings; the *books* loop
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
from ballast.daemon.acting.journal_view import read_books, show_run
from ballast.daemon.acting.policy import DaemonPolicy
from ballast.daemon.acting.propose import act
from ballast.daemon.acting.requests import Inbox, answer_requests, submit
from ballast.daemon.context.scene import Scene
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
from ballast.ports.journal import Holder, Request
from ballast.ports.news import News

log = logging.getLogger("ballast.daemon")

_JOIN_S: Final = 5.0
READ_AGAIN_S: Final = 15.0
"""A cluster that cannot be reached is asked again at least this often, so that the page soon knows of its return."""

SettingsChange = tuple[DaemonPolicy, tuple[tuple[str, str], ...], str]
"""The policy from now on, the settings for the page, and what changed in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """What ``wiring`` hands over."""

    scene: Scene
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
        self.scene = parts.scene
        self.metrics = Metrics(self.scene.board)
        self.inbox: Inbox = Inbox()
        self._mark_changed(parts.scene.board.view.settings)
        self._stop = threading.Event()
        self._wake = threading.Event()
        scene = self.scene
        self.work = self._loop(
            Tick(
                name="observe",
                every_s=lambda: scene.policy.intervals.observe_s,
                run=lambda: observe(scene),
                max_backoff_s=READ_AGAIN_S,
            ),
            Tick(name="asked", every_s=lambda: scene.policy.intervals.act_s, run=lambda: make_wanted(scene)),
            Tick(name="leaders", every_s=lambda: interval_s(scene), run=lambda: check_leaders(scene)),
            Tick(name="repair", every_s=lambda: scene.policy.intervals.repair_s, run=lambda: check_repair(scene)),
            Tick(name="balance", every_s=lambda: scene.policy.intervals.balance_s, run=lambda: check_balance(scene)),
            Tick(name="act", every_s=lambda: scene.policy.intervals.act_s, run=lambda: act(scene)),
        )
        self.lock = self._loop(
            Tick(
                name="lock",
                every_s=lambda: scene.policy.intervals.lock_s,
                run=lambda: keep_lock(scene, parts.holder, self._lock_waits),
            )
        )
        self.books = self._loop(
            Tick(name="journal", every_s=lambda: scene.policy.intervals.journal_s, run=lambda: read_books(scene))
        )
        self.pulse = self._loop(
            Tick(name="requests", every_s=lambda: scene.policy.intervals.requests_s, run=self._requests),
            Tick(name="run", every_s=lambda: scene.policy.intervals.requests_s, run=lambda: show_run(scene)),
            Tick(name="settings", every_s=lambda: scene.policy.intervals.settings_s, run=self._settings),
            Tick(name="health", every_s=lambda: scene.policy.intervals.settings_s, run=self._heal),
            *self._credentials(parts.credentials_changed),
            *self._certificate(),
        )
        self.planning = Background(scene.clock, lambda: self.work.run_meanwhile("observe"), self._stop.is_set)
        scene.in_background = self.planning
        scene.look_again, scene.run_ended = self.look_now, self.run_ended
        scene.refused = lambda kind, code: self.metrics.refusals.labels(kind, code).inc()
        scene.retried = lambda operation: self.metrics.retries.labels(operation).inc()
        self.web = WebServer(build(web := self._web_parts()), build_probes(web), scene.web)

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
            for name, loop in (("work", self.work), ("lock", self.lock), ("books", self.books))
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
        loops = {"pulse": self.pulse, "work": self.work, "lock": self.lock, "books": self.books}
        run = self.scene.hands.beat() if self.scene.hands else None
        beats = {"run": run, "plan": self.planning.beat}
        return {name: loop.beat for name, loop in loops.items()} | {n: b for n, b in beats.items() if b is not None}

    def run_ended(self, result: RunResult) -> None:
        """Count a run, tell of it, and read the books again soon."""
        self.metrics.runs.labels(result.status).inc()
        counts = (
            f"{human_many(result.verified, 'move')} verified, "
            f"{human_elections(result.elections_held, unclean=result.unclean)} held, {result.failed} failed"
        )
        well = result.status == "done"
        sentence = f"Run {result.run_id} ended: {result.status} ({counts})."
        self.scene.herald(News(reason="RunEnded" if well else "RunEndedOtherwise", sentence=sentence, warning=not well))
        self.books.hurry("journal")

    def look_now(self) -> None:
        """Make the reading and the checks due at once."""
        for tick in self.work.ticks:
            self.work.hurry(tick.name)

    def _loop(self, *ticks: Tick) -> Loop:
        return Loop(ticks=ticks, clock=self.scene.clock, report=self._report, nap=self._nap)

    def _lock_waits(self) -> None:
        self.lock.beat.at_s = self.scene.clock.monotonic_s()

    def _heal(self) -> str:
        """Where a loop or the run is stuck, start again in its place: the journal knows what is open."""
        state = health.alive(self.beats, self.scene.clock.monotonic_s())
        if state.ok or self.parts.start_anew is None:
            return state.sentence
        sentence = f"{state.sentence} The process restarts itself and resumes from the journal."
        say(log, sentence, level=logging.ERROR)
        self.scene.herald(News(reason="Stuck", sentence=sentence, warning=True))
        self.parts.start_anew()
        return sentence

    def _nap(self, seconds: float) -> None:
        self._wake.wait(seconds)

    def _requests(self) -> str:
        return answer_requests(self.scene, self.inbox)

    def _settings(self) -> str:
        try:
            change = self.parts.settings_changed()
        except BallastError as mistake:
            self.scene.board.publish(settings_problem=str(mistake))
            sentence = f"The newest settings are not in force: {mistake}"
            self.scene.herald(News(reason="SettingsRefused", sentence=sentence, warning=True))
            raise
        if change is None:
            return "The settings are the same."
        self.scene.policy, shown, sentence = change
        self._mark_changed(shown)
        self.scene.board.publish(settings_problem="")
        self.scene.publish_standings()
        self.scene.hold_run()
        # A change of mode wants the lock, or gives it back.
        self.lock.hurry("lock")
        # What the new settings ask for need not wait for the next check.
        self.look_now()
        return sentence

    def _mark_changed(self, shown: Sequence[tuple[str, str]]) -> None:
        defaults = self.parts.settings_defaults
        changed = frozenset(name for name, value in shown if defaults.get(name, value) != value)
        self.scene.board.publish(settings=tuple(shown), settings_changed=changed)

    def _credentials(self, look: Callable[[], str] | None) -> tuple[Tick, ...]:
        if look is None:
            return ()
        return (Tick(name="credentials", every_s=lambda: self.scene.policy.intervals.settings_s, run=look),)

    def _certificate(self) -> tuple[Tick, ...]:
        if self.scene.web.tls_certificate is None:
            return ()
        return (
            Tick(
                name="certificate",
                every_s=lambda: self.scene.policy.intervals.settings_s,
                run=lambda: self.web.renew(),  # noqa: PLW0108 — it is made after the loops
            ),
        )

    def _report(self, name: str, report: TickReport) -> None:
        before = self.scene.board.view.ticks.get(name)
        self.scene.board.publish(ticks={**self.scene.board.view.ticks, name: report})
        self.metrics.ticks.labels(name, report.result.value).inc()
        self.metrics.durations.labels(name).observe(report.duration_s)
        if report.ok and (before is None or before.sentence != report.sentence):
            say(log, report.sentence, tick=name)

    def _web_parts(self) -> WebParts:
        scene = self.scene
        return WebParts(
            board=scene.board,
            state=lambda: scene.memory.state,
            metrics=self.metrics,
            clock=scene.clock,
            closing=self._stop.is_set,
            hosts=scene.web.hosts,
            desk=Desk(scene.web.token_file, self._submit, scene.clock, read_needs_token=scene.web.read_needs_token),
            alive=lambda: health.alive(self.beats, scene.clock.monotonic_s()),
            ready=lambda: health.ready(scene.board.view),
            healthy=lambda: health.healthy(
                scene.board.view, now_ms=scene.clock.now_ms(), observe_s=scene.policy.intervals.observe_s
            ),
        )

    def _submit(self, request: Request) -> None:
        submit(self.scene, self.inbox, request)
        self.pulse.hurry("requests")

    def _leave(self, threads: Sequence[threading.Thread]) -> None:
        """Stop deciding, put the tools down, tell the successor."""
        scene = self.scene
        held = scene.board.view.role is Role.LEADER
        scene.set_role(Role.STOPPING)
        say(log, "Stopping: nothing new is decided.")
        if scene.hands is not None:
            drain_s = max(0.0, scene.policy.stop.grace_s - 2 * _JOIN_S) if scene.policy.stop.drain else 0.0
            scene.hands.stop(drain_s=drain_s)
        for thread in threads:
            # A standby may be waiting for the lease to run out; it is not waited for, and gives up what it gets.
            thread.join(_JOIN_S / len(threads))
        if held and scene.journal is not None:
            try:
                scene.journal.release()
            except BallastError as failure:
                say(log, f"The lock was not released and runs out by itself: {failure}", level=logging.WARNING)
        self.web.stop()
        say(log, "Stopped.")

"""The daemon's run controller: the executor's driver on a thread of its own, one run at a time.

The driver journals before it acts and checks the lease before each write; this module only starts it, listens to it, and
turns what it tells into views.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Plan, Purpose
from ballast.daemon.acting.run_views import changes, run_view
from ballast.daemon.context.health import RUN
from ballast.daemon.context.heartbeat import Heartbeat, HeartbeatClock
from ballast.daemon.context.log import log_event
from ballast.daemon.context.view import SETTLING, CheckResult, RunView
from ballast.errors import BallastError, Fenced, Refused
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import MoveChanged, Paced, Progressed, Refusing, RunBegan, RunEnded, RunResult
from ballast.executor.driver.look import FullReading, no_reading
from ballast.executor.journal.ledger import list_unrestored, load_ledger
from ballast.executor.journal.notes import RunNote
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.progress import Progress
from ballast.executor.machine.run import Phase
from ballast.executor.machine.stages import InFlight
from ballast.executor.machine.step import Command
from ballast.ports.cluster import Cluster
from ballast.ports.journal import Journal
from ballast.ports.time import Clock

log = logging.getLogger("ballast.runs")

Spawn = Callable[[Callable[[], None]], None]


def in_a_thread(body: Callable[[], None]) -> None:
    """How a run is executed beside the loops."""
    threading.Thread(target=body, name="run", daemon=True).start()


@dataclass(slots=True, kw_only=True)
class DriverParts:
    """What a driver is made of."""

    cluster: Cluster
    journal: Journal
    clock: Clock
    policy: Callable[[], ExecutionPolicy]
    new_id: Callable[[], str]
    ended: Callable[[RunResult], None] = lambda _: None
    refused: Callable[[str], None] = lambda _code: None
    """Told the code of each guard that holds moves of a run back, when what they refuse has changed."""
    failed: Callable[[CheckResult], None] = lambda _: None
    """Told of each attempt that failed and is made again."""
    full_reading: Callable[[], FullReading | None] = no_reading
    """The newest full reading of the cluster that the daemon took."""
    spawn: Spawn = in_a_thread
    server: str = "HOST:PORT"
    """How a person reaches the cluster."""


class DriverRunController:
    """``RunController`` over the executor's driver."""

    def __init__(self, parts: DriverParts) -> None:
        self._parts = parts
        self._clock = HeartbeatClock(parts.clock)
        self._driver: Driver | None = None
        self._progress: Progress | None = None
        self._note = ""
        self._busy = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._leaving = False
        self._begun: RunView | None = None
        self._paused = False
        """A person's switch, which outlives processes: every run that is begun or adopted here heeds it."""
        self._paused_by = ""
        """Who that is; empty where a mode holds the run."""

    def start(self, plan: Plan) -> str:
        """Begin a run; refuses while there is one."""
        run_id = self._parts.new_id()
        begun = RunView(
            id=run_id,
            intent=plan.intent,
            purpose=plan.purpose,
            phase="starting",
            started_at_ms=self._parts.clock.now_ms(),
            changes=changes(plan.moves, len(plan.elections)),
            moves_total=len(plan.moves),
            elections_total=len(plan.elections),
            bytes_total=plan.known_bytes,
            bytes_left=plan.known_bytes,
            detail="Writing the plan into the journal",
        )

        def carry(driver: Driver) -> None:
            driver.roll_back_if_asked(driver.execute(plan, self._parts.policy(), run_id=run_id))

        self._begin(carry, self._new_driver(), begun)
        return run_id

    def adopt(self) -> str | None:
        """Resume what is open in the journal, oldest first, then remove throttles that are not yet removed."""
        driver = self._new_driver()
        found = driver.open_runs()
        if not found and not load_ledger(self._parts.journal.read()):
            return None
        begun = replace(run_view(found[0]), detail="Resuming the run") if found else self._settling()
        self._begin(self._resume_all, driver, begun)
        return found[0].id if found else None

    def current(self) -> RunView | None:
        """The run in progress, as far as the newest look told."""
        driver = self._driver
        if driver is None or self._idle.is_set():
            return None
        if driver.run is None:
            return self._begun
        shown, by = run_view(driver.run, self._progress, self._note), self._paused_by
        if driver.run.phase is not Phase.PAUSED or not by:
            return shown
        paused = RunNote("paused", {"by": by})
        return replace(shown, detail=f"{shown.detail}. {paused}" if any(driver.run.moves_in(InFlight)) else str(paused))

    def heartbeat(self) -> Heartbeat | None:
        """The last sign of life of the run in progress; None while there is none."""
        return None if self._idle.is_set() else Heartbeat(self._clock.at_s, RUN)

    def ours(self) -> Collection[TopicPartition]:
        """Partitions of the current run whose moves have not ended."""
        driver = self._driver
        if driver is None or driver.run is None or self._idle.is_set():
            return frozenset()
        return frozenset(m.move.name for m in driver.run.open_moves)

    def pause(self, *, paused: bool, by: str = "") -> None:
        """Pause the next moves, or resume; a run that starts later is paused as well."""
        self._paused, self._paused_by = paused, by
        self._ask(Command.PAUSE if paused else Command.RESUME, by=by)

    def cancel(self, run_id: str, *, rollback: bool = False, by: str = "") -> bool:
        """Cancel what this run has in progress; with ``rollback`` undo what has arrived, too.  A later run does not hear of it."""
        return self._ask(Command.ROLLBACK if rollback else Command.CANCEL, run_id, by)

    def stop(self, *, wait_s: float) -> None:
        """Wait for the run's end at most so long, then leave it to a successor."""
        if wait_s > 0:
            self._idle.wait(wait_s)
        self._leaving = True
        driver = self._driver
        if driver is not None:
            driver.leave()
        self._idle.wait(LEAVE_S)

    def on_event(self, event: object) -> None:
        """The driver's listener: log lines for decisions, the newest progress for views."""
        if isinstance(event, Progressed):
            self._progress = event.progress
        elif isinstance(event, RunBegan):
            word = "goes on" if event.resumed else "begins"
            log_event(
                log, f"Run {event.run.id} {word}: {event.run.intent}", run=event.run.id, moves=len(event.run.moves)
            )
            if self._paused:
                self._ask(Command.PAUSE, by=self._paused_by)
        elif isinstance(event, MoveChanged):
            run = self._driver.run if self._driver else None
            tail = f": {event.detail}" if event.detail else ""
            sentence = f"{event.name} is {event.after.code}{tail}"
            log_event(log, sentence, run=run.id if run else None, move=str(event.name), outcome=event.outcome or None)
        elif isinstance(event, Refusing) and event.verdicts:
            self._note = str(event.verdicts[0])
            codes = sorted({verdict.code for verdict in event.verdicts})
            for code in codes:
                self._parts.refused(code)
            run = self._driver.run if self._driver else None
            log_event(
                log,
                f"Held back: {event.verdicts[0]}",
                run=run.id if run else None,
                refusals=len(event.verdicts),
                guards=", ".join(codes),
            )
        elif isinstance(event, Paced):
            for line in event.pace.lines():
                log_event(log, line)
        elif isinstance(event, RunNote):
            self._note = str(event)
            log_event(log, self._note)
        elif isinstance(event, RunEnded):
            result = event.result
            log_event(
                log,
                f"Run {result.run_id} ended: {result.status}.",
                run=result.run_id,
                outcome=result.status,
                verified=result.verified,
                failed=result.failed,
                left=result.still_open,
                seconds=round(result.seconds, 1),
            )
            self._parts.ended(result)

    def _ask(self, command: Command, run_id: str | None = None, by: str = "") -> bool:
        while True:
            driver = self._driver
            if driver is None or self._idle.is_set():
                return False
            driver.ask(command, run=run_id, by=by)
            # One whose attempt has failed may have been replaced on the way: what it was told is not passed on any more.
            if driver is self._driver:
                return True

    def _settling(self) -> RunView:
        """What is shown while throttles of runs that have ended are removed: no run may begin beside it, either."""
        return RunView(
            id=SETTLING,
            intent="remove throttles of earlier runs",
            purpose=Purpose("remove-throttles"),
            phase="settling",
            started_at_ms=self._parts.clock.now_ms(),
            detail="Removing throttles of earlier runs",
        )

    def _new_driver(self) -> Driver:
        return Driver(
            self._parts.cluster,
            self._parts.journal,
            self._clock,
            self,
            # The daemon's own loops answer people and make a lost journal again; this one resumes the run then.
            alone=False,
            server=self._parts.server,
            full_reading=self._parts.full_reading,
        )

    def _resume_all(self, driver: Driver) -> None:
        for run in driver.open_runs():
            driver.roll_back_if_asked(driver.resume(run))
        for setting in list_unrestored(driver.restore_throttles()):
            log_event(log, f"Throttle not yet removed: {setting}", level=logging.WARNING)

    def _begin(self, carry: Callable[[Driver], None], driver: Driver, begun: RunView) -> None:
        if not self._busy.acquire(blocking=False):
            raise Refused("A run is being executed already.")
        self._driver, self._progress, self._note, self._begun = driver, None, "", begun
        self._leaving = False
        self._clock.monotonic_s()
        self._idle.clear()
        self._parts.spawn(lambda: self._carry(carry))

    def _carry(self, carry: Callable[[Driver], None]) -> None:
        """Execute; after a failure resume from the journal what was left, each time after a longer pause."""
        pause_s = _FIRST_PAUSE_S
        try:
            while not self._attempt(carry):
                self._wait(pause_s)
                if self._leaving:
                    break
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
                self._replace_driver()
                carry = self._resume_all
        finally:
            self._idle.set()
            self._busy.release()

    def _replace_driver(self) -> None:
        """A new one for another attempt; what a person asked for meanwhile holds for that as well."""
        assert self._driver is not None
        before, self._driver = self._driver, self._new_driver()
        for asked, meant in before.pending_commands():
            self._driver.ask(asked.command, run=meant, by=asked.by)
        if self._leaving:
            # It was said to the one before.
            self._driver.leave()

    def _attempt(self, carry: Callable[[Driver], None]) -> bool:
        """Is there nothing more to do here?  False asks for another attempt."""
        assert self._driver is not None
        try:
            carry(self._driver)
        except Fenced as lost:
            log_event(log, f"The run is left to the process that acts now: {lost.message}", level=logging.WARNING)
        except Refused as refusal:
            if self._driver.run is not None or carry == self._resume_all:
                return self._report_failure(refusal)
            log_event(log, f"The run was not started: {refusal}", level=logging.WARNING, failure=refusal.id)
        except BallastError as failure:
            return self._report_failure(failure)
        except Exception:
            log.exception("A bug in Ballast stopped the run; it is resumed from the journal")
            self._note = "A bug in Ballast stopped the run; it is resumed. See the log."
            self._parts.failed(CheckResult.BUG)
            return False
        return True

    def _report_failure(self, failure: BallastError) -> bool:
        """Tell why this attempt failed; the run is still in the journal, and the next attempt resumes it."""
        log_event(
            log, f"The run cannot continue now and is tried again: {failure}", level=logging.WARNING, failure=failure.id
        )
        self._note = failure.message
        self._parts.failed(CheckResult.FAILED)
        return False

    def _wait(self, seconds: float) -> None:
        end_s = self._clock.monotonic_s() + seconds
        while not self._leaving and self._clock.monotonic_s() < end_s:
            self._clock.sleep(min(1.0, seconds))


LEAVE_S = 10.0
_FIRST_PAUSE_S = 2.0
_LONGEST_PAUSE_S = 120.0

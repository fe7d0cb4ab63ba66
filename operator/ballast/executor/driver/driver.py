"""Performs what the machine decides: journals each intent, checks the lock, sends, and tells the machine what came of it.

One loop, no threads of its own.  Invariants: nothing is sent to the cluster whose intent is not durable in the journal; the
lease is checked right before each send; a lost lease (``Fenced``) ends the loop before its next write; whatever cannot be
known (a send without an answer) is told to the machine as ``Unanswered`` and found out by looking.

The caller (``wiring.runs``) already holds the journal's lock and releases it afterwards.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.core.throttles import Setting
from ballast.core.wording import human_many
from ballast.errors import BallastError, JournalLost, Refused, Unavailable
from ballast.executor.driver.commands import Commands
from ballast.executor.driver.events import (
    Listener,
    MoveChanged,
    NullListener,
    Paced,
    Performing,
    Progressed,
    Refusing,
    RunBegan,
    RunEnded,
    RunResult,
    summary,
)
from ballast.executor.driver.inbound import Gauge
from ballast.executor.driver.journal_replication import keep_replicated
from ballast.executor.driver.look import FullReading, Looker, no_reading
from ballast.executor.driver.pace import measurable, pace_of, with_growth
from ballast.executor.driver.pauses import is_transient, pause_until_next_s, wait, wait_until_listings_agree
from ballast.executor.driver.recheck import first_failures, recheck
from ballast.executor.driver.run_throttles import RunThrottles
from ballast.executor.journal.notes import RunNote
from ballast.executor.journal.records import changes, dump_run, load_open_runs
from ballast.executor.journal.run_journal import RunJournal
from ballast.executor.journal.term import LeaseTerm
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.progress import Speedometer
from ballast.executor.machine.rollback import cancel_plan, mark_cancelled
from ballast.executor.machine.run import Now, Phase, Run, new_run, resume
from ballast.executor.machine.stages import Moving, Planned
from ballast.executor.machine.step import Command, CommandRequested, Event, Observed, Performed, Unanswered, needs, step
from ballast.executor.machine.transitions import Effect, EffectKind
from ballast.ports.cluster import Cluster, Outcome, Reassignment
from ballast.ports.journal import Journal, Record
from ballast.ports.time import Clock

REQUESTS_EVERY_S: Final = 2.0
"""How often the driver looks for requests of people."""
BACK_OFF_S: Final = 10.0
"""Longest wait between looks while the cluster does not answer."""


class Driver:
    """Executes one run at a time on one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        journal: Journal,
        clock: Clock,
        listener: Listener | None = None,
        *,
        alone: bool = True,
        server: str = "HOST:PORT",
        full_reading: Callable[[], FullReading | None] = no_reading,
    ) -> None:
        """``alone`` is False where others in this process answer requests and make a lost journal again: each has one owner.

        ``full_reading`` tells what such others read of the cluster last.
        ``server`` is how a person reaches the cluster; it stands in commands that are told.
        """
        self._alone = alone
        self._full_reading = full_reading
        self._cluster = cluster
        self._journal = LeaseTerm(journal)
        self._clock = clock
        self._listener = listener or NullListener()
        self._throttles = RunThrottles(cluster, self._journal, clock, server, self._write_and_check, self._note)
        self._commands = Commands(self._journal, self._note)
        self.paused_by = ""
        """Who paused every run and not this one alone: the next one of this process waits as well."""
        self._held_by = ""
        """Who paused the run in progress."""
        self.abandoned = False
        self._leave = threading.Event()
        self._endures_s = math.inf
        self._gauge: Gauge | None = None
        self._waits_for = ""
        """Why moves may not start, with the figures of the look that found it."""
        self._run: Run | None = None
        self._looker: Looker | None = None
        self._run_journal = RunJournal(self._journal, clock, self._note, self._throttles.commands)

    # --- what others may call, from any thread

    def ask(self, command: Command, *, run: str | None = None, by: str = "") -> None:
        """Cancel, roll back, pause or go on; taken up at the next look.

        ``run`` is the run that it is meant for, else the run that is executed or made ready now: one that comes when that has
        ended is not heard by the next.  Before the first run it is meant for that.
        """
        self._commands.add(CommandRequested(command, by), run)

    def pending_commands(self) -> list[tuple[CommandRequested, str | None]]:
        """Take the commands that no look has taken up, for the driver that continues the run."""
        return list(self._commands.take())

    def leave(self) -> None:
        """Stop acting at the next opportunity; moves in progress go on by themselves and a later start adopts them."""
        self._leave.set()

    def stay(self) -> None:
        """Undo ``leave``, to resume a run."""
        self._leave.clear()

    def listen(self, listener: Listener) -> None:
        """Tell events to this listener from now on."""
        self._listener = listener

    def give_up_after(self, seconds: float) -> None:
        """End with ``Unavailable`` when the cluster has not answered for this long; the run stays open in the journal."""
        self._endures_s = seconds

    def abandon(self) -> RunResult | None:
        """A person no longer waits for this to leave, nor for its lock to be released; the run as it is known here, None before any."""
        self.abandoned = True
        run = self._run
        return None if run is None else self._owing(summary(run, "left", 0.0), tuple(self._throttles.commands()))

    @property
    def run(self) -> Run | None:
        """The run as it stands; a value, safe to read from any thread."""
        return self._run

    # --- runs

    def execute(
        self,
        plan: Plan,
        policy: ExecutionPolicy,
        *,
        run_id: str,
        rollback_of: str | None = None,
        unclean: bool = False,
    ) -> RunResult:
        """Execute a plan until it has ended, or until told to leave."""
        self._journal.begin()
        self._commands.make_ready(run_id)
        self._look_ahead(policy, plan.moves)
        wait_until_listings_agree(self._cluster, self._journal, self._clock, self._leave.is_set)
        if not self._leave.is_set():
            keep_replicated(
                self._cluster, self._journal, self._clock, plan=plan, note=self._note, leaving=self._leave.is_set
            )
        run = replace(new_run(run_id, plan, policy, self._now(), rollback_of=rollback_of), unclean=unclean)
        if self._leave.is_set():
            self._note(RunNote("not-begun", {"run": run_id}))
            result = summary(run, "not-begun", 0.0)
            self._listener.on_event(RunEnded(result))
            return result
        self._journal.append(dump_run(run))
        return self._carry(run, resumed=False)

    def resume(self, run: Run) -> RunResult:
        """Go on with a run of the journal (``open_runs``)."""
        self._journal.begin()
        self._commands.make_ready(run.id)
        self._look_ahead(run.policy, [m.move for m in run.open_moves])
        wait_until_listings_agree(self._cluster, self._journal, self._clock, self._leave.is_set)
        return self._carry(
            resume(run, self._now()), resumed=not all(isinstance(m.stage, Planned) for m in run.moves.values())
        )

    def roll_back_if_asked(self, result: RunResult) -> RunResult:
        """Execute the rollback that was asked for while this run was cancelled; without one, return ``result`` as it is."""
        if result.rollback_wanted:
            for run in self.open_runs():
                if run.rollback_of == result.run_id:
                    return self.resume(run)
        return result

    def _look_ahead(self, policy: ExecutionPolicy, moves: Iterable[Move]) -> None:
        """The first readings, taken before what has to be waited for anyway."""
        self._looker = Looker(
            self._cluster, self._clock, policy, self._throttles.ledger, full_reading=self._full_reading
        )
        self._gauge = None
        names = [m.name for m in moves if m.adding]
        if policy.throttled and policy.measure_s > 0 and names:
            state = self._looker.state()
            self._gauge = Gauge.begin(self._cluster, self._clock, state, measurable(policy, state, names))

    def undo(self, active: Mapping[TopicPartition, Reassignment], *, run_id: str, by: str) -> RunResult:
        """Cancel these moves in progress as a run of its own, with the guard and the journal of any other.

        Open runs whose moves they are have in the journal ``by`` whom these were cancelled: it was no other user.
        """
        self._journal.begin()
        self._commands.make_ready(run_id)
        # Only our own journal remembers the order before; the union has lost it.
        left = self.open_runs()
        before = {n: m.move.old for r in left for n, m in r.moves.items()}
        plan = cancel_plan(active, before, self._cluster.snapshot(log_dirs=False, configs=False).cluster_id)
        run = new_run(run_id, plan, ExecutionPolicy(throttle="none"), self._now())
        run = replace(
            run,
            phase=Phase.CANCELLING,
            stopped_by=by,
            moves={n: replace(m, stage=Moving()).begin_waits(self._now()) for n, m in run.moves.items()},
        )
        marks = [line for r in left for line in changes(r, mark_cancelled(r, active, by))]
        self._journal.append([*dump_run(run), *marks])
        self._look_ahead(run.policy, plan.moves)
        return self._carry(run, resumed=True)

    def open_runs(self) -> list[Run]:
        """The journal's runs that have not ended, oldest first."""
        return load_open_runs(self._journal.read(), self._now())

    def restore_throttles(self) -> dict[Setting, Outcome]:
        """Restore every throttle setting of runs that have ended; answers what is still owed, and why."""
        return self._throttles.restore_of_ended()

    # --- the loop

    def _carry(self, run: Run, *, resumed: bool) -> RunResult:
        began_s = self._clock.monotonic_s()
        self._throttles.begin(run)
        self._run, self._waits_for = run, ""
        self._run_journal.begin(run)
        self._listener.on_event(RunBegan(run, resumed))
        if self.paused_by:
            self._note(RunNote("paused", {"by": self.paused_by}))
            self.ask(Command.PAUSE, run=run.id, by=self.paused_by)
        looker = self._looker
        assert looker is not None
        speed = Speedometer()
        pause_s = look_s = 0.0
        asked_s, heard_s = float("-inf"), began_s
        while not self._current.ended and not self._leave.is_set():
            try:
                if wait(self._cluster, self._clock, pause_s, look_s):
                    looker.read_isrs_next()
                if self._run_journal.renew(self._doing()) and self._clock.monotonic_s() - asked_s >= REQUESTS_EVERY_S:
                    self._take_requests()
                    asked_s = self._clock.monotonic_s()
                self._take_commands()
                self._measure_once()
                began_look_s = self._clock.monotonic_s()
                picture = looker.look(needs(self._current))
                look_s = self._clock.monotonic_s() - began_look_s
                self._feed(Observed(picture))
                if self._current.verdicts:
                    looker.read_sooner()
                self._run_journal.write(self._current)
                pause_s, heard_s = pause_until_next_s(self._current, look_s, self._now()), self._clock.monotonic_s()
            except JournalLost as lost:
                self._recreate_journal(lost)
            except (Unavailable, Refused) as failure:
                if not is_transient(failure) or self._clock.monotonic_s() - heard_s > self._endures_s:
                    raise
                self._note(RunNote("tried-again", {"error": failure.id, "message": failure.message}))
                pause_s = min(max(pause_s * 2, run.policy.poll_s), BACK_OFF_S)
            self._listener.on_event(Progressed(speed.read(self._current, self._clock.monotonic_s())))
        result = replace(self._result(began_s), paused_by=self.paused_by)
        if self._current.ended:
            self._take_commands()
        self._listener.on_event(RunEnded(result))
        return result

    def _recreate_journal(self, lost: JournalLost) -> None:
        """Make the journal again, or leave the run, as its policy says; where that is another's, this attempt ends here."""
        if not self._run_journal.recreate(
            lost, alone=self._alone, finish=self._current.policy.journal_lost == "finish"
        ):
            self.leave()

    def _take_commands(self) -> None:
        """Obey the commands meant for this run; one meant for a run that has ended is too late."""
        for asked, meant in self._commands.take():
            if meant in {None, self._current.id} and not self._current.ended:
                self._obey(asked)
            else:
                self._note(RunNote("requested-too-late", {"command": asked.command, "run": meant or self._current.id}))

    def _obey(self, asked: CommandRequested) -> None:
        self._held_by = asked.by if asked.command is Command.PAUSE else ""
        self._feed(asked)

    @property
    def _current(self) -> Run:
        assert self._run is not None
        return self._run

    def _now(self) -> Now:
        return Now(self._clock.now_ms(), self._clock.monotonic_s())

    def _note(self, of: RunNote) -> None:
        self._listener.on_event(of)

    def _doing(self) -> str:
        run = self._current
        open_moves = sum(1 for _ in run.open_moves)
        ended = (
            f"run {run.id}: {run.intent}, {len(run.moves) - open_moves} of {human_many(len(run.moves), 'move')} ended"
        )
        if run.phase is Phase.PAUSED and self._held_by:
            return f"{ended}; paused by {self._held_by}"
        return f"{ended}; waiting: {self._waits_for}" if self._waits_for else ended

    def _feed(self, first: Event) -> None:
        """Step the machine with an event and perform what follows from it, until nothing more follows."""
        events: deque[Event] = deque([first])
        while events:
            before = self._current
            after, effects = step(before, events.popleft(), self._now())
            self._run = after
            self._tell(before, after)
            events.extend(self._perform(effect) for effect in effects)

    def _tell(self, before: Run, after: Run) -> None:
        if before.moves is not after.moves:
            for name, m in after.moves.items():
                was = before.moves[name]
                # Another cause of the same stall is news as well.
                if type(was.stage) is not type(m.stage) or m.cause not in {None, was.cause}:
                    self._listener.on_event(MoveChanged(name, was.stage, m.stage, m.outcome, m.note))
        # Figures alone change at each look; progress shows them.
        if _refusals(before) != _refusals(after):
            self._waits_for = str(after.verdicts[0]) if after.verdicts else ""
            self._listener.on_event(Refusing(after.verdicts))

    # --- effects

    def _perform(self, effect: Effect) -> Event:
        self._listener.on_event(Performing(effect))
        try:
            return self._send(effect)
        except JournalLost as lost:
            # Nothing was sent: the intent is written first.
            self._recreate_journal(lost)
            return Unanswered(effect, lost.message)
        except (Unavailable, Refused) as failure:
            if is_transient(failure):
                self._note(
                    RunNote("unanswered", {"effect": effect.kind, "error": failure.id, "message": failure.message})
                )
                return Unanswered(effect, failure.message)
            if isinstance(failure, Refused):
                raise
            denied = Outcome(ok=False, code=_DENIED, message=failure.message)
            names = [*effect.targets, *effect.names, *(name for name, _ in effect.log_dirs)]
            return Performed(effect, dict.fromkeys(names, denied), dict.fromkeys(effect.desired, denied))

    def _send(self, effect: Effect) -> Event:
        match effect.kind:
            case EffectKind.THROTTLE | EffectKind.UNTHROTTLE:
                assert self._looker is not None
                state = self._looker.state()
                return Performed(effect, failed=self._throttles.settle(effect.desired, state.alive))
            case EffectKind.SUBMIT | EffectKind.CANCEL | EffectKind.RESTORE:
                seen = self._looker.last_state if self._looker is not None else None
                targets, known = recheck(self._cluster, effect, self._current.moves, seen, self._throttles.ids_now())
                self._write_and_check()
                outcomes = (
                    self._cluster.alter_reassignments(
                        targets, allow_replication_factor_change=effect.allow_replication_factor_change
                    )
                    if targets
                    else {}
                )
                return Performed(effect, {**outcomes, **known})
            case EffectKind.ALTER_LOG_DIRS:
                self._write_and_check()
                placed = self._cluster.alter_log_dirs(effect.log_dirs)
                return Performed(effect, first_failures(placed))
            case EffectKind.ELECT:
                self._write_and_check()
                return Performed(effect, self._cluster.elect_leaders(effect.names, unclean=effect.unclean))

    def _write_and_check(self, records: Sequence[Record] = ()) -> None:
        self._run_journal.write_and_check(self._run, records)

    # --- requests, inbound rates, the end

    def _take_requests(self) -> None:
        """Requests of others that concern a run in progress; the rest is left to other users of this journal."""
        if not self._alone:
            return
        for received in self._commands.take_requests(self._current.id, self._clock.now_ms()):
            if received.asked is None:
                self.leave()
                continue
            # Taken up and written down before it is answered: the run cannot end otherwise in between.
            self._obey(received.asked)
            self._run_journal.write(self._current, received.records)
            if received.records:
                self.paused_by = received.asked.by if received.asked.command is Command.PAUSE else ""

    def _measure_once(self) -> None:
        """Before the first throttled move: what do producers write, and at which rates does that let the run begin?"""
        if self._gauge is None:
            return
        grown = self._gauge.bytes_per_s(self._current.policy.measure_s)
        self._gauge = None
        assert self._looker is not None
        self._run = with_growth(self._current, self._looker.state(), grown)
        self._listener.on_event(Paced(pace_of(self._run, self._looker.state())))

    def _result(self, began_s: float) -> RunResult:
        try:
            return self._journal_result(began_s)
        except JournalLost as lost:
            self._recreate_journal(lost)
            if self._run_journal.gone is None:
                return self._journal_result(began_s)
            self._throttles.restore_from_memory(self._current)
            failure: BallastError = lost
        except Unavailable as silence:
            if not silence.retryable or not self._leave.is_set():
                raise
            failure = silence
        run = self._current
        self._note(RunNote("not-in-journal", {"run": run.id, "error": failure.id, "message": failure.message}))
        self._run_journal.tell_restore_commands()
        left = summary(run, run.status.value if run.ended else "left", self._clock.monotonic_s() - began_s)
        return self._owing(left, tuple(self._throttles.commands()))

    def _owing(self, left: RunResult, restore_commands: tuple[str, ...] = ()) -> RunResult:
        """The result of a run that this process leaves, with every throttle setting that is owed."""
        return replace(left, throttles_to_restore=self._throttles.to_restore(), restore_commands=restore_commands)

    def _journal_result(self, began_s: float) -> RunResult:
        run = self._current
        self._run_journal.require()
        self._run_journal.write(self._current)
        if not run.ended:
            return self._owing(summary(run, "left", self._clock.monotonic_s() - began_s))
        owed = self._throttles.restore_at_end()
        self._run_journal.drop_expired()
        seconds = self._clock.monotonic_s() - began_s
        return replace(summary(run, run.status.value, seconds), throttles_to_restore=tuple(owed))


def _refusals(run: Run) -> list[tuple[str, str, str]]:
    return [(v.code, v.cause, v.subject) for v in run.verdicts]


_DENIED: Final = "CLUSTER_AUTHORIZATION_FAILED"

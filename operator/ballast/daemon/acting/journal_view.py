"""What the journal tells a daemon that executes runs, stands by while another does, or only observes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ballast.core.cluster import TopicPartition
from ballast.core.throttles import Setting
from ballast.core.wording import human_many
from ballast.daemon.acting.decisions import Decisions, decisions_in, find_reserved
from ballast.daemon.acting.run_views import past_runs, run_view
from ballast.daemon.acting.runs import Runs, acts_in
from ballast.daemon.context.access import Access
from ballast.daemon.context.log import log_event
from ballast.daemon.context.view import BalanceView, Board, Role, RunView
from ballast.daemon.policy import LivePolicy
from ballast.errors import AuthorizationFailed, JournalLost
from ballast.executor.journal.history import find_unreadable_open_runs, load_ended
from ballast.executor.journal.ledger import load_ledger
from ballast.executor.journal.records import Parsed, Unreadable, load_open_runs, name_skipped, names_in_flight
from ballast.executor.machine.run import Now
from ballast.ports.event_sink import ClusterEvent, EventSink
from ballast.ports.journal import Journal, Record, UnusableJournal, find_restart
from ballast.ports.time import Clock

NO_JOURNAL: Final = "There is no journal."

log = logging.getLogger("ballast.daemon")


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalView:
    """What the journal said of runs when it was read last, whichever process executed them."""

    history: tuple[RunView, ...] = ()
    """Runs that ended, newest first."""
    skipped: Mapping[str, Unreadable] = field(default_factory=dict)
    """Why others cannot be shown, by their ids."""
    open: RunView | None = None
    """The oldest run that has not ended."""
    throttles_to_restore: tuple[Setting, ...] = ()
    """Throttles that were set and are not yet removed."""
    moving: frozenset[TopicPartition] = frozenset()
    """Partitions of open runs whose moves have not ended."""


@dataclass(slots=True)
class ParsedJournal:
    """What was parsed of earlier readings of the same journal, so that the next one parses what is new."""

    moves: Parsed = field(default_factory=Parsed)
    headers: Parsed = field(default_factory=Parsed)


def journal_view_of(records: Sequence[Record], clock: Clock, parsed: ParsedJournal) -> JournalView:
    """Read the journal's records."""
    left = load_open_runs(records, Now(clock.now_ms(), clock.monotonic_s()), parsed.moves)
    ended = load_ended(records, parsed.headers)
    return JournalView(
        history=past_runs(ended.runs),
        skipped={**ended.skipped, **find_unreadable_open_runs(records, left)},
        open=run_view(left[0]) if left else None,
        throttles_to_restore=tuple(load_ledger(records)),
        moving=names_in_flight(records),
    )


@dataclass(slots=True)
class JournalReader:
    """Reads it for the page, and adopts an open run that no process executes."""

    clock: Clock
    board: Board
    policy: LivePolicy
    access: Access
    runs: Runs
    event_sink: EventSink
    view: JournalView = field(default_factory=JournalView)
    """What the journal said of runs when it was read last."""
    decisions: Decisions = field(default_factory=Decisions)
    """What it said then of people's decisions; a process that only observes goes by it."""
    _parsed: ParsedJournal = field(default_factory=ParsedJournal)
    """So that the next reading parses what is new."""

    def read(self) -> str:
        """History, throttles to restore, and which partitions a process with the same journal is moving."""
        if self.access.journal_to_read is None:
            self.board.publish(history_problem=NO_JOURNAL)
            return NO_JOURNAL
        try:
            records = self._read(self.access.journal_to_read)
        except AuthorizationFailed as denied:
            if self.policy.now.writes:
                raise
            # To observe takes no right on the journal: without it there is no history, and the page says why.
            self.board.publish(history_problem=str(denied))
            return f"Past runs are not known: {denied}"
        journal_view = self.view = journal_view_of(records, self.clock, self._parsed)
        self.decisions = decisions_in(records)
        if self.board.view.lock.journal_readable is False and _can_act_upon(records):
            self.board.tell_journal()
        self.board.publish(
            history=journal_view.history,
            history_skipped=name_skipped(journal_view.skipped),
            history_problem="",
            throttles_to_restore=len(journal_view.throttles_to_restore),
        )
        if adopted := self._adopt():
            return f"Run {adopted} was open in the journal and no process executed it; this process resumes it."
        owed = (
            f" {human_many(len(journal_view.throttles_to_restore), 'throttle')} not yet removed."
            if journal_view.throttles_to_restore
            else ""
        )
        skipped = f" {human_many(len(journal_view.skipped), 'other')} cannot be read." if journal_view.skipped else ""
        unshown = "".join(
            f" Another version wrote {what}: only the page of the process that holds the lock shows it."
            for what in self.decisions.not_shown
        )
        return f"{human_many(len(journal_view.history), 'run')} ended so far.{skipped}{owed}{unshown}"

    def find_open_run(self, records: Sequence[Record]) -> str:
        """The oldest run that has not ended, from now on known to the page too; empty for none."""
        left = load_open_runs(records, Now(self.clock.now_ms(), self.clock.monotonic_s()))
        self.view = replace(self.view, open=run_view(left[0]) if left else None, moving=names_in_flight(records))
        return left[0].id if left else ""

    def show_run(self) -> str:
        """Publish how far the run in progress has come; elsewhere what the journal tells of the one that another process executes."""
        run = self.access.unfinished_run()
        if run is not None and (why := self.runs.why_held_by_mode()):
            run = replace(run, detail=f"{run.detail}; no further move begins, since {why}")
        role = self.board.view.role
        elsewhere = self.view.open if role is not Role.ACTIVE and self.access.current() is None else None
        if elsewhere and role is Role.OBSERVING:
            elsewhere = replace(elsewhere, detail="Open in the journal: a process in mode approve or auto adopts it")
        view = self.board.view
        if (run, elsewhere) != (view.run, view.run_elsewhere):
            begins = (run or elsewhere) is not None and (view.run or view.run_elsewhere) is None
            # What was planned, and said of the balance, before it began goes at the same moment.
            gone: dict[str, object] = {"plans": (), "balance": BalanceView()} if begins else {}
            # Its end brings new checks, also where it ends before the work loop has looked.
            if begins:
                self.runs.note_in_flight()
            self.board.publish(run=run, run_elsewhere=elsewhere, **gone)
        if elsewhere and role is Role.OBSERVING:
            return f"Run {elsewhere.id} is open in the journal; observe mode leaves it as it is."
        if elsewhere:
            return f"Run {elsewhere.id} is executed by {self.board.view.lock.holder or 'another process'}."
        return f"Run {run.id}: {run.detail}." if run else "Nothing is being executed."

    def tell_loss(self, lost: JournalLost) -> None:
        """Say once, where people look, that the journal is not what was written to it."""
        log_event(
            log, f"The journal is gone ({lost.how}): {lost}", level=logging.WARNING, failure=lost.id, how=lost.how
        )
        self.event_sink(ClusterEvent(reason="JournalLost", sentence=lost.message, warning=True))
        self.board.tell_journal(str(lost))

    def _read(self, reading_journal: Journal) -> Sequence[Record]:
        try:
            return reading_journal.read()
        except JournalLost as lost:
            if self.policy.now.writes and self.board.view.role is not Role.ACTIVE:
                self.tell_loss(lost)
                raise
        # The holder of the lock makes it again and tells that; this handle reads what stands there from now on.
        return reading_journal.read()

    def _adopt(self) -> str | None:
        """The leader adopts an open run that no process executes, however it came to be left."""
        run_controller, left = self.access.run_controller, self.view.open
        idle = self.board.view.role is Role.ACTIVE and not self.access.release_for
        if run_controller is None or not idle or run_controller.current() is not None or left is None:
            return None
        self.runs.adopt(left.id)
        return run_controller.adopt()


def _can_act_upon(records: Sequence[Record]) -> bool:
    """Whether what only the lock check reads is whole as well: a reading for the page alone must not say so."""
    try:
        find_reserved(records), find_restart(records), acts_in(records)
    except UnusableJournal:
        return False
    return True

"""The lock check: become the cluster's one writer, stay it, or be a hot standby.

It runs on a loop of its own, so that a slow reading of the cluster never lets the lease run out.  A standby waits inside
the journal's ``acquire``, which takes the lock the moment its holder releases it or has been silent for a whole lease.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from ballast.core.catalogue import Message, Table
from ballast.daemon.acting.decisions import Reserved, decisions_in, find_reserved, reserved_record
from ballast.daemon.acting.journal_view import JournalReader
from ballast.daemon.acting.propose import Proposals
from ballast.daemon.acting.runs import Runs
from ballast.daemon.context.access import Access
from ballast.daemon.context.log import log_event
from ballast.daemon.context.view import Board, LockView, Role
from ballast.daemon.policy import LivePolicy
from ballast.errors import BallastError, Fenced, JournalLost, LockHeld, Refused, Unavailable
from ballast.executor.journal.pause import Pause, pause_record
from ballast.ports.event_sink import ClusterEvent, EventSink
from ballast.ports.journal import Holder, Journal, UnusableJournal, find_restart
from ballast.ports.time import Clock

log = logging.getLogger("ballast.daemon")

PAUSED_BY = "ballast"
LOST = "the journal was deleted, and with it pauses, drains and rejections, and which throttles were Ballast's"
IDLE = "idle"
"""What the lock says of a holder that does nothing: silence would leave its last deed standing."""
RESERVED_S = 15.0
"""For how long every daemon leaves the lock to the person it was released for."""
WAIT_LEASES = 1.5
"""How many leases a standby waits in one check: longer than one, so that a dead holder is found out within it."""


class LockNote(Message):
    """What became of the lock."""

    __slots__ = ()
    sentences: ClassVar[Table] = {
        "observing": "Every kind of action is in observe: no lock is needed, nothing is written.",
        "released-to-observe": "The mode is observe: the lock was released.",
        "expires": "The mode is observe; the lock could not be released and expires by itself: {why}",
        "released-for": "Released the lock for {by}; acquiring it again afterwards.",
        "left-to": "The lock is left to {by}, which requested it.",
        "released-again": "Got the lock before {by}, for whom it was released, and released it.",
        "unneeded": "Released the lock: this process no longer needs it.",
        "stopping": "Released the lock: this process is stopping.",
        "held-elsewhere": "{why}",
        "standing-by": "Standing by: {why}",
        "taken": "Took the lock.",
        ("taken", "with-run"): "Took the lock and goes on with run {run}, which an earlier process did not finish.",
        "held": "Holds the lock and has nothing in progress.",
        ("held", "with-run"): "Holds the lock and executes run {run}.",
        "lost": "Lost the lock: {why}",
        "stepped-down": "No longer the lock's holder: {why}",
        ("stepped-down", "requested"): "No longer the lock's holder: {by} requested to take over.",
        "journal-recreated": "The journal topic was {how}; this process recreated it from memory.",
        "journal-recreated-empty": (
            "The journal was deleted while no process ran that remembered it, and {by} began an empty one. "
            "Nothing starts until an operator has checked (ballast throttles, ballast status) and resumes."
        ),
    }


@dataclass(slots=True)
class Lock:
    """Acquires, keeps and releases it; ``Access`` has the journal that it is in."""

    holder: Holder
    """As whom it is acquired."""
    clock: Clock
    board: Board
    policy: LivePolicy
    access: Access
    runs: Runs
    proposals: Proposals
    journal: JournalReader
    event_sink: EventSink
    look_again: Callable[[], None]
    """Makes the checks due at once: what they said of another role holds no more."""
    waiting: Callable[[], None]
    """Called again and again while it stands in line, which may take longer than a loop may be silent."""
    _reserved: Reserved | None = None
    """Whom the lock was last released for."""

    def keep(self) -> LockNote:
        """Acquire, renew or wait, or release the lock in observe mode; the journal is read again at each change of role."""
        if not self.policy.now.writes:
            return self._only_observe()
        if (journal := self.access.open()) is None:
            self.board.set_role(Role.OBSERVING)
            return LockNote("observing")
        try:
            if self.board.view.role is Role.ACTIVE:
                return self._renew(journal)
            return self._acquire(journal)
        except BallastError as failure:
            if not isinstance(failure, LockHeld):
                self._step_down(why=failure.message)
                if isinstance(failure, Unavailable | JournalLost | UnusableJournal):
                    self.board.tell_journal(str(failure))
            raise

    def load_journal(self, journal: Journal) -> None:
        """Read what earlier processes left: runs, the counts behind the caps, and what people have decided."""
        records = journal.read()
        self._reserved = find_reserved(records) or self._reserved
        self.runs.load_acts(records)
        decided = decisions_in(records)
        self.proposals.load_decisions(decided)
        self.board.publish(drains=decided.drains)
        self.board.load_answers(decided.answers)
        self.runs.set_pause(decided.pause)
        self.runs.adopt(self.journal.find_open_run(records))

    def _only_observe(self) -> LockNote:
        """Leave the run as it is, release the lock, and write nothing from then on; a later change of mode takes both up."""
        before = self.board.view.role
        if self.board.view.drains != (drains := self.journal.decisions.drains):
            self.board.publish(drains=drains)
        if before is Role.OBSERVING or self.access.journal is None:
            self.board.set_role(Role.OBSERVING)
            return LockNote("observing")
        # The role first: nothing may be begun beside us.
        self.board.set_role(Role.OBSERVING)
        self.runs.leave()
        self.access.stop()
        self.board.publish(lock=LockView())
        if before is not Role.ACTIVE:
            return LockNote("observing")
        note = LockNote("released-to-observe")
        try:
            self.access.journal.release()
        except BallastError as failure:
            note = LockNote("expires", {"why": failure.message})
        self.event_sink(ClusterEvent(reason="LockReleased", sentence=str(note)))
        return note

    def _renew(self, journal: Journal) -> LockNote:
        if self.access.release_for:
            who = self.access.release_for
            self._step_down(cause="requested", by=who)
            reserved = Reserved(who, self.clock.now_ms() + int(RESERVED_S * 1000))
            journal.append([reserved_record(reserved)])
            self._reserved = reserved
            journal.release()
            return LockNote("released-for", {"by": who})
        run = self.access.current()
        try:
            # A run tells by itself what it does.
            journal.renew("" if run else IDLE)
        except Fenced as failure:
            return self._lose(failure)
        except JournalLost as lost:
            return self._remake(journal, lost)
        self.runs.write_acts()
        return LockNote("held", {"run": run.id}, "with-run") if run else LockNote("held")

    def _lose(self, failure: Fenced) -> LockNote:
        self._step_down(why=failure.message)
        return LockNote("lost", {"why": failure.message})

    def _remake(self, journal: Journal, lost: JournalLost) -> LockNote:
        """Make the journal again from what this holder remembers."""
        self.journal.tell_loss(lost)
        try:
            journal.remake()
        except Fenced as failure:
            return self._lose(failure)
        self.board.tell_journal()
        note = LockNote("journal-recreated", {"how": lost.how})
        self.event_sink(ClusterEvent(reason="JournalRecreated", sentence=str(note)))
        return note

    def _acquire(self, journal: Journal) -> LockNote:
        if left_to := self._reserved_for():
            return LockNote("left-to", {"by": left_to})
        wait_s = WAIT_LEASES * self.holder.lease_s if self.board.view.role is Role.STANDBY else 0.0
        try:
            taken = journal.acquire(self.holder, wait_s=wait_s, wanted=self._still_wanted)
        except LockHeld as held:
            if not self._wanted():
                return LockNote("held-elsewhere", {"why": held.message})
            self.board.set_role(Role.STANDBY)
            self.board.publish(lock=_foreign(journal))
            self.load_journal(journal)
            return LockNote("standing-by", {"why": held.message})
        if not self._wanted():
            journal.release()
            return LockNote("unneeded")
        try:
            self._pause_after_loss(journal)
            self.load_journal(journal)
            if left_to := self._reserved_for():
                # Another replica gave it up for a person, and this one was quicker than they.
                journal.release()
                self.board.set_role(Role.STANDBY)
                return LockNote("released-again", {"by": left_to})
            return self._lead(journal, taken)
        except Refused as strange:
            if not isinstance(strange, JournalLost | Fenced):
                # It cannot act upon what it does not understand: a person who looks into that need not wait for its lock.
                self._step_down(why=strange.message)
                journal.release()
            raise

    def _lead(self, journal: Journal, taken: Holder) -> LockNote:
        """Take up what was left open, and count as the leader from then on."""
        # What was left open is adopted before this process counts as the leader: the work loop starts nothing beside it.
        adopted = self.access.run_controller.adopt() if self.access.run_controller else None
        if self.board.view.role is Role.STOPPING:
            # It was told to stop while it read the journal: what stops it did not know of a lock to release.
            self.access.stop()
            journal.release()
            return LockNote("stopping")
        # And it shows that run before it shows itself as the leader: never as one that does nothing.
        self.journal.show_run()
        lock = LockView(held=True, holder=taken.description, since_ms=taken.since_ms, journal_readable=True)
        self.board.publish(role=Role.ACTIVE, lock=lock)
        self.proposals.publish()
        self.look_again()
        note = LockNote("taken", {"run": adopted}, "with-run") if adopted else LockNote("taken")
        self.event_sink(ClusterEvent(reason="LockAcquired", sentence=str(note)))
        return note

    def _still_wanted(self) -> bool:
        self.waiting()
        return self._wanted()

    def _wanted(self) -> bool:
        return self.policy.now.writes and self.board.view.role is not Role.STOPPING

    def _pause_after_loss(self, journal: Journal) -> None:
        """Let nothing start from a journal that was begun where one had been deleted: what people had decided is gone with that.

        A pause, draining brokers, rejected plans, the counts behind the caps, throttles owed: a person looks, and resumes.
        """
        records = journal.read()
        restart = find_restart(records)
        if restart is None or decisions_in(records).pause is not None:
            return
        journal.append([pause_record(Pause(by=PAUSED_BY, since_ms=restart.at_ms, reason=LOST))])
        sentence = str(LockNote("journal-recreated-empty", {"by": restart.by}))
        log_event(log, sentence, level=logging.WARNING)
        self.event_sink(ClusterEvent(reason="JournalLost", sentence=sentence, warning=True))

    def _reserved_for(self) -> str:
        """Whom the lock was released for a moment ago; empty once they have had their time."""
        reserved = self._reserved
        if reserved is None:
            return ""
        left_ms = reserved.until_ms - self.clock.now_ms()
        # A clock that jumped back must not keep every daemon from the lock for longer than was meant.
        return reserved.who if 0 < left_ms <= RESERVED_S * 1000 else ""

    def _step_down(self, cause: str = "", **values: str) -> None:
        """``cause`` is empty where the lock was lost."""
        if self.board.view.role is Role.ACTIVE:
            sentence, asked = str(LockNote("stepped-down", values, cause)), cause == "requested"
            log_event(log, sentence, level=logging.INFO if asked else logging.WARNING)
            self.event_sink(
                ClusterEvent(reason="LockReleased" if asked else "LockLost", sentence=sentence, warning=not asked)
            )
            # Before the run is left: nothing may be begun beside us.
            self.board.set_role(Role.STANDBY)
            self.access.stop()
            self.access.note_released()
        self.board.set_role(Role.STANDBY)
        self.board.update(lambda view: {"lock": replace(view.lock, held=False, holder="", since_ms=None)})


def _foreign(journal: Journal) -> LockView:
    other = journal.holder()
    if other is None:
        return LockView(journal_readable=True)
    return LockView(holder=other.description, since_ms=other.since_ms, journal_readable=True)

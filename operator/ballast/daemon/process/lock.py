"""The lock tick: become the cluster's one writer, stay it, or stand by warm.

It runs on a loop of its own, so that a slow reading of the cluster never lets the lease run out.  A standby waits inside
the journal's ``acquire``, which takes the lock the moment its holder releases it or has been silent for a whole lease.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from ballast.daemon.acting.decisions import Decisions, decisions_in, pause_record
from ballast.daemon.acting.permission import Acts
from ballast.daemon.acting.policy import ActionKind
from ballast.daemon.acting.propose import acts_key, publish_proposals
from ballast.daemon.acting.run_views import run_view
from ballast.daemon.context.daemon_context import DaemonContext, Reserved
from ballast.daemon.context.view import LockView, Pause, Role
from ballast.daemon.process.logs import say
from ballast.errors import BallastError, Fenced, JournalLost, LockHeld, Refused, Unavailable
from ballast.executor.journal.records import load_open_runs, names_in_flight
from ballast.executor.machine.run import Now
from ballast.ports.event_sink import ClusterEvent
from ballast.ports.journal import Corrupt, Holder, Journal, Record, begun_in, read_record

log = logging.getLogger("ballast.daemon")

GIVE_WAY_KEY = "give-way"
OBSERVING = "Every kind of action is in observe: no lock is wanted, nothing is written."
PAUSED_BY = "ballast"
LOST = "the journal was deleted, and with it what people had decided and which throttles were Ballast's"
LOOK = "Nothing starts until an operator has checked (ballast throttles, ballast status) and resumes."
IDLE = "idle"
"""What the lock says of a holder that does nothing: silence would leave its last deed standing."""
GIVE_WAY_S = 15.0
"""For how long every daemon leaves the lock to the person it was given up for."""
WAIT_LEASES = 1.5
"""How many leases a standby waits in one tick: longer than one, so that a dead holder is found out within it."""


def keep_lock(context: DaemonContext, holder: Holder, waiting: Callable[[], None] = lambda: None) -> str:
    """Acquire, renew or wait, or give the lock back in observe mode; the journal is read again at each change of role.

    ``waiting`` is called again and again while it stands in line, which may take longer than a loop may be silent.
    """
    if not context.policy.writes:
        return _only_observe(context)
    if context.journal is None:
        context.take_tools()
    journal = context.journal
    if journal is None:
        context.set_role(Role.OBSERVER)
        return OBSERVING
    try:
        if context.board.view.role is Role.LEADER:
            return _renew(context, journal)
        return _acquire(context, journal, holder, waiting)
    except BallastError as failure:
        if not isinstance(failure, LockHeld):
            _step_down(context, failure.message)
            if isinstance(failure, Unavailable | JournalLost | Corrupt):
                context.board.publish(lock=LockView(journal_readable=False))
        raise


def recall(context: DaemonContext, journal: Journal) -> None:
    """Read what earlier processes left: runs, the counts behind the caps, and what people have decided."""
    acts = {}
    kinds = {acts_key(kind): kind for kind in ActionKind}
    records = journal.read()
    for record in records:
        if record.key == GIVE_WAY_KEY and record.value is not None:
            context.memory.reserved = read_record(record, lambda r: Reserved(r.text("for"), r.integer("until_ms")))
        elif record.key in kinds and record.value is not None:
            acts[kinds[record.key]] = read_record(record, Acts.from_json)
    context.memory.acts = acts
    heed(context, decisions_in(records))
    left = load_open_runs(records, Now(context.clock.now_ms(), context.clock.monotonic_s()))
    context.memory.journal_view = replace(
        context.memory.journal_view, open=run_view(left[0]) if left else None, moving=names_in_flight(records)
    )
    context.take_up(left[0].id if left else "")


def heed(context: DaemonContext, decided: Decisions) -> None:
    """Go by what people have decided, whichever process they told: on a standby's page it shows at the next look."""
    memory = context.memory
    memory.rejected |= decided.rejected
    memory.approved = dict(decided.approved)
    before = dict(memory.proposals), memory.asked_elsewhere
    for kind, proposal in before[0].items():
        if memory.rejected.get(kind) == proposal.id:
            memory.proposals.pop(kind, None)
        elif proposal.approved_by != (by := memory.approval_of(kind, proposal.id)):
            memory.proposals[kind] = replace(proposal, approved_by=by)
    memory.asked_elsewhere, memory.shared = decided.asked, (decided.asked, decided.answers)
    if (memory.proposals, memory.asked_elsewhere) != before:
        publish_proposals(context)
    context.board.publish(drains=decided.drains, answers=decided.answers)
    context.set_pause(decided.pause)


def _only_observe(context: DaemonContext) -> str:
    """Leave the run as it is, give the lock back, and write nothing from then on; a later change of mode takes both up."""
    before = context.board.view.role
    if context.board.view.drains != (drains := context.memory.decisions.drains):
        context.board.publish(drains=drains)
    if before is Role.OBSERVER or context.journal is None:
        context.set_role(Role.OBSERVER)
        return OBSERVING
    # The role first: nothing may be begun beside us.
    context.set_role(Role.OBSERVER)
    context.memory.running = None
    if context.run_controller is not None:
        context.run_controller.stop(drain_s=0.0)
    context.board.publish(lock=LockView())
    if before is not Role.LEADER:
        return OBSERVING
    sentence = "The mode is observe: the lock was released."
    try:
        context.journal.release()
    except BallastError as failure:
        sentence = f"The mode is observe; the lock could not be released and expires by itself: {failure.message}"
    context.event_sink(ClusterEvent(reason="GaveLockBack", sentence=sentence))
    return sentence


def _renew(context: DaemonContext, journal: Journal) -> str:
    if context.give_way:
        who = context.give_way
        _step_down(context, f"{who} asked to take over.", asked=True)
        context.give_way = ""
        reserved = Reserved(who, context.clock.now_ms() + int(GIVE_WAY_S * 1000))
        journal.append([Record(GIVE_WAY_KEY, {"for": reserved.who, "until_ms": reserved.until_ms})])
        context.memory.reserved = reserved
        journal.release()
        return f"Released the lock for {who}; acquiring it again afterwards."
    run = context.run_controller.current() if context.run_controller else None
    try:
        # A run tells by itself what it does.
        journal.renew("" if run else IDLE)
    except Fenced as failure:
        _step_down(context, failure.message)
        return f"Lost the lock: {failure.message}"
    except JournalLost as lost:
        return _remake(context, journal, lost)
    return "Holds the lock" + (f" and carries out run {run.id}." if run else " and has nothing in flight.")


def tell_loss(context: DaemonContext, lost: JournalLost) -> None:
    """Say once, where people look, that the journal is not what was written to it."""
    say(log, f"The journal is gone ({lost.how}): {lost}", level=logging.WARNING, failure=lost.id, how=lost.how)
    context.event_sink(ClusterEvent(reason="JournalLost", sentence=lost.message, warning=True))
    context.board.publish(lock=replace(context.board.view.lock, journal_readable=False))


def _remake(context: DaemonContext, journal: Journal, lost: JournalLost) -> str:
    """Make the journal again from what this holder remembers."""
    tell_loss(context, lost)
    try:
        journal.remake()
    except Fenced as failure:
        _step_down(context, failure.message)
        return f"Lost the lock: {failure.message}"
    context.board.publish(lock=replace(context.board.view.lock, journal_readable=True))
    sentence = f"The journal was {lost.how} and was made again from what this process knew of it."
    context.event_sink(ClusterEvent(reason="JournalRemade", sentence=sentence))
    return sentence


def _acquire(context: DaemonContext, journal: Journal, holder: Holder, waiting: Callable[[], None]) -> str:
    if left_to := _reserved_for(context):
        return f"The lock is left to {left_to}, who asked for it."
    wait_s = WAIT_LEASES * holder.lease_s if context.board.view.role is Role.STANDBY else 0.0
    try:
        taken = journal.acquire(holder, wait_s=wait_s, wanted=lambda: _wanted(context, waiting))
    except LockHeld as held:
        if not _wanted(context):
            return held.message
        context.set_role(Role.STANDBY)
        context.board.publish(lock=_foreign(journal))
        recall(context, journal)
        return f"Standing by: {held.message}"
    if not _wanted(context):
        journal.release()
        return "Got the lock when it was no longer wanted, and gave it back."
    try:
        pause_after_loss(context, journal)
        recall(context, journal)
    except Refused as strange:
        if not isinstance(strange, JournalLost | Fenced):
            # It cannot act upon what it does not understand: whoever looks into that need not wait for its lock.
            journal.release()
        raise
    if left_to := _reserved_for(context):
        # Another replica gave it up for a person, and this one was quicker than they.
        journal.release()
        context.set_role(Role.STANDBY)
        return f"Got the lock before {left_to}, for whom it was released, and released it."
    # What was left open is taken up before this process counts as the leader: the work loop starts nothing beside it.
    adopted = context.run_controller.adopt() if context.run_controller else None
    context.board.publish(
        lock=LockView(held=True, holder=taken.description, since_ms=taken.since_ms, journal_readable=True)
    )
    context.set_role(Role.LEADER)
    publish_proposals(context)
    tail = f" and goes on with run {adopted}, which an earlier process did not finish" if adopted else ""
    sentence = f"Took the lock{tail}."
    context.event_sink(ClusterEvent(reason="TookLock", sentence=sentence))
    return sentence


def _wanted(context: DaemonContext, looked: Callable[[], None] = lambda: None) -> bool:
    looked()
    return context.policy.writes and context.board.view.role is not Role.STOPPING


def pause_after_loss(context: DaemonContext, journal: Journal) -> None:
    """Let nothing start from a journal that was begun where one had been deleted: what people had decided is gone with that.

    A pause, drained brokers, rejected plans, the counts behind the caps, throttles owed: a person looks, and resumes.
    """
    records = journal.read()
    begun = begun_in(records)
    if begun is None or decisions_in(records).pause is not None:
        return
    journal.append([pause_record(Pause(by=PAUSED_BY, since_ms=begun.at_ms, reason=LOST))])
    sentence = (
        f"The journal was deleted while no process ran that remembered it, and {begun.by} began an empty one. {LOOK}"
    )
    say(log, sentence, level=logging.WARNING)
    context.event_sink(ClusterEvent(reason="JournalLost", sentence=sentence, warning=True))


def _reserved_for(context: DaemonContext) -> str:
    """Whom the lock was given up for a moment ago; empty once they have had their time."""
    reserved = context.memory.reserved
    if reserved is None:
        return ""
    left_ms = reserved.until_ms - context.clock.now_ms()
    # A clock that jumped back must not keep everybody from the lock for longer than was meant.
    return reserved.who if 0 < left_ms <= GIVE_WAY_S * 1000 else ""


def _step_down(context: DaemonContext, why: str, *, asked: bool = False) -> None:
    if context.board.view.role is Role.LEADER:
        sentence = f"No longer the one that acts: {why}"
        say(log, sentence, level=logging.INFO if asked else logging.WARNING)
        context.event_sink(
            ClusterEvent(reason="GaveLockUp" if asked else "LostLock", sentence=sentence, warning=not asked)
        )
        # Before the run is left: nothing may be begun beside us.
        context.set_role(Role.STANDBY)
        if context.run_controller is not None:
            context.run_controller.stop(drain_s=0.0)
    context.set_role(Role.STANDBY)
    context.board.publish(lock=LockView(journal_readable=context.board.view.lock.journal_readable))


def _foreign(journal: Journal) -> LockView:
    other = journal.holder()
    if other is None:
        return LockView(journal_readable=True)
    return LockView(holder=other.description, since_ms=other.since_ms, journal_readable=True)

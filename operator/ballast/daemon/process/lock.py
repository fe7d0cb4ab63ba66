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
from ballast.daemon.context.scene import Reserved, Scene
from ballast.daemon.context.view import LockView, Pause, Role
from ballast.daemon.process.logs import say
from ballast.errors import BallastError, Fenced, JournalLost, LockHeld, Refused, Unavailable
from ballast.executor.journal.records import load_open_runs, names_in_flight
from ballast.executor.machine.run import Now
from ballast.ports.journal import Corrupt, Holder, Journal, Record, begun_in, read_record
from ballast.ports.news import News

log = logging.getLogger("ballast.daemon")

GIVE_WAY_KEY = "give-way"
OBSERVING = "Every kind of action is in observe: no lock is wanted, nothing is written."
PAUSED_BY = "ballast"
LOST = "the journal was deleted, and with it what people had decided and which throttles were Ballast's"
LOOK = "Nothing starts before somebody has looked (ballast throttles, ballast status) and resumes."
IDLE = "idle"
"""What the lock says of a holder that does nothing: silence would leave its last deed standing."""
GIVE_WAY_S = 15.0
"""For how long every daemon leaves the lock to the person it was given up for."""
WAIT_LEASES = 1.5
"""How many leases a standby waits in one tick: longer than one, so that a dead holder is found out within it."""


def keep_lock(scene: Scene, holder: Holder, waiting: Callable[[], None] = lambda: None) -> str:
    """Acquire, renew or wait, or give the lock back in observe mode; the journal is read again at each change of role.

    ``waiting`` is called again and again while it stands in line, which may take longer than a loop may be silent.
    """
    if not scene.policy.writes:
        return _only_observe(scene)
    if scene.journal is None:
        scene.take_tools()
    journal = scene.journal
    if journal is None:
        scene.set_role(Role.OBSERVER)
        return OBSERVING
    try:
        if scene.board.view.role is Role.LEADER:
            return _renew(scene, journal)
        return _acquire(scene, journal, holder, waiting)
    except BallastError as failure:
        if not isinstance(failure, LockHeld):
            _step_down(scene, failure.message)
            if isinstance(failure, Unavailable | JournalLost | Corrupt):
                scene.board.publish(lock=LockView(journal_readable=False))
        raise


def recall(scene: Scene, journal: Journal) -> None:
    """Read what earlier processes left: runs, the counts behind the caps, and what people have decided."""
    acts = {}
    kinds = {acts_key(kind): kind for kind in ActionKind}
    records = journal.read()
    for record in records:
        if record.key == GIVE_WAY_KEY and record.value is not None:
            scene.memory.reserved = read_record(record, lambda r: Reserved(r.text("for"), r.integer("until_ms")))
        elif record.key in kinds and record.value is not None:
            acts[kinds[record.key]] = read_record(record, Acts.from_json)
    scene.memory.acts = acts
    heed(scene, decisions_in(records))
    left = load_open_runs(records, Now(scene.clock.now_ms(), scene.clock.monotonic_s()))
    scene.memory.books = replace(
        scene.memory.books, open=run_view(left[0]) if left else None, moving=names_in_flight(records)
    )
    scene.take_up(left[0].id if left else "")


def heed(scene: Scene, decided: Decisions) -> None:
    """Go by what people have decided, whichever process they told: on a standby's page it shows at the next look."""
    memory = scene.memory
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
        publish_proposals(scene)
    scene.board.publish(drains=decided.drains, answers=decided.answers)
    scene.set_pause(decided.pause)


def _only_observe(scene: Scene) -> str:
    """Leave the run as it is, give the lock back, and write nothing from then on; a later change of mode takes both up."""
    before = scene.board.view.role
    if scene.board.view.drains != (drains := scene.memory.decisions.drains):
        scene.board.publish(drains=drains)
    if before is Role.OBSERVER or scene.journal is None:
        scene.set_role(Role.OBSERVER)
        return OBSERVING
    # The role first: nothing may be begun beside us.
    scene.set_role(Role.OBSERVER)
    scene.memory.running = None
    if scene.hands is not None:
        scene.hands.stop(drain_s=0.0)
    scene.board.publish(lock=LockView())
    if before is not Role.LEADER:
        return OBSERVING
    sentence = "The mode is observe: the lock was given back."
    try:
        scene.journal.release()
    except BallastError as failure:
        sentence = f"The mode is observe; the lock could not be given back and runs out by itself: {failure.message}"
    scene.herald(News(reason="GaveLockBack", sentence=sentence))
    return sentence


def _renew(scene: Scene, journal: Journal) -> str:
    if scene.give_way:
        who = scene.give_way
        _step_down(scene, f"{who} asked to take over.", asked=True)
        scene.give_way = ""
        reserved = Reserved(who, scene.clock.now_ms() + int(GIVE_WAY_S * 1000))
        journal.append([Record(GIVE_WAY_KEY, {"for": reserved.who, "until_ms": reserved.until_ms})])
        scene.memory.reserved = reserved
        journal.release()
        return f"Gave the lock up for {who}; waiting in line for it."
    run = scene.hands.current() if scene.hands else None
    try:
        # A run tells by itself what it does.
        journal.renew("" if run else IDLE)
    except Fenced as failure:
        _step_down(scene, failure.message)
        return f"Lost the lock: {failure.message}"
    except JournalLost as lost:
        return _remake(scene, journal, lost)
    return "Holds the lock" + (f" and carries out run {run.id}." if run else " and has nothing in flight.")


def tell_loss(scene: Scene, lost: JournalLost) -> None:
    """Say once, where people look, that the journal is not what was written to it."""
    say(log, f"The journal is gone ({lost.how}): {lost}", level=logging.WARNING, failure=lost.id, how=lost.how)
    scene.herald(News(reason="JournalLost", sentence=lost.message, warning=True))
    scene.board.publish(lock=replace(scene.board.view.lock, journal_readable=False))


def _remake(scene: Scene, journal: Journal, lost: JournalLost) -> str:
    """Make the journal again from what this holder remembers."""
    tell_loss(scene, lost)
    try:
        journal.remake()
    except Fenced as failure:
        _step_down(scene, failure.message)
        return f"Lost the lock: {failure.message}"
    scene.board.publish(lock=replace(scene.board.view.lock, journal_readable=True))
    sentence = f"The journal was {lost.how} and was made again from what this process knew of it."
    scene.herald(News(reason="JournalRemade", sentence=sentence))
    return sentence


def _acquire(scene: Scene, journal: Journal, holder: Holder, waiting: Callable[[], None]) -> str:
    if left_to := _reserved_for(scene):
        return f"The lock is left to {left_to}, who asked for it."
    wait_s = WAIT_LEASES * holder.lease_s if scene.board.view.role is Role.STANDBY else 0.0
    try:
        journal.acquire(holder, wait_s=wait_s, wanted=lambda: _wanted(scene, waiting))
    except LockHeld as held:
        if not _wanted(scene):
            return held.message
        scene.set_role(Role.STANDBY)
        scene.board.publish(lock=_foreign(journal))
        recall(scene, journal)
        return f"Standing by: {held.message}"
    if not _wanted(scene):
        journal.release()
        return "Got the lock when it was no longer wanted, and gave it back."
    try:
        pause_after_loss(scene, journal)
        recall(scene, journal)
    except Refused as strange:
        if not isinstance(strange, JournalLost | Fenced):
            # It cannot act upon what it does not understand: whoever looks into that need not wait for its lock.
            journal.release()
        raise
    if left_to := _reserved_for(scene):
        # Another replica gave it up for a person, and this one was quicker than they.
        journal.release()
        scene.set_role(Role.STANDBY)
        return f"Got the lock before {left_to}, for whom it was given up, and gave it back."
    # What was left open is taken up before this process counts as the leader: the work loop starts nothing beside it.
    adopted = scene.hands.adopt() if scene.hands else None
    scene.board.publish(
        lock=LockView(held=True, holder=holder.description, since_ms=holder.since_ms, journal_readable=True)
    )
    scene.set_role(Role.LEADER)
    publish_proposals(scene)
    tail = f" and goes on with run {adopted}, which an earlier process left open" if adopted else ""
    sentence = f"Took the lock{tail}."
    scene.herald(News(reason="TookLock", sentence=sentence))
    return sentence


def _wanted(scene: Scene, looked: Callable[[], None] = lambda: None) -> bool:
    looked()
    return scene.policy.writes and scene.board.view.role is not Role.STOPPING


def pause_after_loss(scene: Scene, journal: Journal) -> None:
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
    scene.herald(News(reason="JournalLost", sentence=sentence, warning=True))


def _reserved_for(scene: Scene) -> str:
    """Whom the lock was given up for a moment ago; empty once they have had their time."""
    reserved = scene.memory.reserved
    if reserved is None:
        return ""
    left_ms = reserved.until_ms - scene.clock.now_ms()
    # A clock that jumped back must not keep everybody from the lock for longer than was meant.
    return reserved.who if 0 < left_ms <= GIVE_WAY_S * 1000 else ""


def _step_down(scene: Scene, why: str, *, asked: bool = False) -> None:
    if scene.board.view.role is Role.LEADER:
        sentence = f"No longer the one that acts: {why}"
        say(log, sentence, level=logging.INFO if asked else logging.WARNING)
        scene.herald(News(reason="GaveLockUp" if asked else "LostLock", sentence=sentence, warning=not asked))
        # Before the run is left: nothing may be begun beside us.
        scene.set_role(Role.STANDBY)
        if scene.hands is not None:
            scene.hands.stop(drain_s=0.0)
    scene.set_role(Role.STANDBY)
    scene.board.publish(lock=LockView(journal_readable=scene.board.view.lock.journal_readable))


def _foreign(journal: Journal) -> LockView:
    other = journal.holder()
    if other is None:
        return LockView(journal_readable=True)
    return LockView(holder=other.description, since_ms=other.since_ms, journal_readable=True)

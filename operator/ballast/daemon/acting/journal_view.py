"""What the journal tells a daemon that carries out runs, stands by while another does, or only observes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ballast.core.wording import human_many
from ballast.daemon.acting.decisions import decisions_in
from ballast.daemon.acting.run_views import journal_view_of
from ballast.daemon.context.daemon_context import DaemonContext
from ballast.daemon.context.view import Role
from ballast.daemon.process.lock import tell_loss
from ballast.errors import AuthorizationFailed, JournalLost
from ballast.ports.journal import Journal, Record


def read_journal_view(context: DaemonContext) -> str:
    """History, throttles to restore, and which partitions somebody with our journal is moving."""
    if context.reading_journal is None:
        return "There is no journal."
    try:
        records = _read(context, context.reading_journal)
    except AuthorizationFailed as denied:
        if context.policy.writes:
            raise
        # To observe takes no right on the journal: without it there is no history, and the page says why.
        context.board.publish(history_problem=str(denied))
        return f"Past runs are not known: {denied}"
    if context.board.view.lock.journal_readable is False:
        context.board.publish(lock=replace(context.board.view.lock, journal_readable=True))
    journal_view = context.memory.journal_view = journal_view_of(records, context.clock, context.memory.parsed)
    context.memory.decisions = decisions_in(records)
    context.board.publish(
        history=journal_view.history,
        history_skipped=tuple(journal_view.skipped.items()),
        history_problem="",
        throttles_to_restore=len(journal_view.throttles_to_restore),
    )
    if adopted := _adopt(context):
        return f"Run {adopted} was open in the journal and no process carried it out; this process resumes it."
    owed = (
        f" {human_many(len(journal_view.throttles_to_restore), 'throttle')} not yet removed."
        if journal_view.throttles_to_restore
        else ""
    )
    skipped = f" {human_many(len(journal_view.skipped), 'other')} cannot be read." if journal_view.skipped else ""
    return f"{human_many(len(journal_view.history), 'run')} ended so far.{skipped}{owed}"


def _read(context: DaemonContext, reading_journal: Journal) -> Sequence[Record]:
    try:
        return reading_journal.read()
    except JournalLost as lost:
        if context.policy.writes and context.board.view.role is not Role.LEADER:
            tell_loss(context, lost)
            raise
    # The holder of the lock makes it again and tells that; this handle reads what stands there from now on.
    return reading_journal.read()


def _adopt(context: DaemonContext) -> str | None:
    """An open run that nobody carries out is taken up by the one that acts, however it came to be left."""
    run_controller, left = context.run_controller, context.memory.journal_view.open
    idle = context.board.view.role is Role.LEADER and not context.give_way
    if run_controller is None or not idle or run_controller.current() is not None or left is None:
        return None
    context.take_up(left.id)
    return run_controller.adopt()


def show_run(context: DaemonContext) -> str:
    """Publish how far the run in flight has come; elsewhere what the journal tells of the one that another carries out."""
    run = context.run_controller.current() if context.run_controller else None
    if run is not None and (why := context.held_by_mode()):
        run = replace(run, sentence=f"{run.sentence}; no further move begins, since {why}")
    role = context.board.view.role
    elsewhere = context.memory.journal_view.open if role is not Role.LEADER and run is None else None
    if elsewhere and role is Role.OBSERVER:
        elsewhere = replace(elsewhere, sentence="Open in the journal: a process in mode approve or auto takes it up")
    if (run, elsewhere) != (context.board.view.run, context.board.view.run_elsewhere):
        context.board.publish(run=run, run_elsewhere=elsewhere)
    if elsewhere and role is Role.OBSERVER:
        return f"Run {elsewhere.id} is open in the journal; observe mode leaves it as it is."
    if elsewhere:
        return f"Run {elsewhere.id} is carried out by {context.board.view.lock.holder or 'another process'}."
    return f"Run {run.id}: {run.sentence}." if run else "Nothing is being carried out."

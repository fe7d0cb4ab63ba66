"""Cancel a run or roll it back: by the holder of the lock, and by this process where no other holds it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Final

from ballast.app.apply import outline
from ballast.app.requests import ask_holder
from ballast.app.runs import Session
from ballast.core.cluster import ClusterState
from ballast.core.cluster.drain import refuse_drained
from ballast.core.guards.drift import drift, keep_valid
from ballast.core.wording import ShowLine, human_many
from ballast.executor.journal.drains import drains_in
from ballast.executor.machine.rollback import refilled_brokers, rollback_plan
from ballast.executor.machine.run import Run
from ballast.executor.machine.step import Command
from ballast.ports.journal import Journal
from ballast.wiring.journal import journal_to_look_at
from ballast.wiring.runs import find_known_run, find_run, read_open_runs, refuse_unreadable, unreadable_lines

_VERBS: Final = {Command.CANCEL: "Cancel", Command.ROLLBACK: "Roll back"}


def stop(session: Session, command: Command, run_id: str | None, reason: str = "") -> int:
    """Cancel or roll back this run, or the open one; the exit code says how it ended.

    ``reason`` is kept with the run and shown with who asks.
    """
    with closing(journal_to_look_at(session.opened, session.journal)) as log:
        run = _run_of(log, run_id, session.user_interface.show_line)
        if run is None:
            session.user_interface.show_line("No run is open.")
            return 0
        if run.ended and command is Command.CANCEL:
            return _too_late(session, run)
        if command is Command.ROLLBACK:
            drained = (d.broker for d in drains_in(log.read()))
            refuse_drained(
                refilled_brokers(run), drained, f"Undoing run {run.id} puts replicas on", "Leave it as it is"
            )
        if command is Command.ROLLBACK:
            state = session.opened.cluster.snapshot(configs=False)
            session.user_interface.show_line(f"{rollback_outline(run, state)}.")
        session.user_interface.confirm(f"{_VERBS[command]} run {run.id} ({run.intent})?")
        what = f"{command.value} run {run.id}"
        body = {"run": run.id, "reason": reason} if reason else {"run": run.id}
        told = None if run.ended else ask_holder(log, command.value, body, what, session.user_interface.show_line)
        if told is not None:
            session.user_interface.show_line(f"Answer: {told.rstrip('.')}. Follow it with: ballast runs show {run.id}")
            return 0
    return _stop_here(session, command, run.id, reason)


def rollback_outline(run: Run, state: ClusterState) -> str:
    """What rolling it back does to the cluster as it is now: what of it is cancelled, and what has to be copied again."""
    back = rollback_plan(run)
    found = drift(back, state)
    left = keep_valid(back, found, state)
    told = [outline(left)] if not left.is_empty else []
    if not run.ended:
        told.append(f"{human_many(sum(1 for _ in run.open_moves), 'open move')} cancelled first")
    if not told:
        told.append(f"{back.intent}: nothing has to be moved back")
    if found.changed or found.gone or found.recreated:
        told.append(f"left as it is: {replace(found, done=()).explain()}")
    return "; ".join(told)


def _run_of(log: Journal, run_id: str | None, on_line: ShowLine) -> Run | None:
    """The run that is named, else the newest that is open; raises ``Refused`` where none of those that are open can be read."""
    if run_id is not None:
        return find_run(log, run_id)
    left, skipped = read_open_runs(log)
    if not left:
        refuse_unreadable(skipped)
        return None
    for line in unreadable_lines(skipped):
        on_line(line)
    return left[-1]


def _stop_here(session: Session, command: Command, run_id: str, reason: str) -> int:
    with session.writer() as writer:
        # It may have ended while the lock was waited for, and have expired.
        run = find_known_run(writer.journal, run_id)
        if not run.ended:
            return session.resume_run(writer, run, command, reason).exit_code
        if command is not Command.ROLLBACK:
            return _too_late(session, run)
        return session.undo(writer, run, reason).exit_code


def _too_late(session: Session, run: Run) -> int:
    session.user_interface.show_line(
        f"Run {run.id} has ended already ({run.status.value}); ballast rollback {run.id} would undo it."
    )
    return 0

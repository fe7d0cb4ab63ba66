"""``ballast reassign --cancel``: the moves of a file go back, Ballast's and foreign ones, between brokers and between log dirs.

A run of Ballast's own that moves nothing else is cancelled as such, so that the order before comes back as well.  What
others have started is cancelled as the stock tool does it: by the controller's cancel, and by ordering replicas to the log
dir where they lie.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ballast.app.reassign.session import COMMAND, ReassignOptions, ReassignSession
from ballast.app.reassign.verify import dir_moves, remove_throttles
from ballast.core.cluster import TopicPartition
from ballast.core.stock import report
from ballast.core.stock.files import ReassignmentEntry
from ballast.core.wording import human_replicas
from ballast.executor.journal.history import KEPT_IN_PLACE_KEY
from ballast.executor.machine.run import Run
from ballast.executor.machine.stages import RolledBack
from ballast.executor.machine.step import Command
from ballast.ports.cluster import ClusterReader, Outcome, Reassignment
from ballast.ports.journal import Record
from ballast.wiring.journal import this_process
from ballast.wiring.runs import Writer, new_run_id


@dataclass(slots=True)
class CancelReport:
    """What was in progress of the file, and what came of the cancel."""

    active: Mapping[TopicPartition, Reassignment] = field(default_factory=dict)
    copies: Collection[report.DirMove] = ()
    cancelled: set[TopicPartition] = field(default_factory=set)
    ended: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """Moves that had ended before the cancel reached them, and where their partitions are."""
    why: dict[TopicPartition, str] = field(default_factory=dict)
    """What the cluster said of moves that go on."""
    stopped: list[report.DirMove] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Replicas whose copies go on, and why."""


def cancel(session: ReassignSession, options: ReassignOptions) -> int:
    """Cancel the moves of the file that are in flight."""
    opened, entries = session.opened, options.entries
    names = {e.name for e in entries}
    active = {n: r for n, r in opened.cluster.reassignments().items() if n in names}
    copies = [d for d in dir_moves(opened, entries) if d.active]
    told, open_runs = CancelReport(active, copies), False
    if active or copies:
        with session.writer("--cancel") as writer:
            cancel_moves(writer, entries, told)
            open_runs = bool(writer.driver.open_runs())
    if open_runs:
        session.follow()
    code = answer(session, told)
    if code == 0 and not options.preserve_throttles and not open_runs:
        remove_throttles(session, entries, everybodys=options.clear_throttles)
    return code


def answer(session: ReassignSession, told: CancelReport) -> int:
    """Tell what came of it; the exit code."""
    missed = {
        n: told.why.get(n, "it is still in progress")
        for n in told.active
        if n not in told.cancelled | told.ended.keys()
    }
    if missed:
        session.answer(report.cancel_failure_message(missed))
        return 1
    session.answer(report.cancel_message(sorted(told.cancelled)) if told.cancelled else report.NONE_ACTIVE)
    for name, replicas in sorted(told.ended.items()):
        session.show_line(
            f"{name} was moved already when the cancel came: its replicas are {human_replicas(replicas)}."
        )
    for replica, why in told.refused.items():
        session.answer(f"The copy of {replica} goes on: {why}")
    if told.stopped:
        session.answer(report.dir_move_start_message(told.stopped))
    elif not told.copies:
        session.answer(report.NO_MOVES_ACTIVE)
    return 1 if told.refused else 0


def cancel_moves(writer: Writer, entries: tuple[ReassignmentEntry, ...], told: CancelReport) -> None:
    """Cancel what is in progress of the file: the runs that move nothing else first, as such."""

    def note() -> None:
        run = writer.driver.run
        moves = {} if run is None else run.moves
        told.cancelled |= {n for n, m in moves.items() if n in told.active and isinstance(m.stage, RolledBack)}
        told.why |= {n: m.detail for n, m in moves.items() if n in told.active and m.detail}

    names = {e.name for e in entries}
    by = this_process(f"{COMMAND} --cancel").description
    for run in writer.driver.open_runs():
        if _open_names(run) <= names:
            writer.driver.ask(Command.CANCEL, run=run.id, by=by)
            writer.driver.resume(run)
            note()
    still = {n: r for n, r in writer.opened.cluster.reassignments().items() if n in told.active}
    if still:
        writer.driver.undo(still, run_id=new_run_id(), by=by)
        note()
    told.ended |= find_arrived(writer.opened.cluster, {n for n in told.active if n not in told.cancelled})
    _stop_copies(writer, entries, told)


def find_arrived(cluster: ClusterReader, names: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """Of these the partitions that are in flight no more, with their replicas; a topic that is gone has none.

    A move may end between the list that was asked for and the cancel: then there was nothing to cancel, and that is no error.
    """
    listed = cluster.reassignments() if names else {}
    rest = [n for n in names if n not in listed]
    seen = cluster.partitions(rest)
    return {n: seen[n].replicas if n in seen else () for n in rest}


def _stop_copies(writer: Writer, entries: tuple[ReassignmentEntry, ...], told: CancelReport) -> None:
    """Copies that have ended by now, or with a run that was cancelled, are told like those that are stopped here."""
    held = {name: run for run in writer.driver.open_runs() for name in _open_names(run)}
    now = {(d.name, d.broker): d for d in dir_moves(writer.opened, entries)}
    places: dict[tuple[TopicPartition, int], str] = {}
    for d in (now[c.name, c.broker] for c in told.copies):
        if d.active and d.name in held:
            run = held[d.name].id
            told.refused[_replica(d)] = (
                f"run {run} moves other partitions as well; ballast cancel {run} stops all of it."
            )
        elif d.active and d.current is not None:
            places[d.name, d.broker] = d.current
    outcomes = keep_in_place(writer, places) if places else {}
    for c in told.copies:
        d = now[c.name, c.broker]
        outcome = outcomes.get((d.name, d.broker))
        if outcome is not None and not outcome.ok:
            told.refused[_replica(d)] = str(outcome)
        elif _replica(d) not in told.refused and d.current is not None:
            told.stopped.append(replace(d, wanted=d.current))


def keep_in_place(
    own: Writer, places: Mapping[tuple[TopicPartition, int], str]
) -> Mapping[tuple[TopicPartition, int], Outcome]:
    """Order replicas to the log dir where they lie, which ends copies that no run has started; the intent is journaled first."""
    key = f"{KEPT_IN_PLACE_KEY}{secrets.token_hex(4)}"
    lines = [[n.topic, n.partition, broker, path] for (n, broker), path in places.items()]
    own.journal.append([Record(key, {"version": 1, "log_dirs": lines})])
    own.journal.check()
    outcomes = own.opened.cluster.alter_log_dirs(places)
    own.journal.append([Record(key, None)])
    return outcomes


def _replica(d: report.DirMove) -> str:
    return f"{d.name}-{d.broker}"


def _open_names(run: Run) -> set[TopicPartition]:
    return {m.move.name for m in run.open_moves}

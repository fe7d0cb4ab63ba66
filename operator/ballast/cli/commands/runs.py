"""``ballast runs``, ``cancel``, ``rollback``: what was done, what is going on, how to stop it and how to go back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.default_command import GroupWithDefault
from ballast.cli.option_types import Reason, Time
from ballast.cli.run_options import LockOptions, lock_options
from ballast.cli.run_screen import RUN_DOCUMENTS
from ballast.cli.tables import (
    Column,
    console,
    human_bytes,
    human_moment,
    output_option,
    print_json,
    print_line,
    render_table,
)
from ballast.core.wording import human_replicas, human_time

if TYPE_CHECKING:
    from ballast.cli.documents.runs import LockHolder, RunFigures
    from ballast.cli.documents.runs import Run as RunDocument
    from ballast.core.cluster import TopicPartition
    from ballast.core.plan import Move
    from ballast.core.throttles import Setting
    from ballast.executor.journal.history import RunSummary
    from ballast.executor.machine.run import MoveRun, Run
    from ballast.executor.machine.step import Command
    from ballast.ports.journal import Holder, Journal

ANSWER_WITHIN_S = 20.0


@click.group(cls=GroupWithDefault, default="list")
def runs() -> None:
    """List runs (default), show one, resume an open one."""


@runs.command("list")
@click.option("--journal", metavar="file:PATH", help="The journal, where it is not the cluster's own.")
@output_option("Runs")
@cluster_options
def list_runs(*, journal: str | None, output: str, cluster: ClusterOptions) -> int:
    """List runs, newest first, and the lock's holder."""
    from ballast.wiring.journal import journal_to_look_at
    from ballast.wiring.runs import summaries_of

    with cluster.open() as opened, closing(journal_to_look_at(opened, journal)) as log:
        history, held = summaries_of(log), _lock_of(log)
    found = history.runs[::-1]
    if output == "json":
        from ballast.cli.documents.runs import Runs
        from ballast.executor.journal.records import name_skipped

        print_json(
            Runs(
                holder=None if held is None else _lock_document(*held),
                runs=[_figures(r) for r in found],
                skipped=name_skipped(history.skipped),
            )
        )
        return 0
    if held is not None:
        print_line(holder_line(*held))
    for run_id, why in history.skipped.items():
        print_line(f"Run {run_id} cannot be shown: {why}")
    if not found:
        if not history.skipped:
            print_line("No runs in the journal.")
        return 0
    columns = [
        Column("run", "left"),
        Column("started", "left", 1),
        Column("status", "left"),
        Column("partitions"),
        Column("done"),
        Column("elections", rank=2),
        Column("copied", rank=1),
        Column("took", rank=2),
        Column("intent", "left"),
    ]
    rows = [
        [
            r.id,
            human_moment(r.started_ms),
            _status(r),
            str(sum(r.moves.values())),
            str(r.verified),
            str(sum(r.elections.values())),
            human_bytes(r.bytes_done),
            human_time((r.ended_ms - r.started_ms) / 1000) if r.ended_ms else "",
            r.intent,
        ]
        for r in found
    ]
    out = console()
    out.print(render_table(columns, rows, out.width))
    return 0


def _lock_of(log: Journal) -> tuple[Holder, int | None, int] | None:
    """Who holds the lock, when it was renewed last, as far as known, and the time now; None where no process holds it."""
    holder = log.holder()
    return None if holder is None else (holder, log.renewed_ms(), time.time_ns() // 1_000_000)


def _lock_document(holder: Holder, renewed_ms: int | None, now_ms: int) -> LockHolder:
    from ballast.cli.documents.runs import LockHolder
    from ballast.ports.journal_lease import is_lease_expired

    return LockHolder(
        description=holder.description,
        since_ms=holder.since_ms,
        doing=holder.doing,
        lease_expired=is_lease_expired(holder, renewed_ms, now_ms),
    )


def holder_line(holder: Holder, renewed_ms: int | None, now_ms: int) -> str:
    """Who holds the lock, since when and doing what, or that its lease has expired."""
    from ballast.ports.journal_lease import is_lease_expired

    since, doing = human_moment(holder.since_ms), holder.doing or "idle"
    if renewed_ms is not None and is_lease_expired(holder, renewed_ms, now_ms):
        return (
            f"{holder.description} held the lock since {since} ({doing}); its lease has expired: it was last renewed at "
            f"{human_moment(renewed_ms)}. The next process that wants the lock gets it within {human_time(holder.lease_s)}."
        )
    return f"{holder.description} has held the lock since {since}: {doing}."


def _status(run: Run | RunSummary) -> str:
    return run.status.value if run.ended else run.phase.value


def _figures(run: RunSummary) -> RunFigures:
    from ballast.cli.documents.runs import RunFigures

    return RunFigures(
        id=run.id,
        intent=run.intent,
        purpose=run.purpose,
        status=run.status.value if run.ended else "open",
        phase=run.phase.value,
        started_at_ms=run.started_ms,
        ended_at_ms=run.ended_ms or None,
        rollback_of=run.rollback_of,
        stopped_by=run.stopped_by or None,
        moves=dict(run.moves),
        elections=dict(run.elections),
    )


def _document(run: Run, holder: LockHolder | None, ledger: Iterable[Setting]) -> RunDocument:
    from ballast.cli.documents.runs import Run as RunDocument
    from ballast.cli.documents.runs import RunElection, RunMove
    from ballast.executor.journal.history import summarise
    from ballast.executor.machine.notes import note_fields

    return RunDocument(
        run=_figures(summarise(run)),
        holder=holder,
        policy=run.policy.dump(),
        moves=[
            RunMove(
                topic=m.move.topic,
                partition=m.move.partition,
                old=list(m.move.old),
                new=list(m.move.new),
                log_dirs=None if m.move.log_dirs is None else list(m.move.log_dirs),
                size_bytes=m.move.size_bytes,
                reason=str(m.move.reason),
                reason_code=m.move.reason.code,
                stage=m.stage.code,
                outcome=m.outcome,
                **note_fields(m.note),
                attempts=m.attempts,
                since_ms=m.since_ms,
            )
            for m in _by_partition(run.moves)
        ],
        elections=[
            RunElection(
                topic=n.topic,
                partition=n.partition,
                stage=e.stage,
                **note_fields(e.note),
            )
            for n, e in sorted(run.elections.items())
        ],
        throttles_to_restore=[str(s) for s in ledger],
    )


@runs.command()
@click.argument("run_id", metavar="RUN")
@click.option("--journal", metavar="file:PATH", help="The journal, where it is not the cluster's own.")
@output_option("Run")
@cluster_options
def show(*, run_id: str, journal: str | None, output: str, cluster: ClusterOptions) -> int:
    """Show the details of RUN: every move, how it ended and why, and active throttles."""
    from ballast.executor.journal.ledger import load_ledger
    from ballast.wiring.journal import journal_to_look_at
    from ballast.wiring.runs import find_run

    with cluster.open() as opened, closing(journal_to_look_at(opened, journal)) as log:
        run, ledger, held = find_run(log, run_id), load_ledger(log.read()), _lock_of(log)
    if output == "json":
        print_json(_document(run, None if held is None else _lock_document(*held), ledger))
        return 0
    print_line(f"Run {run.id}: {run.intent}; {_status(run)}; began {human_moment(run.started_ms)}.")
    if run.stopped_by:
        print_line(stopped_line(run))
    if not run.ended:
        unheld = f"No process holds the lock; ballast runs resume {run.id} goes on with it."
        print_line(unheld if held is None else holder_line(*held))
    columns = [
        Column("partition", "left"),
        Column("from", "left"),
        Column("to", "left"),
        Column("size", rank=1),
        Column("stage", "left"),
        Column("since", "left", 2),
        Column("why", "left", 3),
        Column("detail", "left", 1),
    ]
    rows = [run_row(m) for m in _by_partition(run.moves)]
    rows += [
        [str(n), "", "", "", f"election {e.stage.value}", "", "", e.detail] for n, e in sorted(run.elections.items())
    ]
    out = console()
    out.print(render_table(columns, rows, out.width))
    if ledger:
        print_line(f"Throttles not yet removed: {', '.join(map(str, ledger))}.")
    return 0


def stopped_line(run: Run) -> str:
    """Who cancelled it, and why where they said so."""
    return f"Cancelled by {run.stopped_by.rstrip('.')}."


def _by_partition(moves: Mapping[TopicPartition, MoveRun]) -> list[MoveRun]:
    return [moves[name] for name in sorted(moves)]


def run_row(m: MoveRun) -> list[str]:
    """A move of a run as the table shows it: partition, from, to, size, stage, since when, why, detail."""
    from ballast.executor.machine.notes import code_of

    return [
        str(m.move.name),
        human_replicas(m.move.old),
        destination(m.move),
        human_bytes(m.move.size_bytes),
        f"{m.stage.code}{f' ({why})' if (why := m.outcome or code_of(m.note)) else ''}",
        human_moment(m.since_ms),
        str(m.move.reason),
        m.detail,
    ]


def destination(move: Move) -> str:
    """Replicas, each with the log dir asked for where there is one."""
    if not move.named_dirs:
        return human_replicas(move.new)
    return ", ".join(f"{b} in {move.named_dirs[b]}" if b in move.named_dirs else f"{b}" for b in move.new)


@runs.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option(
    "--give-up-after",
    type=Time(positive=True),
    help="End (exit code 6) when the cluster has not answered for this long; the run stays in the journal. Without it, wait.",
)
@lock_options
@output_option(*RUN_DOCUMENTS)
@cluster_options
def resume(
    *,
    run_id: str | None,
    give_up_after: float | None,
    lock: LockOptions,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Resume RUN, or every open run, and remove throttles that are not yet removed."""
    from ballast.cli.terminal import Terminal

    with cluster.open() as opened:
        session = lock.session(opened, Terminal(output), "ballast runs resume")
        return session.resume(run_id, give_up_after_s=give_up_after)


def _stop_options(command: Callable[..., int]) -> Callable[..., int]:
    """What ``cancel`` and ``rollback`` take alike."""
    for option in (
        cluster_options,
        output_option(*RUN_DOCUMENTS),
        lock_options,
        click.option(
            "--reason", type=Reason(), default="", help="Why: kept in the journal, and shown by ballast runs show."
        ),
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@_stop_options
def cancel(**given: Any) -> int:
    """Cancel RUN (or the open one): its reassignments in progress are cancelled, finished ones stay."""
    from ballast.executor.machine.step import Command

    return _stop(Command.CANCEL, **given)


@click.command()
@click.argument("run_id", metavar="RUN")
@_stop_options
def rollback(**given: Any) -> int:
    """Roll back RUN: cancel its moves in progress and move back completed ones, from the journal alone."""
    from ballast.executor.machine.step import Command

    return _stop(Command.ROLLBACK, **given)


def _stop(
    command: Command,
    run_id: str | None,
    *,
    yes: bool,
    reason: str,
    lock: LockOptions,
    output: str,
    cluster: ClusterOptions,
) -> int:
    from ballast.app.stop import stop
    from ballast.cli.terminal import Terminal

    with cluster.open() as opened:
        session = lock.session(opened, Terminal(output, yes), f"ballast {command.value}")
        return stop(session, command, run_id, reason)

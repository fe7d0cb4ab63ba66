"""``ballast runs``, ``cancel``, ``rollback``: what was done, what is going on, how to stop it and how to go back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.default_command import GroupWithDefault
from ballast.cli.run_options import confirm, lock_options, taking_over
from ballast.cli.run_screen import RUN_DOCUMENTS, human_time, say
from ballast.cli.tables import Column, console, human_bytes, output_option, print_json, render_table

if TYPE_CHECKING:
    from ballast.cli.documents.runs import Run as RunDocument
    from ballast.cli.documents.runs import RunFigures
    from ballast.core.plan import Move
    from ballast.core.throttles import Setting
    from ballast.executor.journal.history import RunSummary
    from ballast.executor.machine.run import Run
    from ballast.executor.machine.step import Command
    from ballast.ports.journal import Journal
    from ballast.wiring.runs import Writer

ANSWER_WITHIN_S = 20.0


@click.group(cls=GroupWithDefault, default="list")
def runs() -> None:
    """List runs (list, meant when nothing is named), show one (show), go on with one that was left (resume)."""


@runs.command("list")
@click.option("--journal", metavar="file:PATH", help="The journal, where it is not the cluster's own.")
@output_option("Runs")
@cluster_options
def list_runs(*, journal: str | None, output: str, cluster: ClusterOptions) -> int:
    """List runs, newest first, and who acts now."""
    from ballast.wiring.runs import journal_to_look_at, summaries_of

    with cluster.open() as opened:
        log = journal_to_look_at(opened, journal)
        try:
            history, holder = summaries_of(log), log.holder()
        finally:
            log.close()
    found = history.runs[::-1]
    if output == "json":
        from ballast.cli.documents.runs import Runs, SkippedRun

        print_json(
            Runs(
                holder=None if holder is None else holder.description,
                runs=[_figures(r) for r in found],
                skipped=[SkippedRun(id=run_id, why=why) for run_id, why in history.skipped.items()],
            )
        )
        return 0
    if holder is not None:
        say(f"{holder.description} has held the lock since {_when(holder.since_ms)}: {holder.doing or 'idle'}.")
    for run_id, why in history.skipped.items():
        say(f"Run {run_id} cannot be shown: {why}")
    if not found:
        if not history.skipped:
            say("No runs in the journal.")
        return 0
    columns = [
        Column("run", "left"),
        Column("started", "left", 1),
        Column("status", "left"),
        Column("moves"),
        Column("done"),
        Column("elections", rank=2),
        Column("copied", rank=1),
        Column("took", rank=2),
        Column("what", "left"),
    ]
    rows = [
        [
            r.id,
            _when(r.started_ms),
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


def _when(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))


def _status(run: Run | RunSummary) -> str:
    return run.status.value if run.ended else f"open ({run.phase.value})"


def _figures(run: RunSummary) -> RunFigures:
    from ballast.cli.documents.base import moment
    from ballast.cli.documents.runs import RunFigures

    return RunFigures(
        id=run.id,
        intent=run.intent,
        status=run.status.value if run.ended else "open",
        phase=run.phase.value,
        started_at=moment(run.started_ms),
        ended_at=moment(run.ended_ms) if run.ended_ms else None,
        undoes=run.undoes,
        stopped_by=run.stopped_by or None,
        moves=dict(run.moves),
        elections=dict(run.elections),
    )


def _document(run: Run, ledger: Iterable[Setting]) -> RunDocument:
    from ballast.cli.documents.base import moment
    from ballast.cli.documents.runs import Run as RunDocument
    from ballast.cli.documents.runs import RunElection, RunMove
    from ballast.executor.journal.history import summarise

    return RunDocument(
        run=_figures(summarise(run)),
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
                stage=m.stage.code,
                outcome=m.outcome,
                detail=m.detail,
                attempts=m.attempts,
                since=moment(m.since_ms),
            )
            for m in run.moves.values()
        ],
        elections=[
            RunElection(topic=n.topic, partition=n.partition, stage=e.stage, detail=e.detail)
            for n, e in run.elections.items()
        ],
        throttles_standing=[str(s) for s in ledger],
    )


@runs.command()
@click.argument("run_id", metavar="RUN")
@click.option("--journal", metavar="file:PATH", help="The journal, where it is not the cluster's own.")
@output_option("Run")
@cluster_options
def show(*, run_id: str, journal: str | None, output: str, cluster: ClusterOptions) -> int:
    """Show the details of RUN: every move, how it ended and why, and which throttles stand."""
    from ballast.executor.journal.ledger import load_ledger
    from ballast.wiring.runs import find_run, journal_to_look_at

    with cluster.open() as opened:
        log = journal_to_look_at(opened, journal)
        try:
            run, ledger = find_run(log, run_id), load_ledger(log.read())
        finally:
            log.close()
    if output == "json":
        print_json(_document(run, ledger))
        return 0
    say(f"Run {run.id}: {run.intent}; {_status(run)}; began {_when(run.started_ms)}.")
    if run.stopped_by:
        say(f"Cancelled by {run.stopped_by}.")
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
    rows = [
        [
            str(m.move.name),
            str(list(m.move.old)),
            _destination(m.move),
            human_bytes(m.move.size_bytes),
            f"{m.stage.code}{f' ({m.outcome})' if m.outcome else ''}",
            _when(m.since_ms),
            str(m.move.reason),
            m.detail,
        ]
        for m in run.moves.values()
    ]
    rows += [[str(n), "", "", "", f"election {e.stage.value}", "", "", e.detail] for n, e in run.elections.items()]
    out = console()
    out.print(render_table(columns, rows, out.width))
    if ledger:
        say(f"Throttle settings that Ballast still holds: {', '.join(map(str, ledger))}.")
    return 0


def _destination(move: Move) -> str:
    """Replicas, each with the log dir asked for where there is one."""
    dirs = move.log_dirs or ("any",) * len(move.new)
    return f"[{', '.join(f'{b}' if d == 'any' else f'{b} in {d}' for b, d in zip(move.new, dirs, strict=False))}]"


@runs.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option(
    "--give-up-after",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End (exit code 6) when the cluster has not answered for this long; the run stays in the journal. Without it, wait.",
)
@lock_options
@output_option(*RUN_DOCUMENTS)
@cluster_options
def resume(
    *,
    run_id: str | None,
    give_up_after: float | None,
    journal: str | None,
    lock_wait: float,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Resume RUN, or every open run, and remove throttles that are not yet removed."""
    from ballast.cli.run_apply import resume_run
    from ballast.executor.journal.ledger import not_restored
    from ballast.wiring.runs import is_settled, writer

    with cluster.open() as opened:
        if is_settled(opened, journal):
            say("No run is open.")
            return 0
        with writer(
            opened,
            command="ballast runs resume",
            journal=journal,
            lock_wait_s=lock_wait,
            take_over=taking_over(),
            is_follower=True,
        ) as own:
            if give_up_after is not None:
                own.driver.give_up_after(give_up_after)
            left = [r for r in own.driver.open_runs() if run_id is None or r.id.startswith(run_id)]
            if not left:
                owed = not_restored(own.driver.restore_throttles())
                say("\n".join(["No run is open.", *(f"Throttle not yet removed: {setting}" for setting in owed)]))
                return 0
            code = 0
            for run in left:
                code = resume_run(own, run, output=output) or code
                if code == 130:
                    break
            return code


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@lock_options
@output_option(*RUN_DOCUMENTS)
@cluster_options
def cancel(
    *, run_id: str | None, yes: bool, journal: str | None, lock_wait: float, output: str, cluster: ClusterOptions
) -> int:
    """Cancel RUN (or the open one): its reassignments in progress are cancelled, finished ones stay."""
    from ballast.executor.machine.step import Command

    return _command(
        Command.CANCEL, run_id, yes=yes, journal=journal, lock_wait_s=lock_wait, output=output, cluster=cluster
    )


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@lock_options
@output_option(*RUN_DOCUMENTS)
@cluster_options
def rollback(
    *, run_id: str, yes: bool, journal: str | None, lock_wait: float, output: str, cluster: ClusterOptions
) -> int:
    """Undo RUN: cancel what is in flight and move back what has arrived, from the journal alone."""
    from ballast.executor.machine.step import Command

    return _command(
        Command.ROLLBACK, run_id, yes=yes, journal=journal, lock_wait_s=lock_wait, output=output, cluster=cluster
    )


def _command(
    command: Command,
    run_id: str | None,
    *,
    yes: bool,
    journal: str | None,
    lock_wait_s: float,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Ask whoever acts; when nobody does, take the lock and do it."""
    from ballast.core.cluster.drain import refuse_drained
    from ballast.daemon.acting.decisions import decisions_in
    from ballast.executor.machine.rollback import refilled
    from ballast.executor.machine.step import Command as Commands
    from ballast.wiring.runs import find_run, journal_to_look_at, runs_of, writer

    with cluster.open() as opened:
        log = journal_to_look_at(opened, journal)
        try:
            if run_id is None:
                left = [r for r in runs_of(log).values() if not r.ended]
                if not left:
                    say("No run is open.")
                    return 0
                run = left[-1]
            else:
                run = find_run(log, run_id)
            if run.ended and command is Commands.CANCEL:
                return _too_late(run)
            if command is Commands.ROLLBACK:
                drained = (d.broker for d in decisions_in(log.read()).drains)
                refuse_drained(refilled(run), drained, f"Undoing run {run.id} puts replicas on", "Leave it as it is")
            confirm(f"{command.value.capitalize()} run {run.id} ({run.intent})?", yes=yes)
            if not run.ended:
                what = f"{command.value} run {run.id}"
                if (told := ask_holder(log, command.value, {"run": run.id}, what)) is not None:
                    say(f"It answers: {told}. Follow it with: ballast runs show {run.id}")
                    return 0
        finally:
            log.close()
        with writer(
            opened,
            command=f"ballast {command.value}",
            journal=journal,
            lock_wait_s=lock_wait_s,
            take_over=taking_over(),
        ) as own:
            current = runs_of(own.journal)[run.id]
            return _do(own, current, command, output=output)


def _do(own: Writer, run: Run, command: Command, *, output: str) -> int:
    from ballast.cli.run_apply import resume_run, tell
    from ballast.cli.run_screen import carry_out, screen_for
    from ballast.executor.machine.step import Command as Commands

    if not run.ended:
        return resume_run(own, run, output=output, command=command)
    if command is not Commands.ROLLBACK:
        return _too_late(run)
    own.driver.restore_throttles()
    screen = screen_for(output)
    own.driver.listen(screen)
    result = carry_out(lambda: own.rollback(run), own.driver, screen)
    tell(result, output=output)
    return result.exit_code


def _too_late(run: Run) -> int:
    say(f"Run {run.id} has ended already ({run.status.value}); ballast rollback {run.id} would undo it.")
    return 0


def ask_holder(log: Journal, kind: str, body: Mapping[str, str], what: str) -> str | None:
    """Leave a request for the process that holds the lock; its answer, None when there is none, or it does not answer."""
    import uuid

    from ballast.ports.journal import Request
    from ballast.wiring.journal import this_process

    holder = log.holder()
    if holder is None:
        return None
    request_id = uuid.uuid4().hex
    by = this_process(f"ballast {kind}").description
    log.request(Request(request_id, kind, by, time.time_ns() // 1_000_000, body))
    say(f"Asked {holder.description} to {what}.")
    deadline = time.monotonic() + ANSWER_WITHIN_S
    while time.monotonic() < deadline:
        for request in log.requests():
            if request.id == request_id and request.answer is not None:
                return request.answer
        time.sleep(0.5)
    say("It does not answer.")
    return None

"""``ballast reassign --execute`` and ``--verify``: the stock tool's words, under Ballast's lock and guards.

What differs is said on stderr.  Moves are journaled and watched by a follower that removes the throttles when they have
ended, so ``--verify`` is for looking.  Throttles that were there before come back as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import click

from ballast.cli.commands.reassign.options import COMMAND, ReassignOptions, print_own_line, read_text
from ballast.cli.commands.reassign.writer import writer_from_follower
from ballast.core.plan import ANY_LOG_DIR
from ballast.core.stock import report
from ballast.core.stock.files import ReassignmentEntry, parse_reassignment
from ballast.core.stock.generate import shown_log_dirs
from ballast.core.wording import ShowLine

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState, TopicPartition
    from ballast.core.plan import Plan
    from ballast.executor.driver.events import RunEvent
    from ballast.executor.machine.policy import ExecutionPolicy
    from ballast.ports.cluster import Reassignment
    from ballast.wiring.cluster import OpenCluster
    from ballast.wiring.runs import Writer

UNLIMITED: Final = 1_000_000
"""The stock tool starts everything at once, and so does this command."""
CANCEL_S: Final = 60.0
"""How long a person waits for the cancel of what could not start all; then a follower goes on with it."""


def entries_of(options: ReassignOptions) -> tuple[ReassignmentEntry, ...]:
    """What the file asks for."""
    path = options.reassignment_json_file
    return parse_reassignment(read_text(path), source=path.name)


def execute(options: ReassignOptions) -> int:
    """Start every move of the file, or none."""
    from ballast.app.journal_reading import read_drained, refuse_filling
    from ballast.core.stock.plan import plan_of_entries
    from ballast.wiring.runs import new_run_id

    entries = entries_of(options)
    with options.cluster.open() as opened:
        state = opened.cluster.snapshot()
        listed = opened.cluster.reassignments()
        if listed and not options.additional:
            click.echo(report.EXISTING)
            return 1
        source = options.reassignment_json_file.name
        plan = plan_of_entries(entries, state, intent="reassign --execute", source=source)
        refuse_filling(plan, read_drained(opened, state, print_own_line))
        current = {e.name: state.replicas(state.index[e.name]) for e in entries}
        click.echo(report.current_assignment(current, shown_log_dirs(state, current)))
        policy = policy_of(options)
        refused = refusals(plan, state, listed, policy)
        if refused:
            click.echo(report.start_failure_message(refused))
            return 1
        if plan.moves:
            run_id = new_run_id()
            watch = StartWatch(print_own_line)
            with writer_from_follower(opened, "--execute", watch) as writer:
                _restore_left_throttles(writer)
                failed = start_all_or_none(writer, plan, policy, run_id, watch)
                left_open = bool(failed) and any(run.id == run_id for run in writer.driver.open_runs())
            if left_open:
                print_own_line(
                    f"run {run_id} is still being cancelled: {keep_following(opened, options, run_id)}; "
                    f"ballast runs show {run_id} tells what it waits for."
                )
            if failed:
                click.echo(report.start_failure_message(failed))
                return 1
            follower = keep_following(opened, options, run_id)
            print_own_line(f"run {run_id}: {follower}; ballast runs show {run_id} shows its progress.")
        for line in _limits(options):
            click.echo(line)
        click.echo(report.start_message([e.name for e in entries]))
        wanted = dir_moves(opened, entries)
        if wanted:
            click.echo(report.dir_move_start_message(wanted))
    return 0


def keep_following(opened: OpenCluster, options: ReassignOptions, run_id: str = "runs") -> str:
    """Leave a process behind that follows every open run to its end; says which."""
    from ballast.wiring.run_follower import start_follower

    given = options.cluster
    pid = start_follower(opened, run_id, command_config=given.command_config, config=given.config)
    return f"process {pid} follows it" if pid is not None else "follow it with ballast runs resume"


def policy_of(options: ReassignOptions) -> ExecutionPolicy:
    """Everything at once, at the rates given and else ``auto``; moves that join others' keep to the rates that brokers have."""
    from ballast.executor.machine.policy import ExecutionPolicy

    stated = isinstance(options.throttle, int) or options.replica_alter_log_dirs_throttle
    return ExecutionPolicy(
        throttle=options.throttle,
        keep_existing_rates=options.additional and not stated,
        log_dir_throttle_bytes_per_s=options.replica_alter_log_dirs_throttle or None,
        override_rates_of_others=options.additional,
        unknown_disk_space=options.unknown_disk_space,
        replicas_below_min_isr=options.replicas_below_min_isr,
        replication_factor_change="refuse" if options.disallow_replication_factor_change else "allow",
        moves_in_per_broker=UNLIMITED,
        moves_out_per_broker=UNLIMITED,
        moves_at_once=UNLIMITED,
        measure_s=1.0,
    )


def _limits(options: ReassignOptions) -> list[str]:
    out = [report.inter_broker_throttle_message(options.throttle)] if isinstance(options.throttle, int) else []
    if options.replica_alter_log_dirs_throttle:
        out.append(report.log_dir_throttle_message(options.replica_alter_log_dirs_throttle))
    return out


def refusals(
    plan: Plan, state: ClusterState, listed: Mapping[TopicPartition, Reassignment], policy: ExecutionPolicy
) -> dict[TopicPartition, str]:
    """What the guards and the policy have against the plan beside the reassignments listed; the stock tool starts all or nothing."""
    from ballast.core.guards import judge, rooms
    from ballast.core.stock.checks import find_count_changes
    from ballast.executor.driver.look import partition_sizes
    from ballast.executor.machine.observation import Disks
    from ballast.executor.machine.scheduling.room import bytes_to_arrive_of_others

    more = bytes_to_arrive_of_others(listed, partition_sizes(state), Disks(state))
    verdicts = judge(
        plan.moves,
        state,
        ours={m.name: m for m in plan.moves},
        room=rooms(state, more.bytes, policy.disk_reserve_fraction),
        unsized=more.unsized,
        allow_unknown_disk_space=policy.unknown_disk_space == "allow",
        allow_replicas_below_min_isr=policy.replicas_below_min_isr == "allow",
    )
    refused = {name: str(v) for name, v in verdicts.items() if v.code != "already-there"}
    if policy.replication_factor_change == "allow":
        return refused
    # The cluster is told to refuse as well, but by then throttles are set, and a controller would begin the other moves.
    return refused | {n: report.count_change_message(*c) for n, c in find_count_changes(plan.moves, state).items()}


class StartWatch:
    """Listens until every move of the run has begun or ended."""

    def __init__(self, on_line: ShowLine) -> None:
        self._on_line = on_line
        self.leave: Callable[[], None] = lambda: None
        self.waiting: set[TopicPartition] = set()
        self.refused: dict[TopicPartition, str] = {}

    def on_event(self, event: RunEvent) -> None:
        """Count moves as they begin."""
        from ballast.executor.driver import events
        from ballast.executor.journal.notes import RunNote
        from ballast.executor.machine.stages import Failed, Planned, Submitted, Throttled
        from ballast.ports.journal import STANDS_ON

        match event:
            case events.RunBegan(run, _):
                # The journal's own topics move last: their turn comes when the follower has seen the others arrive.
                self.waiting = {n for n in run.moves if n.topic not in STANDS_ON} or set(run.moves)
            case events.MoveChanged(name, _, after):
                if isinstance(after, Failed):
                    self.refused[name] = event.detail
                if not isinstance(after, Planned | Throttled | Submitted):
                    self.waiting.discard(name)
            case events.Refusing(verdicts) if verdicts:
                self.refused |= {n: str(verdicts[0]) for n in self.waiting}
            case events.Paced(pace):
                for line in pace.lines():
                    self._on_line(line)
            case RunNote():
                self._on_line(str(event))
                if event.code == "paused":
                    # All or nothing: what has not begun does not wait for the page here.
                    self.refused |= {n: str(event) for n in self.waiting}
        if isinstance(event, events.Progressed) and (not self.waiting or self.refused):
            self.leave()


def _restore_left_throttles(writer: Writer) -> None:
    """Restore throttles of earlier runs; runs that are still open are taken up by the follower in their turn."""
    if not writer.driver.open_runs():
        writer.driver.restore_throttles()


def start_all_or_none(
    writer: Writer, plan: Plan, policy: ExecutionPolicy, run_id: str, watch: StartWatch
) -> Mapping[TopicPartition, str]:
    """Start the run and leave it as soon as everything is in flight; answers what was refused."""
    from ballast.executor.machine.step import Command

    watch.leave = writer.driver.leave
    result = writer.apply(plan, policy, run_id=run_id)
    if result.status in {"left", "not-begun"} and not watch.refused:
        waiting = watch.waiting if result.status == "left" else {m.name for m in plan.moves}
        watch.refused = dict.fromkeys(waiting, "Another process takes the lock over.")
    if watch.refused and result.status == "left":
        # All or nothing, as the stock tool promises: cancel what had begun.
        writer.driver.stay()
        # Its own end is waited for, though not for ever: a cancel may have to wait until brokers are back.
        ends_s = writer.clock.monotonic_s() + CANCEL_S
        watch.leave = lambda: writer.driver.leave() if writer.clock.monotonic_s() >= ends_s else None
        begun = next((run for run in writer.driver.open_runs() if run.id == run_id), None)
        if begun is None:
            print_own_line(
                f"Run {run_id} is not in the journal any more and cannot be cancelled: what it has begun goes on. "
                f"{COMMAND} --cancel with the same file cancels it."
            )
            return watch.refused
        writer.driver.ask(Command.CANCEL, run=run_id, by=f"{COMMAND} --execute: all or nothing")
        writer.resume(begun)
    return watch.refused


def verify(options: ReassignOptions) -> int:
    """Say how each partition stands; when all is done, take away what any tool's throttle has left."""
    entries = entries_of(options)
    with options.cluster.open() as opened:
        moving = opened.cluster.reassignments()
        now = opened.cluster.partitions([e.name for e in entries])
        current = {name: state.replicas for name, state in now.items()}
        click.echo(report.status({e.name: e.replicas for e in entries}, current, moving))
        dirs = dir_moves(opened, entries)
        click.echo(report.dir_status(dirs))
        if not moving and not any(d.active for d in dirs) and not options.preserve_throttles:
            remove_throttles(opened, entries, everybodys=options.clear_throttles)
    return 0


def remove_throttles(opened: OpenCluster, entries: tuple[ReassignmentEntry, ...], *, everybodys: bool) -> None:
    """Finish what Ballast left open, which removes its throttles; what others have set goes only where that was asked for.

    A rate that stands when the ledger is empty may be the very one that the ledger has just given back to a person.

    A follower that is just starting may take the lock first, or from this process: then the follower finishes.
    """
    from ballast.app.throttles import clear_stale, stale_on
    from ballast.errors import Fenced, LockHeld
    from ballast.wiring.runs import open_writer

    topics = {e.topic for e in entries}
    if everybodys:
        brokers = {b.id for b in opened.cluster.snapshot(log_dirs=False, configs=False).brokers}
        click.echo(report.throttle_removal_message(brokers | {b for e in entries for b in e.replicas}, topics))
    try:
        with open_writer(opened, command=f"{COMMAND} --verify", lock_wait_s=0) as writer:
            for run in writer.driver.open_runs():
                writer.resume(run)
            writer.driver.restore_throttles()
            if everybodys:
                for line in clear_stale(writer, topics):
                    print_own_line(line)
            else:
                for found in stale_on(writer, topics):
                    print_own_line(
                        f"{found.setting} = {found.value or '(empty)'} stays: it is not Ballast's; --clear-throttles removes it."
                    )
    except (LockHeld, Fenced) as held:
        print_own_line(f"{held.message} The process that holds the lock removes Ballast's throttles.")
        if everybodys:
            print_own_line(
                "Throttles that others have set may still stand: give the command again when that process has ended."
            )


def dir_moves(opened: OpenCluster, entries: tuple[ReassignmentEntry, ...]) -> list[report.DirMove]:
    """Every replica of the file that names a log dir, and where it is."""
    wanted = [
        (e.name, broker, path)
        for e in entries
        for broker, path in zip(e.replicas, e.log_dirs or (), strict=False)
        if path != ANY_LOG_DIR
    ]
    logs = opened.cluster.log_dirs({broker for _, broker, _ in wanted}) if wanted else {}
    out = []
    for name, broker, path in wanted:
        places = logs[broker].replicas.get(name, ()) if broker in logs else ()
        current = next((p.log_dir for p in places if not p.is_future), None)
        future = next((p.log_dir for p in places if p.is_future), None)
        out.append(report.DirMove(name, broker, path, current, future, known=broker in logs))
    return out

"""``ballast reassign --execute``: starts every move of a file, or none, under Ballast's lock and guards.

Moves are journaled and watched by a follower that removes the throttles when they have ended, so ``--verify`` is for looking.
Throttles that were there before come back as they were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from ballast.app.journal_reading import read_drained, refuse_filling
from ballast.app.reassign.session import COMMAND, ReassignOptions, ReassignSession
from ballast.app.reassign.verify import dir_moves
from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.guards import judge, rooms
from ballast.core.plan import Plan
from ballast.core.stock import report
from ballast.core.stock.checks import find_count_changes
from ballast.core.stock.generate import shown_log_dirs
from ballast.core.stock.plan import plan_of_entries
from ballast.core.wording import ShowLine
from ballast.executor.driver import events
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.look import partition_sizes
from ballast.executor.journal.notes import RunNote
from ballast.executor.machine.observation import Disks
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.scheduling.room import bytes_to_arrive_of_others
from ballast.executor.machine.stages import Failed, Planned, Submitted, Throttled
from ballast.executor.machine.step import Command
from ballast.ports.cluster import Reassignment
from ballast.ports.journal import STANDS_ON
from ballast.ports.time import Clock
from ballast.wiring.runs import Writer, new_run_id

UNLIMITED: Final = 1_000_000
"""The stock tool starts everything at once, and so does this command."""
CANCEL_S: Final = 60.0
"""How long a person waits for the cancel of what could not start all; then a follower goes on with it."""


def execute(session: ReassignSession, options: ReassignOptions) -> int:
    """Start every move of the file, or none."""
    opened, entries = session.opened, options.entries
    state = opened.cluster.snapshot()
    listed = opened.cluster.reassignments()
    if listed and not options.additional:
        session.answer(report.EXISTING)
        return 1
    plan = plan_of_entries(entries, state, intent="reassign --execute", source=options.source)
    refuse_filling(plan, read_drained(opened, state, session.show_line))
    current = {e.name: state.replicas(state.index[e.name]) for e in entries}
    session.answer(report.current_assignment(current, shown_log_dirs(state, current)))
    policy = policy_of(options)
    refused = refusals(plan, state, listed, policy) or (_start(session, plan, policy) if plan.moves else {})
    if refused:
        session.answer(report.start_failure_message(refused))
        return 1
    if isinstance(options.throttle, int):
        session.answer(report.inter_broker_throttle_message(options.throttle))
    if options.replica_alter_log_dirs_throttle:
        session.answer(report.log_dir_throttle_message(options.replica_alter_log_dirs_throttle))
    session.answer(report.start_message([e.name for e in entries]))
    wanted = dir_moves(opened, entries)
    if wanted:
        session.answer(report.dir_move_start_message(wanted))
    return 0


def _start(session: ReassignSession, plan: Plan, policy: ExecutionPolicy) -> Mapping[TopicPartition, str]:
    """Start the run and leave it to a follower; answers what was refused."""
    run_id = new_run_id()
    with session.writer("--execute", Notes(session.show_line)) as writer:
        # Runs that are still open are taken up by the follower in their turn, and their throttles with them.
        if not writer.driver.open_runs():
            writer.driver.restore_throttles()
        failed = start_all_or_none(writer, plan, policy, run_id, session.show_line)
        left_open = bool(failed) and any(run.id == run_id for run in writer.driver.open_runs())
    if left_open:
        session.show_line(
            f"run {run_id} is still being cancelled: {session.follow(run_id)}; "
            f"ballast runs show {run_id} tells what it waits for."
        )
    elif not failed:
        session.show_line(f"run {run_id}: {session.follow(run_id)}; ballast runs show {run_id} shows its progress.")
    return failed


def policy_of(options: ReassignOptions) -> ExecutionPolicy:
    """Everything at once, at the rates given and else ``auto``; moves that join others' keep to the rates that brokers have."""
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


def refusals(
    plan: Plan, state: ClusterState, listed: Mapping[TopicPartition, Reassignment], policy: ExecutionPolicy
) -> dict[TopicPartition, str]:
    """What the guards and the policy have against the plan beside the reassignments listed; the stock tool starts all or nothing."""
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


class Notes:
    """Listens to what a person is to know of a run."""

    def __init__(self, on_line: ShowLine) -> None:
        self._on_line = on_line

    def on_event(self, event: events.RunEvent) -> None:
        """Tell it."""
        match event:
            case RunNote():
                self._on_line(str(event))
            case events.Paced(pace):
                for line in pace.lines():
                    self._on_line(line)


class StartWatch(Notes):
    """Has the driver leave the run when every move has begun or ended, or cannot begin."""

    def __init__(self, driver: Driver, clock: Clock, on_line: ShowLine) -> None:
        super().__init__(on_line)
        self._driver = driver
        self._clock = clock
        self._stays_until_s = -math.inf
        self.waiting: set[TopicPartition] = set()
        self.refused: dict[TopicPartition, str] = {}

    def stay(self, seconds: float) -> None:
        """Go on with the run for so long, unless it ends before."""
        self._stays_until_s = self._clock.monotonic_s() + seconds
        self._driver.stay()

    def on_event(self, event: events.RunEvent) -> None:
        """Count moves as they begin."""
        super().on_event(event)
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
            case RunNote() if event.code == "paused":
                # All or nothing: what has not begun does not wait for the page here.
                self.refused |= {n: str(event) for n in self.waiting}
            case events.Progressed() if not self.waiting or self.refused:
                if self._clock.monotonic_s() >= self._stays_until_s:
                    self._driver.leave()


def start_all_or_none(
    writer: Writer, plan: Plan, policy: ExecutionPolicy, run_id: str, on_line: ShowLine
) -> Mapping[TopicPartition, str]:
    """Start the run and leave it as soon as everything is in flight; answers what was refused."""
    watch = StartWatch(writer.driver, writer.clock, on_line)
    writer.driver.listen(watch)
    result = writer.apply(plan, policy, run_id=run_id)
    if result.status in {"left", "not-begun"} and not watch.refused:
        waiting = watch.waiting if result.status == "left" else {m.name for m in plan.moves}
        watch.refused = dict.fromkeys(waiting, "Another process takes the lock over.")
    if watch.refused and result.status == "left":
        # All or nothing, as the stock tool promises: cancel what had begun.  Its own end is waited for, though not for
        # ever: a cancel may have to wait until brokers are back.
        watch.stay(CANCEL_S)
        begun = next((run for run in writer.driver.open_runs() if run.id == run_id), None)
        if begun is None:
            on_line(
                f"Run {run_id} is not in the journal any more and cannot be cancelled: what it has begun goes on. "
                f"{COMMAND} --cancel with the same file cancels it."
            )
            return watch.refused
        writer.driver.ask(Command.CANCEL, run=run_id, by=f"{COMMAND} --execute: all or nothing")
        writer.resume(begun)
    return watch.refused

"""Runs as people ask for them: take the lock, finish what was left, act, tell how it ended."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from ballast.app.journal_reading import is_settled
from ballast.app.user_interface import UserInterface
from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.errors import Incomplete, Interrupted, Refused
from ballast.executor.driver.events import Listener, RunResult
from ballast.executor.driver.pace import CHANGE, UNTHROTTLED
from ballast.executor.journal.ledger import list_unrestored
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Run
from ballast.executor.machine.step import Command
from ballast.ports.journal import sign_as
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.journal import this_process
from ballast.wiring.runs import (
    Writer,
    find_run_id,
    foreseen_pace,
    new_run_id,
    open_writer,
    read_open_runs,
    refuse_unreadable,
    unreadable_lines,
)


def require_not_paused(by: str) -> None:
    """A pause from the page holds the runs that a command would make next as well; raises ``Incomplete`` naming who paused."""
    if by:
        raise Incomplete(f"Paused by {by}: nothing new starts.", hint="Resume on the page, and run it again.")


@dataclass(frozen=True, slots=True)
class Session:
    """One command that changes a cluster: how it names itself, how long it waits for the lock, where it tells its story."""

    opened: OpenCluster
    user_interface: UserInterface
    command: str
    """As others are told who holds the lock."""
    journal: str | None = None
    """``file:PATH``; None for the cluster's own."""
    lock_wait_s: float = 20.0
    take_over: bool = False
    """Ask the lock's holder to release it."""

    def writer(self, listener: Listener | None = None, *, is_follower: bool = False) -> AbstractContextManager[Writer]:
        """The lock for the block; raises ``LockHeld``."""
        return open_writer(
            self.opened,
            command=self.command,
            listener=listener,
            journal=self.journal,
            lock_wait_s=self.lock_wait_s,
            take_over=self.take_over,
            is_follower=is_follower,
            on_line=self.user_interface.show_line,
        )

    def tell_pace(self, state: ClusterState, plan: Plan, policy: ExecutionPolicy) -> None:
        """Rate, arithmetic, time and how to change it, before a person is asked; takes as long as the run itself will measure.

        Where no person is asked, none reads it first: the run tells the same when it has measured.
        """
        if not any(m.adding for m in plan.moves):
            return
        if not policy.throttled:
            self.user_interface.show_line(UNTHROTTLED)
        elif self.user_interface.asks:
            for line in (*foreseen_pace(self.opened.cluster, state, plan, policy).lines(), CHANGE):
                self.user_interface.show_line(line)

    def execute(self, plan: Plan, policy: ExecutionPolicy, *, unclean: bool = False) -> RunResult:
        """Execute a plan after whatever an earlier process left open; the result of that where it was left again."""
        view = self.user_interface.view()
        with self.writer(view) as writer:
            left = self._finish_open_runs(writer)
            if left is not None:
                return left
            # Runs that were finished first had views of their own.
            writer.driver.listen(view)
            writer.driver.restore_throttles()
            run_id = new_run_id()
            api = writer.opened.cluster.snapshot(log_dirs=False, configs=False).api
            result = view.execute(
                lambda: writer.apply(plan, policy.adapt(api), run_id=run_id, unclean=unclean), writer.driver
            )
        self.user_interface.tell(result)
        return result

    def finish_open_runs(self) -> RunResult | None:
        """Finish what an earlier process left, before anything is planned on top of it; its result when it was left again."""
        with self.writer(self.user_interface.view()) as writer:
            result = self._finish_open_runs(writer)
            if result is None:
                writer.driver.restore_throttles()
                require_not_paused(writer.driver.paused_by)
            return result

    def resume(self, run_id: str | None = None, *, give_up_after_s: float | None = None) -> int:
        """Go on with a run that was left, or with all, and restore throttles; the exit code of the last that did not end well."""
        if run_id is not None:
            run_id = find_run_id(self.opened, run_id, self.journal)
        nothing = "No run is open." if run_id is None else f"Run {run_id} has ended."
        if is_settled(self.opened, self.journal):
            self.user_interface.show_line(nothing)
            return 0
        with self.writer(is_follower=True) as writer:
            if give_up_after_s is not None:
                writer.driver.give_up_after(give_up_after_s)
            left, skipped = read_open_runs(writer.journal)
            open_runs = [r for r in left if run_id in {None, r.id}]
            unread = {i: why for i, why in skipped.items() if run_id in {None, i}}
            if not open_runs:
                if not unread:
                    self.user_interface.show_line(nothing)
                for setting in list_unrestored(writer.driver.restore_throttles()):
                    self.user_interface.show_line(f"Throttle not yet removed: {setting}")
                refuse_unreadable(unread)
            for line in unreadable_lines(unread):
                self.user_interface.show_line(line)
            code = Refused.exit_code if unread else 0
            for run in open_runs:
                code = self.resume_run(writer, run).exit_code or code
                if code == Interrupted.exit_code:
                    break
            return code

    def resume_run(self, writer: Writer, run: Run, command: Command | None = None, reason: str = "") -> RunResult:
        """Go on with a run, with a command, and why it is given, if there is one."""
        view = self.user_interface.view()
        writer.driver.listen(view)
        if command is not None:
            by = sign_as(this_process(f"ballast {command.value}").description, reason)
            writer.driver.ask(command, run=run.id, by=by)
        result = view.execute(lambda: writer.resume(run), writer.driver)
        self.user_interface.tell(result)
        return result

    def undo(self, writer: Writer, run: Run, reason: str = "") -> RunResult:
        """Put back what a run that has ended did; the intent of the run that does tells the reason."""
        writer.driver.restore_throttles()
        view = self.user_interface.view()
        writer.driver.listen(view)
        result = view.execute(lambda: writer.rollback(run, reason), writer.driver)
        self.user_interface.tell(result)
        return result

    def _finish_open_runs(self, writer: Writer) -> RunResult | None:
        """Finish the runs that an earlier process left, oldest first; the result of one that was left again."""
        for run in writer.driver.open_runs():
            self.user_interface.show_line(f"Run {run.id} ({run.intent}) is still open; it is finished first.")
            result = self.resume_run(writer, run)
            if result.exit_code == Interrupted.exit_code:
                return result
        return None

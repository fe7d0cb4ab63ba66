"""Carrying plans and runs out from a command: take the lock, finish what was left, act, tell how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ballast.cli.run_options import taking_over
from ballast.cli.run_screen import carry_out, human_time, say, screen_for
from ballast.cli.tables import human_bytes, human_many
from ballast.core.wording import human_elections

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState
    from ballast.core.plan import Plan
    from ballast.executor.driver.events import RunResult
    from ballast.executor.machine.policy import ExecutionPolicy
    from ballast.executor.machine.run import Run
    from ballast.executor.machine.step import Command
    from ballast.ports.cluster import ClusterReader
    from ballast.wiring.cluster import OpenCluster
    from ballast.wiring.runs import Writer

ENDINGS_SHOWN = 20


def show_pace(cluster: ClusterReader, state: ClusterState, plan: Plan, policy: ExecutionPolicy, *, yes: bool) -> None:
    """Rate, arithmetic, time and how to change it, before a person is asked; takes as long as the run itself will measure.

    With ``--yes`` nobody reads it first: the run tells the same when it has measured.
    """
    from ballast.executor.driver.pace import CHANGE, UNTHROTTLED
    from ballast.wiring.runs import foreseen_pace

    if not any(m.adding for m in plan.moves):
        return
    if not policy.throttled:
        say(UNTHROTTLED)
    elif not yes:
        for line in foreseen_pace(cluster, state, plan, policy).lines():
            say(line)
        say(CHANGE)


def run_plan(
    opened: OpenCluster,
    plan: Plan,
    policy: ExecutionPolicy,
    *,
    command: str,
    journal: str | None,
    lock_wait_s: float,
    output: str,
    unclean: bool = False,
) -> int:
    """Carry out a plan after whatever an earlier process left open; the exit code says how it ended."""
    from ballast.executor.machine.suited import suited
    from ballast.wiring.runs import new_run_id, writer

    screen = screen_for(output)
    with writer(
        opened, command=command, listener=screen, journal=journal, lock_wait_s=lock_wait_s, take_over=taking_over()
    ) as own:
        left = finish_open_runs(own, output=output)
        if left is not None:
            return left
        # Runs that were finished first had screens of their own.
        own.driver.listen(screen)
        own.driver.restore_throttles()
        run_id = new_run_id()
        api = opened.cluster.snapshot(log_dirs=False, configs=False).api
        result = carry_out(
            lambda: own.apply(plan, suited(policy, api), run_id=run_id, unclean=unclean),
            own.driver,
            screen,
        )
    tell(result, output=output)
    return result.exit_code


def finish_left(
    opened: OpenCluster, *, command: str, journal: str | None, lock_wait_s: float, output: str
) -> int | None:
    """Finish what an earlier process left, before anything is planned on top of it; an exit code when it was left again."""
    from ballast.wiring.runs import writer

    with writer(
        opened, command=command, listener=screen_for(output), journal=journal, lock_wait_s=lock_wait_s,
        take_over=taking_over(),
    ) as own:  # fmt: skip
        left = finish_open_runs(own, output=output)
        if left is None:
            own.driver.restore_throttles()
        return left


def finish_open_runs(own: Writer, *, output: str) -> int | None:
    """Finish the runs that an earlier process left, oldest first; an exit code when one of them was left again."""
    for run in own.driver.open_runs():
        say(f"Run {run.id} ({run.intent}) is still open; it is finished first.")
        code = resume_run(own, run, output=output)
        if code == 130:
            return code
    return None


def resume_run(own: Writer, run: Run, *, output: str, command: Command | None = None) -> int:
    """Go on with a run, with a command if there is one; the exit code says how it ended."""
    screen = screen_for(output)
    own.driver.listen(screen)
    if command is not None:
        from ballast.wiring.journal import this_process

        own.driver.ask(command, run=run.id, by=this_process(f"ballast {command.value}").description)
    result = carry_out(lambda: own.resume(run), own.driver, screen)
    tell(result, output=output)
    return result.exit_code


def tell(result: RunResult, *, output: str) -> None:
    """How a run ended, and what to do where it did not end well."""
    if output == "json":
        return
    if result.status == "not-begun":
        return
    for ending in result.endings[:ENDINGS_SHOWN]:
        say(f"  {ending.subject}: {ending.outcome}{f', {ending.detail}' if ending.detail else ''}")
    if len(result.endings) > ENDINGS_SHOWN:
        say(f"  … and {len(result.endings) - ENDINGS_SHOWN} more: ballast runs show {result.run_id}")
    counts = [f"{human_many(result.verified, 'move')} verified"]
    counts += (
        [f"{human_elections(result.elections_held, unclean=result.unclean)} held"] if result.elections_held else []
    )
    counts += [f"{result.rolled_back} rolled back"] if result.rolled_back else []
    counts += [f"{result.failed} ended otherwise"] if result.failed else []
    counts += [f"{result.left} still open"] if result.left else []
    figures = f"{human_bytes(result.bytes_moved)} in {human_time(result.seconds)}"
    say(f"Run {result.run_id} {result.status}: {', '.join(counts)}; {figures}.")
    if result.by_hand:
        say("  The journal does not hold these throttle settings; put them back with:")
        for command in result.by_hand:
            say(f"    {command}")
    elif result.throttles_to_restore:
        say(
            f"  Throttles not yet removed: {human_many(len(result.throttles_to_restore), 'throttle setting')}. The next start of Ballast does it."
        )
    if result.status == "left":
        say(f"  Resume: ballast runs resume {result.run_id}   Roll back: ballast rollback {result.run_id}")

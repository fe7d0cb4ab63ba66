"""``ballast apply``: carry out exactly the plan that was shown."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.journal_reading import read_drained, refuse_filling
from ballast.cli.run_options import confirm, execution_options, lock_options, policy_from
from ballast.cli.run_screen import RUN_DOCUMENTS, say
from ballast.cli.tables import human_many, output_option
from ballast.core.wording import human_total, planned_elections
from ballast.errors import UsageError

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState
    from ballast.core.plan import Plan


@click.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "--on-drift",
    type=click.Choice(["refuse", "replan", "fit"]),
    default="refuse",
    show_default=True,
    help="When the cluster is no longer as the plan saw it: refuse, plan the same again now, or carry out the part that "
    "still holds.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@execution_options
@lock_options
@output_option(*RUN_DOCUMENTS, "BrokerChanges")
@cluster_options
def apply(
    *,
    plan: Path,
    on_drift: str,
    yes: bool,
    policy_options: Mapping[str, Any],
    journal: str | None,
    lock_wait: float,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Carry out PLAN (from ballast plan, or Kafka's reassignment JSON), throttled, verified and resumable."""
    from ballast.cli.commands.apply.change_view import settled_snapshot, show_change
    from ballast.cli.run_apply import run_plan, show_pace
    from ballast.errors import Interrupted
    from ballast.executor.machine.speeds import require_rates

    text = sys.stdin.read() if str(plan) == "-" else plan.read_text(encoding="utf-8")
    policy = policy_from(policy_options)
    with cluster.open() as opened:
        state = opened.cluster.snapshot()
        drained = read_drained(opened, state)
        wanted = fit(read_plan(text, str(plan), state), state, on_drift, drained)
        refuse_filling(wanted, drained)
        if wanted.is_empty:
            say("Nothing to do: the cluster already is as the plan wants it.")
            return 0
        require_rates(policy, wanted.moves, [b.id for b in state.brokers])
        show_pace(opened.cluster, state, wanted, policy, yes=yes)
        confirm(f"{outline(wanted)}. Carry it out?", yes=yes)
        code = run_plan(
            opened, wanted, policy, command="ballast apply", journal=journal, lock_wait_s=lock_wait, output=output
        )
        if code != Interrupted.exit_code:
            after = settled_snapshot(opened.cluster, wanted) if code == 0 else opened.cluster.snapshot(configs=False)
            show_change(state, after, output=output)
        return code


def read_plan(text: str, source: str, state: ClusterState) -> Plan:
    """A plan file, or stock reassignment JSON taken as a plan for the present assignment."""
    import json

    from ballast.core.plan.file import FORMAT, loads
    from ballast.core.stock.files import parse_reassignment
    from ballast.core.stock.plan import plan_of_entries

    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if isinstance(document, dict) and "partitions" in document and document.get("format") != FORMAT:
        return plan_of_entries(parse_reassignment(text, source=source), state, source=source)
    return loads(text, source=source)


def fit(plan: Plan, state: ClusterState, on_drift: str, drained: Iterable[int] = ()) -> Plan:
    """Refuse a plan that was made for another picture, make it again, or keep what of it still holds."""
    from ballast.core.guards.drift import drift, fitted
    from ballast.errors import Refused

    require_cluster(plan, state)
    found = drift(plan, state)
    if found.same_fingerprint and not found.recreated:
        return plan
    if not found.touches_plan:
        say(f"The cluster has changed since the plan was made: {found.explain()}. The plan still holds.")
        return plan
    if found.all_done:
        say(f"The plan has been carried out already: {human_many(len(plan.moves), 'partition')} as it wants them.")
        return fitted(plan, found, state)
    if on_drift == "refuse":
        raise Refused(
            f"The cluster has changed since the plan was made: {found.explain()}.",
            hint="Give --on-drift replan to plan the same again now, or --on-drift fit to carry out the part that still holds.",
        )
    if on_drift == "replan":
        from ballast.cli.commands.apply.replan import replanned

        say(f"The cluster has changed since the plan was made: {found.explain()}.")
        return replanned(plan, state, drained)
    kept = fitted(plan, found, state)
    say(
        f"The cluster has changed: {found.explain()}. "
        f"Of the plan's {human_many(len(plan.moves), 'move')} {len(kept.moves)} can still be made."
    )
    return kept


def require_cluster(plan: Plan, state: ClusterState) -> None:
    """Raise where the plan was made for another cluster than this."""
    if plan.cluster_id != state.cluster_id:
        raise UsageError(
            f"The plan was made for cluster {plan.cluster_id}, and this is {state.cluster_id}.",
            hint="Give the right --bootstrap-server.",
        )


def outline(plan: Plan) -> str:
    """A plan in half a sentence."""
    free = sum(not m.adding for m in plan.moves)
    parts = []
    if len(plan.moves) > free:
        parts.append(
            f"{human_many(len(plan.moves) - free, 'move')} ({human_total(plan.bytes_moved, plan.unknown_sizes)})"
        )
    if free:
        parts.append(f"{human_many(free, 'move')} that cop{'ies' if free == 1 else 'y'} nothing")
    if plan.elections:
        parts.append(planned_elections(len(plan.elections)))
    return f"{plan.intent}: " + ", ".join(parts)

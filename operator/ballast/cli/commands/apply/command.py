"""``ballast apply``: carry out exactly the plan that was shown."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.run_options import execution_options, lock_options, policy_from
from ballast.cli.run_screen import RUN_DOCUMENTS
from ballast.cli.tables import output_option

if TYPE_CHECKING:
    from ballast.app.apply import OnDrift


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
    on_drift: OnDrift,
    yes: bool,
    policy_options: Mapping[str, Any],
    journal: str | None,
    lock_wait: float,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Carry out PLAN (from ballast plan, or Kafka's reassignment JSON), throttled, verified and resumable."""
    from ballast.app.apply import apply as carry_out
    from ballast.cli.commands.apply.change_view import show_change
    from ballast.cli.terminal import Terminal, session_of

    text = sys.stdin.read() if str(plan) == "-" else plan.read_text(encoding="utf-8")
    policy = policy_from(policy_options, cluster.settings().execution)
    with cluster.open() as opened:
        session = session_of(opened, Terminal(output, yes), "ballast apply", journal=journal, lock_wait_s=lock_wait)
        applied = carry_out(session, text, str(plan), policy, on_drift)
    if applied is None:
        return 0
    if applied.after is not None:
        show_change(applied.before, applied.after, output=output)
    return applied.result.exit_code

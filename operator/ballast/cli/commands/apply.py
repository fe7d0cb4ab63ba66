"""``ballast apply``: execute exactly the plan that was shown, then show what the run has made of each broker."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.run_options import LockOptions, execution_options, lock_options, policy_from
from ballast.cli.run_screen import RUN_DOCUMENTS
from ballast.cli.tables import Column, console, human_bytes, output_option, print_json_line, render_table

if TYPE_CHECKING:
    from ballast.app.apply import OnDrift
    from ballast.cli.documents.runs import BrokerFigures
    from ballast.core.cluster import ClusterState

FIGURES: Final = ("leaders", "replicas", "bytes")


@click.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "--on-drift",
    type=click.Choice(["refuse", "replan", "valid-only"]),
    default="refuse",
    show_default=True,
    help="When the cluster is no longer as the plan saw it: refuse, plan the same again now, or execute the part that "
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
    lock: LockOptions,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Execute PLAN (from ballast plan, or Kafka's reassignment JSON), throttled, verified and resumable."""
    from ballast.app.apply import apply as execute
    from ballast.cli.terminal import Terminal

    text = sys.stdin.read() if str(plan) == "-" else plan.read_text(encoding="utf-8")
    policy = policy_from(policy_options, cluster.settings().execution)
    with cluster.open() as opened:
        session = lock.session(opened, Terminal(output, yes), "ballast apply")
        applied = execute(session, text, str(plan), policy, on_drift)
    if applied is None:
        return 0
    if applied.after is not None:
        show_change(applied.before, applied.after, output=output)
    return applied.result.exit_code


def show_change(before: ClusterState, after: ClusterState, *, output: str) -> None:
    """What a run has made of each broker, side by side: a table, or one JSON line, on stdout."""
    from ballast.app.change import broker_figures

    old, new = broker_figures(before, before.index), broker_figures(after, before.index)
    brokers = sorted({*old, *new})
    if output == "json":
        from ballast.cli.documents.runs import BrokerChange, BrokerChanges

        rows = [BrokerChange(broker=b, before=_figures(old.get(b)), after=_figures(new.get(b))) for b in brokers]
        print_json_line(BrokerChanges(brokers=rows))
        return
    racks = {b.id: b.rack or "-" for b in (*before.brokers, *after.brokers)}
    columns = [Column("Broker"), Column("Rack", "left", 2), Column("Leaders"), Column("Replicas"), Column("Data")]
    lines = [
        [str(b), racks[b], *(_both(name, old.get(b, {}).get(name), new.get(b, {}).get(name)) for name in FIGURES)]
        for b in brokers
    ]
    screen = console()
    screen.print("\nBefore → after, by broker")
    screen.print(render_table(columns, lines, screen.width))


def _figures(figures: dict[str, int] | None) -> BrokerFigures | None:
    from ballast.cli.documents.runs import BrokerFigures

    return None if figures is None else BrokerFigures(**figures)


def _both(name: str, old: int | None, new: int | None) -> str:
    texts = [
        "-" if figure is None else human_bytes(figure) if name == "bytes" else str(figure) for figure in (old, new)
    ]
    return texts[0] if texts[0] == texts[1] else " → ".join(texts)

"""``ballast fleet``: many clusters, read into one table, planned in one job, shown on one page."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ballast.cli.commands.pipeline import jars_of, spark_options
from ballast.cli.default_command import WholeLines
from ballast.cli.option_types import TIME
from ballast.cli.store_option import config_option, resolve_store, store_option
from ballast.cli.tables import output_option, print_json, print_line
from ballast.core.wording import human_many
from ballast.errors import Incomplete

if TYPE_CHECKING:
    from ballast.pipeline.session import SparkPolicy

_READ = click.Path(exists=True, dir_okay=False, path_type=Path)
_WRITE = click.Path(dir_okay=False, writable=True, path_type=Path)


@click.group(cls=WholeLines)
def fleet() -> None:
    """Many clusters at once: collect them, plan them all with one job, report on one page."""


@fleet.command()
@click.argument("list_", metavar="FLEET.YAML", type=_READ)
@store_option
@click.option("--timeout", type=TIME, default="30s", show_default=True, help="Request timeout.")
@click.option("--maintenance", is_flag=True, help="Also apply retention to the readings and vacuum.")
@config_option
def collect(*, list_: Path, store: str | None, timeout: float, maintenance: bool, config: Path | None) -> int:
    """Read every cluster of a list and append a row for each.

    The list is YAML: `clusters:` with a `name` and a `config` (a settings file) or a `bootstrap_server` each.
    """
    from ballast.adapters.extras import require

    require("history", "Collecting a fleet")
    from ballast.pipeline.fleet_store import maintain_readings
    from ballast.settings.load import load_settings
    from ballast.wiring.fleet import collect as read_all
    from ballast.wiring.fleet import read_list

    where = resolve_store(store, config)
    members, failed = read_all(read_list(list_), where, timeout_s=timeout, on_line=print_line)
    click.echo(f"{human_many(len(members), 'cluster')} collected.")
    if maintenance:
        history = load_settings(config, os.environ).pipeline.history
        maintain_readings(where, history, now=datetime.now(UTC), on_line=print_line)
    if failed:
        raise Incomplete(
            f"{human_many(len(failed), 'cluster')} did not answer: {', '.join(failed)}.",
            hint="The others are collected; run again.",
        )
    return 0


@fleet.command()
@store_option
@spark_options
@click.option(
    "--what-if",
    "what_if",
    multiple=True,
    metavar="SCENARIO",
    help="balance, lose-broker, lose-rack, add-brokers=N, change-rf=N, grow=DAYS; may be repeated.  "
    "[default: balance, lose-broker, lose-rack, grow=90]",
)
def plan(*, store: str | None, config: Path | None, spark: SparkPolicy, what_if: tuple[str, ...]) -> int:
    """Plan the newest reading of every cluster under every scenario."""
    from ballast.adapters.extras import require

    require("spark", "Planning a fleet")
    from ballast.wiring.fleet import plan_fleet

    rows = plan_fleet(resolve_store(store, config), what_if, spark=spark, jars=jars_of, on_line=print_line)
    click.echo(f"{rows} plans made; see them with: ballast fleet report")
    return 0


@fleet.command()
@store_option
@click.option("--report", "html", type=_WRITE, metavar="FILE", help="Write one self-contained HTML page.")
@config_option
@output_option("FleetReport")
def report(*, store: str | None, config: Path | None, html: Path | None, output: str) -> int:
    """Rank the clusters: risk, imbalance, days to full, and what a plan would cost and gain."""
    from ballast.adapters.extras import require

    require("history", "The fleet's report")
    from ballast.cli.commands.fleet.page import page
    from ballast.cli.commands.fleet.view import document, show
    from ballast.pipeline.fleet_store import read_report

    found = read_report(resolve_store(store, config))
    if html is not None:
        made_at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        html.write_text(page(found, made_at=made_at), encoding="utf-8")
        print_line(f"Report written to {html}")
    if output == "json":
        print_json(document(found))
    else:
        show(found, print_line)
    return 0

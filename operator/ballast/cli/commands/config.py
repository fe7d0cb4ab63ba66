"""``ballast config``: explains and checks settings."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ballast.cli.default_command import WholeLines


@click.group("config", cls=WholeLines)
def config() -> None:
    """Check a settings file, explain settings, write the reference page."""


@config.command("check")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path), envvar="BALLAST_CONFIG")
@click.option("--all", "everything", is_flag=True, help="Show every setting, not only what differs from the defaults.")
def check(file: Path | None, *, everything: bool) -> None:
    """Read FILE and the environment as the daemon would; print the active settings, or what is wrong and where."""
    from ballast.settings.load import load_settings
    from ballast.settings.show import differences, flat

    settings = load_settings(file, os.environ)
    rows = [(n, v, "") for n, v in flat(settings)] if everything else differences(settings)
    width = max((len(name) for name, _, _ in rows), default=0)
    for name, value, default in rows:
        click.echo(f"{name:<{width}}  {value}" + (f"  (default {default})" if default else ""))
    policy = settings.daemon
    click.echo(
        "The settings are valid. "
        + ("Ballast may write to the cluster." if policy.writes else "Ballast only observes: nothing is ever written."),
        err=True,
    )


@config.command("explain")
@click.argument("name", required=False)
def explain(name: str | None) -> None:
    """Say what a setting means; NAME may be a section, Kafka's name, or left out for all."""
    from ballast.settings.reference import explain as explanation

    click.echo(explanation(name))


@config.command("reference")
@click.option("--page", type=click.Choice(["settings", "metrics"]), default="settings", show_default=True)
def reference(page: str) -> None:
    """Write a page of the reference (docs/settings.md, docs/metrics.md) to stdout."""
    from ballast.daemon.metrics import catalog
    from ballast.settings import reference as settings_page

    click.echo(catalog.page() if page == "metrics" else settings_page.page(), nl=False)

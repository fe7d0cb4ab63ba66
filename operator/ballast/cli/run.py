"""``ballast run``: the daemon."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click


@click.command("run")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="BALLAST_CONFIG",
    help="Ballast's settings file (YAML). Without it, the defaults and the environment.",
)
def run(config: Path | None) -> None:
    """Keep a cluster level until told to stop: observe, decide, act, report.

    The default mode is observe: metrics, a page and recommendations, and nothing is ever written to the cluster.
    """
    from ballast.wiring.credentials import start_anew
    from ballast.wiring.daemon import run_daemon

    if run_daemon(config, os.environ):
        start_anew(sys.argv[1:])

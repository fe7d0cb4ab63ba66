"""``ballast daemon``: keeps a cluster balanced until it is told to stop."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType

import click


@click.command("daemon")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="BALLAST_CONFIG",
    help="Ballast's settings file (YAML). Without it, the defaults and the environment.",
)
@click.option(
    "--sandbox", is_flag=True, help="On the sandbox that runs on this machine, whatever cluster is configured."
)
def daemon(config: Path | None, *, sandbox: bool) -> None:
    """Keep a cluster balanced until told to stop: observe, decide, act, report.

    The default mode is observe: metrics, a page and recommendations, and nothing is ever written to the cluster.
    """
    # Until it obeys signals by itself: what is only starting holds nothing that a signal would have to wait for.
    signal.signal(signal.SIGTERM, _leave)
    from ballast.wiring.credentials import start_anew
    from ballast.wiring.daemon import run_daemon

    if run_daemon(config, {**os.environ, **(_sandbox() if sandbox else {})}):
        start_anew(sys.argv[1:])


def _leave(_: int, __: FrameType | None) -> None:
    sys.exit(0)


def _sandbox() -> dict[str, str]:
    """The running sandbox as the environment names a cluster."""
    from ballast.errors import UsageError
    from ballast.sandbox import running

    found = running()
    if found is None:
        raise UsageError("No sandbox is running.", hint="Start one: ballast sandbox up")
    named = {
        "BALLAST__CLUSTER__BOOTSTRAP_SERVER": found.bootstrap_server,
        "BALLAST__CLUSTER__COMMAND_CONFIG": str(found.client_properties_file),
    }
    return named | ({"BALLAST__CLUSTER__ZOOKEEPER": found.zookeeper} if found.zookeeper else {})

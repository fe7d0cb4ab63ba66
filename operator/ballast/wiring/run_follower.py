"""A process of its own that follows a run to its end, so that clean-up does not wait for a person to come back.

``ballast reassign --execute`` returns when the moves have begun, as the stock tool does; the follower holds the lock from then
on, removes the throttles when the moves have ended, and exits.  When it is killed, the run stands in the journal and the
next start of Ballast adopts it.  When the cluster has been silent for an hour it ends in the same way: no person watches it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Final

from ballast.wiring.cluster import OpenCluster

SILENCE_S: Final = 3600
"""How long a follower waits for a cluster that does not answer."""


def follower_log(run_id: str) -> Path:
    """Where the follower of a run writes its log."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "ballast" / f"{run_id}.log"


def start_follower(opened: OpenCluster, run_id: str, *, command_config: Path | None, config: Path | None) -> int | None:
    """Start a follower of this and every other open run; returns its process id, None where none may stay."""
    if os.environ.get("BALLAST_RUN_FOLLOWER") == "off":
        return None
    command = [sys.executable, "-m", "ballast", "runs", "resume", "--lock-wait", "60"]
    command += ["--give-up-after", str(SILENCE_S), "--bootstrap-server", opened.bootstrap_server]
    for flag, value in (
        ("--zookeeper", opened.zookeeper),
        ("--command-config", command_config),
        ("--config", config),
    ):
        if value is not None:
            command += [flag, str(value)]
    path = follower_log(run_id)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("ab") as log:
        return _detach(command, log)


def _detach(command: list[str], log: IO[bytes]) -> int:
    """Its own session, so that the terminal's Ctrl-C and hang-up do not reach it."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    return process.pid

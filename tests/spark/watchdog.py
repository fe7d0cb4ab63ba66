"""Runs a command until it ends, until it is told to stop, or until its owner is gone; then ends all that it started.

    python watchdog.py OWNER_PID COMMAND…

A standalone worker starts executors, and a test run that is killed (or ended by its time limit) cleans nothing up.  Started
as the leader of a process group of its own, this ends the group.  Python workers of Spark leave the group and end with their JVM.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time

POLITE_S = 10


def main(owner: int, command: list[str]) -> None:
    """Wait for whichever comes first."""
    stop, told = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(told, b"."))
    try:
        watched = os.pidfd_open(owner)
    except ProcessLookupError:
        return
    child = subprocess.Popen(command)
    select.select([watched, os.pidfd_open(child.pid), stop], [], [])
    child.terminate()
    deadline = time.monotonic() + POLITE_S
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])

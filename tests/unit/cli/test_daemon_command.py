"""A daemon that is told to stop while it is only starting."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

STOPPED_WHILE_STARTING: Final = """
import os, signal, time
from ballast.cli.main import main
from ballast.wiring import daemon

def starts_slowly(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

daemon.run_daemon = starts_slowly
main(["daemon"])
"""


def test_a_daemon_that_is_told_to_stop_while_it_starts_ends_well() -> None:
    """It has begun nothing: a pod that is deleted then must not look as if it had failed."""
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_WHILE_STARTING], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr

"""Spark's servers end with the test run that started them, however that one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.spark.servers import WATCHDOG

GRANDCHILD = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
STUBBORN = GRANDCHILD + "open(sys.argv[1], 'w').close(); time.sleep(600)"


def group_lives(group: int) -> bool:
    """Is there a process left in a process group?"""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def until_gone(group: int) -> None:
    """Fail when the group is there after a while."""
    deadline = time.monotonic() + 60
    while group_lives(group):
        assert time.monotonic() < deadline, "a process is left"
        time.sleep(0.05)


def test_the_whole_group_ends_with_its_owner_and_with_a_word(tmp_path: Path) -> None:
    """Once the owner is killed, once the watchdog is told to stop: the child and what the child started are gone."""
    for way in ("owner killed", "told"):
        mark = tmp_path / way
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as owner:
            command = [sys.executable, str(WATCHDOG), str(owner.pid), sys.executable, "-c", STUBBORN, str(mark)]
            with subprocess.Popen(command, start_new_session=True) as watchdog:
                deadline = time.monotonic() + 60
                while not mark.exists():
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
                assert group_lives(watchdog.pid)
                (owner if way == "owner killed" else watchdog).send_signal(
                    signal.SIGKILL if way == "owner killed" else signal.SIGTERM
                )
                assert watchdog.wait(60) == -signal.SIGKILL
                until_gone(watchdog.pid)
            owner.kill()

"""What a test starts ends with the test run, however that one ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.leash import leashed

ROOT = Path(__file__).parents[3]
WITHIN_S = 60.0
STUBBORN = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True); time.sleep(600)"
OWNER = f"""
import subprocess, sys, time
from tests.leash import leashed
child = subprocess.Popen(leashed(sys.executable, "-c", {STUBBORN!r}))
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_on_the_leash_ends_with_a_killed_owner(harm: signal.Signals) -> None:
    """Also one that hears no SIGTERM; until then it is the very process that its owner started."""
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, cwd=ROOT) as owner:
        try:
            assert owner.stdout is not None
            told = {int(owner.stdout.readline()), int(owner.stdout.readline())}
            (child,) = told
            ended = os.pidfd_open(child)
            assert select.select([ended], [], [], 0)[0] == [], "it ended by itself"
        finally:
            owner.send_signal(harm)
        assert select.select([ended], [], [], WITHIN_S)[0] == [ended], f"process {child} is left"
        os.close(ended)


def test_nothing_starts_for_an_owner_that_is_gone(tmp_path: Path) -> None:
    """An owner that died between the start and the leash: the command never runs."""
    mark = tmp_path / "mark"
    command = leashed("touch", str(mark))
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone:
        pass
    command[command.index(str(os.getpid()))] = str(gone.pid)
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
    assert not mark.exists()


def test_signals_and_exit_code_are_the_commands_own() -> None:
    """A process that waits for this one sees what the command ended with."""
    assert subprocess.run(leashed("sh", "-c", "exit 7"), check=False).returncode == 7
    with subprocess.Popen(leashed("sh", "-c", "echo here; exec sleep 600"), stdout=subprocess.PIPE) as sleeper:
        assert sleeper.stdout is not None
        assert sleeper.stdout.readline() == b"here\n"
        sleeper.terminate()
    assert sleeper.returncode == -signal.SIGTERM

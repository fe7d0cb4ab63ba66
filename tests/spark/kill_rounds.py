"""How often, when and by which dice the kill tests kill: a few rounds in the suite, thousands by hand.

``BALLAST_KILL_ROUNDS=500 pytest tests/spark -k kill`` makes so many rounds in each test; ``BALLAST_KILL_SEED`` repeats one.
The dice choose the moments; what a process is doing then is the machine's affair, so a seed repeats a run only roughly.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.leash import leashed

ROUNDS: Final = "BALLAST_KILL_ROUNDS"
SEED: Final = "BALLAST_KILL_SEED"
KILLED: Final = -signal.SIGKILL
ENDED_WITHIN_S: Final = 60
SAYS_WITHIN_S: Final = 180


def rounds(usual: int) -> int:
    """How many kills a test makes."""
    return int(os.environ.get(ROUNDS) or usual)


def dice(usual: int) -> random.Random:
    """The suite throws the same dice each time, a long run by hand new ones; pytest shows the line of a test that failed."""
    fresh = secrets.randbelow(10**6) if ROUNDS in os.environ else usual
    seed = int(os.environ.get(SEED) or fresh)
    print(f"{SEED}={seed}")  # noqa: T201 — pytest shows it beside the failure
    return random.Random(seed)


@dataclass
class Run:
    """A command of Ballast as a process group of its own, with its story in a file."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, command: Sequence[str], folder: Path) -> Run:
        """Start it; it ends with the process that started it."""
        log = folder / "run.log"
        with log.open("wb") as output:
            started = subprocess.Popen(
                leashed(*command), cwd=folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        return cls(started, log)

    def told(self) -> str:
        """What it has said."""
        return self.log.read_text(errors="replace")

    def until_it_says(self, moment: str) -> None:
        """Wait for a line; a run that ends without it is the failure."""
        deadline = time.monotonic() + SAYS_WITHIN_S
        while moment not in self.told():
            assert self.process.poll() is None, self.told()[-3000:]
            if time.monotonic() > deadline:
                self.kill(0, whole_group=True)
                pytest.fail(f"the run never said {moment!r}: {self.told()[-3000:]}")
            time.sleep(0.02)

    def kill(self, after_s: float, *, whole_group: bool) -> int:
        """``kill -9`` at that time, wait until nothing is left, and return how it ended: -9 unless it was quicker.

        Either the command alone, whose JVM must then end by itself, or its JVM with it, as the loss of a machine would.
        """
        try:
            self.process.wait(after_s)
        except subprocess.TimeoutExpired:
            (os.killpg if whole_group else os.kill)(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        deadline = time.monotonic() + ENDED_WITHIN_S
        while self._lives():
            assert time.monotonic() < deadline, "the JVM of a killed run goes on"
            time.sleep(0.05)
        return code

    def _lives(self) -> bool:
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True

"""Ctrl-C on a real terminal: the question, every answer to it, and the second Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.leash import leashed

ROOT = Path(__file__).parents[3]
CTRL_C, CTRL_D = b"\x03", b"\x04"
WITHIN_S = 120.0


class Terminal:
    """A process at a terminal of its own, as a person sees it."""

    def __init__(self) -> None:
        self._screen, inside = pty.openpty()
        self._seen = b""
        self._read_to = 0

        def take_the_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            leashed(sys.executable, "-m", "tests.unit.cli.terminal_process"),
            stdin=inside,
            stdout=inside,
            stderr=inside,
            cwd=ROOT,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"},
            start_new_session=True,
            preexec_fn=take_the_terminal,  # noqa: PLW1509 — the child has one thread, and the terminal must be its own
        )
        os.close(inside)

    def see(self, text: str) -> str:
        """Read until this stands on the screen, after what was seen before."""
        wanted, deadline = text.encode(), time.monotonic() + WITHIN_S
        while (found := self._seen.find(wanted, self._read_to)) < 0:
            assert time.monotonic() < deadline, f"{text!r} did not come; on the screen: {self._seen[-2000:]!r}"
            if select.select([self._screen], [], [], 0.2)[0]:
                try:
                    self._seen += os.read(self._screen, 65536)
                except OSError:  # The other end is closed: the process has ended.
                    assert wanted in self._seen[self._read_to :], self._seen[-2000:]
        self._read_to = found + len(wanted)
        return self._seen.decode(errors="replace")

    def press(self, keys: bytes) -> None:
        """Keys as they come from a keyboard."""
        os.write(self._screen, keys)

    def end(self) -> None:
        """Whatever happens, nothing stays."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._screen)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A run in progress: its bars are on the screen."""
    opened = Terminal()
    try:
        opened.see("in progress")
        yield opened
    finally:
        opened.end()


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (b"l\r", "ended: left, in flight 1, back False"),
        (b"c\r", "ended: cancelled, in flight 0, back False"),
        (b"r\r", "ended: cancelled, in flight 0, back True"),
        (CTRL_C, "ended: left, in flight 1, back False"),
        (CTRL_D, "ended: left, in flight 1, back False"),
    ],
)
def test_ctrl_c_asks_and_the_answer_is_done(terminal: Terminal, answer: bytes, end: str) -> None:
    """Leave, cancel, roll back; a second Ctrl-C and the end of the input leave at once."""
    terminal.press(CTRL_C)
    seen = terminal.see("What now? [l/c/r/g]")
    assert "leave it running" in seen
    terminal.press(answer)
    terminal.see(end)
    assert terminal.process.wait(WITHIN_S) == 0


def test_the_question_says_what_a_second_ctrl_c_does_and_that_leaving_may_be_waited_for(terminal: Terminal) -> None:
    """It is the answer l; only the third one does not wait."""
    terminal.press(CTRL_C)
    terminal.see("(Ctrl-C again: leave)")
    terminal.press(CTRL_C)
    terminal.see("Leaving within 20 s; Ctrl-C leaves at once.")
    terminal.see("ended: left, in flight 1, back False")


def test_going_on_and_being_asked_again(terminal: Terminal) -> None:
    """What is no answer is asked again; after *go on* the bars are back, and the next Ctrl-C asks anew."""
    terminal.press(CTRL_C)
    terminal.see("What now?")
    terminal.press(b"what?\r")
    terminal.see("What now?")
    terminal.press(b"g\r")
    terminal.see("in progress")
    terminal.press(CTRL_C)
    terminal.see("What now?")
    terminal.press(b"c\r")
    terminal.see("ended: cancelled, in flight 0")


def test_the_end_of_the_session_is_heard_while_the_question_stands(terminal: Terminal) -> None:
    """A machine that shuts down does not wait for an answer."""
    terminal.press(CTRL_C)
    terminal.see("What now?")
    terminal.process.terminate()
    terminal.see("ended: left, in flight 1, back False")

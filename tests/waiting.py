"""Waiting in tests: polled, with a deadline, never slept and hoped."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
PATIENCE_S = 90.0
"""Far beyond what anything takes on a quiet machine, since a busy one is no defect."""


def eventually(what: Callable[[], bool], *, within_s: float) -> bool:
    """Whether a condition came true in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.1)
    return what()


def whole_lines(path: Path) -> list[str]:
    """A file's lines while another process writes it: the last one may not be whole, not even its last character."""
    return path.read_bytes().rpartition(b"\n")[0].decode().splitlines()


def becomes(read: Callable[[], object], wanted: object, *, within_s: float = PATIENCE_S) -> None:
    """Poll until a reading is what it is to be; a failure shows the last one.

    For what another process has done by now: brokers hear of it one after the other, and the test may ask a later one.
    """
    deadline = time.monotonic() + within_s
    while (found := read()) != wanted:
        assert time.monotonic() < deadline, f"after {within_s:g} s it is {found!r}, not {wanted!r}"
        time.sleep(0.2)


def until(
    probe: Callable[[], T | None],
    what: str = "it",
    *,
    within_s: float = PATIENCE_S,
    every_s: float = 0.2,
    story: Callable[[], str] = str,
) -> T:
    """Poll for an answer that counts as true, and return it; a failure says what did not come about, and tells the story."""
    deadline = time.monotonic() + within_s
    while not (answer := probe()):
        assert time.monotonic() < deadline, f"in vain for {within_s:g} s: {what}\n{story()}"
        time.sleep(every_s)
    return answer

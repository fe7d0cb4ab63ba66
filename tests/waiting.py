"""Waiting in tests: polled, with a deadline, never slept and hoped."""

from __future__ import annotations

import time
from collections.abc import Callable
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

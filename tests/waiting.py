"""Waiting in tests: polled, with a deadline, never slept and hoped."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(what: Callable[[], bool], *, within_s: float) -> bool:
    """Whether a condition came true in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.1)
    return what()

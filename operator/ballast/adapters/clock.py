"""The machine's own clock behind ``ports.time.Clock``, and waits that are measured by it."""

from __future__ import annotations

import time
from typing import Final

_SINCE_BOOT: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts the time that the machine is suspended, where the system offers it: a lease lapses for a closed laptop too."""


class SystemClock:
    """Real time."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds that never go back."""
        return time.clock_gettime(_SINCE_BOOT)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(max(seconds, 0.0))


class Deadline:
    """A wait that is spent only once."""

    def __init__(self, wait_s: float) -> None:
        self._clock = SystemClock()
        self._until_s = self._clock.monotonic_s() + wait_s

    @property
    def left_s(self) -> float:
        """Seconds that are left; never negative."""
        return max(self._until_s - self._clock.monotonic_s(), 0.0)

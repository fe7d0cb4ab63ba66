"""Signs of life: each thread of the daemon gives them, and ``health`` judges by them which one is stuck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ballast.ports.time import Clock

LONGEST_WAIT_S: Final = 1.0
"""A loop shows that it lives at least this often while nothing is due."""


@dataclass(slots=True)
class Heartbeat:
    """When the loop last showed a sign of life (monotonic seconds)."""

    at_s: float = 0.0
    doing: str = ""


class HeartbeatClock:
    """A clock that notes when it was last read: a thread that works by it shows that it is not stuck, whatever it does."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at_s = clock.monotonic_s()

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        self.at_s = self._clock.monotonic_s()
        return self._clock.now_ms()

    def monotonic_s(self) -> float:
        """Seconds that never go back."""
        self.at_s = self._clock.monotonic_s()
        return self.at_s

    def sleep(self, seconds: float) -> None:
        """Wait; a long wait ends before it is looked at again."""
        self._clock.sleep(seconds)
        self.at_s = self._clock.monotonic_s()

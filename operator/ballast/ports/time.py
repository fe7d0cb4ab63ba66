"""Time as something that is passed in, so that the simulator can own it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall time for records, monotonic time for waits."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch; may jump."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; the simulator advances instead."""
        ...

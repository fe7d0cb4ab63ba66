"""Simulated time: sleeping is what makes the world go on.

One ``SimClock`` drives everything in a simulation.  ``sleep`` moves time forward in pieces: up to the next scheduled action,
then on.  Between two pieces every subscriber (the cluster's mechanics) is told how much time has passed.  Nothing else moves
time, so the same script on the same seed gives the same run.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

Advance = Callable[[float], None]
Action = Callable[[], None]


class SimClock:
    """A ``ports.time.Clock`` that is advanced instead of waited for."""

    def __init__(self, *, start_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = start_ms
        self._now_s = 0.0
        self._stepped_s = 0.0
        self._subscribers: list[Advance] = []
        self._agenda: list[tuple[float, int, Action]] = []
        self._order = itertools.count()

    def now_ms(self) -> int:
        """Milliseconds since the epoch, from a fixed start."""
        return self._start_ms + round((self._now_s + self._stepped_s) * 1000)

    def monotonic_s(self) -> float:
        """Seconds since the simulation began."""
        return self._now_s

    def sleep(self, seconds: float) -> None:
        """Let the world run for this long; an action that sleeps itself is not re-entered."""
        end = self._now_s + max(seconds, 0.0)
        while self._agenda and self._agenda[0][0] <= end:
            at, _, action = heapq.heappop(self._agenda)
            self._advance_to(at)
            action()
        self._advance_to(end)

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back; time itself goes on as it did."""
        self._stepped_s += seconds

    def at(self, moment_s: float, action: Action) -> None:
        """Run ``action`` when the clock passes this moment; in the order of scheduling where moments are equal."""
        heapq.heappush(self._agenda, (moment_s, next(self._order), action))

    def after(self, delay_s: float, action: Action) -> None:
        """Run ``action`` this long from now."""
        self.at(self._now_s + delay_s, action)

    def subscribe(self, advance: Advance) -> None:
        """Call ``advance(dt)`` for every piece of time that passes."""
        self._subscribers.append(advance)

    def _advance_to(self, moment_s: float) -> None:
        elapsed = moment_s - self._now_s
        if elapsed <= 0:
            return
        # The clock shows the end of the piece while it is worked off, so that what happens in it is dated at its end.
        self._now_s = moment_s
        for advance in self._subscribers:
            advance(elapsed)

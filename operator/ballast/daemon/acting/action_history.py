"""What has been done of one kind of action, and when: caps and cool-downs go by it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from ballast.core.field_types import Count


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionHistory:
    """What this cluster has seen of one kind of action; it lives in the journal, so that it survives restarts."""

    day: str
    """The UTC day that ``starts`` counts, as ``2026-11-21``."""
    starts: Count
    last_end_ms: Count | None
    run: str
    """The run that was started last: the process that adopts it knows its kind by this."""

    def add_start(self, now_ms: int, run: str) -> ActionHistory:
        """One more start; of a run that is counted already it is none."""
        today = _day(now_ms)
        if run == self.run:
            return self
        return replace(self, day=today, starts=self.starts + 1 if self.day == today else 1, run=run)

    def add_late_start(self, at_ms: int, run: str, *, after: str) -> ActionHistory:
        """A start that was not counted when it was made, right after the one of ``after``.

        Others may have counted starts since: of them the newest stays the newest.
        """
        if run == self.run:
            return self
        if self.run == after:
            return self.add_start(at_ms, run)
        return replace(self, starts=self.starts + 1) if self.day == _day(at_ms) else self

    def add_end(self, now_ms: int) -> ActionHistory:
        """An end: the cool-down begins."""
        return replace(self, last_end_ms=now_ms)

    def add_late_end(self, at_ms: int) -> ActionHistory:
        """An end that was not noted when it came; a later one may have been."""
        return replace(self, last_end_ms=max(at_ms, self.last_end_ms or at_ms))

    def starts_on(self, now_ms: int) -> int:
        """Starts on the day of ``now_ms``."""
        return self.starts if self.day == _day(now_ms) else 0


NO_ACTIONS: Final = ActionHistory(day="", starts=0, last_end_ms=None, run="")
"""Of a cluster that has seen none.  No field has a default: as if nothing had happened, caps would let more happen."""


def _day(now_ms: int) -> str:
    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%d")

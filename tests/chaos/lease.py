"""The judgement on who held the journal's lease after whom; no client, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

LESS_S: Final = 1.0
"""Two processes' clocks and the way of a record to its broker."""


@dataclass(slots=True)
class Tenures:
    """The newest lease, and whether the next one may follow it."""

    holder: str | None = None
    lease_s: float = 0.0
    beat: int = 0
    written_s: float = 0.0
    changes: int = 0
    """How often another process took the lock."""

    def forget(self) -> None:
        """The journal is another one: no process can know who held the lock in the old one."""
        self.holder = None

    def take(self, value: Mapping[str, Any] | None, at_s: float) -> str | None:
        """The next lease record (None: given up), by its writer's clock; what is wrong with it."""
        if value is None:
            self.holder = None
            return None
        before, self.holder = self.holder, str(value["id"])
        beat_before, self.beat = self.beat, int(value["beat"])
        gap_s, self.written_s = at_s - self.written_s, at_s
        lease_before_s, self.lease_s = self.lease_s, float(value["lease_s"])
        if before is None:
            return None
        if before != self.holder:
            self.changes += 1
            if gap_s < lease_before_s - LESS_S:
                return f"{self.holder} took the lock {gap_s:.1f} s after a beat of {before}, whose lease lasts {lease_before_s:g} s"
        elif self.beat <= beat_before and self.beat != 1:
            return f"beat {self.beat} of {self.holder} follows its beat {beat_before}"
        return None

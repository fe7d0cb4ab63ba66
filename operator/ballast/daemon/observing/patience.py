"""What only shows over time: brokers that left or returned, and imbalance that lasts.  Pure values with a memory.

Times are monotonic seconds, so that a wall clock that jumps changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ballast.core.leadership import LeaderImbalance


@dataclass(frozen=True, slots=True)
class Presence:
    """Which brokers are up, since when one is missing, and when the last one came or went."""

    alive: frozenset[int] | None = None
    """None before the first reading."""
    gone_since_s: Mapping[int, float] = field(default_factory=dict)
    changed_at_s: float | None = None
    """When a broker last came, left or returned; None while the membership has been the same since the start."""

    def see(self, alive: Collection[int], missing: Collection[int], now_s: float) -> Presence:
        """Take in one reading: who is up, and who is down and missed."""
        up = frozenset(alive)
        gone = {b: self.gone_since_s.get(b, now_s) for b in missing}
        changed = self.alive is not None and up != self.alive
        return Presence(up, gone, now_s if changed else self.changed_at_s)

    def dead(self, grace_s: float, now_s: float) -> frozenset[int]:
        """Brokers gone for at least the grace time."""
        return frozenset(b for b, since in self.gone_since_s.items() if now_s - since >= grace_s)

    def unquiet(self, quiet_s: float, now_s: float) -> float:
        """Seconds until the membership has been the same for ``quiet_s``; 0 when it has."""
        return 0.0 if self.changed_at_s is None else max(0.0, quiet_s - (now_s - self.changed_at_s))


@dataclass(frozen=True, slots=True)
class FailedDisks:
    """Live brokers of which replicas are offline since a log dir failed, and since when."""

    since_s: Mapping[int, float] = field(default_factory=dict)

    def see(self, brokers: Collection[int], now_s: float) -> FailedDisks:
        """Take in one reading."""
        return FailedDisks({b: self.since_s.get(b, now_s) for b in brokers})

    def lasting(self, least_s: float, now_s: float) -> frozenset[int]:
        """Brokers of which this has been so for at least ``least_s``."""
        return frozenset(b for b, since in self.since_s.items() if now_s - since >= least_s)


@dataclass(frozen=True, slots=True)
class Hysteresis:
    """Which brokers count as imbalanced, with different levels to enter and to leave, and since when."""

    since_s: Mapping[int, float] = field(default_factory=dict)

    def see(self, leaders: LeaderImbalance, leave_percent: float, now_s: float) -> Hysteresis:
        """Enter where a broker is over its threshold, leave where it is at or below ``leave_percent``."""
        kept = {
            b.broker: self.since_s.get(b.broker, now_s)
            for b in leaders
            if b.over or (b.broker in self.since_s and b.ratio * 100 > leave_percent)
        }
        return replace(self, since_s=kept)

    def lasting(self, least_s: float, now_s: float) -> frozenset[int]:
        """Brokers imbalanced for at least ``least_s``."""
        return frozenset(b for b, since in self.since_s.items() if now_s - since >= least_s)

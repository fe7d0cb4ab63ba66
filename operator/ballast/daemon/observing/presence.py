"""What only shows over time: brokers that left or returned, and imbalance that lasts.  Pure values with a memory.

Times are monotonic seconds, so that a wall clock that jumps changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ballast.core.leadership import LeaderImbalance


@dataclass(frozen=True, slots=True)
class BrokersSince:
    """Brokers of which something is so, and since when it has been without a break."""

    since_s: Mapping[int, float] = field(default_factory=dict)

    def see(self, brokers: Collection[int], now_s: float) -> BrokersSince:
        """Take in one reading: of which brokers it is so now."""
        return BrokersSince({b: self.since_s.get(b, now_s) for b in brokers})

    def lasting(self, least_s: float, now_s: float) -> frozenset[int]:
        """Brokers of which this has been so for at least ``least_s``."""
        return frozenset(b for b, since in self.since_s.items() if now_s - since >= least_s)


@dataclass(frozen=True, slots=True)
class Presence:
    """Which brokers are up, since when one is missing, and when the last one came or went."""

    alive: frozenset[int] | None = None
    """None before the first reading."""
    down: BrokersSince = field(default_factory=BrokersSince)
    """Brokers that are missed."""
    changed_at_s: float | None = None
    """When a broker last came, left or returned; None while the membership has been the same since the start."""
    returns_s: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    """By broker that is missed: when each other broker of its rack first came up while it was. Each counts once, so that one that
    flaps holds nothing back for ever."""

    def see(self, alive: Collection[int], missing: Collection[int], now_s: float, racks: Mapping[int, str]) -> Presence:
        """Take in one reading: which brokers are up, which are down and missed, and in which racks."""
        up = frozenset(alive)
        down = self.down.see(missing, now_s)
        came = frozenset() if self.alive is None else up - self.alive
        returns = {b: _returns(b, came, racks, now_s) | dict(self.returns_s.get(b, {})) for b in down.since_s}
        changed = self.alive is not None and up != self.alive
        return Presence(up, down, now_s if changed else self.changed_at_s, returns)

    def held_brokers(self, quiet_s: float, now_s: float) -> Mapping[int, tuple[int, float]]:
        """Missed brokers whose rack is coming back: by each the broker of its rack that came up last, and the time until which it may follow."""
        last = {b: max(seen.items(), key=lambda one: (one[1], one[0])) for b, seen in self.returns_s.items() if seen}
        return {b: (other, at_s + quiet_s) for b, (other, at_s) in last.items() if now_s < at_s + quiet_s}

    def seconds_until_quiet(self, quiet_s: float, now_s: float) -> float:
        """Seconds until the membership has been the same for ``quiet_s``; 0 when it has."""
        return 0.0 if self.changed_at_s is None else max(0.0, quiet_s - (now_s - self.changed_at_s))


def _returns(broker: int, came: Collection[int], racks: Mapping[int, str], now_s: float) -> dict[int, float]:
    """Those of the same rack, now; none where the rack is not known."""
    rack = racks.get(broker)
    return {} if rack is None else {b: now_s for b in came if racks.get(b) == rack}


@dataclass(frozen=True, slots=True)
class Hysteresis:
    """Which brokers count as imbalanced, with different levels to enter and to leave."""

    imbalanced: BrokersSince = field(default_factory=BrokersSince)

    def see(self, leaders: LeaderImbalance, leave_percent: float, now_s: float) -> Hysteresis:
        """Enter where a broker is over its threshold, leave where it is at or below ``leave_percent``."""
        before = self.imbalanced
        stay = [b.broker for b in leaders if b.over or (b.broker in before.since_s and b.ratio * 100 > leave_percent)]
        return Hysteresis(before.see(stay, now_s))

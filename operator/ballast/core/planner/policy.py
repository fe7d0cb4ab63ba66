"""What the planner may do and the imbalance that is tolerated: values only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ballast.core.planner.cross_rack.policy import CrossRackPolicy
from ballast.core.planner.loads import DISK
from ballast.core.planner.topic_rule import TopicRule
from ballast.core.regex import check_regex
from ballast.errors import UsageError

REPLICAS: Final = "replicas"
LEADERS: Final = "preferred-leaders"
LEADER_BYTES: Final = "leader-bytes"
RESOURCES: Final = (DISK, "bytes-in", "bytes-out", "cpu", REPLICAS, LEADERS, LEADER_BYTES)
"""Every resource that has a band, in the order in which goals are listed to people."""
MOST_SLACK: Final = 2.0
"""At most so many times ``slack_bytes`` wide is the range that calls for a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What one broker can carry; None means as much as the others."""

    disk_bytes: int | None = None
    """Bytes of its log dirs; None takes what the broker says of its log dirs."""
    bytes_in_per_s: int | None = None
    """Network in, bytes per second."""
    bytes_out_per_s: int | None = None
    """Network out, bytes per second."""
    cpu: float | None = None
    """CPU in units that only need to compare between brokers, for example cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerPolicy:
    """The knobs of the planner."""

    band: float = 0.08
    """How far from its fair share a broker may be after a plan, as a fraction of that share."""
    bands: Mapping[str, float] = field(default_factory=dict)
    """Band by resource (``disk``, ``bytes-in``, ``bytes-out``, ``cpu``, ``replicas``, ``preferred-leaders``) where it differs from ``band``.
    ``leader-bytes``, the bytes on disk that a broker leads, are balanced only where a band for them is set here."""
    trigger: float = 0.10
    """A cluster whose every broker is within this fraction of its share is left alone; wider than ``band`` so that small
    drift after a plan does not call for the next one.  Below ``band`` it counts as ``band``."""
    slack_bytes: int = 1 << 20
    """Bytes by which disk may differ after a plan whatever the band says, and before the next by as much more as ``trigger`` is
    wider than ``band`` (at most twice): on a nearly empty cluster nothing is worth moving."""
    disk_limit: float = 0.90
    """The share of a broker's disk that a plan may fill, counting what arrives beside what has not left yet."""
    at_once: bool = field(default=False, metadata={"command_only": True})
    """All moves fit beside each other, for a tool that starts them together; otherwise some may wait for room that others free."""
    max_bytes: int | None = None
    """Most bytes to copy; None sets no limit.  The plan is the best balance within this limit."""
    max_moves: int | None = None
    """Most replicas to copy; None sets no limit."""
    cordoned: frozenset[int] = frozenset()
    """Brokers that take no new replica; what they hold may stay or go."""
    draining: frozenset[int] = frozenset()
    """Brokers that every plan balance empties."""
    demoted: frozenset[int] = frozenset()
    """Brokers that must not be preferred leaders."""
    replicas_below_min_isr: bool = field(default=False, metadata={"command_only": True})
    """`balance`, `expand` and `racks` copy partitions with fewer replicas than ``min.insync.replicas`` as well, though brokers
    refuse writes with ``acks=all`` meanwhile; by `execution.replicas_below_min_isr` in a daemon."""
    pinned_topics: str | None = None
    """Topics (regular expression, whole name) that no plan touches; their load still counts."""
    topic_rules: tuple[TopicRule, ...] = ()
    """Rules that some topics have for themselves: on which brokers they may be and led, how many replicas a broker may hold.
    Where one is broken today, `balance` and `racks` repair it before anything else; no plan ever breaks one."""
    capacities: Mapping[int, Capacity] = field(default_factory=dict)
    """Capacity by broker id where brokers differ; those not named are alike (disk: as their log dirs say)."""
    cross_rack: CrossRackPolicy = field(default_factory=CrossRackPolicy)
    """Traffic between racks, which clouds bill: where clients are, what it costs, and whether leaders are placed for less of it."""
    prove: bool = True
    """Compute the best lower bound that is affordable; False keeps the crude disk bound, which costs nothing."""

    def __post_init__(self) -> None:
        for name, value in (("band", self.band), ("trigger", self.trigger), *self.bands.items()):
            if not 0 < value < 1:
                raise UsageError(f"{name} is {value}: it should be above 0 and below 1.", hint="0.05 means ±5 %.")
        unknown = sorted(set(self.bands) - set(RESOURCES))
        if unknown:
            raise UsageError(f"No resource is called {unknown[0]!r}.", hint=f"Bands go by {', '.join(RESOURCES)}.")
        if self.pinned_topics is not None:
            check_regex(self.pinned_topics, "pinned_topics")
        if not 0 < self.disk_limit <= 1:
            raise UsageError(f"disk_limit is {self.disk_limit}: it should be above 0 and at most 1.")
        for limit, number in (("max_bytes", self.max_bytes), ("max_moves", self.max_moves)):
            if number is not None and number < 0:
                raise UsageError(f"{limit} is {number}: it cannot be negative.")

    @property
    def is_limited(self) -> bool:
        """May a plan be held to less than the cluster needs?"""
        return self.max_bytes is not None or self.max_moves is not None

    def with_drained(self, brokers: Iterable[int]) -> PlannerPolicy:
        """The same policy, under which these brokers are drained as well."""
        return replace(self, draining=self.draining | frozenset(brokers))

    def band_of(self, resource: str) -> float:
        """The band that a plan aims at."""
        return self.bands.get(resource, self.band)

    def trigger_of(self, resource: str) -> float:
        """The band within which nothing is done."""
        return max(self.trigger, self.band_of(resource))

    def slack_of(self, resource: str, band: float) -> float:
        """Bytes by which the resource may differ at least, in a range of this band."""
        if resource != DISK:
            return 0.0
        return self.slack_bytes * min(band / self.band_of(resource), MOST_SLACK)

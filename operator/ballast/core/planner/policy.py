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
    """Total size of the broker's log dirs, in bytes. Empty: as the broker reports."""
    bytes_in_per_s: int | None = None
    """Inbound network capacity of the broker, in bytes/s."""
    bytes_out_per_s: int | None = None
    """Outbound network capacity of the broker, in bytes/s."""
    cpu: float | None = None
    """CPU capacity of the broker, for example its cores. The unit is free, but the same for all brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerPolicy:
    """The knobs of the planner."""

    band: float = 0.08
    """Maximum distance of a broker from its share after a plan, as a fraction of that share."""
    bands: Mapping[str, float] = field(default_factory=dict)
    """Bands by resource (`disk`, `bytes-in`, `bytes-out`, `cpu`, `replicas`, `preferred-leaders`) that differ from `balance.band`.
    `leader-bytes`, the bytes on disk that a broker leads, is balanced only where it has a band here."""
    trigger: float = 0.10
    """No plan is made while every broker is within this fraction of its share. It is wider than `balance.band`, so that a small drift after
    a plan does not cause the next one; a value below `balance.band` counts as `balance.band`."""
    slack_bytes: int = 1 << 20
    """Bytes by which a broker may always differ from its share of disk after a plan, whatever `balance.band` says: on a nearly empty
    cluster nothing is worth moving. Before the next plan it is this times `balance.trigger` / `balance.band`, at most twice."""
    disk_limit: float = 0.90
    """Maximum fraction of a broker's disk that a plan fills; replicas that arrive and those that have not left yet both
    count."""
    at_once: bool = field(default=False, metadata={"command_only": True})
    """All moves fit beside each other, for a tool that starts them together; otherwise some may wait for room that others free."""
    max_bytes: int | None = None
    """Maximum number of bytes that a plan copies; the plan is the best balance within this limit. Empty: no limit."""
    max_replica_moves: int | None = None
    """Maximum number of replicas that a plan copies. Empty: no limit."""
    cordoned: frozenset[int] = frozenset()
    """Brokers that receive no new replica; what they hold may stay or move away."""
    draining: frozenset[int] = frozenset()
    """Brokers that every `balance` plan empties."""
    demoted: frozenset[int] = frozenset()
    """Brokers that must not be preferred leaders."""
    replicas_below_min_isr: bool = field(default=False, metadata={"command_only": True})
    """`balance`, `expand` and `racks` copy partitions with fewer replicas than ``min.insync.replicas`` as well, though brokers
    refuse writes with ``acks=all`` meanwhile; by `execution.replicas_below_min_isr` in a daemon."""
    pinned_topics: str | None = None
    """Topics (regular expression on the whole name) that no plan changes; their load still counts."""
    topic_rules: tuple[TopicRule, ...] = ()
    """Rules for some topics: which brokers may hold or lead them, and how many of their replicas a broker may hold. Where a rule is
    broken today, `balance` and `racks` repair it before anything else; no plan ever breaks one."""
    capacities: Mapping[int, Capacity] = field(default_factory=dict)
    """Capacity by broker id where brokers differ. Brokers that are not named are alike; their disk is as their log dirs report."""
    cross_rack: CrossRackPolicy = field(default_factory=CrossRackPolicy)
    """Traffic between racks, which clouds charge for: where clients are, what the traffic costs, and whether leaders are placed for less of
    it."""
    prove: bool = True
    """True computes the best lower bound that is affordable. False computes only the crude one for disk, which costs nothing."""

    def __post_init__(self) -> None:
        for name, value in (("band", self.band), ("trigger", self.trigger), *self.bands.items()):
            if not 0 < value < 1:
                raise UsageError(f"{name} is {value}: it should be above 0 and below 1.", hint="0.05 means ±5 %.")
        unknown = sorted(set(self.bands) - set(RESOURCES))
        if unknown:
            raise UsageError(f"No resource is called {unknown[0]!r}.", hint=f"Resources are {', '.join(RESOURCES)}.")
        if self.pinned_topics is not None:
            check_regex(self.pinned_topics, "pinned_topics")
        if not 0 < self.disk_limit <= 1:
            raise UsageError(f"disk_limit is {self.disk_limit}: it should be above 0 and at most 1.")
        for limit, number in (("max_bytes", self.max_bytes), ("max_replica_moves", self.max_replica_moves)):
            if number is not None and number < 0:
                raise UsageError(f"{limit} is {number}: it cannot be negative.")

    @property
    def is_limited(self) -> bool:
        """May a plan be held to less than the cluster needs?"""
        return self.max_bytes is not None or self.max_replica_moves is not None

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

"""A rule that some topics have for themselves: values only.

Every rule whose pattern matches a topic holds for it: what one of them forbids is forbidden, whatever the others say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from ballast.core.regex import check_regex
from ballast.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRule:
    """Where the replicas and the leaders of some topics may be."""

    topics: str
    """The topics of the rule: a regular expression on the whole name."""
    brokers: frozenset[int] | None = None
    """The only brokers that may hold replicas of these topics. Not set: every broker."""
    not_brokers: frozenset[int] = frozenset()
    """Brokers that may not hold replicas of these topics."""
    leader_brokers: frozenset[int] | None = None
    """The only brokers that may be preferred leaders of these topics, beside those in `leader_racks`. Not set: every broker, unless
    `leader_racks` is set."""
    leader_racks: frozenset[str] | None = None
    """The only racks whose brokers may be preferred leaders of these topics, beside `leader_brokers`. Not set: every rack, unless
    `leader_brokers` is set."""
    max_per_broker: int | None = None
    """Maximum number of replicas of each of these topics that one broker holds. Empty: no limit."""
    spread_evenly: bool = False
    """True spreads the replicas of each topic evenly over the brokers that may hold it: none holds more than their average, rounded up."""
    ignore_racks: bool = False
    """True allows replicas of one partition in the same rack though there are enough racks."""
    kafka_placement: bool = False
    """True keeps the replica lists as Kafka's classic algorithm places them, starting from where partition 0 is: the daemon repairs them,
    and no balancing moves them. A repair that puts a topic on other brokers than before (one was added or cordoned) always waits for
    approval."""

    def __post_init__(self) -> None:
        check_regex(self.topics, "a topic rule")
        if self.max_per_broker is not None and self.max_per_broker < 1:
            raise UsageError(
                f"The rule for topics {self.topics!r} says max_per_broker {self.max_per_broker}: it should be at least 1.",
                hint="To keep topics off brokers, use not_brokers.",
            )
        if self.brokers is not None and not self.brokers - self.not_brokers:
            raise UsageError(
                f"The rule for topics {self.topics!r} allows no broker at all.",
                hint="Name in brokers at least as many brokers as the topics have replicas, and none of them in not_brokers.",
            )
        if self.leader_brokers is not None and not (self.leader_brokers or self.leader_racks):
            raise UsageError(
                f"The rule for topics {self.topics!r} allows no leader at all.",
                hint="Name a broker in leader_brokers or a rack in leader_racks, or leave them out.",
            )
        sayable = [f for f in fields(self) if f.name != "topics"]
        if all(getattr(self, f.name) == f.default for f in sayable):
            names = ", ".join(f.name for f in sayable)
            raise UsageError(f"The rule for topics {self.topics!r} says nothing.", hint=f"It can say {names}.")

    def matches(self, topic: str) -> bool:
        """Does it hold for this topic?"""
        return re.fullmatch(self.topics, topic) is not None

    def allows(self, broker: int) -> bool:
        """May the broker hold replicas?"""
        return broker not in self.not_brokers and (self.brokers is None or broker in self.brokers)

    @property
    def beyond_kafka(self) -> bool:
        """Does it ask for what Kafka's own placement knows nothing of?"""
        named = self.leader_brokers is not None or self.leader_racks is not None or self.max_per_broker is not None
        return named or self.spread_evenly or self.ignore_racks

    def allows_leader(self, broker: int, rack: str | None) -> bool:
        """May the broker be preferred leader?"""
        if self.leader_brokers is None and self.leader_racks is None:
            return True
        return broker in (self.leader_brokers or ()) or rack in (self.leader_racks or ())

"""What a person can ask of the planner: one value for each command."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from ballast.core.placement.placer import ALGORITHMS
from ballast.core.plan import Purpose
from ballast.core.regex import check_regex
from ballast.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which topics and brokers take part; regular expressions that match the whole name or id.

    What does not take part stays as it is, and its load counts all the same.
    """

    topics: str | None = None
    exclude_topics: str | None = None
    brokers: str | None = None
    exclude_brokers: str | None = None

    def __post_init__(self) -> None:
        for pattern in (self.topics, self.exclude_topics, self.brokers, self.exclude_brokers):
            if pattern is not None:
                check_regex(pattern)

    def topic(self, name: str) -> bool:
        """Does this topic take part?"""
        return _selected(name, self.topics, self.exclude_topics)

    def broker(self, broker_id: int) -> bool:
        """Does this broker take part?"""
        return _selected(str(broker_id), self.brokers, self.exclude_brokers)

    @property
    def is_everything(self) -> bool:
        """Nothing is left out."""
        return self == Selection()


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """The base of all intents."""

    code: ClassVar[str]
    """The command's word."""

    selection: Selection = field(default=EVERYTHING)

    @property
    def words(self) -> str:
        """The command in words, without ``ballast plan``."""
        return self.code

    @property
    def purpose(self) -> Purpose:
        """The same as data."""
        return Purpose(self.code)


@dataclass(frozen=True, slots=True)
class Balance(Intent):
    """Everything within its range: down and draining brokers emptied, racks repaired, then every resource."""

    code = "balance"


@dataclass(frozen=True, slots=True)
class Leaders(Intent):
    """Balance what leaders cost by replica list changes and elections alone: no byte moves."""

    code = "leaders"


@dataclass(frozen=True, slots=True)
class Demote(Intent):
    """Move leadership off these brokers, and change nothing else."""

    code = "demote"

    brokers: frozenset[int]

    @property
    def words(self) -> str:
        """For example ``demote 3 4``."""
        return f"{self.code} {_ids(self.brokers)}"

    @property
    def purpose(self) -> Purpose:
        """Names the brokers."""
        return Purpose(self.code, tuple(sorted(self.brokers)))


@dataclass(frozen=True, slots=True)
class Decommission(Intent):
    """Empty brokers so that they can be stopped; what does not sit on them stays."""

    code = "decommission"

    brokers: frozenset[int]

    @property
    def words(self) -> str:
        """For example ``decommission 3``."""
        return f"{self.code} {_ids(self.brokers)}"

    @property
    def purpose(self) -> Purpose:
        """Names the brokers."""
        return Purpose(self.code, tuple(sorted(self.brokers)))


@dataclass(frozen=True, slots=True)
class Expand(Intent):
    """Fill new brokers up to their share; nothing moves between the old ones."""

    code = "expand"

    brokers: frozenset[int]

    @property
    def words(self) -> str:
        """For example ``expand 7 8``."""
        return f"{self.code} {_ids(self.brokers)}"

    @property
    def purpose(self) -> Purpose:
        """Names the brokers."""
        return Purpose(self.code, tuple(sorted(self.brokers)))


@dataclass(frozen=True, slots=True)
class Evacuate(Intent):
    """Restore elsewhere what sat on down brokers, or on every broker of a rack."""

    code = "evacuate"

    brokers: frozenset[int] = frozenset()
    racks: frozenset[str] = frozenset()
    keep_racks: bool = False
    """Count the racks of what is evacuated as racks: no two replicas of a partition share one for want of it."""
    offline_only: bool = False
    """Only partitions of which these brokers hold an offline replica, as on a failed log dir; their other replicas stay."""

    @property
    def words(self) -> str:
        """For example ``evacuate 3``, ``evacuate rack a`` or ``evacuate 3 --offline-only``."""
        parts = [_ids(self.brokers)] if self.brokers else []
        parts += [f"rack {r}" for r in sorted(self.racks)]
        parts += ["--offline-only"] if self.offline_only else []
        return " ".join([self.code, *parts])

    @property
    def purpose(self) -> Purpose:
        """Tells offline replicas alone from all that a broker held."""
        code = "evacuate-offline" if self.offline_only else self.code
        return Purpose(code, tuple(sorted(self.brokers)), tuple(sorted(self.racks)))


@dataclass(frozen=True, slots=True)
class ChangeReplicationFactor(Intent):
    """Give topics another number of replicas, racks kept; the selection's topics say which."""

    code = "change-rf"

    to: int

    def __post_init__(self) -> None:
        if self.to < 1:
            raise UsageError(f"A replication factor of {self.to} is not possible.", hint="Give 1 or more.")

    @property
    def words(self) -> str:
        """For example ``change-rf 'orders|payments' --replication-factor 3``."""
        return f"{self.code} {self.selection.topics or '.*'} --replication-factor {self.to}"


@dataclass(frozen=True, slots=True)
class Racks(Intent):
    """Give each replica of a partition a rack of its own while racks suffice; move nothing else."""

    code = "racks"


@dataclass(frozen=True, slots=True)
class ReplaceBroker(Intent):
    """Put one broker in the place of another, in every replica list."""

    code = "replace"

    old: int
    new: int

    def __post_init__(self) -> None:
        if self.old == self.new:
            raise UsageError(f"Broker {self.old} cannot replace itself.", hint="Name two different brokers.")

    @property
    def words(self) -> str:
        """For example ``replace 3 9``."""
        return f"{self.code} {self.old} {self.new}"

    @property
    def purpose(self) -> Purpose:
        """Names both brokers."""
        return Purpose(self.code, (self.old, self.new))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(Intent):
    """The replica lists that an algorithm gives the selection's topics on its brokers, whatever they have now."""

    code = "place"

    algorithm: str = "classic"
    """``classic`` or ``kraft``, Kafka's two, or ``naive``, which is neither and shows why it is wrong."""
    replication_factor: int | None = None
    """None: as many replicas as partition 0 has."""
    start: int | None = None
    """Position of partition 0's first replica; None draws it from the seed."""
    shift: int | None = None
    """Distance of its followers; None: the start, where that is given, else drawn."""
    as_partition_0: bool = False
    """Start and shift are those that partition 0 has, so that lists which Kafka has made stay."""

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise UsageError(f"{self.algorithm!r} is no placement.", hint="It is classic, kraft or naive.")
        if (self.start is not None or self.shift is not None) and self.algorithm != "classic":
            raise UsageError(f"The {self.algorithm} placement has no start and no shift.", hint="Give --seed instead.")
        if self.start is None and self.shift is not None:
            raise UsageError("A shift alone fixes nothing.", hint="Give --start as well.")
        if self.replication_factor is not None and self.replication_factor < 1:
            raise UsageError(
                f"A replication factor of {self.replication_factor} is not possible.", hint="Give 1 or more."
            )

    @property
    def words(self) -> str:
        """For example ``place orders classic start 3 shift 1``."""
        parts = [self.code, self.selection.topics or ".*", self.algorithm]
        parts += [f"start {self.start}"] if self.start is not None else []
        parts += [f"shift {self.shift}"] if self.shift is not None else []
        parts += [f"rf {self.replication_factor}"] if self.replication_factor is not None else []
        return " ".join(parts)


def _selected(name: str, include: str | None, exclude: str | None) -> bool:
    if include is not None and re.fullmatch(include, name) is None:
        return False
    return exclude is None or re.fullmatch(exclude, name) is None


def _ids(brokers: frozenset[int]) -> str:
    return " ".join(str(b) for b in sorted(brokers))

"""Moves and plans: the words that the planner says and the executor hears.

A *Move* is one partition from one replica list to another, with the reason for it.  A *Plan* is ordered moves with what
they cost and the assignment before.  How many moves run together is the executor's affair (caps and batches), not the
plan's; the order is the plan's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.field_types import Count

ANY_LOG_DIR: Final = "any"
"""In Kafka's JSON: the broker chooses."""

Place = int | tuple[int, str]
"""Somewhere with room of its own: a broker's disks together, or one log dir of a broker."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a move is in the plan: a stable code for machines, a sentence for people."""

    code: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code


@dataclass(frozen=True, slots=True)
class Move:
    """One partition from ``old`` to ``new``; the first of each list is the preferred leader."""

    topic: str
    partition: int
    old: tuple[int, ...]
    new: tuple[int, ...]
    size_bytes: int = UNKNOWN
    """Bytes of one replica, ``UNKNOWN`` where no broker said."""
    reason: Reason = Reason("unspecified")
    log_dirs: tuple[str, ...] | None = None
    """Per new replica an absolute log dir or ``any``, as in Kafka's JSON; None when nothing asks for one."""

    @property
    def name(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that must copy the data."""
        return tuple([b for b in self.new if b not in self.old])

    @property
    def removing(self) -> tuple[int, ...]:
        """Brokers that give their replica up."""
        return tuple([b for b in self.old if b not in self.new])

    @property
    def named_dirs(self) -> dict[int, str]:
        """Brokers whose log dir it names, and which; elsewhere the broker chooses."""
        return {b: path for b, path in zip(self.new, self.log_dirs or (), strict=False) if path != ANY_LOG_DIR}

    def places(self, broker: int) -> tuple[Place, ...]:
        """Where its replica on this broker takes room: on the broker's disks, and in the log dir if it names one."""
        path = self.named_dirs.get(broker)
        return (broker,) if path is None else (broker, (broker, path))

    @property
    def is_list_change(self) -> bool:
        """The same brokers in another order: no byte moves."""
        return self.old != self.new and set(self.old) == set(self.new)

    @property
    def changes_replication_factor(self) -> bool:
        """The number of replicas changes."""
        return len(self.old) != len(self.new)

    @property
    def size_unknown(self) -> bool:
        """It copies, and no broker said how much."""
        return self.size_bytes < 0 and bool(self.adding)

    @property
    def bytes_moved(self) -> int:
        """Bytes that cross the network; where its size is unknown 0, the least that it may be."""
        return max(self.size_bytes, 0) * len(self.adding)


Value = int | float | str | tuple[int, ...] | None
"""A figure of an obstacle."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a plan stops short of what was asked, and what would remove the obstacle."""

    code: str
    subject: str
    detail: str
    """Its sentence for people, without a full stop; ``planner.sentences`` makes it."""
    remedy: str = ""
    cause: str = ""
    """Which of the code's causes; empty for the one that goes without saying, or in a file that does not tell."""
    values: Mapping[str, Value] = field(default_factory=dict, hash=False)
    """The figures of the sentences."""


@dataclass(frozen=True, slots=True)
class LogDirError:
    """A log dir that its broker reported with an error when the plan was made."""

    broker: Count
    path: str
    error: str
    """Kafka's name: ``KAFKA_STORAGE_ERROR`` is a failed disk."""
    offline_replicas: Count
    """Of the whole broker: which of its log dirs a replica was in, it no longer tells."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a plan is for, as data: its intent says the same in words."""

    code: str
    """``balance``, ``decommission``, ``evacuate``, ``evacuate-offline``, ``elect``, …; ``other`` where only the words tell."""
    brokers: tuple[int, ...] = ()
    """The brokers that it names; of ``replace`` the old one first."""
    racks: tuple[str, ...] = ()
    """The racks that it names."""


OTHER_PURPOSE: Final = Purpose("other")
"""Of a plan that no command, and no decision of the daemon, has made."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about a cluster, in order, and what it costs."""

    intent: str
    """The command in words: ``balance``, ``decommission 3 4``, …"""
    cluster_id: str
    fingerprint: str
    """Of the assignment that the plan was made from; ``apply`` refuses when it differs."""
    moves: tuple[Move, ...]
    elections: tuple[TopicPartition, ...] = ()
    """Preferred elections to hold after the moves (and first of all, where the order is already right)."""
    status: str = "meets-all-goals"
    """``meets-all-goals`` (every goal met), ``nothing-to-do`` (with ranges named that nothing mends), ``misses-some-goals`` (see obstacles), ``no-plan-found``."""
    obstacles: tuple[Obstacle, ...] = ()
    log_dir_errors: tuple[LogDirError, ...] = ()
    """What no plan repairs; they leave ``status`` as it is."""
    assumptions: tuple[str, ...] = ()
    seed: int = 0
    created_at_ms: int = 0
    bound_bytes: int | None = None
    """The least bytes any plan could move to reach the bands this one reached."""
    bound_method: str = ""
    allow_replication_factor_change: bool = False
    in_order: bool = False
    """Disks have no room for all moves at once: each fits once those before it have ended, and takes no room that they need."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """By name, the ids of its topics when it was made, where the cluster has ids: it is not for another topic of that name."""
    purpose: Purpose = OTHER_PURPOSE
    request: dict[str, Any] = field(default_factory=dict)
    """What was asked, so that the same can be asked again (``planner.request``); empty where no planner made it."""
    summary: dict[str, Any] = field(default_factory=dict)
    """Before and after figures for people and reports; never read back by the executor."""

    @property
    def bytes_moved(self) -> int:
        """Bytes that cross the network; with ``unknown_sizes``, the least that they may be."""
        return sum(m.bytes_moved for m in self.moves)

    @property
    def unknown_sizes(self) -> int:
        """Moves that copy and whose size no broker said."""
        return sum(m.size_unknown for m in self.moves)

    @property
    def known_bytes(self) -> int | None:
        """Bytes that cross the network; None where a size is unknown."""
        return None if self.unknown_sizes else self.bytes_moved

    @property
    def is_empty(self) -> bool:
        """Nothing to do."""
        return not self.moves and not self.elections

"""What the driver reads for the machine, and what the machine asks it to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.cluster.log_ends import LogEnds
from ballast.ports.cluster import BrokerLogs, PartitionState, Reassignment


@dataclass(frozen=True, slots=True)
class Needs:
    """What the next look must cover."""

    names: frozenset[TopicPartition] = frozenset()
    """Partitions whose state is wanted."""
    logs: frozenset[int] = frozenset()
    """Brokers whose log dirs are wanted when a reading is due."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One look at the cluster.

    ``reassignments`` is read before and after ``partitions`` and holds what both readings agree on having seen, so that a
    move which ended in between is neither called gone nor done too early: see ``driver.look``.
    """

    reassignments: Mapping[TopicPartition, Reassignment]
    partitions: Mapping[TopicPartition, PartitionState]
    names: frozenset[TopicPartition]
    """What was asked for; a name here without a state does not exist."""
    alive: frozenset[int]
    logs: Mapping[int, BrokerLogs] | None = None
    """None when not read this time."""
    ends: LogEnds | None = None
    """Log ends of the partitions asked for and, in an ``auto`` run, of whatever else lies on the brokers read; as ``logs``."""
    state: ClusterState | None = None
    """A whole-cluster reading fresh enough for guards; None when there is none."""
    disks_read_s: Mapping[int, float] = field(default_factory=dict)
    """By broker the monotonic time at which the reading of its disks in ``state`` began."""
    rates_of_others: Mapping[int, int] = field(default_factory=dict)
    """Brokers with a replication rate of somebody else's that moves of theirs run under: see ``foreign_throttles``."""
    growth: Mapping[TopicPartition, float] | None = None
    """Bytes/s that partitions grew by between the last two whole readings; None in every look but the first after one."""
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Largest replica of each partition, as far as known."""


def target(r: Reassignment) -> tuple[int, ...]:
    """Where a move in flight is going."""
    return tuple(b for b in r.replicas if b not in r.removing)

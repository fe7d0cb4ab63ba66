"""What the driver reads for the machine, and what the machine asks it to read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, TopicPartition
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
class DirCopy:
    """A copy of a replica that is being made in another log dir of its broker, by this run or by another process."""

    name: TopicPartition
    broker: int
    path: str
    """The log dir that it is made in; empty where the broker did not tell."""
    size_bytes: int
    """Of the replica; ``UNKNOWN`` where no broker told."""
    shown_bytes: int
    """Of the copy."""


@dataclass(frozen=True)
class Disks:
    """What lay on disks at the readings by which ``Picture.state`` shows how much is free there."""

    full: ClusterState | None = None
    """The last whole-cluster reading that told sizes; None before there was one."""
    full_s: float = float("-inf")
    """Monotonic time at which it began."""
    later: Mapping[int, tuple[float, BrokerLogs]] = field(default_factory=dict)
    """Brokers whose log dirs were read after it: when that began, and what they answered."""

    def read_before(self, broker: int, moment_s: float) -> bool:
        """May what happened at this moment be missing in the reading of this broker's disks?"""
        return (self.later[broker][0] if broker in self.later else self.full_s) <= moment_s

    def sizes_by_dir(self, name: TopicPartition, broker: int) -> dict[str, int]:
        """Bytes of this partition on this broker, by log dir; empty where the reading shows none."""
        if broker in self.later:
            return {r.log_dir: r.size_bytes for r in self.later[broker][1].replicas.get(name, ())}
        row = None if self.full is None else self.full.index.get(name)
        if self.full is None or row is None:
            return {}
        p = self.full.partitions
        run = slice(int(p.start[row]), int(p.start[row + 1]))
        found = self.full.broker(broker)
        dirs = {UNKNOWN: ""} | {i: d.path for i, d in enumerate(found.log_dirs if found is not None else ())}
        here = p.replica[run] == broker
        places = zip(p.log_dir[run][here].tolist(), p.size_bytes[run][here].tolist(), strict=True)
        return {dirs[at]: size for at, size in places if size != UNKNOWN}

    @cached_property
    def dir_copies(self) -> tuple[DirCopy, ...]:
        """Every copy between log dirs that the readings show."""
        out = [] if self.full is None else list(_dir_copies(self.full, self.later))
        for broker, (_, logs) in self.later.items():
            for name, copies in logs.replicas.items():
                size = next((r.size_bytes for r in copies if not r.is_future), UNKNOWN)
                out += [DirCopy(name, broker, r.log_dir, size, r.size_bytes) for r in copies if r.is_future]
        return tuple(out)


def _dir_copies(full: ClusterState, but: Collection[int]) -> Iterator[DirCopy]:
    """Those that a whole reading shows, of all brokers ``but`` these."""
    p = full.partitions
    for at in np.flatnonzero(p.future_size_bytes != UNKNOWN).tolist():
        broker, place = full.broker(int(p.replica[at])), int(p.future_log_dir[at])
        if broker is not None and broker.id not in but:
            name = full.name(int(np.searchsorted(p.start, at, side="right")) - 1)
            path = broker.log_dirs[place].path if place != UNKNOWN else ""
            yield DirCopy(name, broker.id, path, int(p.size_bytes[at]), int(p.future_size_bytes[at]))


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
    disks: Disks = field(default_factory=Disks)
    ended: Mapping[TopicPartition, tuple[Reassignment, float]] = field(default_factory=dict)
    """Reassignments that are listed no longer, with the monotonic time at which they last were: ``disks`` may be older than that."""
    rates_of_others: Mapping[int, int] = field(default_factory=dict)
    """Brokers with a foreign replication rate that foreign reassignments run under: see ``foreign_throttles``."""
    growth: Mapping[TopicPartition, float] | None = None
    """Bytes/s that partitions grew by between the last two whole readings; None in every look but the first after one."""
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Largest replica of each partition, as far as known."""


def target(r: Reassignment) -> tuple[int, ...]:
    """Where a move in progress is going."""
    return tuple(b for b in r.replicas if b not in r.removing)

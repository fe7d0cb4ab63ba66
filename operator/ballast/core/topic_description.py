"""What ``topics describe`` tells about one topic, computed from a snapshot and the leaders' offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, Topic


@dataclass(frozen=True, slots=True)
class ReplicaDescription:
    """One replica of a partition."""

    broker: int
    in_sync: bool
    alive: bool
    """Its broker is alive."""
    offline: bool
    """The cluster says that it cannot serve: its broker is down or its log dir has failed."""
    adding: bool
    removing: bool
    log_end: int
    """High watermark less lag; ``UNKNOWN`` where either is."""
    lag: int
    size_bytes: int
    log_dir: str | None
    future_size_bytes: int
    """Size of the copy being made in another log dir of the broker; ``UNKNOWN`` when there is none."""


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition."""

    number: int
    leader: int
    preferred: int
    replicas: tuple[ReplicaDescription, ...]
    """In assignment order; mid-move, the union of old and new."""
    earliest: int
    high_watermark: int
    moving: bool

    @property
    def assigned(self) -> tuple[int, ...]:
        """AR: every replica that the metadata lists."""
        return tuple(r.broker for r in self.replicas)

    @property
    def in_sync(self) -> tuple[int, ...]:
        """ISR."""
        return tuple(r.broker for r in self.replicas if r.in_sync)

    @property
    def out_of_sync(self) -> tuple[int, ...]:
        """OSR: assigned and not in sync."""
        return tuple(r.broker for r in self.replicas if not r.in_sync)

    @property
    def size_bytes(self) -> int:
        """The leader's copy; ``UNKNOWN`` without one that told its size."""
        return next((r.size_bytes for r in self.replicas if r.broker == self.leader), UNKNOWN)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic and all its partitions."""

    topic: Topic
    partitions: tuple[PartitionDescription, ...]


def describe_topic(state: ClusterState, name: str, offsets: Mapping[int, tuple[int, int]]) -> TopicDescription | None:
    """Describe a topic, None when there is none of this name; ``offsets`` are (earliest, high watermark) by partition."""
    at = state.topic_index.get(name)
    if at is None:
        return None
    rows = np.flatnonzero(state.partitions.topic == at).tolist()
    return TopicDescription(state.topics[at], tuple(_partition(state, row, offsets) for row in rows))


def _partition(state: ClusterState, row: int, offsets: Mapping[int, tuple[int, int]]) -> PartitionDescription:
    p = state.partitions
    number = int(p.number[row])
    earliest, high = offsets.get(number, (UNKNOWN, UNKNOWN))
    flat = range(int(p.start[row]), int(p.start[row + 1]))
    return PartitionDescription(
        number=number,
        leader=int(p.leader[row]),
        preferred=int(state.preferred[row]),
        replicas=tuple(_replica(state, i, high) for i in flat),
        earliest=earliest,
        high_watermark=high,
        moving=bool(state.moving[row]),
    )


def _replica(state: ClusterState, i: int, high_watermark: int) -> ReplicaDescription:
    p = state.partitions
    broker = state.broker(int(p.replica[i]))
    assert broker is not None
    lag, where = int(p.lag[i]), int(p.log_dir[i])
    return ReplicaDescription(
        broker=broker.id,
        in_sync=bool(p.in_sync[i]),
        alive=broker.alive,
        offline=bool(p.offline[i]),
        adding=bool(p.adding[i]),
        removing=bool(p.removing[i]),
        log_end=high_watermark - lag if lag >= 0 and high_watermark >= 0 else UNKNOWN,
        lag=lag,
        size_bytes=int(p.size_bytes[i]),
        log_dir=broker.log_dirs[where].path if 0 <= where < len(broker.log_dirs) else None,
        future_size_bytes=int(p.future_size_bytes[i]),
    )

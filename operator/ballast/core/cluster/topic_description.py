"""What ``topics describe`` tells about one topic, computed from a snapshot and the leaders' offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ballast.core.cluster.isr import leaves_isr_after_s
from ballast.core.cluster.log_ends import LocalStarts, LogEnds, lag, log_end
from ballast.core.cluster.state import UNKNOWN, ClusterState, Topic, TopicPartition
from ballast.core.field_types import Known


@dataclass(frozen=True, slots=True)
class ReplicaDescription:
    """One replica of a partition."""

    broker: int
    in_sync: bool
    broker_alive: bool
    offline: bool
    """The cluster says that it cannot serve: its broker is down or its log dir has failed."""
    adding: bool
    removing: bool
    log_end_offset: Known
    """The offset after its last record, as its own broker tells it."""
    lag: Known
    """Messages that its log end is behind the leader's; null where either is not known."""
    size_bytes: Known
    log_dir: str | None
    future_size_bytes: Known
    """Of the copy being made in another log dir of the same broker; null when there is none."""


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition."""

    number: int
    leader: int
    preferred: int
    replicas: tuple[ReplicaDescription, ...]
    """In assignment order; mid-move, the union of old and new."""
    earliest: int
    local_start: int
    """The first offset on the leader's disk; before it, a tiered topic's records are in remote storage."""
    high_watermark: int
    moving: bool
    leader_epoch: int = UNKNOWN
    controller_epoch: int = UNKNOWN
    """Of the controller that wrote the state znode; only with ZooKeeper."""
    leaves_isr_after_s: float = UNKNOWN
    """A follower that stops fetching leaves the ISR after this long at most: 1.5 times ``replica.lag.time.max.ms`` of the leader."""

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


@dataclass(frozen=True, slots=True)
class Depth:
    """What was asked about the topic beside the snapshot; what is absent is unknown."""

    offsets: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """(earliest, high watermark) by partition."""
    ends: LogEnds = field(default_factory=dict)
    epochs: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """(leader epoch, controller epoch) by partition."""
    local_starts: LocalStarts = field(default_factory=dict)
    """Of tiered topics; the logs of others begin at the earliest offset."""


def describe_topic(state: ClusterState, name: str, depth: Depth) -> TopicDescription | None:
    """Describe a topic, None when there is none of this name."""
    at = state.topic_index.get(name)
    if at is None:
        return None
    rows = np.flatnonzero(state.partitions.topic == at).tolist()
    return TopicDescription(state.topics[at], tuple(_partition(state, row, depth) for row in rows))


def _partition(state: ClusterState, row: int, depth: Depth) -> PartitionDescription:
    p = state.partitions
    number, leader = int(p.number[row]), int(p.leader[row])
    earliest, high = depth.offsets.get(number, (UNKNOWN, UNKNOWN))
    leader_epoch, controller_epoch = depth.epochs.get(number, (UNKNOWN, UNKNOWN))
    flat = range(int(p.start[row]), int(p.start[row + 1]))
    return PartitionDescription(
        number=number,
        leader=leader,
        preferred=int(state.preferred[row]),
        replicas=tuple(_replica(state, i, leader, state.name(row), depth.ends) for i in flat),
        earliest=earliest,
        local_start=_local_start(state, row, depth, earliest),
        high_watermark=high,
        moving=bool(state.moving[row]),
        leader_epoch=leader_epoch,
        controller_epoch=controller_epoch,
        leaves_isr_after_s=leaves_isr_after_s(state, leader),
    )


def _local_start(state: ClusterState, row: int, depth: Depth, earliest: int) -> int:
    if not state.topics[int(state.partitions.topic[row])].tiered:
        return earliest
    return depth.local_starts.get(int(state.partitions.leader[row]), {}).get(state.name(row), UNKNOWN)


def _replica(state: ClusterState, i: int, leader: int, name: TopicPartition, ends: LogEnds) -> ReplicaDescription:
    p = state.partitions
    broker = state.broker(int(p.replica[i]))
    assert broker is not None
    where = int(p.log_dir[i])
    return ReplicaDescription(
        broker=broker.id,
        in_sync=bool(p.in_sync[i]),
        broker_alive=broker.alive,
        offline=bool(p.offline[i]),
        adding=bool(p.adding[i]),
        removing=bool(p.removing[i]),
        log_end_offset=log_end(ends, broker.id, name),
        lag=lag(ends, leader, broker.id, name),
        size_bytes=int(p.size_bytes[i]),
        log_dir=broker.log_dirs[where].path if 0 <= where < len(broker.log_dirs) else None,
        future_size_bytes=int(p.future_size_bytes[i]),
    )

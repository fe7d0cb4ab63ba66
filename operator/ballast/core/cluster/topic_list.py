"""What ``topics list`` tells about each topic, computed from a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ballast.core.cluster.min_isr import replication_factors, under_replicated
from ballast.core.cluster.state import NO_LEADER, UNKNOWN, ClusterState, Flags, Ints, Topic


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """One topic as a whole."""

    topic: Topic
    partitions: int
    min_replicas: int
    """The smallest replication factor of its partitions, replicas being added left out; ``UNKNOWN`` without partitions."""
    max_replicas: int
    replica_bytes: int
    """All its replicas, those of unknown size left out; ``UNKNOWN`` when no size is known."""
    unknown_sizes: int
    """Replicas of unknown size."""
    under_replicated: int
    """Partitions, as are the two that follow."""
    offline: int
    moving: int


def list_topics(state: ClusterState) -> tuple[TopicFigures, ...]:
    """Every topic, by name."""
    p, count = state.partitions, len(state.topics)
    factors = replication_factors(state)
    least = np.full(count, np.iinfo(np.int64).max)
    most = np.full(count, UNKNOWN, np.int64)
    np.minimum.at(least, p.topic, factors)
    np.maximum.at(most, p.topic, factors)
    of_replica = np.repeat(p.topic, np.diff(p.start))
    known = p.size_bytes >= 0
    sizes = np.zeros(count, np.int64)
    np.add.at(sizes, of_replica[known], p.size_bytes[known])

    def partitions(which: Flags) -> Ints:
        return np.bincount(p.topic[which], minlength=count)

    def replicas(which: Flags) -> Ints:
        return np.bincount(of_replica[which], minlength=count)

    in_all, sized, unsized = partitions(np.ones(len(p), np.bool_)), replicas(known), replicas(~known)
    behind, offline, moving = map(partitions, (under_replicated(state), p.leader == NO_LEADER, state.moving))
    return tuple(
        TopicFigures(
            topic=topic,
            partitions=int(in_all[i]),
            min_replicas=int(least[i]) if in_all[i] else UNKNOWN,
            max_replicas=int(most[i]),
            replica_bytes=int(sizes[i]) if sized[i] else UNKNOWN,
            unknown_sizes=int(unsized[i]),
            under_replicated=int(behind[i]),
            offline=int(offline[i]),
            moving=int(moving[i]),
        )
        for i, topic in enumerate(state.topics)
    )

"""How many replicas must be in sync before a partition takes writes with ``acks=all``: the one count of it.

``min.insync.replicas`` may be more than the replicas that a partition has.  From Kafka 3.7 on brokers then ask for no more than
these (KAFKA-15583), the ones being added included; before it they refuse every such write.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ballast.core.cluster.state import UNKNOWN, ClusterState, Flags, Ints, TopicPartition

BOUNDED_SINCE: Final = (3, 7)
"""The first release whose brokers ask for no more replicas in sync than there are."""


def bounded(state: ClusterState) -> bool:
    """Do its brokers ask for no more replicas in sync than there are?  A cluster of unknown version counts as a new one."""
    release = tuple(int(part) for part in (state.kafka_version or "").split(".")[:2] if part.isdecimal())
    return not (0,) < release < BOUNDED_SINCE


def least(state: ClusterState, min_isr: int, replicas: int) -> int:
    """Of a partition with so many replicas, whose topic asks for ``min_isr``."""
    return min(min_isr, replicas) if bounded(state) else min_isr


def min_isr_of(state: ClusterState, name: TopicPartition, replicas: int) -> int:
    """Of this partition, were it to have so many replicas; ``UNKNOWN`` where its topic's minimum is."""
    row = state.index.get(name)
    return UNKNOWN if row is None else least(state, state.topics[int(state.partitions.topic[row])].min_isr, replicas)


def min_isrs(state: ClusterState, *, more: int = 0) -> Ints:
    """By partition, with so many ``more`` replicas than it has; ``UNKNOWN`` where its topic's minimum is."""
    p = state.partitions
    wanted = np.array([t.min_isr for t in state.topics], np.int64)[p.topic]
    return np.minimum(wanted, np.diff(p.start) + more) if bounded(state) else wanted


def in_sync_counts(state: ClusterState) -> Ints:
    """By partition: how many replicas are in sync."""
    return _counts(state, state.partitions.in_sync)


def replication_factors(state: ClusterState) -> Ints:
    """By partition: how many replicas it has, apart from replicas being added."""
    return _counts(state, ~state.partitions.adding)


def under_replicated(state: ClusterState) -> Flags:
    """By partition: is its ISR smaller than its replication factor?"""
    return np.asarray(in_sync_counts(state) < replication_factors(state))


def under_min_isr(state: ClusterState) -> Flags:
    """By partition: is its ISR known to be smaller than it must be?"""
    return np.asarray(in_sync_counts(state) < min_isrs(state))


def replicas_below_min_isr(state: ClusterState) -> Flags:
    """By partition: does it take such writes now, and would it refuse them while one more replica is copied to it?

    So it is where there are fewer replicas than ``min.insync.replicas``, all of them in sync.
    """
    in_sync = in_sync_counts(state)
    return np.asarray((in_sync >= min_isrs(state)) & (in_sync < min_isrs(state, more=1)))


def at_min_isr(state: ClusterState) -> Flags:
    """By partition: is its ISR known to be as small as it may be?"""
    return np.asarray(in_sync_counts(state) == min_isrs(state))


def min_isr_unknown(state: ClusterState) -> Flags:
    """By partition: may its ISR be too small, as it is unknown how large it must be?  Never where every replica is in sync."""
    return np.asarray((min_isrs(state) == UNKNOWN) & under_replicated(state))


def _counts(state: ClusterState, which: Flags) -> Ints:
    start = state.partitions.start
    running = np.concatenate(([0], np.cumsum(which, dtype=np.int64)))
    return np.asarray(running[start[1:]] - running[start[:-1]])

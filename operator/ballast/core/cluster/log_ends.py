"""Where the log of each replica begins and ends on disk, as its own broker tells it, and how far it is behind its leader.

DescribeLogDirs does not tell it: its ``offsetLag`` of a current replica is measured against that replica's own high watermark
and is always 0, also of a follower that stands still.  The log of a tiered topic (KIP-405) begins on disk at its local log start,
long after the earliest offset, which may be in remote storage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from ballast.core.cluster.state import UNKNOWN, ClusterState, Ints, TopicPartition

Replica = tuple[TopicPartition, int]
"""A partition and a broker that holds it."""
ReplicaOffsets = Mapping[int, Mapping[TopicPartition, int]]
"""By broker: an offset of each of its replicas; what a broker did not tell is absent."""
LogEnds = ReplicaOffsets
"""The offset after the last record."""
LocalStarts = ReplicaOffsets
"""The first offset that is on the broker's own disk."""


def log_end(ends: LogEnds, broker: int, name: TopicPartition) -> int:
    """One replica's log end, or ``UNKNOWN``."""
    return ends.get(broker, {}).get(name, UNKNOWN)


def lag(ends: LogEnds, leader: int, broker: int, name: TopicPartition) -> int:
    """Messages that the replica's log end is behind the leader's; ``UNKNOWN`` where either did not tell.

    The two are read one after the other, so a current follower may seem to be ahead: that is 0.
    """
    theirs, own = log_end(ends, leader, name), log_end(ends, broker, name)
    return UNKNOWN if UNKNOWN in {theirs, own} else max(theirs - own, 0)


def holders(state: ClusterState, rows: Iterable[int]) -> dict[int, list[TopicPartition]]:
    """Whom to ask for what: the replicas of these partitions, by the brokers that are alive."""
    alive = state.alive
    out: dict[int, list[TopicPartition]] = {}
    for row in rows:
        name = state.name(row)
        for broker in state.replicas(row):
            if broker in alive:
                out.setdefault(broker, []).append(name)
    return out


def tiered_leaders(state: ClusterState) -> dict[int, list[TopicPartition]]:
    """Whom to ask for the local log starts of tiered topics: the leaders that are alive."""
    tiered = np.flatnonzero([t.tiered for t in state.topics])
    out: dict[int, list[TopicPartition]] = {}
    for row in np.flatnonzero(np.isin(state.partitions.topic, tiered)).tolist():
        leader = int(state.partitions.leader[row])
        if leader in state.alive:
            out.setdefault(leader, []).append(state.name(row))
    return out


def lags(state: ClusterState, ends: LogEnds) -> Ints:
    """``lag`` of every replica of a state, as its column."""
    p = state.partitions
    out = np.full(len(p.replica), UNKNOWN, np.int64)
    names: Collection[TopicPartition] = state.index
    start, leader, replica = p.start.tolist(), p.leader.tolist(), p.replica.tolist()
    for row, name in enumerate(names):
        for i in range(start[row], start[row + 1]):
            out[i] = lag(ends, leader[row], replica[i], name)
    return out

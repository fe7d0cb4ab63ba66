"""How far each replica is behind its leader, from the log ends that the replicas' own brokers tell.

DescribeLogDirs does not tell it: its ``offsetLag`` of a current replica is measured against that replica's own high watermark
and is always 0, also of a follower that stands still.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from ballast.core.cluster.state import UNKNOWN, ClusterState, Ints, TopicPartition

Replica = tuple[TopicPartition, int]
"""A partition and a broker that holds it."""
LogEnds = Mapping[int, Mapping[TopicPartition, int]]
"""By broker: the offset after the last record of each of its replicas; what a broker did not tell is absent."""


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

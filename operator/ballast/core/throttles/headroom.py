"""What a broker's network has left for moves: its stated capacity less all other traffic through it.

Estimated from how fast partitions grow, which every Kafka tells.  A byte that producers write comes in at each replica, and
goes out at the leader once for each follower and once for readers: how often records are read cannot be seen through the
protocol, so one reading of each is assumed.  Copies in the making are left out, they are what the headroom is for.  Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from ballast.core.cluster import ClusterState, TopicPartition

READS_PER_WRITE: Final = 1.0
"""Times that each record is assumed to be read by consumers, from the leader."""


def busiest_side(state: ClusterState, growth: Mapping[TopicPartition, float]) -> dict[int, float]:
    """Bytes/s through each broker's busier direction, by how many bytes/s each partition grows."""
    coming: defaultdict[int, float] = defaultdict(float)
    going: defaultdict[int, float] = defaultdict(float)
    for name, rate in growth.items():
        row = state.index.get(name)
        if row is None or rate <= 0:
            continue
        leader = int(state.partitions.leader[row])
        holders = state.settled_replicas(row)
        for broker in holders:
            coming[broker] += rate
        going[leader] += rate * (len(holders) - 1 + READS_PER_WRITE)
    return {b.id: max(coming[b.id], going[b.id]) for b in state.brokers}


def brokers_of_unknown_growth(state: ClusterState, growth: Mapping[TopicPartition, float]) -> frozenset[int]:
    """Brokers that lead a partition of which it is not known how fast it grows: more may go through them than is seen."""
    p = state.partitions
    rows = [state.index[name] for name in state.index.keys() - growth.keys()]
    return frozenset(int(p.leader[row]) for row in rows if not state.topics[int(p.topic[row])].deleting)


def headroom(
    state: ClusterState, growth: Mapping[TopicPartition, float], *, network_bytes_per_s: int, share: float
) -> dict[int, int]:
    """Bytes/s that moves may use on each broker, in each direction; never negative."""
    used = busiest_side(state, growth)
    return {b: max(0, int(network_bytes_per_s * share - rate)) for b, rate in used.items()}

"""What producers write to partitions, measured where no history is at hand: how much the logs grow between two readings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.ports.cluster import BrokerLogs, ClusterReader
from ballast.ports.time import Clock


@dataclass(frozen=True, slots=True)
class Gauge:
    """A first reading, to be compared with a second one: whatever is done in between is not waited for twice."""

    cluster: ClusterReader
    clock: Clock
    leaders: Mapping[TopicPartition, int]
    brokers: frozenset[int]
    first: Mapping[TopicPartition, int]
    began_s: float

    @classmethod
    def begin(cls, cluster: ClusterReader, clock: Clock, state: ClusterState, names: Iterable[TopicPartition]) -> Self:
        """Read these partitions at their leaders; those without a leader or an answer are left out."""
        leaders = {n: int(state.partitions.leader[state.index[n]]) for n in names if n in state.index}
        brokers = frozenset(b for b in leaders.values() if b in state.alive)
        began_s = clock.monotonic_s()
        return cls(cluster, clock, leaders, brokers, _sizes(cluster.log_dirs(brokers), leaders), began_s)

    def bytes_per_s(self, seconds: float) -> dict[TopicPartition, float]:
        """How fast each partition has grown since, over at least so many seconds.

        Retention that deletes a segment in between hides growth; such a partition reads as zero, never as negative.
        """
        self.clock.sleep(max(0.0, self.began_s + seconds - self.clock.monotonic_s()))
        after = _sizes(self.cluster.log_dirs(self.brokers), self.leaders)
        passed_s = max(self.clock.monotonic_s() - self.began_s, 1e-3)
        return {n: max(0, size - self.first[n]) / passed_s for n, size in after.items() if n in self.first}


def _sizes(logs: Mapping[int, BrokerLogs], leaders: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    out = {}
    for name, leader in leaders.items():
        replicas: Collection[int] = (
            [r.size_bytes for r in logs[leader].replicas.get(name, ()) if not r.is_future] if leader in logs else []
        )
        if replicas:
            out[name] = max(replicas)
    return out

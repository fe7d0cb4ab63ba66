"""What producers write to partitions, measured where no history is at hand: how much the logs grow between two readings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.ports.cluster import BrokerLogs, ClusterReader
from ballast.ports.time import Clock


def measure_inbound(
    cluster: ClusterReader, clock: Clock, state: ClusterState, names: Iterable[TopicPartition], seconds: float
) -> dict[TopicPartition, float]:
    """Bytes/s that each partition grows by, read at its leader; partitions without a leader or an answer are left out.

    Retention that deletes a segment in between hides growth; such a partition reads as zero, never as negative.
    """
    leaders = {n: int(state.partitions.leader[state.index[n]]) for n in names if n in state.index}
    brokers = {b for b in leaders.values() if b in state.alive}
    began_s, first = clock.monotonic_s(), cluster.log_dirs(brokers)
    clock.sleep(seconds)
    second = cluster.log_dirs(brokers)
    passed_s = max(clock.monotonic_s() - began_s, 1e-3)
    before, after = _sizes(first, leaders), _sizes(second, leaders)
    return {n: max(0, after[n] - before[n]) / passed_s for n in leaders if n in before and n in after}


def _sizes(logs: Mapping[int, BrokerLogs], leaders: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    out = {}
    for name, leader in leaders.items():
        replicas: Collection[int] = (
            [r.size_bytes for r in logs[leader].replicas.get(name, ()) if not r.is_future] if leader in logs else []
        )
        if replicas:
            out[name] = max(replicas)
    return out

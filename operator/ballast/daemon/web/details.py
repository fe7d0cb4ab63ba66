"""What the page shows of one broker, one topic, or the partitions in one state, from the newest reading.

Bounded: the first rows and how many there are.  What a broker did not say is null.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, TopicPartition
from ballast.core.cluster.log_ends import LogEnds, holders, lag
from ballast.daemon.context.figures import RATES, THROTTLED_REPLICAS, Health
from ballast.daemon.web.answers import DaemonBroker, DaemonPartitions, DaemonTopic, Partition, Rate, Replica

ReadLogEnds = Callable[[str, Mapping[int, Collection[TopicPartition]]], LogEnds]
"""Of a topic: what the brokers that hold these replicas tell of them."""

ROWS: Final = 1000
STATES: Final = ("offline", "under-min-isr", "at-min-isr", "min-isr-unknown", "under-replicated", "reassigning")


def broker(state: ClusterState, name: str) -> DaemonBroker | None:
    """Host, rack, disks, throttles, and the replicas that it holds; the largest first."""
    found = state.broker(int(name)) if name.isdecimal() and len(name) < 10 else None
    if found is None:
        return None
    p = state.partitions
    flat = np.flatnonzero(p.replica == found.id)
    flat = flat[np.argsort(-p.size_bytes[flat], kind="stable")]
    row = np.searchsorted(p.start, flat[:ROWS], side="right") - 1
    configs = state.broker_configs.get(found.id, {})
    return DaemonBroker(
        id=found.id,
        rack=found.rack,
        host=found.host or None,
        port=found.port or None,
        alive=found.alive,
        reachable=found.alive and found.reachable,
        controller=found.controller,
        log_dirs=found.log_dirs,
        throttles=tuple(Rate(key=key, value=configs[key].value or "") for key in RATES if key in configs),
        total=len(flat),
        replicas=tuple(
            Replica(
                topic=state.topics[int(p.topic[r])].name,
                partition=int(p.number[r]),
                leader=int(p.leader[r]) == found.id,
                preferred=int(state.preferred[r]) == found.id,
                in_sync=bool(p.in_sync[i]),
                adding=bool(p.adding[i]),
                removing=bool(p.removing[i]),
                size_bytes=int(p.size_bytes[i]),
            )
            for i, r in zip(flat[:ROWS].tolist(), row.tolist(), strict=True)
        ),
    )


def topic(state: ClusterState, name: str, read: ReadLogEnds) -> DaemonTopic | None:
    """Its settings that matter here, and every partition with its lag; brokers that are known not to answer are not asked."""
    at = state.topic_index.get(name)
    if at is None:
        return None
    found, p = state.topics[at], state.partitions
    rows = np.flatnonzero(p.topic == at)
    listed = rows[:ROWS].tolist()
    silent = {b.id for b in state.brokers if not b.reachable}
    ends = read(found.name, {b: names for b, names in holders(state, listed).items() if b not in silent})
    mine = p.topic[np.repeat(np.arange(len(p)), np.diff(p.start))] == at
    sizes = p.size_bytes[mine]
    return DaemonTopic(
        topic=found.name,
        internal=found.internal,
        min_isr=found.min_isr,
        size_bytes=None if bool((sizes < 0).any()) else int(sizes.sum()),
        throttled=any(found.configs.get(k) and found.configs[k].value for k in THROTTLED_REPLICAS),
        total=len(rows),
        partitions=tuple(_partition(state, row, ends) for row in listed),
    )


def partitions(state: ClusterState, name: str) -> DaemonPartitions | None:
    """Those in one state, as the page counts them."""
    if name not in STATES:
        return None
    health = Health(state)
    marked = state.moving if name == "reassigning" else getattr(health, name.replace("-", "_"))
    rows = np.flatnonzero(marked)
    return DaemonPartitions(
        state=name, total=len(rows), partitions=tuple(_partition(state, r) for r in rows[:ROWS].tolist())
    )


def _partition(state: ClusterState, row: int, ends: LogEnds | None = None) -> Partition:
    p = state.partitions
    run = slice(int(p.start[row]), int(p.start[row + 1]))
    replica, size, name = p.replica[run], p.size_bytes[run], state.name(row)
    behind = p.lag[run].tolist() if ends is None else [lag(ends, int(p.leader[row]), b, name) for b in replica.tolist()]
    leader = size[replica == p.leader[row]]
    return Partition(
        topic=name.topic,
        partition=name.partition,
        leader=int(p.leader[row]),
        preferred_leader=int(state.preferred[row]),
        replicas=tuple(replica.tolist()),
        in_sync_replicas=tuple(replica[p.in_sync[run]].tolist()),
        adding=tuple(replica[p.adding[run]].tolist()),
        removing=tuple(replica[p.removing[run]].tolist()),
        size_bytes=int(leader[0]) if len(leader) else UNKNOWN,
        lag=None if min(behind, default=0) < 0 else max(behind, default=0),
    )

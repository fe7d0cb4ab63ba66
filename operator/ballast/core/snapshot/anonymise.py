"""A snapshot without a name in it: the shape of a cluster, for a bug report or a scenario.

Topics, racks, log dirs and the cluster id get new names that follow size, not spelling, so that not even the order of the
old ones survives.  What is kept: broker ids, replica lists, sizes, rates, throttle rates, versions.  Kafka's own internal
topics stay recognisable as internal, nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.snapshot.file import Snapshot


def anonymise_snapshot(snapshot: Snapshot) -> Snapshot:
    """The same cluster under made-up names."""
    state = snapshot.state
    topics, racks = _topic_names(state), _rack_names(state)
    brokers = tuple(_broker(b, racks) for b in state.brokers)
    renamed = tuple(_topic(t, topics[t.name]) for t in state.topics)
    rows = [_row(state, row, topics) for row in range(len(state.partitions))]
    made = build(
        "anonymous",
        brokers,
        renamed,
        rows,
        taken_at_ms=state.taken_at_ms,
        broker_configs={b: dict(values) for b, values in state.broker_configs.items()},
        cluster_configs=dict(state.cluster_configs),
        api=state.api,
        kafka_version=state.kafka_version,
    )
    # Rows are sorted by name, and the names have changed: every column follows.
    before = {name: row for row, name in enumerate((topics[n.topic], n.partition) for n in state.index)}
    order = np.array([before[tuple(n)] for n in made.index], np.int64)  # type: ignore[index]
    load = snapshot.loads
    p = state.partitions
    slots = [slot for row in order.tolist() for slot in range(int(p.start[row]), int(p.start[row + 1]))]
    made = replace(made, partitions=replace(made.partitions, offline=p.offline[np.array(slots, np.int64)].copy()))
    return Snapshot(
        made,
        replace(
            load,
            size_bytes=load.size_bytes[order],
            bytes_in_per_s=load.bytes_in_per_s[order],
            bytes_out_per_s=load.bytes_out_per_s[order],
            bytes_read_per_s=load.bytes_read_per_s[order] if len(load.bytes_read_per_s) else load.bytes_read_per_s,
            bytes_written_per_s=load.bytes_written_per_s[order]
            if len(load.bytes_written_per_s)
            else load.bytes_written_per_s,
            cpu_leader=load.cpu_leader[order],
            cpu_follower=load.cpu_follower[order],
            # Sentences may quote names; what is known is told by the figures themselves.
            assumptions=("The names in this snapshot are made up.",),
        ),
        anonymised=True,
    )


def _topic_names(state: ClusterState) -> dict[str, str]:
    """Old name to new, the largest first."""
    p = state.partitions
    at = np.repeat(p.topic, np.diff(p.start))
    size = np.bincount(at, weights=np.maximum(p.size_bytes, 0), minlength=len(state.topics))
    count = np.bincount(p.topic, minlength=len(state.topics))
    order = np.lexsort((-count, -size))
    width = len(str(len(order)))
    return {
        state.topics[t].name: f"{'__' if state.topics[t].internal else ''}topic-{n:0{width}}"
        for n, t in enumerate(order.tolist(), start=1)
    }


def _rack_names(state: ClusterState) -> dict[str, str]:
    """Old name to new, in the order of the brokers."""
    racks: dict[str, str] = {}
    for b in state.brokers:
        if b.rack is not None:
            racks.setdefault(b.rack, f"rack-{len(racks) + 1}")
    return racks


def _broker(b: Broker, racks: Mapping[str, str]) -> Broker:
    dirs = tuple(
        LogDir(f"/data/{i}", d.total_bytes, d.usable_bytes, d.cordoned, None if d.error is None else "failed")
        for i, d in enumerate(b.log_dirs)
    )
    return replace(b, rack=None if b.rack is None else racks[b.rack], host="", port=0, log_dirs=dirs)


def _topic(t: Topic, name: str) -> Topic:
    return replace(t, name=name, topic_id=None, configs=dict(t.configs))


def _row(state: ClusterState, row: int, topics: Mapping[str, str]) -> PartitionRow:
    p = state.partitions
    run = slice(int(p.start[row]), int(p.start[row + 1]))
    name = state.name(row)
    return PartitionRow(
        topics[name.topic],
        name.partition,
        int(p.leader[row]),
        state.replicas(row),
        state.isr(row),
        adding=tuple(p.replica[run][p.adding[run]].tolist()),
        removing=tuple(p.replica[run][p.removing[run]].tolist()),
        sizes=tuple(p.size_bytes[run].tolist()),
        log_dirs=tuple(p.log_dir[run].tolist()),
    )

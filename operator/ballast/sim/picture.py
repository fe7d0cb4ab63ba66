"""A simulated world made from a reading of a real cluster.

Only the partitions in focus become simulated partitions; what the others hold stands in ``SimBroker.other_bytes``, beside
whatever else lies on the disks, so that a plan of a few hundred moves on a cluster of a hundred thousand partitions is played
in seconds.  A broker that tells no disk (it is down) has as much as the largest that tells one; where none tells, disks never
fill.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ballast.core.cluster import NO_LEADER, Broker, ClusterState, ConfigValue, Ints
from ballast.core.planner import Loads
from ballast.core.planner.loads import BYTES_IN
from ballast.sim.clock import SimClock
from ballast.sim.model import BrokerHealth, Copy, Physics, SimBroker, SimPartition
from ballast.sim.world import SimWorld

BOUNDLESS = float(1 << 60)
"""Size of a log dir of which nothing is known."""


def world_of(
    state: ClusterState,
    loads: Loads,
    clock: SimClock,
    *,
    nic_bytes_per_s: float,
    physics: Physics | None = None,
    focus: Collection[int] | None = None,
    topic_ids: Mapping[str, str] | None = None,
) -> SimWorld:
    """The cluster as it was read, standing still at the clock's present moment; ``focus`` holds rows, None is all of them.

    ``topic_ids`` are for topics whose id was not read, as in a snapshot file.
    """
    rows = range(len(state.partitions)) if focus is None else sorted(focus)
    others = _other_bytes(state, loads, rows)
    unknown = max((float(b.capacity_bytes) for b in state.brokers if b.capacity_bytes > 0), default=BOUNDLESS)
    brokers = [_broker(state, b, others[b.id], nic_bytes_per_s, unknown) for b in state.brokers]
    world = SimWorld(clock, brokers, physics=physics)
    world.cluster_configs.update(_texts(state.cluster_configs))
    by_topic: dict[int, list[SimPartition]] = {}
    for row in rows:
        by_topic.setdefault(int(state.partitions.topic[row]), []).append(_partition(state, loads, row))
    for at, partitions in by_topic.items():
        topic = state.topics[at]
        configs = _texts(topic.configs)
        if topic.min_isr > 0:
            configs.setdefault("min.insync.replicas", str(topic.min_isr))
        topic_id = topic.topic_id or (topic_ids or {}).get(topic.name)
        world.adopt(topic.name, partitions, configs=configs, topic_id=topic_id)
    return world


def _texts(values: object) -> dict[str, str]:
    assert isinstance(values, dict)
    return {k: v.value for k, v in values.items() if isinstance(v, ConfigValue) and v.value is not None}


def _broker(
    state: ClusterState, b: Broker, others: tuple[float, ...], nic_bytes_per_s: float, unknown_bytes: float
) -> SimBroker:
    own = state.broker_configs.get(b.id, {})
    return SimBroker(
        id=b.id,
        rack=b.rack,
        nic_bytes_per_s=nic_bytes_per_s,
        dir_bytes=tuple(float(d.total_bytes) if d.total_bytes > 0 else BOUNDLESS for d in b.log_dirs)
        or (unknown_bytes,),
        dir_paths=tuple(d.path for d in b.log_dirs),
        other_bytes=others,
        cordoned=frozenset(i for i, d in enumerate(b.log_dirs) if d.cordoned),
        configs={k: v.value for k, v in own.items() if v.value is not None and v.source == "DYNAMIC_BROKER_CONFIG"},
        static_configs={k: v.value for k, v in own.items() if v.value is not None and v.source.startswith("STATIC")},
        health=BrokerHealth.UP if b.alive else BrokerHealth.DOWN,
        fenced=not b.alive,
        silent_since_s=None if b.alive else 0.0,
    )


def _other_bytes(state: ClusterState, loads: Loads, rows: Sequence[int]) -> dict[int, tuple[float, ...]]:
    """Per broker and log dir: what lies there beside the partitions in focus."""
    p = state.partitions
    row = np.repeat(np.arange(len(p)), np.diff(p.start))
    size = np.where(p.size_bytes >= 0, p.size_bytes, loads.size_bytes[row])
    place = np.maximum(p.log_dir, 0)
    simulated = np.zeros(len(p), np.bool_)
    simulated[np.array(rows, np.int64)] = True
    out = {}
    for b in state.brokers:
        mine = p.replica == b.id
        dirs = max(len(b.log_dirs), 1)
        all_of_it = _by_dir(size, place, mine, dirs)
        in_focus = _by_dir(size, place, mine & simulated[row], dirs)
        used = [
            float(d.total_bytes - d.usable_bytes) if d.total_bytes > 0 and d.usable_bytes >= 0 else all_of_it[i]
            for i, d in enumerate(b.log_dirs)
        ] or all_of_it
        out[b.id] = tuple(max(u - f, a - f, 0.0) for u, a, f in zip(used, all_of_it, in_focus, strict=True))
    return out


def _by_dir(size: Ints, place: object, which: object, dirs: int) -> list[float]:
    where = np.minimum(np.asarray(place)[np.asarray(which)], dirs - 1)
    return [float(v) for v in np.bincount(where, weights=size[np.asarray(which)], minlength=dirs)]


def _partition(state: ClusterState, loads: Loads, row: int) -> SimPartition:
    p = state.partitions
    run = slice(int(p.start[row]), int(p.start[row + 1]))
    name = state.name(row)
    end = float(loads.size_bytes[row])
    replicas, isr = state.replicas(row), state.isr(row)
    copies = {
        b: Copy(log_dir=max(d, 0), end_bytes=end if b in isr else float(max(s, 0)))
        for b, d, s in zip(replicas, p.log_dir[run].tolist(), p.size_bytes[run].tolist(), strict=True)
    }
    return SimPartition(
        topic=name.topic,
        number=name.partition,
        replicas=list(replicas),
        isr=list(isr),
        leader=max(int(p.leader[row]), NO_LEADER),
        copies=copies,
        adding=p.replica[run][p.adding[run]].tolist(),
        removing=p.replica[run][p.removing[run]].tolist(),
        end_bytes=end,
        acked_bytes=end,
        inbound_bytes_per_s=float(loads.bytes_in_per_s[row]) if BYTES_IN in loads.known else 0.0,
    )

"""Makes mixed clusters: two or three generations of hardware, uneven racks, replication factors side by side, giants.

Thousands of partitions may be empty, brokers nearly full, down or new.  The same seed gives the same cluster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from bench.forms import Case

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.planner.loads import CPU_UNIT, Loads
from ballast.core.planner.policy import Capacity

Floats = npt.NDArray[np.float64]
GENERATIONS = ((1.0, 1.0), (2.0, 1.5), (4.0, 2.0))
"""Disk, and network and CPU, beside the oldest generation."""


def mixed(seed: int, *, brokers: int = 12, partitions: int = 400) -> Case:
    """A cluster and its loads."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(2, 4)
    kind = rng.integers(0, kinds, brokers)
    disk = np.array([GENERATIONS[k][0] for k in kind])
    speed = np.array([GENERATIONS[k][1] for k in kind])
    racks = int(rng.integers(3, 6))
    rack = np.concatenate((np.arange(racks), rng.integers(0, racks, brokers - racks)))
    down, new = int(rng.random() < 0.25), int(rng.random() < 0.25)
    factor = rng.choice([1, 2, 3, 3, 3, 3], partitions)
    size, rate, out = _figures(rng, partitions)
    lists = _lists(rng, disk, rack, factor, new)
    per_disk = float((size * factor).sum()) / disk[down:].sum() / rng.uniform(0.35, 0.7)
    members = tuple(
        Broker(
            b,
            rack=f"z{rack[b]}",
            alive=b >= down,
            log_dirs=(LogDir("/d", int(disk[b] * per_disk)),),
            log_dirs_known=True,
        )
        for b in range(brokers)
    )
    topics = max(partitions // 20, 1)
    rows = []
    for p, replicas in enumerate(lists):
        alive = tuple(b for b in replicas if b >= down)
        leader = alive[0] if alive else -1
        rows.append(
            PartitionRow(
                f"t{p % topics:03d}", p // topics, leader, replicas, alive, sizes=(int(size[p]),) * len(replicas)
            )
        )
    state = build(f"mixed-{seed}", members, tuple(Topic(f"t{t:03d}") for t in range(topics)), rows)
    return Case(f"mixed-{seed}", state, _loads(state, lists, size, rate, out), _capacities(speed), "mixed")


def _figures(rng: np.random.Generator, partitions: int) -> tuple[Floats, Floats, Floats]:
    """Bytes, bytes in and bytes out of each partition."""
    rate = rng.lognormal(0, 1.0, partitions)
    size = rate * rng.lognormal(0, 0.6, partitions)
    giants = rng.random(partitions) < 0.005
    size[giants] *= 20
    empty = rng.random(partitions) < rng.choice([0.0, 0.3])
    size[empty], rate[empty] = 0, 0
    out = rate * rng.choice([0.5, 1.0, 3.0], partitions)
    return size * 2e9, rate * 1e5, out * 1e5


def _lists(
    rng: np.random.Generator, disk: Floats, rack: npt.NDArray[np.int64], factor: npt.NDArray[np.int64], new: int
) -> list[tuple[int, ...]]:
    """Drawn with drift, one broker a rack."""
    pull = np.log(disk) + rng.normal(0, 0.5, len(disk))
    pull[len(disk) - new :] = -np.inf
    out = []
    for count in factor.tolist():
        chosen: list[int] = []
        for b in np.argsort(-(pull + rng.gumbel(size=len(disk)))).tolist():
            if len(chosen) < count and np.isfinite(pull[b]) and rack[b] not in rack[chosen]:
                chosen.append(b)
        out.append(tuple(chosen))
    return out


def _loads(state: ClusterState, lists: list[tuple[int, ...]], size: Floats, rate: Floats, out: Floats) -> Loads:
    """In the order of the state's rows."""
    topics = len(state.topics)
    at = [int(n.partition) * topics + int(n.topic[1:]) for n in (state.name(row) for row in range(len(lists)))]
    follow = 0.1 * rate[at]
    sent = out[at] + rate[at] * np.array([len(lists[p]) - 1 for p in at])
    figures: dict[str, Any] = {
        "size_bytes": size[at],
        "bytes_in_per_s": rate[at],
        "bytes_out_per_s": sent,
        "cpu_leader": (0.5 * rate[at] + 0.2 * sent) * CPU_UNIT / 1e5,
        "cpu_follower": follow * CPU_UNIT / 1e5,
    }
    return Loads(**{name: figure.astype(np.int64) for name, figure in figures.items()})


def _capacities(speed: Floats) -> dict[int, Capacity]:
    return {
        b: Capacity(bytes_in_per_s=int(s * 1e8), bytes_out_per_s=int(s * 1e8), cpu=float(s))
        for b, s in enumerate(speed.tolist())
    }

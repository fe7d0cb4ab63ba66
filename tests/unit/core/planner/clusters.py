"""Small clusters of every kind, for property tests."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.snapshot import file as snapshot_file

SNAPSHOTS = Path(__file__).with_name("snapshots")


def snapshot(name: str) -> snapshot_file.Snapshot:
    """A cluster from the folder beside this file, on which a plan was once wrong."""
    path = SNAPSHOTS / f"{name}.json"
    return snapshot_file.loads(path.read_text(encoding="utf-8"), source=path.name)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterState:
    """Up to seven brokers, some down, in up to four racks (or none), with lists of one to four replicas."""
    count = draw(st.integers(2, 7))
    racked = draw(st.booleans())
    capacity = draw(st.sampled_from([-1, 10_000]))
    down = draw(st.sets(st.integers(1, count), max_size=max(count - 2, 0) // 2))
    brokers = tuple(
        Broker(
            i,
            rack=f"r{draw(st.integers(0, 3))}" if racked else None,
            alive=i not in down,
            log_dirs=(LogDir("/d", capacity),),
            log_dirs_known=True,
        )
        for i in range(1, count + 1)
    )
    rows = []
    names = draw(st.integers(1, 3))
    for t in range(names):
        factor = draw(st.integers(1, min(count, 4)))
        for number in range(draw(st.integers(1, 6))):
            replicas = tuple(draw(st.permutations(range(1, count + 1)))[:factor])
            alive = tuple(b for b in replicas if b not in down)
            size = draw(st.sampled_from([0, 1, 7, 30, 100, 400]))
            rows.append(
                PartitionRow(f"t{t}", number, alive[0] if alive else -1, replicas, alive, sizes=(size,) * factor)
            )
    return build("c", brokers, tuple(Topic(f"t{t}") for t in range(names)), rows)


def cluster(*lists: tuple[int, ...], brokers: int, sizes: tuple[int, ...] = (), racks: int = 0) -> ClusterState:
    """One topic whose partitions have these replica lists."""
    members = tuple(
        Broker(i, rack=f"r{i % racks}" if racks else None, log_dirs_known=True) for i in range(1, brokers + 1)
    )
    rows = [PartitionRow("t", n, r[0], r, r, sizes=(sizes[n] if sizes else 100,) * len(r)) for n, r in enumerate(lists)]
    return build("c", members, (Topic("t"),), rows)

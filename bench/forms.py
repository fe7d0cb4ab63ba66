"""Clusters on paper: reads the two table forms that the benchmarks use into a ``ClusterState`` and its loads.

The *resource* form is a folder with ``brokers.csv`` (broker, rack, state, disk_mb, nw_in_kbs, nw_out_kbs, cpu_pct) and
``partitions.csv`` (topic, partition, replicas, size_mb, bytes_in_kbs, consumer_out_kbs, repl_out_kbs, cpu_leader_pct,
cpu_follower_pct).  The *disk* form is ``NAME.brokers.csv.gz`` (broker_id, rack, capacity_bytes, is_new) and
``NAME.partitions.csv.gz`` (topic, partition, size_bytes, bytes_in_per_s, bytes_out_per_s, replicas).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, LogDir, Partitions, Topic, TopicPartition
from ballast.core.planner.loads import BYTES_IN, BYTES_OUT, CPU_UNIT, DISK, Loads
from ballast.core.planner.policy import Capacity

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster, its loads and what its brokers can carry."""

    name: str
    state: ClusterState
    loads: Loads
    capacities: dict[int, Capacity]
    form: str
    """``resource`` or ``disk``."""

    def moved(self, new: Mapping[tuple[str, int], tuple[int, ...]]) -> Case:
        """The cluster after these replica lists have come true."""
        p = self.state.partitions
        replica = p.replica.copy()
        for (topic, number), members in new.items():
            row = self.state.index[TopicPartition(topic, number)]
            replica[p.start[row] : p.start[row + 1]] = members
        alive = np.isin(replica, sorted(self.state.alive))
        columns = replace(p, replica=replica, in_sync=alive, leader=replica[p.start[:-1]].copy())
        return replace(self, state=replace(self.state, partitions=columns))


def read(path: Path) -> Case:
    """Read either form: a folder, or the common prefix of the two files of the disk form."""
    if (path / "partitions.csv").is_file():
        return _resource(path.name, pcsv.read_csv(path / "brokers.csv"), _partitions(path / "partitions.csv"))
    prefix = path
    if path.is_dir():
        found = sorted(path.glob("*.partitions.csv.gz"))
        if len(found) != 1:
            raise SystemExit(f"{path} holds {len(found)} clusters; give one as {path}/NAME")
        prefix = path / found[0].name.removesuffix(".partitions.csv.gz")
    if not prefix.with_name(prefix.name + ".partitions.csv.gz").is_file():
        raise SystemExit(f"{path} is no cluster: it has neither partitions.csv nor NAME.partitions.csv.gz")
    return _disk(prefix)


def written(name: str, brokers: list[str], partitions: list[str]) -> Case:
    """A cluster from the rows of the two files of the resource form."""
    members, rows = (pa.BufferReader("\n".join(lines).encode()) for lines in (brokers, partitions))
    return _resource(name, pcsv.read_csv(members), _partitions(rows))


def _resource(name: str, brokers_table: pa.Table, table: pa.Table) -> Case:
    brokers = brokers_table.to_pylist()
    members = tuple(
        Broker(
            int(b["broker"]),
            rack=str(b["rack"]),
            alive=b["state"] != "DEAD",
            log_dirs=(LogDir("/data", round(b["disk_mb"] * 1e6)),),
            log_dirs_known=b["state"] != "DEAD",
        )
        for b in sorted(brokers, key=lambda b: int(b["broker"]))
    )
    loads = Loads(
        size_bytes=_scaled(table, "size_mb", 1e6),
        bytes_in_per_s=_scaled(table, "bytes_in_kbs", 1e3),
        bytes_out_per_s=_scaled(table, "consumer_out_kbs", 1e3) + _scaled(table, "repl_out_kbs", 1e3),
        cpu_leader=_scaled(table, "cpu_leader_pct", CPU_UNIT),
        cpu_follower=_scaled(table, "cpu_follower_pct", CPU_UNIT),
    )
    capacities = {
        int(b["broker"]): Capacity(
            disk_bytes=round(b["disk_mb"] * 1e6),
            bytes_in_per_s=round(b["nw_in_kbs"] * 1e3),
            bytes_out_per_s=round(b["nw_out_kbs"] * 1e3),
            cpu=float(b["cpu_pct"]),
        )
        for b in brokers
    }
    state = _state(name, members, table, ";", loads.size_bytes)
    return Case(name, state, _in_row_order(table, loads), capacities, "resource")


def _disk(prefix: Path) -> Case:
    brokers = pcsv.read_csv(f"{prefix}.brokers.csv.gz").to_pylist()
    table = _partitions(Path(f"{prefix}.partitions.csv.gz"))
    members = tuple(
        Broker(
            int(b["broker_id"]), rack=b["rack"], log_dirs=(LogDir("/data", b["capacity_bytes"]),), log_dirs_known=True
        )
        for b in sorted(brokers, key=lambda b: int(b["broker_id"]))
    )
    zero = np.zeros(table.num_rows, np.int64)
    rate = _scaled(table, "bytes_in_per_s", 1)
    loads = Loads(
        size_bytes=_scaled(table, "size_bytes", 1),
        bytes_in_per_s=rate,
        bytes_out_per_s=_scaled(table, "bytes_out_per_s", 1) + 2 * rate,
        cpu_leader=zero,
        cpu_follower=zero,
        known=frozenset({DISK, BYTES_IN, BYTES_OUT}),
    )
    capacities = {int(b["broker_id"]): Capacity(disk_bytes=int(b["capacity_bytes"])) for b in brokers}
    state = _state(prefix.name, members, table, " ", loads.size_bytes)
    return Case(prefix.name, state, _in_row_order(table, loads), capacities, "disk")


def _partitions(source: Any) -> pa.Table:
    options = pcsv.ConvertOptions(column_types={"topic": pa.string(), "replicas": pa.string()})
    return pcsv.read_csv(source, convert_options=options)


def _scaled(table: pa.Table, column: str, factor: float) -> npt.NDArray[np.int64]:
    values: Floats = table[column].to_numpy().astype(np.float64)
    return np.rint(values * factor).astype(np.int64)


def _order(table: pa.Table) -> npt.NDArray[np.int64]:
    """The permutation that puts rows in (topic, partition) order, as a state has them."""
    codes = table["topic"].combine_chunks().dictionary_encode()
    names = np.array(codes.dictionary.to_pylist(), dtype=object)
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(names)] = np.arange(len(names))
    return np.lexsort((table["partition"].to_numpy(), rank[codes.indices.to_numpy()]))


def _in_row_order(table: pa.Table, loads: Loads) -> Loads:
    order = _order(table)
    return Loads(
        size_bytes=loads.size_bytes[order],
        bytes_in_per_s=loads.bytes_in_per_s[order],
        bytes_out_per_s=loads.bytes_out_per_s[order],
        cpu_leader=loads.cpu_leader[order],
        cpu_follower=loads.cpu_follower[order],
        known=loads.known,
    )


def _state(
    name: str, brokers: tuple[Broker, ...], table: pa.Table, separator: str, sizes: npt.NDArray[np.int64]
) -> ClusterState:
    order = _order(table)
    taken = table.take(pa.array(order))
    codes = taken["topic"].combine_chunks().dictionary_encode()
    topics = tuple(Topic(t) for t in codes.dictionary.to_pylist())
    lists = pc.split_pattern(taken["replicas"].combine_chunks(), separator)
    replica = pc.cast(lists.flatten(), pa.int32()).to_numpy()
    start = lists.offsets.to_numpy().astype(np.int64)
    counts = np.diff(start)
    flat = np.zeros(len(replica), np.bool_)
    alive = np.isin(replica, [b.id for b in brokers if b.alive])
    columns = Partitions(
        topic=codes.indices.to_numpy().astype(np.int32),
        number=taken["partition"].to_numpy().astype(np.int32),
        leader=replica[start[:-1]].copy(),
        start=start,
        replica=replica.copy(),
        in_sync=alive,
        adding=flat.copy(),
        removing=flat.copy(),
        size_bytes=np.repeat(sizes[order], counts),
        lag=np.full(len(replica), UNKNOWN, np.int64),
        log_dir=np.zeros(len(replica), np.int32),
        future_size_bytes=np.full(len(replica), UNKNOWN, np.int64),
    )
    return ClusterState(name, 0, brokers, topics, columns)

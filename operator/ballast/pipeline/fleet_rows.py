"""A cluster as one row of a table, and back: what fleets are collected into and planned from."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ballast.adapters.samples.arrow_schema import array_with_nulls, arrow_schema, typed_array
from ballast.core.cluster import NO_LEADERSHIP_RECORD, UNKNOWN, Broker, ClusterState, Ints, LogDir, Partitions, Topic
from ballast.core.samples import Table
from ballast.core.what_if import Member, Traffic, plan_scenario
from ballast.pipeline.schemas import FLEET_SNAPSHOT


def moment(ms: int) -> datetime:
    """Milliseconds since the epoch as the tables keep them."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def to_batch(member: Member) -> Any:
    """The row of a cluster, as a record batch of ``FLEET_SNAPSHOT``."""
    s, p, t = member.state, member.state.partitions, member.traffic

    def one(values: Any) -> Any:
        flat = values if isinstance(values, pa.Array) else pa.array(values)
        return lists(np.array([0, len(flat)]), flat)

    def figures(values: Any) -> Any:
        return pa.nulls(1, pa.list_(pa.int64())) if values is None else one(values)

    brokers = [
        {
            "id": b.id,
            "rack": b.rack,
            "alive": b.alive,
            "controller": b.controller,
            "dirs": [
                {
                    "path": d.path,
                    "total_bytes": None if d.total_bytes == UNKNOWN else d.total_bytes,
                    "usable_bytes": None if d.usable_bytes == UNKNOWN else d.usable_bytes,
                    "cordoned": d.cordoned,
                    "error": d.error,
                }
                for d in b.log_dirs
            ],
        }
        for b in s.brokers
    ]
    min_isr = np.array([t_.min_isr for t_ in s.topics], np.int32)
    return record_batch(
        FLEET_SNAPSHOT,
        {
            "cluster": [s.cluster_id],
            "name": [member.name],
            "taken_at": [moment(s.taken_at_ms)],
            "kafka_version": pa.array([s.kafka_version], pa.string()),
            "topic": one(pa.array([t_.name for t_ in s.topics], pa.string())),
            "topic_id": one(pa.array([t_.topic_id or "" for t_ in s.topics], pa.string())),
            "min_isr": one(array_with_nulls(min_isr, min_isr != UNKNOWN)),
            "deleting": one(np.array([t_.deleting for t_ in s.topics], np.bool_)),
            "partition_topic": one(p.topic),
            "partition": one(p.number),
            "leader": one(array_with_nulls(p.leader, p.leader != NO_LEADERSHIP_RECORD)),
            "bytes_in": figures(None if t is None else t.bytes_in),
            "bytes_out": figures(None if t is None else t.bytes_out),
            "growth": figures(None if t is None else _growth(t.growth)),
            "replica_count": one(np.diff(p.start).astype(np.int32)),
            "replica": one(p.replica),
            "in_sync": one(p.in_sync),
            "adding": one(p.adding),
            "removing": one(p.removing),
            "offline": one(p.offline),
            "size_bytes": one(array_with_nulls(p.size_bytes, p.size_bytes != UNKNOWN)),
            "log_dir": one(p.log_dir),
            "brokers": pa.array([brokers], arrow_schema(FLEET_SNAPSHOT.columns).field("brokers").type),
        },
    )


def _growth(values: npt.NDArray[np.float64]) -> Any:
    return pa.array(np.rint(np.nan_to_num(values)).astype(np.int64), mask=np.isnan(values))


def from_row(batch: Any, row: int) -> Member:
    """The cluster behind a row; everything that plans depend on is as it was."""

    def column(name: str) -> Any:
        return batch.column(batch.schema.get_field_index(name))[row]

    def numbers(name: str, kind: type[np.generic], unknown: int = UNKNOWN) -> npt.NDArray[Any]:
        found = column(name).values
        flat: npt.NDArray[Any] = (found.fill_null(unknown) if found.null_count else found).to_numpy(
            zero_copy_only=False
        )
        return np.array(flat, kind)

    counts = numbers("replica_count", np.int64)
    replicas = int(counts.sum())
    names, ids = column("topic").as_py(), column("topic_id").as_py()
    floors, doomed = numbers("min_isr", np.int32).tolist(), column("deleting").as_py()
    state = ClusterState(
        cluster_id=column("cluster").as_py(),
        taken_at_ms=column("taken_at").value // 1000,
        brokers=brokers_of(column("brokers").as_py()),
        topics=tuple(
            Topic(name, topic_id=topic_id or None, deleting=gone, min_isr=floor)
            for name, topic_id, floor, gone in zip(names, ids, floors, doomed, strict=True)
        ),
        partitions=Partitions(
            topic=numbers("partition_topic", np.int32),
            number=numbers("partition", np.int32),
            leader=numbers("leader", np.int32, NO_LEADERSHIP_RECORD),
            start=np.concatenate(([0], np.cumsum(counts))),
            replica=numbers("replica", np.int32),
            in_sync=numbers("in_sync", np.bool_),
            adding=numbers("adding", np.bool_),
            removing=numbers("removing", np.bool_),
            offline=numbers("offline", np.bool_),
            size_bytes=numbers("size_bytes", np.int64),
            lag=np.full(replicas, UNKNOWN, np.int64),
            log_dir=numbers("log_dir", np.int32),
            future_size_bytes=np.full(replicas, UNKNOWN, np.int64),
        ),
        kafka_version=column("kafka_version").as_py(),
    )
    traffic = None
    if column("bytes_in").is_valid:
        growth = column("growth").values.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
        traffic = Traffic(numbers("bytes_in", np.int64), numbers("bytes_out", np.int64), np.array(growth, np.float64))
    return Member(column("name").as_py(), state, traffic)


def brokers_of(found: Iterable[dict[str, Any]]) -> tuple[Broker, ...]:
    """The brokers of a row."""
    return tuple(_broker(b) for b in found)


def _broker(found: dict[str, Any]) -> Broker:
    def figure(value: int | None) -> int:
        return UNKNOWN if value is None else value

    dirs = tuple(
        LogDir(d["path"], figure(d["total_bytes"]), figure(d["usable_bytes"]), cordoned=d["cordoned"], error=d["error"])
        for d in found["dirs"]
    )
    return Broker(
        found["id"],
        rack=found["rack"],
        alive=found["alive"],
        controller=found["controller"],
        log_dirs=dirs,
        log_dirs_known=bool(dirs),
    )


def plan_row(member: Member, scenario: str, subject: str) -> dict[str, Any]:
    """A row of ``FLEET_PLAN``, but for the seconds that it took."""
    row = plan_scenario(member, scenario, subject)
    return row | {"taken_at": moment(row.pop("taken_at_ms"))}


def lists(start: Ints, flat: Any) -> Any:
    """Many lists from one run of values."""
    values = flat if isinstance(flat, pa.Array) else pa.array(flat)
    return pa.ListArray.from_arrays(pa.array(start, pa.int32()), values)


def record_batch(table: Table, columns: dict[str, Any]) -> Any:
    """A record batch in the table's column order and types."""
    schema = arrow_schema(table.columns)
    return pa.RecordBatch.from_arrays([typed_array(columns[field.name], field) for field in schema], schema=schema)

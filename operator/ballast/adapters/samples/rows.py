"""A sample as rows of its tables: Arrow columns, no Python object for a partition."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from ballast.adapters.samples.arrow_schema import array_with_nulls, arrow_schema, typed_array
from ballast.core.cluster import NO_LEADERSHIP_RECORD, UNKNOWN, Broker, ClusterState
from ballast.core.cluster.external_load import BrokerFigures, consumer_bytes_per_s
from ballast.core.samples import BROKERS, LOG_DIRS, SAMPLES, MinuteSample, Table
from ballast.core.samples.rates import Measured


def rows_of(sample: MinuteSample, measured: Measured) -> dict[str, Any]:
    """The rows of a minute by table."""
    taken = datetime.fromtimestamp(sample.taken_at_ms / 1000, UTC)
    shared = {
        "cluster": sample.cluster,
        "hour": taken.replace(minute=0, second=0, microsecond=0),
        "time": taken,
    }
    brokers = sample.state.brokers
    return {
        SAMPLES.name: _table(SAMPLES, shared, _partitions(sample, measured), len(sample.state.partitions)),
        BROKERS.name: _table(BROKERS, shared, _brokers(sample), len(brokers)),
        LOG_DIRS.name: _table(LOG_DIRS, shared, _log_dirs(brokers), sum(len(b.log_dirs) for b in brokers)),
    }


def _table(table: Table, shared: dict[str, Any], columns: dict[str, Any], rows: int) -> Any:
    schema = arrow_schema(table.columns)
    arrays = [
        pa.repeat(pa.scalar(shared[field.name], field.type), rows)
        if field.name in shared
        else typed_array(columns[field.name], field)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _partitions(sample: MinuteSample, measured: Measured) -> dict[str, Any]:
    s, p, rates = sample, sample.state.partitions, measured.rates
    topic = pa.array(p.topic, pa.int32())
    return {
        "topic": pa.array([name for name, _ in s.topics], pa.string()).take(topic),
        "topic_id": pa.array([topic_id for _, topic_id in s.topics], pa.string()).take(topic),
        "partition": p.number,
        "leader": array_with_nulls(p.leader, p.leader != NO_LEADERSHIP_RECORD),
        "leader_before": array_with_nulls(measured.leader_before, measured.leader_before > NO_LEADERSHIP_RECORD),
        "preferred_leader": _preferred_leaders(s.state),
        "deleting": s.deleting,
        "earliest_offset": array_with_nulls(s.earliest, s.earliest >= 0),
        "end_offset": array_with_nulls(s.high_watermark, s.high_watermark >= 0),
        "seconds": _finite(rates.seconds),
        "bytes_in": _finite(rates.bytes_per_s),
        "records_in": _finite(rates.records_per_s),
        "bytes_out": _bytes_out(s),
        "replicas": _lists(s.state, p.replica),
        "in_sync": _lists(s.state, p.in_sync),
        "size_bytes": _lists(s.state, array_with_nulls(p.size_bytes, p.size_bytes >= 0)),
        "lag_records": _lists(s.state, array_with_nulls(p.lag, p.lag >= 0)),
        "log_dir": _lists(s.state, _paths(s.state)),
    }


def _finite(values: Any) -> Any:
    return pa.array(values.astype(np.float32), mask=np.isnan(values))


def _lists(state: ClusterState, values: Any) -> Any:
    """One list for each partition."""
    flat = values if isinstance(values, pa.Array) else pa.array(values)
    return pa.ListArray.from_arrays(pa.array(state.partitions.start, pa.int32()), flat)


def _preferred_leaders(state: ClusterState) -> Any:
    """The first replica that is not on its way out."""
    p = state.partitions
    owner = np.repeat(np.arange(len(p)), np.diff(p.start))
    preferred = np.full(len(p), UNKNOWN, np.int64)
    stays = ~p.removing
    # Written back to front so that the first replica that stays is the one that remains.
    preferred[owner[stays][::-1]] = p.replica[stays][::-1]
    return array_with_nulls(preferred, preferred != UNKNOWN)


def _paths(state: ClusterState) -> Any:
    """The path of each replica's log directory; null where it is not known."""
    p = state.partitions
    paths = [d.path for b in state.brokers for d in b.log_dirs]
    held = np.array([len(b.log_dirs) for b in state.brokers], np.int64)
    first = np.cumsum(held) - held
    ids = np.array([b.id for b in state.brokers], np.int64)
    slot = np.minimum(np.searchsorted(ids, p.replica), max(len(ids) - 1, 0))
    if not len(ids) or not paths:
        return pa.nulls(len(p.replica), pa.string())
    known = (ids[slot] == p.replica) & (p.log_dir >= 0) & (p.log_dir < held[slot])
    return pa.array(paths, pa.string()).take(array_with_nulls(np.where(known, first[slot] + p.log_dir, 0), known))


def _bytes_out(s: MinuteSample) -> Any:
    """What consumers read of each partition; null where no metrics were at hand."""
    p = s.state.partitions
    if s.external is None or not s.external.topic_bytes_out:
        return pa.nulls(len(p), pa.float32())
    owner = np.repeat(np.arange(len(p)), np.diff(p.start))
    led = p.replica == p.leader[owner]
    size = np.zeros(len(p), np.int64)
    size[owner[led]] = p.size_bytes[led]
    names = [name for name, _ in s.topics]
    rates = consumer_bytes_per_s(s.external, names, topic=p.topic, leader=p.leader, led_size=size)
    return array_with_nulls(rates, rates >= 0)


def _brokers(s: MinuteSample) -> dict[str, Any]:
    rates = s.external.brokers if s.external else {}
    figures = [rates.get(b.id) or BrokerFigures() for b in s.state.brokers]
    return {
        "broker": [b.id for b in s.state.brokers],
        **{name: [getattr(b, name) for b in s.state.brokers] for name in ("rack", "alive", "controller")},
        **{name: [getattr(f, name) for f in figures] for name in ("bytes_in", "bytes_out", "requests", "cpu")},
    }


def _log_dirs(brokers: tuple[Broker, ...]) -> dict[str, Any]:
    found = [(b.id, d) for b in brokers for d in b.log_dirs]
    return {
        "broker": [broker for broker, _ in found],
        "path": [d.path for _, d in found],
        "total_bytes": [d.total_bytes if d.total_bytes >= 0 else None for _, d in found],
        "usable_bytes": [d.usable_bytes if d.usable_bytes >= 0 else None for _, d in found],
        "cordoned": [d.cordoned for _, d in found],
        "error": [d.error for _, d in found],
    }

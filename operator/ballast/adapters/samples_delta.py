"""Writes minute samples to a Delta table with delta-rs: no JVM, one commit a minute, each minute once.

The commit carries a Delta transaction ``sampler/<cluster>/<day>`` whose version is the minute of the day.  A writer that was
killed after its commit finds the minute recorded and skips it; killed before, it leaves files that no reader sees.  Two
writers of one cluster (a pod and a person's laptop) cannot both record a minute: the later commit conflicts and counts as
recorded.  The day in the name is there so that a clock that once jumped ahead blocks that day only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
from deltalake import ColumnProperties, CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from ballast.adapters.arrow_schema import arrow_schema, arrow_type
from ballast.core.external_load import BrokerFigures, consumed_per_partition
from ballast.core.samples import (
    BROKER_CHUNK,
    BROKER_TYPE,
    CHUNKS_PER_ROW_GROUP,
    MINUTE_COLUMNS,
    PACKED,
    SAMPLES_TABLE,
    SAMPLES_VERSION,
    MinuteSample,
)
from ballast.errors import Unavailable, UsageError

_CONFIGURATION: Final = {
    # Appends need no change files: the feed is read from the log, which is how jobs find what is new.
    "delta.enableChangeDataFeed": "true",
    "delta.setTransactionRetentionDuration": "interval 7 days",
    "delta.logRetentionDuration": "interval 7 days",
}
_CELLS: Final = ColumnProperties(dictionary_enabled=False, statistics_enabled="NONE")
MINUTE_FILES: Final = WriterProperties(
    compression="ZSTD",
    compression_level=3,
    max_row_group_size=CHUNKS_PER_ROW_GROUP,
    # A packed cell is kilobytes: as its own minimum, maximum and dictionary it would be stored several times over.
    column_properties=dict.fromkeys(PACKED, _CELLS),
)
"""How files of minutes are written, by the sampler and when they are compacted: the rows of a minute are in chunk order."""
_SCHEMA: Final = arrow_schema(MINUTE_COLUMNS)


def describe(table: str, version: int) -> str:
    """The table's description, which is where its layout's version is written."""
    return f"ballast {table} layout {version}"


def layout_version(table: str, description: str | None) -> int:
    """The version that a description states; raises ``UsageError`` when it is not one of Ballast's tables."""
    prefix = f"ballast {table} layout "
    if description is None or not description.startswith(prefix) or not description[len(prefix) :].isdigit():
        raise UsageError(
            f"The Delta table where {table} is expected is not one of Ballast's.",
            hint="Point --store at a folder of its own.",
        )
    return int(description[len(prefix) :])


def check_layout(table: str, description: str | None, *, known: int) -> None:
    """Refuse a table that a newer Ballast wrote."""
    found = layout_version(table, description)
    if found > known:
        raise UsageError(
            f"The table {table} has layout {found}; this Ballast knows layouts up to {known}.",
            hint="Upgrade Ballast here, or give this one a store of its own.",
        )


def table_url(store: str, table: str) -> str:
    """Where a table of the store lies."""
    return f"{store.rstrip('/')}/{table}"


class SampleStore:
    """The minute table of one store, as the daemon sees it."""

    def __init__(self, store: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        self.url = table_url(store, SAMPLES_TABLE)
        self._options = dict(storage_options or {})

    def write(self, sample: MinuteSample) -> bool:
        """Commit one minute; False when it is recorded already.

        Raises ``UsageError`` for a table that is not ours or newer, ``Unavailable`` when the store does not answer.
        """
        with _translated(self.url):
            table = self._open()
            app, version = transaction(sample)
            done = table.transaction_version(app)
            if done is not None and done >= version:
                return False
            try:
                write_deltalake(
                    table,
                    minute_table(sample),
                    mode="append",
                    writer_properties=MINUTE_FILES,
                    commit_properties=CommitProperties(
                        app_transactions=[Transaction(app, version)],
                        custom_metadata={"ballast": f"sample {sample.cluster} {hour_name(sample.taken_at_ms)}"},
                    ),
                )
            except CommitFailedError:
                # Another writer's minute came first if its transaction is there now; anything else is a real failure.
                table.update_incremental()
                done = table.transaction_version(app)
                if done is None or done < version:
                    raise
                return False
            return True

    def _open(self) -> Any:
        try:
            table = DeltaTable(self.url, storage_options=self._options)
        except TableNotFoundError:
            table = DeltaTable.create(
                self.url,
                schema=_SCHEMA,
                mode="ignore",
                partition_by=["hour"],
                description=describe(SAMPLES_TABLE, SAMPLES_VERSION),
                configuration=_CONFIGURATION,
                storage_options=self._options,
            )
        check_layout(SAMPLES_TABLE, table.metadata().description, known=SAMPLES_VERSION)
        return table


def hour_name(taken_at_ms: int) -> str:
    """The UTC hour as the tables name it; sorts as time does and needs no escaping in a path."""
    return datetime.fromtimestamp(taken_at_ms / 1000, UTC).strftime("%Y-%m-%dT%H")


def transaction(sample: MinuteSample) -> tuple[str, int]:
    """The Delta transaction that makes the minute unique."""
    day, minute = divmod(sample.epoch_minute, 1440)
    return f"sampler/{sample.cluster}/{day}", minute


def minute_table(sample: MinuteSample) -> Any:
    """The rows of one minute, in the order of ``MINUTE_COLUMNS``."""
    s = sample
    rows = s.chunks + 1
    shared = {
        "cluster": s.cluster,
        "hour": hour_name(s.taken_at_ms),
        "minute": s.epoch_minute % 60,
        "chunks": s.chunks,
        "taken_at_ms": s.taken_at_ms,
        "monotonic_ms": s.monotonic_ms,
        "writer": s.writer,
    }
    topics, starts, at = _chunk_topics(s)
    names = [t.name for t in s.state.topics]
    ids = [t.topic_id or "" for t in s.state.topics]
    columns: dict[str, Any] = {
        "chunk": np.append(np.arange(s.chunks), BROKER_CHUNK),
        "topic": _lists(starts, pa.array([names[t] for t in topics.tolist()], pa.string())),
        "topic_id": _lists(starts, pa.array([ids[t] for t in topics.tolist()], pa.string())),
        "compacted": _lists(starts, s.compacted[topics]),
        "deleting": _lists(starts, s.deleting[topics]),
        "partition_topic": _packed("partition_topic", s.partition_start, at),
        "partition": _packed("partition", s.partition_start, s.number),
        "leader": _packed("leader", s.partition_start, s.leader),
        "earliest": _packed("earliest", s.partition_start, s.earliest),
        "high_watermark": _packed("high_watermark", s.partition_start, s.high_watermark),
        "bytes_out": _bytes_out(s),
        "replica_count": _packed("replica_count", s.partition_start, s.replica_count),
        "replica": _packed("replica", s.replica_start, s.replica),
        "in_sync": _packed("in_sync", s.replica_start, s.in_sync),
        "removing": _packed("removing", s.replica_start, s.removing),
        "size_bytes": _packed("size_bytes", s.replica_start, s.size_bytes),
        "lag": _packed("lag", s.replica_start, s.lag),
        "log_dir": _packed("log_dir", s.replica_start, s.log_dir),
        "brokers": pa.array([None] * s.chunks + [_brokers(s)], arrow_type(BROKER_TYPE)),
    }
    columns |= {name: pa.repeat(pa.scalar(value, _SCHEMA.field(name).type), rows) for name, value in shared.items()}
    return pa.table([_typed(columns[f.name], f.type) for f in _SCHEMA], schema=_SCHEMA)


def _typed(column: Any, wanted: Any) -> Any:
    array = column if isinstance(column, pa.Array) else pa.array(column)
    return array if array.type == wanted else array.cast(wanted)


def _lists(starts: Any, values: Any) -> Any:
    """One list for each chunk, and a null for the brokers' row."""
    flat = values if isinstance(values, pa.Array) else pa.array(values)
    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), flat)
    return pa.concat_arrays([lists, pa.nulls(1, lists.type)])


def _packed(name: str, starts: Any, values: Any) -> Any:
    """The bytes of each chunk's entries, and a null for the brokers' row."""
    kind = np.dtype(PACKED[name])
    flat = np.ascontiguousarray(values, kind)
    offsets = np.asarray(starts, np.int64) * kind.itemsize
    chunks = pa.Array.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(flat.view(np.uint8))]
    )
    return pa.concat_arrays([chunks.cast(pa.binary()), pa.nulls(1, pa.binary())])


def _chunk_topics(s: MinuteSample) -> tuple[Any, Any, Any]:
    """The distinct topics of each chunk one after another, where each chunk's begin, and each partition's position."""
    chunk = np.repeat(np.arange(s.chunks), np.diff(s.partition_start))
    width = max(len(s.state.topics), 1)
    keys, inverse = np.unique(chunk * width + s.topic, return_inverse=True)
    starts = np.searchsorted(keys, np.arange(s.chunks + 1) * width)
    return keys % width, starts, (inverse - starts[chunk]).astype(np.int32)


def _bytes_out(s: MinuteSample) -> Any:
    """What consumers read of each partition; a null where no metrics were at hand."""
    if s.external is None or not s.external.topic_bytes_out:
        return pa.nulls(s.chunks + 1, pa.binary())
    row = np.repeat(np.arange(len(s.number)), s.replica_count)
    led = s.replica == s.leader[row]
    size = np.zeros(len(s.number), np.int64)
    size[row[led]] = s.size_bytes[led]
    names = [t.name for t in s.state.topics]
    rates = consumed_per_partition(s.external, names, topic=s.topic, leader=s.leader, led_size=size)
    return _packed("bytes_out", s.partition_start, rates)


def _brokers(s: MinuteSample) -> list[dict[str, Any]]:
    rates = s.external.brokers if s.external else {}
    return [
        {
            "id": b.id,
            "rack": b.rack,
            "alive": b.alive,
            "controller": b.controller,
            "dirs": [
                {
                    "path": d.path,
                    "total_bytes": d.total_bytes,
                    "usable_bytes": d.usable_bytes,
                    "cordoned": d.cordoned,
                    "error": d.error,
                }
                for d in b.log_dirs
            ],
            **_figures(rates.get(b.id)),
        }
        for b in s.state.brokers
    ]


def _figures(found: BrokerFigures | None) -> dict[str, float | None]:
    f = found or BrokerFigures()
    return {"bytes_in": f.bytes_in, "bytes_out": f.bytes_out, "requests": f.requests, "cpu": f.cpu}


@contextmanager
def _translated(url: str) -> Iterator[None]:
    """Turn delta-rs failures into one sentence; its texts may carry signed URLs, so only their kind is kept."""
    try:
        yield
    except (DeltaError, OSError) as failure:
        raise Unavailable(
            f"The sample store {_plain(url)} did not take the minute ({type(failure).__name__}).",
            hint="Check that the folder or bucket exists, is writable and that its credentials are set.",
        ) from failure


def _plain(url: str) -> str:
    """The address without a user, a password or a query."""
    address = url.split("?", 1)[0]
    scheme, mark, rest = address.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark else address

"""Writes samples to Delta tables with delta-rs: no JVM, one commit a minute and table, each minute once.

A commit carries a Delta transaction ``sampler/<cluster>/<day>`` whose version is the minute of the day.  A writer that was
killed after its commit finds the minute recorded and skips it; killed before, it leaves files that no reader sees.  Two
writers of one cluster (a pod and a person's laptop) cannot both record a minute: the later commit conflicts and counts as
recorded.  The day in the name is there so that a clock that once jumped ahead blocks that day only.

``samples`` is committed last: a minute that it has, the other tables have too.  Where one writer began the minute and another
went on, their ``time`` differs within the minute, so the tables are joined by the minute.  A minute that any of the other
tables has passed, without ``samples`` having it, stays out.  The rates of a sample are over the time since
the newest sample that the table has, by any process: the one that recorded it remembers it, others read it back.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import ColumnProperties, CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from ballast.adapters.samples.arrow_schema import arrow_schema
from ballast.adapters.samples.failures import denial, store_failures
from ballast.adapters.samples.rows import rows_of
from ballast.core.cluster import NO_LEADERSHIP_RECORD, UNKNOWN
from ballast.core.samples import BROKERS, LOG_DIRS, SAMPLES, MinuteSample, Table
from ballast.core.samples.rates import LONGEST_INTERVAL_MIN, WEIGHTS, Readings, matrix, measure
from ballast.errors import UsageError

CONFIGURATION: Final[dict[str, str | None]] = {
    # How jobs find what is new; appends need no files of their own for it.
    "delta.enableChangeDataFeed": "true",
    "delta.setTransactionRetentionDuration": "interval 7 days",
    "delta.logRetentionDuration": "interval 7 days",
}
_NUMBERS: Final = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED")
_RANDOM: Final = ColumnProperties(dictionary_enabled=False)
FILES: Final = WriterProperties(
    compression="ZSTD",
    compression_level=3,
    column_properties={
        **dict.fromkeys(("earliest_offset", "end_offset", "size_bytes.list.element"), _NUMBERS),
        **dict.fromkeys(("bytes_in", "records_in"), _RANDOM),
    },
)
_EARLIER: Final = (
    *("topic", "topic_id", "partition", "leader", "leader_before", "earliest_offset", "end_offset"),
    *("bytes_in", "records_in", "replicas", "in_sync", "size_bytes", "time"),
)


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


def open_table(store: str, table: Table) -> Any:
    """The table, its layout checked; None where there is none yet."""
    try:
        found = DeltaTable(table_url(store, table.name))
    except TableNotFoundError:
        if denied := denial(table_url(store, table.name)):
            raise PermissionError(denied.message) from None
        return None
    check_layout(table.name, found.metadata().description, known=table.version)
    return found


def ensure_table(store: str, table: Table) -> Any:
    """The table, made where there is none."""
    found = open_table(store, table)
    if found is not None:
        return found
    try:
        return DeltaTable.create(
            table_url(store, table.name),
            schema=arrow_schema(table.columns),
            mode="ignore",
            partition_by=list(table.partition_by),
            description=describe(table.name, table.version),
            configuration=CONFIGURATION,
        )
    except DeltaError:
        # Another process may have made it in the meantime; only a table that is still not there is a failure.
        found = open_table(store, table)
        if found is None:
            raise
        return found


class SampleStore:
    """The sample tables of one store, as the daemon sees them."""

    def __init__(self, store: str) -> None:
        self.store = store
        self.url = table_url(store, SAMPLES.name)
        self._readings: dict[str, Readings] = {}

    def write(self, sample: MinuteSample) -> bool:
        """Measure and commit one minute; False when it, or a later one of its day, is recorded already.

        Raises ``UsageError`` for a table that is not ours or newer, ``Unavailable`` when the store does not answer.
        """
        with store_failures(self.url, write=True):
            tables = {table: ensure_table(self.store, table) for table in (LOG_DIRS, BROKERS, SAMPLES)}
            if _find_recorded(tables[SAMPLES], sample) is not None:
                return False
            measured = measure(sample, self._before(tables[SAMPLES], sample))
            rows = rows_of(sample, measured)
            for table, target in tables.items():
                newest = _append(target, rows[table.name], sample)
                if newest is not None and (table is SAMPLES or newest > sample.epoch_minute):
                    return False
            self._readings[sample.cluster] = measured.readings
            return True

    def _before(self, table: Any, sample: MinuteSample) -> Readings | None:
        """The readings of the newest sample; our own unless another process recorded one since."""
        ours = self._readings.pop(sample.cluster, None)
        if ours is not None and ours.epoch_minute == _newest_minute(table, sample):
            return ours
        return read_back(table, sample)


def _append(table: Any, rows: Any, sample: MinuteSample) -> int | None:
    """Add the rows of a minute in one commit, or name the newest minute where the table has this or a later one already."""
    newest = _find_recorded(table, sample)
    if newest is not None:
        return newest
    app, version = transaction(sample.cluster, sample.epoch_minute)
    try:
        write_deltalake(
            table,
            rows,
            mode="append",
            writer_properties=FILES if "end_offset" in rows.schema.names else None,
            commit_properties=CommitProperties(app_transactions=[Transaction(app, version)]),
        )
    except CommitFailedError:
        # Another writer's minute came first if its transaction is there now; anything else is a real failure.
        table.update_incremental()
        newest = _find_recorded(table, sample)
        if newest is None:
            raise
    return newest


def transaction(cluster: str, epoch_minute: int) -> tuple[str, int]:
    """The Delta transaction that makes the minute unique."""
    day, minute = divmod(epoch_minute, 1440)
    return f"sampler/{cluster}/{day}", minute


def _find_recorded(table: Any, sample: MinuteSample) -> int | None:
    """The newest minute that the table has of the cluster and the day; None where that is before the sample's."""
    done = _newest_of_day(table, sample.cluster, sample.epoch_minute // 1440)
    return done if done is not None and done >= sample.epoch_minute else None


def _newest_of_day(table: Any, cluster: str, day: int) -> int | None:
    done = table.transaction_version(transaction(cluster, day * 1440)[0])
    return None if done is None else day * 1440 + int(done)


def _newest_minute(table: Any, sample: MinuteSample) -> int | None:
    """The newest minute of the cluster that the table has, of this day or the one before."""
    today = sample.epoch_minute // 1440
    done = _newest_of_day(table, sample.cluster, today)
    return _newest_of_day(table, sample.cluster, today - 1) if done is None else done


def read_back(table: Any, sample: MinuteSample) -> Readings | None:
    """The newest sample before this one, from the table; None where there is none that is near enough."""
    taken = datetime.fromtimestamp(sample.taken_at_ms / 1000, UTC)
    oldest = taken - timedelta(minutes=LONGEST_INTERVAL_MIN + 1)
    wanted = (
        pc.field("hour").isin([hour_of(oldest), hour_of(taken)])
        & (pc.field("cluster") == sample.cluster)
        & (pc.field("time") >= oldest)
        & (pc.field("time") < taken)
    )
    data = table.to_pyarrow_dataset()
    newest = pc.max(data.to_table(columns=["time"], filter=wanted).column("time"))
    if not newest.is_valid:
        return None
    rows = data.to_table(columns=list(_EARLIER), filter=wanted & (pc.field("time") == newest)).combine_chunks()
    return _as_readings(rows, int(newest.cast(pa.int64()).as_py()) // 1000)


def hour_of(time: datetime) -> datetime:
    """The start of the hour that this moment lies in."""
    return time.replace(minute=0, second=0, microsecond=0)


def _as_readings(rows: Any, taken_at_ms: int) -> Readings:
    names = pa.StructArray.from_arrays(
        [rows.column(n).combine_chunks().dictionary_encode() for n in ("topic", "topic_id")], ["name", "id"]
    )
    coded = [names.field(i) for i in (0, 1)]
    pair = coded[0].indices.to_numpy().astype(np.int64) << 32 | coded[1].indices.to_numpy().astype(np.int64)
    distinct, topic = np.unique(pair, return_inverse=True)
    known_names, known_ids = (c.dictionary.to_pylist() for c in coded)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = _numbers(rows, "bytes_in", np.nan) / _numbers(rows, "records_in", np.nan)
    weights = np.full((len(rows), WEIGHTS), np.nan)
    weights[:, 0] = np.where(np.isfinite(weight) & (weight > 0), weight, np.nan)
    replicas = rows.column("replicas").combine_chunks()
    start = np.concatenate(([0], np.cumsum(pc.list_value_length(replicas).to_numpy(zero_copy_only=False))))
    sizes = rows.column("size_bytes").combine_chunks().flatten()
    in_sync = rows.column("in_sync").combine_chunks().flatten()
    return Readings(
        topics=tuple((known_names[key >> 32], known_ids[key & 0xFFFFFFFF]) for key in distinct.tolist()),
        topic=topic.astype(np.int64),
        number=_numbers(rows, "partition", UNKNOWN),
        leader=pc.fill_null(pc.coalesce(rows.column("leader"), rows.column("leader_before")), NO_LEADERSHIP_RECORD)
        .to_numpy()
        .astype(np.int64),
        earliest=_numbers(rows, "earliest_offset", UNKNOWN),
        high_watermark=_numbers(rows, "end_offset", UNKNOWN),
        replica=matrix(start.astype(np.int64), replicas.flatten().to_numpy().astype(np.int64)),
        size_bytes=matrix(
            start.astype(np.int64),
            pc.fill_null(pc.if_else(in_sync, sizes, UNKNOWN), UNKNOWN).to_numpy(zero_copy_only=False),
        ),
        taken_at_ms=np.full(len(rows), taken_at_ms, np.int64),
        monotonic_ms=np.full(len(rows), np.nan),
        weights=weights,
        writer="",
        epoch_minute=taken_at_ms // 60_000,
    )


def _numbers(rows: Any, name: str, unknown: float) -> Any:
    column = pc.fill_null(rows.column(name).combine_chunks(), unknown).to_numpy(zero_copy_only=False)
    return column.astype(np.float64 if isinstance(unknown, float) else np.int64)

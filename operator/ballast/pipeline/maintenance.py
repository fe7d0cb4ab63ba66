"""Delta's own maintenance of the tables: forget what is old, compact, and free the files that no version needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from ballast.adapters.samples.failures import store_failures
from ballast.adapters.samples.store import FILES
from ballast.core.samples import BROKERS, CLUSTERS, LOG_DIRS, SAMPLES, Table
from ballast.core.wording import ShowLine, human_bytes, human_many
from ballast.pipeline.buckets import is_bucket
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.schemas import (
    BROKER_IMBALANCE,
    DISK_HOUR,
    DISK_OUTLOOK,
    LEADERSHIP_HISTORY,
    LOAD_DAY,
    LOAD_HOUR,
    LOAD_MODEL,
)
from ballast.pipeline.table_log import RETENTION_H, Part, TableLog
from ballast.pipeline.tables import SparkTables, among, literal, name_of, translate_errors

_SMALL_FILE: Final = 32 << 20
_LARGE_FILE: Final = 128 << 20
_WRITTEN_BY_OTHERS: Final = (SAMPLES, BROKERS, LOG_DIRS, CLUSTERS)
_DELTA_PAGES: Final = ("parquet.writer.version", "PARQUET_2_0")
"""Offsets and sizes that grow slowly are stored by their differences."""


class _Kept(NamedTuple):
    table: Table
    oldest: Any
    """What is older goes; None: nothing does, but each run replaces its rows and leaves the files of before."""


def maintain(tables: SparkTables, policy: PipelinePolicy, *, now: datetime, on_line: ShowLine) -> None:
    """Forget what is older than the policy keeps, compact the closed hours of samples, and free the files."""
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    samples = this_hour - timedelta(hours=policy.samples_retention_hours)
    hours = this_hour - timedelta(days=policy.load_hour_retention_days)
    days = this_hour.replace(hour=0) - timedelta(days=policy.table_retention_days)
    plan = (
        *(_Kept(table, samples) for table in (SAMPLES, BROKERS, LOG_DIRS)),
        _Kept(LOAD_HOUR, hours),
        _Kept(LOAD_DAY, days.date()),
        *(_Kept(table, days) for table in (CLUSTERS, LEADERSHIP_HISTORY, BROKER_IMBALANCE, DISK_HOUR)),
        *(_Kept(table, None) for table in (LOAD_MODEL, DISK_OUTLOOK)),
    )
    for table, oldest in plan:
        if tables.log.exists(table):
            if is_bucket(tables.store) and table in _WRITTEN_BY_OTHERS:
                maintain_beside_writers(tables.log, table, oldest, this_hour, on_line)
                continue
            with translate_errors(f"maintaining {table.name}"):
                tables.describe(f"{table.name}: maintenance")
                forget(tables, table, oldest, on_line)
                if table is SAMPLES:
                    compact_samples(tables, this_hour, on_line)
                elif table.partition_by == ("hour",):
                    _optimize(tables, table, this_hour)
                vacuum(tables, table, on_line)


def maintain_beside_writers(log: TableLog, table: Table, oldest: datetime, before: datetime, on_line: ShowLine) -> None:
    """Forget, compact and vacuum with delta-rs, which commits to a bucket by a conditional PUT, as samplers and daemons do.

    Spark looks first and then writes: between the two, a sampler's commit would be lost.  The rows are not sorted here.
    """
    with store_failures(log.url(table), write=True):
        found = log.ensure(table)
        if any(part < oldest for part in log.parts(table)):
            found.delete(f"{table.partition_by[0]} < '{oldest.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}'")
            on_line(f"{table.name}: kept from {name_of(oldest)}")
        for hour in _small(log, table, before):
            chosen = [(table.partition_by[0], "=", f"{hour:%Y-%m-%d %H:%M:%S}")]
            found.optimize.compact(partition_filters=chosen, writer_properties=FILES if table is SAMPLES else None)
        freed = found.vacuum(RETENTION_H, dry_run=False, full=True)
    if freed:
        on_line(f"{table.name}: {human_many(len(freed), 'file')} freed")


def forget(tables: SparkTables, table: Table, oldest: Any, on_line: ShowLine = lambda _: None) -> None:
    """Delete the parts before ``oldest``, whole."""
    gone = [] if oldest is None else [part for part in tables.log.parts(table) if part < oldest]
    if gone:
        old = f"{table.partition_by[0]} < {literal(oldest)}"
        tables.session.sql(f"DELETE FROM delta.`{tables.log.url(table)}` WHERE {old}").collect()  # noqa: S608 — our own
        on_line(f"{table.name}: kept from {name_of(oldest)}")


def compact_samples(tables: SparkTables, before: datetime, on_line: ShowLine = lambda _: None) -> None:
    """Write the small files of closed hours as few large ones, sorted, so that what is constant vanishes; no row changes.

    ``OPTIMIZE`` puts files together without sorting them.  A commit that says ``dataChange`` false is no news to any job.
    """
    closed = _small(tables.log, SAMPLES, before)
    if not closed:
        return
    session, order = tables.session, ("topic", "partition", "time")
    session.conf.set(*_DELTA_PAGES)
    try:
        for hour, part in closed.items():
            where, files = among("hour", [hour]), max(part.size_bytes // _LARGE_FILE, 1)
            rows = tables.read(SAMPLES, where=where).repartitionByRange(files, *order[:2])
            write = rows.sortWithinPartitions("cluster", *order).write.format("delta").mode("overwrite")
            write.option("replaceWhere", where).option("dataChange", "false").save(tables.log.url(SAMPLES))
    finally:
        session.conf.unset(_DELTA_PAGES[0])
    after = tables.log.parts(SAMPLES)
    was, now = (human_bytes(sum(parts[hour].size_bytes for hour in closed)) for parts in (closed, after))
    on_line(f"{SAMPLES.name}: {human_many(len(closed), 'hour')} compacted, {was} are {now} now")


def _small(log: TableLog, table: Table, before: datetime) -> dict[Any, Part]:
    """The parts that had ended and that several small files make up."""
    parts = log.parts(table).items()
    return {
        at: part for at, part in parts if at < before and part.files > 1 and part.size_bytes < _SMALL_FILE * part.files
    }


def _optimize(tables: SparkTables, table: Table, before: datetime) -> None:
    closed = _small(tables.log, table, before)
    if closed:
        where = among(table.partition_by[0], list(closed))
        tables.session.sql(f"OPTIMIZE delta.`{tables.log.url(table)}` WHERE {where}").collect()


def vacuum(tables: SparkTables, table: Table, on_line: ShowLine = lambda _: None) -> None:
    """Remove files that no version within Delta's own safe retention (7 days) needs, those of killed writers included."""
    tables.session.sql(f"VACUUM delta.`{tables.log.url(table)}`").collect()
    found = tables.log.metrics(table, operation="VACUUM START") or {}
    files = int(found.get("numFilesToDelete", 0))
    if files:
        on_line(
            f"{table.name}: {human_many(files, 'file')} freed, {human_bytes(int(found.get('sizeOfDataToDelete', 0)))}"
        )

"""The fleet's tables without Spark: append readings, read plans, forget what is old."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from ballast.adapters.arrow_schema import arrow_schema
from ballast.adapters.samples_delta import check_layout, describe, table_url
from ballast.errors import Unavailable, UsageError
from ballast.pipeline.fleet_reader import Snapshots, newest_readings
from ballast.pipeline.fleet_rows import Member, to_batch
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.schemas import FLEET_PLAN, FLEET_SNAPSHOT
from ballast.pipeline.table_log import TableLog

Say = Callable[[str], None]
_FILES: Final = WriterProperties(compression="ZSTD", compression_level=3, max_row_group_size=1)
"""A row is a whole cluster, and is read by whoever plans that cluster alone."""


def append_snapshots(store: str, members: Sequence[Member], options: Mapping[str, str] | None = None) -> None:
    """Add one reading of each cluster, in one commit."""
    url, schema = table_url(store, FLEET_SNAPSHOT.name), arrow_schema(FLEET_SNAPSHOT.columns)
    with _translated():
        try:
            target = DeltaTable(url, storage_options=dict(options or {}))
        except TableNotFoundError:
            target = DeltaTable.create(
                url,
                schema=schema,
                mode="ignore",
                description=describe(FLEET_SNAPSHOT.name, FLEET_SNAPSHOT.version),
                storage_options=dict(options or {}),
            )
        check_layout(FLEET_SNAPSHOT.name, target.metadata().description, known=FLEET_SNAPSHOT.version)
        write_deltalake(
            target,
            pa.Table.from_batches([to_batch(m) for m in members], schema=schema),
            mode="append",
            writer_properties=_FILES,
        )


def tidy_readings(log: TableLog, policy: PipelinePolicy, *, now: datetime, say: Say = lambda _: None) -> None:
    """Forget readings older than the policy keeps, but each cluster's newest, and free the files of both tables.

    The plans need no forgetting: each job replaces them whole.
    """
    at = log.position(FLEET_SNAPSHOT)
    if at is not None:
        oldest = now - timedelta(days=policy.keep_readings_days)
        with _translated():
            newest = newest_readings(Snapshots(table_url(log.store, FLEET_SNAPSHOT.name), at))
            before_ms = int(oldest.timestamp() * 1000)
            # Only files with an old reading are written anew, and only those that keep one of them.
            kept = [f"(name = {_quoted(n)} AND taken_at_ms = {at})" for n, at in newest.items() if at < before_ms]
            wanted = f"taken_at_ms < {before_ms}" + (f" AND NOT ({' OR '.join(kept)})" if kept else "")
            DeltaTable(table_url(log.store, FLEET_SNAPSHOT.name)).delete(wanted, writer_properties=_FILES)
        log.vacuum(FLEET_SNAPSHOT)
        say(f"{FLEET_SNAPSHOT.name}: kept from {oldest:%Y-%m-%dT%H}")
    if log.position(FLEET_PLAN) is not None:
        log.vacuum(FLEET_PLAN)


def _quoted(name: str) -> str:
    """A name of the fleet's list, which may hold anything, as a literal of a predicate."""
    return "'" + name.replace("'", "''") + "'"


def read_plans(store: str, options: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Every row of the newest fleet plan; raises ``UsageError`` when there is none."""
    with _translated():
        try:
            table = DeltaTable(table_url(store, FLEET_PLAN.name), storage_options=dict(options or {}))
        except TableNotFoundError:
            raise UsageError("The fleet has not been planned yet.", hint="Run `ballast fleet plan` first.") from None
        check_layout(FLEET_PLAN.name, table.metadata().description, known=FLEET_PLAN.version)
        found: list[dict[str, Any]] = table.to_pyarrow_table().to_pylist()
    # A plan that an earlier Ballast made may lack the newest columns.
    rows = [{name: row.get(name) for name in FLEET_PLAN.names} for row in found]
    return sorted(rows, key=lambda r: (r["name"], r["scenario"], r["subject"]))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (DeltaError, OSError) as failure:
        raise Unavailable(
            f"The fleet's store does not answer ({type(failure).__name__}).",
            hint="Check the store's address and credentials.",
        ) from failure

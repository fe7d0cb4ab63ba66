"""The fleet's tables without Spark: append readings, read plans, forget what is old."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from deltalake import WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError

from ballast.adapters.arrow_schema import arrow_schema
from ballast.adapters.samples_delta import ensure_table, open_table
from ballast.core.wording import human_many
from ballast.errors import Unavailable, UsageError
from ballast.pipeline.fleet_rows import Member, to_batch
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.schemas import FLEET_PLAN, FLEET_SNAPSHOT

Say = Callable[[str], None]
_FILES: Final = WriterProperties(compression="ZSTD", compression_level=3, max_row_group_size=1)
"""A row is a whole cluster, and is read by whoever plans that cluster alone."""
_RETENTION_H: Final = 168
"""What Delta itself holds for safe: a reader of an older version may still be at work."""


def append_snapshots(store: str, members: Sequence[Member]) -> None:
    """Add one reading of each cluster, in one commit."""
    with _translated():
        rows = pa.Table.from_batches([to_batch(m) for m in members], schema=arrow_schema(FLEET_SNAPSHOT.columns))
        write_deltalake(ensure_table(store, FLEET_SNAPSHOT), rows, mode="append", writer_properties=_FILES)


def tidy_readings(store: str, policy: PipelinePolicy, *, now: datetime, say: Say = lambda _: None) -> None:
    """Forget readings older than the policy keeps, but each cluster's newest, and free the files of both tables.

    The plans need no forgetting: each job replaces them whole.
    """
    oldest = now - timedelta(days=policy.keep_readings_days)
    with _translated():
        readings = open_table(store, FLEET_SNAPSHOT)
        if readings is not None:
            before_ms = int(oldest.timestamp() * 1000)
            # Only files with an old reading are written anew, and only those that keep one of them.
            newest = _newest(readings).items()
            kept = [f"(name = {_quoted(n)} AND taken_at_ms = {at})" for n, at in newest if at < before_ms]
            wanted = f"taken_at_ms < {before_ms}" + (f" AND NOT ({' OR '.join(kept)})" if kept else "")
            readings.delete(wanted, writer_properties=_FILES)
            say(f"{FLEET_SNAPSHOT.name}: kept from {oldest:%Y-%m-%dT%H}")
        for table in (FLEET_SNAPSHOT, FLEET_PLAN):
            found = open_table(store, table)
            freed = [] if found is None else found.vacuum(_RETENTION_H, dry_run=False, full=True)
            if freed:
                say(f"{table.name}: {human_many(len(freed), 'file')} freed")


def _newest(readings: Any) -> dict[str, int]:
    """When each name was last read."""
    rows = readings.to_pyarrow_table(columns=["name", "taken_at_ms"])
    found = rows.group_by("name").aggregate([("taken_at_ms", "max")]).to_pydict()
    return dict(zip(found["name"], found["taken_at_ms_max"], strict=True))


def _quoted(name: str) -> str:
    """A name of the fleet's list, which may hold anything, as a literal of a predicate."""
    return "'" + name.replace("'", "''") + "'"


def read_plans(store: str) -> list[dict[str, Any]]:
    """Every row of the newest fleet plan; raises ``UsageError`` when there is none."""
    with _translated():
        table = open_table(store, FLEET_PLAN)
        if table is None:
            raise UsageError("The fleet has not been planned yet.", hint="Run `ballast fleet plan` first.")
        rows: list[dict[str, Any]] = table.to_pyarrow_table().to_pylist()
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

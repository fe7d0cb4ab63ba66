"""What the tables' own logs say, without Spark: how far each job has come, which parts and files there are.

A job's progress is the Delta transaction of its last commit (``txnAppId`` names its source, ``txnVersion`` is the version that
it has read), so output and progress change together or not at all.  The log is read with delta-rs in milliseconds: a run whose
sources stand where they stood never starts Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ballast.adapters.samples.failures import store_failures
from ballast.adapters.samples.store import ensure_table, open_table, table_url
from ballast.core.samples import Table

RETENTION_H: Final = 168
"""Until a file that no version needs is freed.  Delta itself holds it for safe: a reader of an older version may be at work."""
_HISTORY: Final = 50
"""Commits that are searched for one that was just made."""


@dataclass(frozen=True, slots=True)
class Task:
    """How far a job has come, and how far there is to go."""

    app: str
    """The Delta transaction by which the job's progress is kept."""
    version: int
    """Of the source, as it is now."""
    done: int | None
    """Of the source, as the job has read it; None where it never ran."""


class Part(NamedTuple):
    """One value of the column that a table is partitioned by, and the files that have its rows."""

    files: int
    size_bytes: int
    written: datetime
    """When the newest of them was."""


class TableLog:
    """The logs of one store's tables."""

    def __init__(self, store: str) -> None:
        self.store = store

    def url(self, table: Table) -> str:
        """Where a table lies."""
        return table_url(self.store, table.name)

    def exists(self, table: Table) -> bool:
        """Is it there?  Raises ``UsageError`` where its layout is not one that this Ballast knows."""
        return self._open(table) is not None

    def ensure(self, table: Table) -> Any:
        """The table, made where it is not there."""
        with store_failures(self.url(table), write=True):
            return ensure_table(self.store, table)

    def task(self, source: Table, target: Table) -> Task | None:
        """What the job that makes ``target`` may have to do; None where it has seen all.  Makes the target where it is not there."""
        read = self._open(source)
        if read is None:
            return None
        app, version = f"{target.name}/{read.metadata().id}", int(read.version())
        done = self.ensure(target).transaction_version(app)
        if done is not None and done >= version:
            return None
        return Task(app, version, None if done is None else int(done))

    def parts(self, table: Table, version: int | None = None) -> dict[Any, Part]:
        """The parts of a table in their order, now or at a version."""
        files, by = self._files(table, version), f"partition.{table.partition_by[0]}"
        if not len(files):
            return {}
        sums = [("size_bytes", "count"), ("size_bytes", "sum"), ("modification_time", "max")]
        found = sorted(files.group_by(by).aggregate(sums).to_pylist(), key=lambda row: row[by])
        return {
            row[by]: Part(
                row["size_bytes_count"],
                row["size_bytes_sum"],
                datetime.fromtimestamp(row["modification_time_max"] / 1000, UTC),
            )
            for row in found
        }

    def known(self, table: Table, column: str, parts: tuple[Any, ...]) -> bool:
        """Has any row of these parts a value there, as far as the files' statistics tell?"""
        files = self._files(table)
        nulls, by = f"null_count.{column}", f"partition.{table.partition_by[0]}"
        if nulls not in files.column_names:
            return True
        among = files.filter(pc.is_in(files.column(by), pa.array(parts, files.column(by).type)))
        empty = pc.equal(among.column(nulls), among.column("num_records"))
        return not bool(pc.all(pc.fill_null(empty, False)).as_py())

    def metrics(self, table: Table, **of: str) -> dict[str, Any] | None:
        """The metrics of the newest commit of which these words of its log are true; None where there is none."""
        with store_failures(self.url(table)):
            for commit in self._open(table).history(_HISTORY):
                if of.items() <= commit.items():
                    return dict(commit.get("operationMetrics") or {})
        return None

    def column(self, table: Table, name: str) -> Any:
        """One column of the table as it is, for the few small things that need one."""
        with store_failures(self.url(table)):
            return self._open(table).to_pyarrow_table(columns=[name]).column(name)

    def _open(self, table: Table, version: int | None = None) -> Any:
        with store_failures(self.url(table)):
            found = open_table(self.store, table)
            if version is not None:
                found.load_as_version(version)
            return found

    def _files(self, table: Table, version: int | None = None) -> Any:
        """The files that make up the table, a row each."""
        found = self._open(table, version)
        with store_failures(self.url(table)):
            return pa.table(found.get_add_actions(flatten=True))

"""What the tables' own logs say, without Spark: how far each job has come, which parts and files there are.

A job's progress is the Delta transaction of its last commit (``txnAppId`` names its source, ``txnVersion`` is the version that
it has read), so output and progress change together or not at all.  The log is read with delta-rs in milliseconds: a run whose
sources stand where they stood never starts Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from ballast.adapters.samples_delta import ensure_table, open_table, table_url
from ballast.core.samples import Table
from ballast.errors import Unavailable

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


class TableLog:
    """The logs of one store's tables."""

    def __init__(self, store: str) -> None:
        self.store = store

    def url(self, table: Table) -> str:
        """Where a table lies."""
        return table_url(self.store, table.name)

    def exists(self, table: Table) -> bool:
        """Is it there?  Raises ``UsageError`` where its layout is not one that this Ballast knows."""
        with read_of_store(table.name):
            return open_table(self.store, table) is not None

    def ensure(self, table: Table) -> None:
        """Make the table where it is not there."""
        with read_of_store(table.name):
            ensure_table(self.store, table)

    def task(self, source: Table, target: Table) -> Task | None:
        """What the job that makes ``target`` may have to do; None where it has seen all.  Makes the target where it is not there."""
        with read_of_store(source.name):
            read = open_table(self.store, source)
            if read is None:
                return None
            app, version = f"{target.name}/{read.metadata().id}", int(read.version())
            done = ensure_table(self.store, target).transaction_version(app)
            if done is not None and done >= version:
                return None
        return Task(app, version, None if done is None else int(done))

    def parts(self, table: Table, version: int | None = None) -> tuple[Any, ...]:
        """The values of the column that the table is partitioned by, in order."""
        with read_of_store(table.name):
            return _parts(self._open(table, version), table)

    def written(self, table: Table) -> dict[Any, datetime]:
        """The parts, and when each was written last."""
        with read_of_store(table.name):
            actions = _actions(self._open(table))
        by = f"partition.{table.partition_by[0]}"
        found = actions.group_by(by).aggregate([("modification_time", "max")]).to_pylist()
        return {row[by]: datetime.fromtimestamp(row["modification_time_max"] / 1000, UTC) for row in found}

    def small_files(self, table: Table, smaller_than: int) -> dict[Any, int]:
        """The parts that several files make up whose mean size is below this, and their bytes."""
        with read_of_store(table.name):
            actions = _actions(self._open(table))
        by = f"partition.{table.partition_by[0]}"
        found = actions.group_by(by).aggregate([("size_bytes", "sum"), ("size_bytes", "count")]).to_pylist()
        return {
            row[by]: row["size_bytes_sum"]
            for row in found
            if row["size_bytes_count"] > 1 and row["size_bytes_sum"] < smaller_than * row["size_bytes_count"]
        }

    def bytes_of(self, table: Table) -> int:
        """Bytes of the files that make up the table."""
        with read_of_store(table.name):
            return int(pc.sum(_actions(self._open(table)).column("size_bytes")).as_py() or 0)

    def known(self, table: Table, column: str, parts: tuple[Any, ...]) -> bool:
        """Has any row of these parts a value there, as far as the files' statistics tell?"""
        with read_of_store(table.name):
            actions = _actions(self._open(table))
        nulls, by = f"null_count.{column}", f"partition.{table.partition_by[0]}"
        if nulls not in actions.column_names:
            return True
        among = actions.filter(pc.is_in(actions.column(by), pa.array(parts, actions.column(by).type)))
        empty = pc.equal(among.column(nulls), among.column("num_records"))
        return not bool(pc.all(pc.fill_null(empty, False)).as_py())

    def metrics(self, table: Table, run: str) -> dict[str, Any] | None:
        """The metrics of the commit that carries this text; None where there is none, since a newer one had come before."""
        with read_of_store(table.name):
            for commit in self._open(table).history(_HISTORY):
                if commit.get("userMetadata") == run:
                    return dict(commit.get("operationMetrics") or {})
        return None

    def last_metrics(self, table: Table, operation: str) -> dict[str, Any]:
        """The metrics of the newest commit of an operation."""
        with read_of_store(table.name):
            for commit in self._open(table).history(_HISTORY):
                if commit.get("operation") == operation:
                    return dict(commit.get("operationMetrics") or {})
        return {}

    def column(self, table: Table, name: str) -> Any:
        """One column of the table as it is, for the few small things that need one."""
        with read_of_store(table.name):
            return self._open(table).to_pyarrow_table(columns=[name]).column(name)

    def _open(self, table: Table, version: int | None = None) -> Any:
        found = open_table(self.store, table)
        if version is not None:
            found.load_as_version(version)
        return found


def _actions(found: Any) -> Any:
    return pa.table(found.get_add_actions(flatten=True))


def _parts(found: Any, table: Table) -> tuple[Any, ...]:
    actions = _actions(found)
    by = f"partition.{table.partition_by[0]}"
    return tuple(sorted(set(actions.column(by).to_pylist()))) if len(actions) else ()


@contextmanager
def read_of_store(what: str) -> Iterator[None]:
    """One sentence; delta-rs's own texts may carry signed addresses."""
    try:
        yield
    except (DeltaError, OSError) as failure:
        raise Unavailable(
            f"The log of the table {what} could not be read ({type(failure).__name__}).",
            hint="Check the store's address and credentials.",
        ) from failure

"""The store's tables through Spark: create, check, what is new since a job last ran, and replace whole partitions.

Every commit of a job carries ``userMetadata`` (which version of its source it used up) and a Delta transaction of the same
number, so that output and progress change together or not at all.  A job killed before its commit leaves at most files that
no version of the table names; killed after it, the next run finds nothing to do.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ballast.adapters.samples_delta import check_layout, describe, table_url
from ballast.errors import Refused, Unavailable, UsageError
from ballast.pipeline.schemas import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HISTORY: Final = 200
"""Commits that are searched for a job's last progress; older progress means folding everything that is there again."""
_MISSING: Final = ("PATH_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE", "DELTA_TABLE_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST")
_CONFLICTS: Final = ("Concurrent", "DELTA_CONCURRENT")


@dataclass(frozen=True, slots=True)
class Position:
    """How far a table, or a job's reading of it, has come."""

    table_id: str
    version: int


@dataclass(frozen=True, slots=True)
class Progress:
    """What a job has used up of its source and what it last wrote."""

    position: Position | None
    """None: the job never ran on this source."""


class SparkTables:
    """One store, seen through one session."""

    def __init__(self, session: SparkSession, store: str) -> None:
        self.session = session
        self.store = store

    def url(self, table: Table) -> str:
        """Where a table lies."""
        return table_url(self.store, table.name)

    def position(self, table: Table) -> Position | None:
        """The table's identity and newest version, its layout checked; None where there is none yet."""
        found = self._detail(table)
        if found is None:
            return None
        check_layout(table.name, found["description"], known=table.version)
        newest = self._sql(f"DESCRIBE HISTORY {self._name(table)} LIMIT 1").select("version").collect()
        return Position(found["id"], newest[0]["version"])

    def ensure(self, table: Table) -> None:
        """Create the table unless it is there; refuse one of a newer layout."""
        if self.position(table) is None:
            self._sql(
                f"CREATE TABLE IF NOT EXISTS {self._name(table)} ({table.ddl}) USING delta {_partitioned(table)} COMMENT '{describe(table.name, table.version)}' "
                "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.logRetentionDuration' = 'interval 7 days')"
            )

    def read(self, table: Table, at: Position | None = None) -> DataFrame:
        """The table as it is, or as it was at a position."""
        reader = self.session.read.format("delta")
        if at is not None:
            reader = reader.option("versionAsOf", at.version)
        return reader.load(self.url(table))

    def added(self, table: Table, since: Position | None, until: Position) -> DataFrame:
        """Rows added after ``since``; everything that is there where that is unknown or of another table.

        Rows that retention deleted are changes too, and must never make a job fold their hours again: only inserts count.
        """
        if since is None or since.table_id != until.table_id or since.version > until.version:
            return self.read(table, until)
        changes = (
            self.session.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", since.version + 1)
            .option("endingVersion", until.version)
            .load(self.url(table))
        )
        return changes.where("_change_type = 'insert'")

    def progress(self, table: Table, job: str) -> Progress:
        """How far ``job``, which writes ``table``, has read its source."""
        rows = (
            self._sql(f"DESCRIBE HISTORY {self._name(table)} LIMIT {_HISTORY}")
            .where("userMetadata IS NOT NULL")
            .select("userMetadata")
            .collect()
        )
        for row in rows:
            noted = _parse(row["userMetadata"])
            if noted.get("job") == job:
                return Progress(Position(str(noted["source_id"]), int(noted["source_version"])))
        return Progress(None)

    def replace(
        self, table: Table, frame: DataFrame, *, key: str, values: Collection[str], job: str, source: Position
    ) -> None:
        """Replace the partitions ``key IN values`` by the frame and note the progress, in one commit."""
        quoted = ", ".join(f"'{_safe(v)}'" for v in sorted(values))
        (
            frame.select(*table.names)
            .write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", f"{key} IN ({quoted})")
            .option("txnAppId", f"{job}/{source.table_id}")
            .option("txnVersion", source.version)
            .option(
                "userMetadata",
                json.dumps({"job": job, "source_id": source.table_id, "source_version": source.version}),
            )
            .save(self.url(table))
        )

    def overwrite(self, table: Table, frame: DataFrame) -> None:
        """Replace the whole table in one commit; readers see the old rows or the new ones."""
        self.ensure(table)
        frame.select(*table.names).write.format("delta").mode("overwrite").save(self.url(table))

    def rows_written(self, table: Table) -> int:
        """Rows of the newest commit, from the log."""
        newest = self._sql(f"DESCRIBE HISTORY {self._name(table)} LIMIT 1").select("operationMetrics").collect()
        return int((newest[0]["operationMetrics"] or {}).get("numOutputRows", 0))

    def rows_in(self, table: Table, key: str, values: Collection[str]) -> int:
        """Rows of whole partitions.

        Delta's log does not say it of a commit that replaced partitions, since its statistics are off here.
        """
        frame = self.read(table)
        return int(frame.where(frame[key].isin(sorted(values))).count())

    def drop_before(self, table: Table, key: str, oldest: str) -> None:
        """Delete whole partitions older than ``oldest``."""
        # Table names are ours and the value was checked; SQL has no parameter for a path.
        self._sql(f"DELETE FROM {self._name(table)} WHERE {key} < '{_safe(oldest)}'")  # noqa: S608

    def compact(self, table: Table, key: str, since: str, before: str) -> None:
        """Merge the small files of closed partitions; changes no row and no job's reading."""
        self._sql(f"OPTIMIZE {self._name(table)} WHERE {key} >= '{_safe(since)}' AND {key} < '{_safe(before)}'")

    def vacuum(self, table: Table) -> None:
        """Remove files that no version within Delta's own safe retention (7 days) needs."""
        self._sql(f"VACUUM {self._name(table)}")

    def _detail(self, table: Table) -> dict[str, Any] | None:
        try:
            rows = self._sql(f"DESCRIBE DETAIL {self._name(table)}").select("id", "description", "format").collect()
        except Exception as failure:
            if any(word in str(failure) for word in _MISSING):
                return None
            raise
        return rows[0].asDict() if rows and rows[0]["format"] == "delta" else None

    def _name(self, table: Table) -> str:
        return f"delta.`{self.url(table).replace('`', '')}`"

    def _sql(self, text: str) -> Any:
        return self.session.sql(text)


def _partitioned(table: Table) -> str:
    return f"PARTITIONED BY ({', '.join(table.partition_by)})" if table.partition_by else ""


def _safe(value: str) -> str:
    """Hours, dates and cluster ids are what goes into a predicate; anything else never came from a sample."""
    if not value or not all(c.isalnum() or c in "-_:. +/=" for c in value):
        raise UsageError(f"The name {value!r} cannot be used to address a part of a table.")
    return value


def _parse(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _first_line(text: str) -> str:
    """What went wrong without the stacks: a Python worker's own error stands at the end of its traceback."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    if any(line.startswith("Traceback") or "Python worker" in line for line in lines[:2]):
        lines = [line for line in lines if not line.startswith(("File ", "JVM stacktrace"))][1:2] + lines[-1:]
    return lines[0][:300] if lines else ""


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn Spark's and Delta's failures into one sentence that says what was being done."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except PySparkException as failure:
        first = _first_line(str(failure)) or type(failure).__name__
        if any(word in str(failure)[:2000] for word in _CONFLICTS):
            raise Refused(
                f"Another pipeline run changed the table while {doing}.",
                hint="Nothing was written twice; run again when the other one is done.",
            ) from failure
        raise Unavailable(
            f"Spark failed while {doing}: {first}", hint="Nothing half-written is visible; run again."
        ) from failure

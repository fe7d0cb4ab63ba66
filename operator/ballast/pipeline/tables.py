"""The store's tables through Spark: read them, and replace whole parts of them.

Every commit of a job carries a note (``table_log``) and a Delta transaction of its source's version, so that output and
progress change together or not at all.  A job killed before its commit leaves at most files that no version of the table
names; killed after it, the next run finds nothing to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ballast.adapters.samples_delta import table_url
from ballast.errors import Refused, Unavailable, UsageError
from ballast.pipeline.schemas import Table
from ballast.pipeline.table_log import Note, Position, TableLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPARK_S_OWN: Final = frozenset({"pyspark", "py4j", "delta"})
_CONFLICTS: Final = ("Concurrent", "DELTA_CONCURRENT")
_IN_PYTHON: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)")
_OURS: Final = re.compile(r"^ballast\.errors\.\w+: ")


class SparkTables:
    """One store: its log at once, its rows through a session that is started when the first row is wanted."""

    def __init__(self, open_session: Callable[[], SparkSession], store: str) -> None:
        self._open_session = open_session
        self.store = store
        self.log = TableLog(store)

    @cached_property
    def session(self) -> SparkSession:
        """The session."""
        return self._open_session()

    def url(self, table: Table) -> str:
        """Where a table lies."""
        return table_url(self.store, table.name)

    def read(self, table: Table, at: Position | None = None) -> DataFrame:
        """The table as it is, or as it was at a position."""
        reader = self.session.read.format("delta")
        if at is not None:
            reader = reader.option("versionAsOf", at.version)
        return reader.load(self.url(table))

    def replace(self, table: Table, frame: DataFrame, note: Note) -> None:
        """Replace the parts that the note names by the frame and record the note, in one commit."""
        quoted = ", ".join(f"'{_safe(v)}'" for v in note.replaced)
        (
            frame.select(*table.names)
            .write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", f"{table.partition_by[0]} IN ({quoted})")
            .option("txnAppId", f"{note.job}/{note.source_id}")
            .option("txnVersion", note.source_version)
            .option("userMetadata", note.text())
            .save(self.url(table))
        )

    def overwrite(self, table: Table, frame: DataFrame) -> None:
        """Replace the whole table in one commit; readers see the old rows or the new ones.

        Its columns too: one that an earlier Ballast made may have fewer.
        """
        self.log.ensure(table)
        written = frame.select(*table.names).write.format("delta").mode("overwrite")
        written.option("overwriteSchema", "true").save(self.url(table))


def _safe(value: str) -> str:
    """Hours, dates and cluster ids are what goes into a predicate; anything else never came from a sample."""
    if not value or not all(c.isalnum() or c in "-_:. +/=" for c in value):
        raise UsageError(f"The name {value!r} cannot be used to address a part of a table.")
    return value


def _first_line(text: str) -> str:
    """What went wrong without the stacks: of a Python worker's traceback, however often it is told, its error."""
    told = _IN_PYTHON.findall(text)
    if told:
        return _OURS.sub("", str(told[-1]))[:300]
    lines = [line.strip().removeprefix(": ") for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "An error occurred while calling"))]
    return lines[0][:300] if lines else ""


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn Spark's and Delta's failures into one sentence that says what was being done."""
    try:
        yield
    except Exception as failure:
        # Some of Delta's refusals arrive as PySpark's exceptions, others as those of the bridge to Java.
        if type(failure).__module__.split(".")[0] not in _SPARK_S_OWN:
            raise
        first = _first_line(str(failure)) or type(failure).__name__
        if any(word in str(failure)[:2000] for word in _CONFLICTS):
            raise Refused(
                f"Another pipeline run changed the table while {doing}.",
                hint="Nothing was written twice; run again when the other one is done.",
            ) from failure
        raise Unavailable(
            f"Spark failed while {doing}: {first}", hint="Nothing half-written is visible; run again."
        ) from failure

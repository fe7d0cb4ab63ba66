"""The store's tables: whole parts of them are replaced by the files that Spark's workers wrote.

Every commit of a job (``commits``) carries a note (``table_log``) and a Delta transaction of its source's version, so that
output and progress change together or not at all.  A job killed before its commit leaves at most files that no version of
the table names; killed after it, the next run finds nothing to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ballast.adapters.samples_delta import table_url
from ballast.errors import Unavailable
from ballast.pipeline.commits import replace_all, replace_parts
from ballast.pipeline.part_files import PartFile, Target
from ballast.pipeline.schemas import Table
from ballast.pipeline.table_log import Note, TableLog
from ballast.pipeline.workers import stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPARK_S_OWN: Final = frozenset({"pyspark", "py4j"})
_IN_PYTHON: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)")
_OURS: Final = re.compile(r"^ballast\.errors\.\w+: ")


class SparkTables:
    """One store: its log at once, its workers through a session that is started when the first of them is wanted."""

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

    def target(self, table: Table) -> Target:
        """The table as workers write for it."""
        return Target(table, self.url(table))

    def replace(self, table: Table, files: DataFrame, note: Note) -> int | None:
        """Let workers make these files, and replace the parts that the note names by them, in one commit.

        The rows that are there now; None where a newer run has replaced them already.
        """
        made = _collected(files)
        return sum(file.rows for file in made) if replace_parts(self.target(table), made, note) else None

    def overwrite(self, table: Table, rows: DataFrame) -> int:
        """Replace the whole table in one commit, and say how many rows it has.

        Its columns too: one that an earlier Ballast made may have fewer.
        """
        self.log.ensure(table)
        made = _collected(stored(rows, self.target(table)))
        replace_all(self.target(table), made)
        return sum(file.rows for file in made)


def _collected(files: DataFrame) -> list[PartFile]:
    """What workers wrote: a row for each file, which is all that ever comes to the driver."""
    return [PartFile(**row.asDict()) for row in files.collect()]


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
    """Turn Spark's failures into one sentence that says what was being done."""
    try:
        yield
    except Exception as failure:
        # Some arrive as PySpark's exceptions, others as those of the bridge to Java.
        if type(failure).__module__.split(".")[0] not in _SPARK_S_OWN:
            raise
        first = _first_line(str(failure)) or type(failure).__name__
        raise Unavailable(
            f"Spark failed while {doing}: {first}", hint="Nothing half-written is visible; run again."
        ) from failure

"""Reads and writes the store's tables with Spark; the only place that does, but for a fleet's readings.

Every commit of a job replaces whole parts of its table (``replaceWhere``) under a Delta transaction (``txnAppId``,
``txnVersion``): killed before it, a job has done nothing; killed after it, the next run finds nothing to do; and a run that was
overtaken by a newer one is skipped by Delta itself.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ballast.core.samples import Table
from ballast.errors import Refused, Unavailable
from ballast.pipeline.table_log import TableLog, Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPARK_S_OWN: Final = frozenset({"pyspark", "py4j", "delta", "grpc"})
_CONFLICT: Final = re.compile(r"DELTA_CONCURRENT|Concurrent\w*Exception|DELTA_METADATA_CHANGED")
_OUT_OF_REACH: Final = re.compile(
    r"DELTA_(MISSING_CHANGE|CHANGE_DATA|VERSION_NOT|LOG_FILE_NOT|TRUNCATED)|FileNotFound|FILE_NOT_EXIST|DELTA_FILE_NOT"
)
"""The feed does not reach back so far: the log of that time, or a file of it, is gone."""
_IN_PYTHON: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)")
_OURS: Final = re.compile(r"^ballast\.errors\.\w+: ")


class Change(NamedTuple):
    """Which parts of a table have new rows, and of which clusters these are."""

    parts: tuple[Any, ...]
    clusters: tuple[str, ...]


class SparkTables:
    """One store: its log at once, its rows through a session that is started when the first of them is wanted.

    Jobs use it side by side.
    """

    def __init__(self, open_session: Callable[[], SparkSession], store: str) -> None:
        self._open_session = open_session
        self.store = store
        self.log = TableLog(store)
        self._starting, self._changes_lock = Lock(), Lock()
        self._session: SparkSession | None = None
        self._changes: dict[tuple[str, int | None, int], Change] = {}

    @property
    def session(self) -> SparkSession:
        """The session."""
        with self._starting:
            self._session = self._session or self._open_session()
        return self._session

    def read(self, table: Table, *, version: int | None = None, where: str | None = None) -> DataFrame:
        """The table, as it was at a version, and only the rows that a predicate chooses."""
        reader = self.session.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        rows = reader.load(self.log.url(table))
        return rows if where is None else rows.where(where)

    def find_changes(self, table: Table, task: Task) -> Change:
        """The parts of a source with rows that are new since the job last ran, by its change data feed; at first, all of them.

        Rows that retention deletes or compaction rewrites are not new.  Jobs that ask the same share one answer.
        """
        asked = task.app.partition("/")[2], task.done, task.version
        with self._changes_lock:
            if asked not in self._changes:
                self._changes[asked] = self._read_changes(table, task)
            return self._changes[asked]

    def _read_changes(self, table: Table, task: Task) -> Change:
        columns = list(dict.fromkeys([table.partition_by[0], "cluster"]))
        self.describe(f"{table.name}: what is new")
        if task.done is not None:
            feed = self.session.read.format("delta").option("readChangeFeed", "true")
            feed = feed.option("startingVersion", task.done + 1).option("endingVersion", task.version)
            try:
                inserted = feed.load(self.log.url(table)).where("_change_type = 'insert'")
                return _distinct(inserted, columns)
            except Exception as failure:
                if not _is(failure, _OUT_OF_REACH):
                    raise
        return _distinct(self.read(table, version=task.version), columns)

    def replace(self, table: Table, rows: DataFrame, parts: Sequence[Any], task: Task) -> int | None:
        """Replace these parts of a table in one commit.

        How many rows it wrote; None where a newer run has replaced them already.
        """
        self.describe(f"{table.name}: {first_and_last(parts)}")
        return self._write(
            table,
            rows,
            replaceWhere=among(table.partition_by[0], parts),
            txnAppId=task.app,
            txnVersion=task.version,
        )

    def overwrite(self, table: Table, rows: DataFrame) -> int:
        """Replace the whole table in one commit, and say how many rows it has."""
        self.log.ensure(table)
        self.describe(table.name)
        written = self._write(table, rows)
        assert written is not None, "without a transaction nothing is skipped"
        return written

    def _write(self, table: Table, rows: DataFrame, **options: Any) -> int | None:
        """How many rows the commit wrote; None where Delta skipped it, since a newer one had come before."""
        run = uuid.uuid4().hex
        write = rows.write.format("delta").mode("overwrite").options(userMetadata=run, **options)
        write.save(self.log.url(table))
        metrics = self.log.metrics(table, userMetadata=run)
        return None if metrics is None else int(metrics.get("numOutputRows", 0))

    def describe(self, work: str) -> None:
        """Name what comes next in Spark's own UI and event log."""
        if type(self.session).__module__.startswith("pyspark.sql.connect"):
            self.session.clearTags()
            self.session.addTag(work.replace(",", " "))
        else:
            self.session.sparkContext.setJobDescription(work)


def _distinct(rows: DataFrame, columns: list[str]) -> Change:
    found = [tuple(row) for row in rows.select(*columns).distinct().collect()]
    parts, clusters = ({_utc(row[at]) for row in found} for at in (0, -1))
    return Change(tuple(sorted(parts)), tuple(sorted(clusters)))


def _utc(value: Any) -> Any:
    """Spark hands a timestamp out as a naive time of this machine."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def literal(value: Any) -> str:
    """A value as SQL writes it; timestamps are those of a session in UTC."""
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}'"
    if isinstance(value, date):
        return f"DATE '{value}'"
    if isinstance(value, int):
        return str(value)
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def among(column: str, values: Sequence[Any]) -> str:
    """The predicate that chooses these values."""
    return f"{column} IN ({', '.join(literal(v) for v in values)})"


def first_and_last(parts: Sequence[Any]) -> str:
    """The first and the last of these parts, for people."""
    ends = [name_of(parts[0]), name_of(parts[-1])] if parts else []
    return " … ".join(dict.fromkeys(ends))


def name_of(part: Any) -> str:
    """An hour as ``2026-11-21T14``, a day as ``2026-11-21``, anything else as it is."""
    return f"{part:%Y-%m-%dT%H}" if isinstance(part, datetime) else str(part)


def _first_line(text: str) -> str:
    """What went wrong without the stacks: of a Python worker's traceback, however often it is told, its error."""
    told = _IN_PYTHON.findall(text)
    if told:
        return _OURS.sub("", str(told[-1]))[:300]
    lines = [line.strip().removeprefix(": ") for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "An error occurred while calling"))]
    return lines[0][:300] if lines else ""


def _is(failure: Exception, conditions: re.Pattern[str]) -> bool:
    """Whether this is one of these error conditions.

    PySpark's exceptions name theirs (older ones as the error class), and what Delta names is that; what Spark wraps, and what
    comes over the bridge to Java, has it in its text alone.
    """
    name: object = None
    for ask in ("getCondition", "getErrorClass"):
        # Both ask Java, which may be gone by now.
        with suppress(Exception):
            name = name or getattr(failure, ask)()
    condition = name if isinstance(name, str) else ""
    found = conditions.search(condition) is not None
    return found or (not condition.startswith("DELTA_") and conditions.search(str(failure)) is not None)


@contextmanager
def translate_errors(doing: str) -> Iterator[None]:
    """Turn Spark's failures into one sentence that says what was being done."""
    try:
        yield
    except Exception as failure:
        # Some arrive as PySpark's exceptions, others as those of the bridge to Java.
        if type(failure).__module__.split(".")[0] not in _SPARK_S_OWN:
            raise
        if _is(failure, _CONFLICT):
            raise Refused(
                f"Another pipeline run changed the table at the same time, while {doing}.",
                hint="Nothing was written twice; run again when the other one is done.",
            ) from failure
        first = _first_line(str(failure)) or type(failure).__name__
        raise Unavailable(
            f"Spark failed while {doing}: {first}", hint="Nothing half-written is visible; run again."
        ) from failure

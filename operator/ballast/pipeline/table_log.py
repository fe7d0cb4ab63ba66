"""What the tables' own logs say: where each is, how far each job has come, what is new; and their tidying.  Without Spark.

A question to Spark costs a second or more before it has read anything, and a run of the pipeline asks dozens; from the log
each takes milliseconds.  A run that finds nothing new never starts Spark at all.

Every commit of a job carries a ``Note``: which version of its source it used up, which parts of its table it replaced and
whose.  So progress and output change together or not at all, and the next job learns from the note what it must fold again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from ballast.adapters.arrow_schema import arrow_schema
from ballast.adapters.samples_delta import MINUTE_FILES, check_layout, describe, table_url
from ballast.errors import Unavailable
from ballast.pipeline.leftovers import free
from ballast.pipeline.logged_files import File, files_of
from ballast.pipeline.schemas import Table

_HISTORY: Final = 200
"""Commits that are searched for a job's progress; older progress means folding everything that is there again."""
_CHANGES_NO_ROW: Final = frozenset(
    {"CREATE TABLE", "OPTIMIZE", "VACUUM START", "VACUUM END", "DELETE", "SET TBLPROPERTIES"}
)
"""Commits without a note that make nobody fold anything: what retention deletes must stay forgotten."""
_CONFIGURATION: Final[dict[str, str | None]] = {"delta.logRetentionDuration": "interval 7 days"}

_FEED: Final = pa.schema(
    [("cluster", pa.string()), ("hour", pa.string()), ("minute", pa.int32()), ("_change_type", pa.string())]
)


@dataclass(frozen=True, slots=True)
class Position:
    """How far a table, or a job's reading of it, has come."""

    table_id: str
    version: int


@dataclass(frozen=True, slots=True)
class Note:
    """What a job's commit says of itself."""

    job: str
    source_id: str
    source_version: int
    replaced: tuple[str, ...] = ()
    """The parts (hours, days, clusters) that the commit replaced; empty in commits that did not say it yet."""
    clusters: tuple[str, ...] = ()
    """The clusters whose rows may have changed."""

    @property
    def source(self) -> Position:
        """The source as the job read it."""
        return Position(self.source_id, self.source_version)

    def text(self) -> str:
        """As it stands in the commit."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str | None) -> Note | None:
        """Back from a commit; None for a commit that is nobody's job."""
        try:
            found = json.loads(text or "")
            return cls(
                str(found["job"]),
                str(found["source_id"]),
                int(found["source_version"]),
                tuple(str(v) for v in found.get("replaced", ())),
                tuple(str(v) for v in found.get("clusters", ())),
            )
        except (ValueError, KeyError, TypeError):
            return None


class News(NamedTuple):
    """Which parts of a table, and whose rows, changed."""

    parts: tuple[str, ...]
    clusters: tuple[str, ...]


class NewMinutes(NamedTuple):
    """The minutes that samples were added for, as columns without repetition."""

    hour: tuple[str, ...]
    minute: tuple[int, ...]
    clusters: tuple[str, ...]


class TableLog:
    """The logs of one store's tables."""

    def __init__(self, store: str) -> None:
        self.store = store

    def position(self, table: Table) -> Position | None:
        """The table's identity and newest version, its layout checked; None where there is none yet."""
        with _translated(table):
            found = self._open(table)
            return None if found is None else Position(str(found.metadata().id), int(found.version()))

    def ensure(self, table: Table) -> None:
        """Create the table unless it is there; refuse one of a newer layout."""
        if self.position(table) is not None:
            return
        with _translated(table):
            try:
                DeltaTable.create(
                    self._url(table),
                    schema=arrow_schema(table.columns),
                    mode="ignore",
                    partition_by=list(table.partition_by),
                    description=describe(table.name, table.version),
                    configuration=_CONFIGURATION,
                )
            except DeltaError:
                # Another run may have made it in the meantime; only a table that is still not there is a failure.
                if self._open(table) is None:
                    raise

    def progress(self, table: Table) -> Position | None:
        """How far the job that writes ``table`` has read its source; None where it never ran."""
        with _translated(table):
            for _, _, note in self._commits(table):
                if note is not None and note.job == table.name:
                    return note.source
        return None

    def parts(self, table: Table, at: Position | None = None) -> tuple[str, ...]:
        """The values of the column that the table is partitioned by, in order."""
        with _translated(table):
            actions = pa.table(self._at(table, at).get_add_actions(flatten=True))
            column = f"partition.{table.partition_by[0]}"
            return tuple(sorted(set(actions.column(column).to_pylist()))) if len(actions) else ()

    def news(self, table: Table, since: Position | None, until: Position) -> News:
        """What changed after ``since``; everything that is there where that cannot be told."""
        with _translated(table):
            noted: list[Note] = []
            reached = since is not None and since.table_id == until.table_id and since.version <= until.version
            if reached and since is not None:
                reached = False
                for version, operation, note in self._commits(table):
                    if version > until.version:
                        continue
                    if version <= since.version:
                        reached = True
                        break
                    if note is not None and note.replaced and note.clusters:
                        noted.append(note)
                    elif operation not in _CHANGES_NO_ROW:
                        break
            if not reached:
                return News(self.parts(table, until), self._clusters(table, until))
        return News(_union(n.replaced for n in noted), _union(n.clusters for n in noted))

    def new_minutes(self, table: Table, since: Position | None, until: Position) -> NewMinutes:
        """The minutes of samples added after ``since``; all that are there where that cannot be told."""
        columns = ["cluster", "hour", "minute"]
        with _translated(table):
            rows = None
            if since is not None and since.table_id == until.table_id and since.version < until.version:
                rows = self._inserted(table, since.version + 1, until.version, columns)
            if rows is None:
                rows = self._at(table, until).to_pyarrow_table(columns=columns)
        distinct = (
            rows.group_by(["hour", "minute"]).aggregate([]).sort_by([("hour", "ascending"), ("minute", "ascending")])
        )
        clusters = pc.unique(rows.column("cluster")).to_pylist()
        return NewMinutes(
            tuple(distinct.column("hour").to_pylist()), tuple(distinct.column("minute").to_pylist()), _union([clusters])
        )

    def distinct(
        self, table: Table, at: Position, parts: Collection[str], columns: Sequence[str]
    ) -> list[tuple[Any, ...]]:
        """What small columns hold in whole parts, each combination once."""
        with _translated(table):
            chosen = [(table.partition_by[0], "in", sorted(parts))]
            rows = self._at(table, at).to_pyarrow_table(filters=chosen, columns=list(columns))
        found = rows.group_by(list(columns)).aggregate([]).to_pydict()
        return list(zip(*(found[name] for name in columns), strict=True))

    def bytes_of(self, table: Table) -> int:
        """Bytes of the table's files; 0 where there is none."""
        with _translated(table):
            found = self._open(table)
            actions = None if found is None else pa.table(found.get_add_actions(flatten=True))
            return 0 if actions is None or not len(actions) else int(pc.sum(actions.column("size_bytes")).as_py())

    def files(self, table: Table, at: Position, parts: Collection[str]) -> tuple[File, ...]:
        """The files of whole parts, as the log has them."""
        with _translated(table):
            return tuple(file for file in files_of(self._at(table, at), table) if file.part in parts)

    def column(self, table: Table, name: str) -> Any:
        """One column of the table as it is, for the few small things that need one."""
        with _translated(table):
            return self._at(table, None).to_pyarrow_table(columns=[name]).column(name)

    def forget(self, table: Table, oldest: str) -> int:
        """Delete the parts before ``oldest``, whole; returns how many there were."""
        gone = [part for part in self.parts(table) if part < oldest]
        if gone:
            with _translated(table):
                names = ", ".join(f"'{part}'" for part in gone)
                self._at(table, None).delete(f"{table.partition_by[0]} IN ({names})")
        return len(gone)

    def compact(self, table: Table, before: str) -> None:
        """Merge the small files of closed parts of the minute table; changes no row and no job's reading."""
        closed = [part for part in self.parts(table) if part < before]
        if closed:
            with _translated(table):
                self._at(table, None).optimize.compact(
                    partition_filters=[(table.partition_by[0], "in", closed)], writer_properties=MINUTE_FILES
                )

    def vacuum(self, table: Table) -> None:
        """Remove files that no version within Delta's own safe retention (7 days) needs, those of killed writers included."""
        with _translated(table):
            free(self._at(table, None))

    def _inserted(self, table: Table, first: int, last: int, columns: list[str]) -> Any:
        """Rows that commits added, from the change feed; None where the log does not reach back that far."""
        try:
            feed = self._at(table, None).load_cdf(
                starting_version=first, ending_version=last, columns=[*columns, "_change_type"]
            )
            changes = pa.table(feed).cast(_FEED)
        except (DeltaError, pa.ArrowException, OSError):
            return None
        return changes.filter(pc.equal(changes.column("_change_type"), "insert")).select(columns)

    def _clusters(self, table: Table, at: Position) -> tuple[str, ...]:
        rows = self._at(table, at).to_pyarrow_table(columns=["cluster"])
        return _union([pc.unique(rows.column("cluster")).to_pylist()])

    def _commits(self, table: Table) -> Iterator[tuple[int, str, Note | None]]:
        """The newest commits, the newest first."""
        found = self._open(table)
        for entry in found.history(_HISTORY) if found is not None else ():
            yield int(entry["version"]), str(entry.get("operation")), Note.parse(entry.get("userMetadata"))

    def _at(self, table: Table, at: Position | None) -> Any:
        return DeltaTable(self._url(table), version=None if at is None else at.version)

    def _open(self, table: Table) -> Any:
        try:
            found = DeltaTable(self._url(table))
        except TableNotFoundError:
            return None
        check_layout(table.name, found.metadata().description, known=table.version)
        return found

    def _url(self, table: Table) -> str:
        return table_url(self.store, table.name)


def _union(groups: Any) -> tuple[str, ...]:
    return tuple(sorted({value for group in groups for value in group}))


@contextmanager
def read_of_store(what: str) -> Iterator[None]:
    """One sentence; delta-rs's own texts may carry signed addresses."""
    try:
        yield
    except (DeltaError, OSError) as failure:
        raise Unavailable(
            f"{what[0].upper()}{what[1:]} could not be read ({type(failure).__name__}).",
            hint="Check the store's address and credentials.",
        ) from failure


def _translated(table: Table) -> AbstractContextManager[None]:
    return read_of_store(f"the log of the table {table.name}")


@contextmanager
def in_a_worker(doing: str) -> Iterator[None]:
    """In a Spark worker, which may lack what the driver has: one sentence, likewise without delta-rs's texts."""
    try:
        yield
    except (DeltaError, OSError) as failure:
        raise Unavailable(
            f"A worker could not {doing} ({type(failure).__name__}).",
            hint="Check that the workers reach the store and have its credentials in their environment.",
        ) from failure

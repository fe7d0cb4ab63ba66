"""The minute table's files as a worker reads them: only the row groups that may hold wanted rows, rows picked by their keys.

PyArrow's own datasets would do this as well, but with them comes pandas, whose import takes longer than reading an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from ballast.pipeline.table_log import Position

_CHOSEN_BY: Final = ("cluster", "minute", "chunk")
_KEYS: Final = (*_CHOSEN_BY, "taken_at_ms")
_LOGGED: Final = ("path", "partition.hour", *(f"{which}.{name}" for which in ("min", "max") for name in _CHOSEN_BY))

HOURS_HELD: Final = 3
"""Hours whose files a worker keeps open with their footers: shares come hour by hour, each needs its hour and the one before,
and the third is the one that goes when the next hour comes."""

Range = tuple[int, int]
"""The first that is in it and the first that is not."""


class Row(NamedTuple):
    """One row: when it was taken, and its cells as a table of one row."""

    hour: str
    minute: int
    chunk: int
    taken_at_ms: int
    cells: Any


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows: of one cluster, of some minutes of some hours, and of some chunks."""

    cluster: str
    minutes: Mapping[str, Range]
    chunks: tuple[Range, ...]

    def has(self, cluster: str, minute: int, chunk: int, within: Range) -> bool:
        """Is this row one of them?"""
        return (
            cluster == self.cluster
            and within[0] <= minute < within[1]
            and any(first <= chunk < end for first, end in self.chunks)
        )

    def may_have(self, bounds: Mapping[str, tuple[Any, Any]], within: Range) -> bool:
        """Can any of them be among rows with these least and greatest values?  Columns without bounds may hold anything."""
        wanted: dict[str, tuple[tuple[Any, Any], ...]] = {
            "cluster": ((self.cluster, self.cluster),),
            "minute": (_inclusive(within),),
            "chunk": tuple(_inclusive(chunks) for chunks in self.chunks),
        }
        return all(
            any(least <= high and low <= most for low, high in wanted[name])
            for name, (least, most) in bounds.items()
            if least is not None and most is not None
        )


def _inclusive(range_: Range) -> Range:
    return range_[0], range_[1] - 1


@dataclass(frozen=True)
class _File:
    """A file of one hour."""

    filesystem: Any
    path: str
    hour: str
    bounds: Mapping[str, tuple[Any, Any]]

    @cached_property
    def opened(self) -> Any:
        return pq.ParquetFile(self.path, filesystem=self.filesystem)

    @cached_property
    def groups(self) -> list[dict[str, tuple[Any, Any]]]:
        """Least and greatest values of each row group."""
        told = self.opened.metadata
        place = {told.schema.column(c).path: c for c in range(told.num_columns)}

        def bounds(group: int, name: str) -> tuple[Any, Any]:
            found = told.row_group(group).column(place[name]).statistics
            return (found.min, found.max) if found is not None and found.has_min_max else (None, None)

        return [{name: bounds(group, name) for name in _CHOSEN_BY} for group in range(told.num_row_groups)]

    def rows(self, wanted: Wanted, columns: Sequence[str]) -> Iterator[Row]:
        within = wanted.minutes.get(self.hour)
        if within is None or not wanted.may_have(self.bounds, within):
            return
        chosen = [at for at, bounds in enumerate(self.groups) if wanted.may_have(bounds, within)]
        stored = [name for name in columns if name != "hour"]
        for group in chosen:
            table = self.opened.read_row_group(group, columns=stored, use_threads=False)
            table = table.append_column("hour", pa.repeat(self.hour, len(table)))
            keys = zip(*(table.column(name).to_pylist() for name in _KEYS), strict=True)
            for at, (cluster, minute, chunk, taken_at_ms) in enumerate(keys):
                if wanted.has(cluster, minute, chunk, within):
                    yield Row(self.hour, minute, chunk, taken_at_ms, table.slice(at, 1))


def rows_of(url: str, at: Position, wanted: Wanted, columns: Sequence[str]) -> list[Row]:
    """The wanted rows in the order in which they were taken.  Their cells are slices of what was read, not copies.

    ``columns`` name the cells to read, the keys (cluster, minute, chunk, taken_at_ms) among them.
    """
    files = [file for hour in wanted.minutes for file in _files(url, at, hour)]
    return sorted((row for file in files for row in file.rows(wanted, columns)), key=lambda row: row[:-1])


@lru_cache(maxsize=HOURS_HELD)
def _files(url: str, at: Position, hour: str) -> tuple[_File, ...]:
    """The files of an hour, opened once by a worker that folds several shares of it."""
    filesystem, added = _table(url, at)
    return tuple(
        _File(
            filesystem,
            unquote(row["path"]),
            hour,
            {name: (row.get(f"min.{name}"), row.get(f"max.{name}")) for name in _CHOSEN_BY},
        )
        for row in added.filter(pc.equal(added.column("partition.hour"), hour)).to_pylist()
    )


@lru_cache(maxsize=1)
def _table(url: str, at: Position) -> tuple[Any, Any]:
    """How to open the table's files, and what its log says of them: days of minutes are too many for rows in Python."""
    table = DeltaTable(url, version=at.version)
    added = pa.table(table.get_add_actions(flatten=True))
    sizes = dict(zip(*(added.column(name).to_pylist() for name in ("path", "size_bytes")), strict=True))
    logged = added.select([name for name in added.column_names if name in _LOGGED])
    return PyFileSystem(DeltaStorageHandler(table.table_uri, known_sizes=sizes)), logged

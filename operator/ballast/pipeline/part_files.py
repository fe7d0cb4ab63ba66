"""Finished rows as Parquet files of a table, written where they were made: in Spark's workers, past its JVM.

A worker answers a row for each file, and nothing else.  A file counts only once a commit names it (``commits``): those of an
attempt that failed, was killed or was overtaken by its twin are in no version of the table, and ``vacuum`` removes them.
Names are drawn anew for each attempt, so no two ever write the same file.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from ballast.adapters.arrow_schema import arrow_schema
from ballast.core.samples import Column
from ballast.pipeline.schemas import Table

WRITTEN: Final = (
    Column("path", "string", "below the table's folder"),
    Column("part", "string", "the value that the table is partitioned by; null where it is not"),
    Column("size_bytes", "bigint", "size of the file"),
    Column("rows", "bigint", "rows in it"),
    Column("written_ms", "bigint", "wall clock when it was closed, milliseconds since the epoch"),
    Column("first_cluster", "string", "the least of its clusters; null where the table is partitioned by it"),
    Column("last_cluster", "string", "the greatest of them"),
)
"""What workers answer."""
WRITTEN_DDL: Final = ", ".join(f"{column.name} {column.type}" for column in WRITTEN)
_ANSWER: Final = arrow_schema(WRITTEN)


class PartFile(NamedTuple):
    """A finished file: a row of ``WRITTEN``."""

    path: str
    part: str | None
    size_bytes: int
    rows: int
    written_ms: int
    first_cluster: str | None
    last_cluster: str | None


@dataclass(frozen=True, slots=True)
class Target:
    """The table to write for."""

    table: Table
    url: str


def written(target: Target, rows: Iterable[Any], label: str = "") -> Iterator[PartFile]:
    """Write record batches of the table's columns, into a new file for each part; told of once all of them are closed."""
    open_files: dict[str | None, _OpenFile] = {}
    with ExitStack() as stack:
        for batch in rows:
            for part, own in _by_part(target.table, batch):
                if part not in open_files:
                    open_files[part] = stack.enter_context(_created(target, part, label))
                open_files[part].add(own)
    yield from (file.finished() for file in open_files.values())


def answered(files: Iterable[PartFile]) -> Any:
    """Files as what a worker hands to Spark."""
    return pa.RecordBatch.from_pylist([file._asdict() for file in files], schema=_ANSWER)


@dataclass(slots=True)
class _OpenFile:
    filesystem: Any
    path: str
    part: str | None
    writer: Any
    rows: int = 0
    clusters: tuple[str, ...] = ()
    """The least and the greatest so far."""

    def add(self, table: Any) -> None:
        # Spark marks columns that are never null; to the table's own layout every column may be.
        self.writer.write_table(table.cast(self.writer.schema))
        self.rows += len(table)
        if "cluster" in table.column_names:
            bounds = pc.min_max(table.column("cluster")).as_py().values()
            self.clusters = (min(*self.clusters, *bounds), max(*self.clusters, *bounds))

    def finished(self) -> PartFile:
        """Only once the file is closed."""
        size = int(self.filesystem.get_file_info(self.path).size)
        first, last = self.clusters or (None, None)
        return PartFile(self.path, self.part, size, self.rows, time.time_ns() // 1_000_000, first, last)


@contextmanager
def _created(target: Target, part: str | None, label: str) -> Iterator[_OpenFile]:
    filesystem = _filesystem(target.url)
    folder = f"{target.table.partition_by[0]}={quote(part, safe='')}/" if part is not None else ""
    path = f"{folder}part-{label}{uuid4()}.parquet"
    stored = [column for column in target.table.columns if column.name not in target.table.partition_by]
    with (
        filesystem.open_output_stream(path) as stream,
        pq.ParquetWriter(
            stream,
            arrow_schema(stored),
            compression="zstd",
            compression_level=1,
            use_dictionary=[column.name for column in stored if column.type in ("string", "int")],
            write_statistics=["cluster"],
            store_schema=False,
        ) as writer,
    ):
        yield _OpenFile(filesystem, path, part, writer)


def _by_part(table: Table, batch: Any) -> Iterator[tuple[str | None, Any]]:
    """The rows of each part, without the column that names it; mostly there is one."""
    whole = pa.Table.from_batches([batch])
    if not len(whole):
        return
    if not table.partition_by:
        yield None, whole
        return
    name = table.partition_by[0]
    column, stored = whole.column(name), whole.drop_columns([name])
    parts = pc.unique(column).to_pylist()
    for part in parts:
        yield part, stored if len(parts) == 1 else stored.filter(pc.equal(column, part))


@lru_cache(maxsize=4)
def _filesystem(url: str) -> Any:
    """Opened in the process that writes: what delta-rs runs on does not survive a fork."""
    return PyFileSystem(DeltaStorageHandler(url))

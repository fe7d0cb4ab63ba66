"""The rows of folded tables straight from their files into the next fold, as ``minute_reader`` has it for samples.

A share is some chunks of one cluster: its files are told by their names and the log's bounds, its rows by their own keys.
So days and the model need no shuffle, and a worker holds one share at a time, its strings as numbers of a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from ballast.adapters.arrow_schema import arrow_schema
from ballast.core.cluster import Ints
from ballast.core.samples import CHUNKS_PER_ROW_GROUP
from ballast.pipeline.chunks import Chunks
from ballast.pipeline.logged_files import File, files_of
from ballast.pipeline.schemas import DISK_HOUR, LOAD_DAY, LOAD_HOUR, Table
from ballast.pipeline.table_log import Position

DAY_OF: Final = (
    *("cluster", "hour", "topic", "topic_id", "partition", "minutes_led", "bytes_in_led", "bytes_in_max_led"),
    *("rate_bucket", "rate_count", "records_in", "minutes_out", "bytes_out", "out_bucket", "out_count", "size_last"),
)
"""Of ``load_hour``, what days are made of."""
_NAMES: Final = ["cluster", "topic", "topic_id"]
_CODED: Final = pa.dictionary(pa.int32(), pa.string())
_ROWS_AT_ONCE: Final = 50_000
"""Rows that a fold is handed together; around a kilobyte each in the model's case."""


class RowShare(NamedTuple):
    """Some chunks of one cluster, in some parts of a table."""

    cluster: str
    parts: tuple[str, ...]
    cut: Chunks


@dataclass(frozen=True, slots=True)
class Rows:
    """A folded table at a version, and the shares of it that are to be folded on."""

    url: str
    at: Position
    shares: tuple[RowShare, ...]


def shares_of(files: Iterable[File], clusters: Iterable[str], parts: Sequence[str]) -> tuple[RowShare, ...]:
    """The shares of these clusters in these parts, whose files these are; cut as finely as any file of the cluster is."""
    told = [file for file in files if file.cut is not None]
    shares = []
    for cluster in sorted(clusters):
        count = max((file.cut.of for file in told if file.cut and file.may_have(cluster)), default=1)
        cuts = [*range(0, count, CHUNKS_PER_ROW_GROUP), count]
        shares += [RowShare(cluster, tuple(parts), Chunks(first, end, count)) for first, end in pairwise(cuts)]
    return tuple(shares)


def read_hours(source: Rows, share: RowShare) -> Iterator[Any]:
    """Rows of the brokers that led, with their ``date``, by partition and hour."""
    table = _share(source, share, LOAD_HOUR, DAY_OF)
    if table is None:
        return
    table = table.filter(pc.or_(pc.greater(table["minutes_led"], 0), pc.greater(table["minutes_out"], 0)))
    for batch in _by_partition(table):
        yield batch.append_column("date", pc.utf8_slice_codeunits(batch.column("hour"), 0, 10))


def read_days(source: Rows, share: RowShare) -> Iterator[Any]:
    """Days by partition and date."""
    table = _share(source, share, LOAD_DAY, LOAD_DAY.names)
    if table is not None:
        yield from _by_partition(table)


def read_log_dirs(source: Rows, share: RowShare) -> Iterator[Any]:
    """The hours of a cluster's log dirs, hour by hour."""
    table = _share(source, share, DISK_HOUR, DISK_HOUR.names)
    if table is not None:
        yield from _plain(table)


def _share(source: Rows, share: RowShare, layout: Table, columns: Sequence[str]) -> Any:
    """All rows of a share, part by part; None where there are none."""
    filesystem, files = _opened(source.url, source.at, layout)
    parts = frozenset(share.parts)
    found = [
        rows
        for file in files
        if file.part in parts and file.may_have(share.cluster) and (file.cut is None or file.cut.meets(share.cut))
        for rows in _rows(filesystem, file, share, layout, columns)
        if len(rows)
    ]
    return pa.concat_tables(found).unify_dictionaries() if found else None


def _rows(filesystem: Any, file: File, share: RowShare, layout: Table, columns: Sequence[str]) -> Iterator[Any]:
    by = layout.partition_by[0]
    stored = [name for name in columns if name != by]
    coded = [name for name in stored if name in _NAMES]
    form = _form(layout, stored)
    opened = pq.ParquetFile(file.path, filesystem=filesystem, read_dictionary=coded)
    place = {opened.metadata.schema.column(c).path: c for c in range(opened.metadata.num_columns)}
    for group in range(opened.num_row_groups):
        bounds = opened.metadata.row_group(group).column(place["cluster"]).statistics
        if bounds is not None and bounds.has_min_max and not bounds.min <= share.cluster <= bounds.max:
            continue
        table = opened.read_row_group(group, columns=stored, use_threads=False)
        if file.cluster != share.cluster:
            table = table.filter(pc.equal(table["cluster"].cast(pa.string()), share.cluster))
        if not share.cut.has_all_of(file.cut):
            table = table.filter(pa.array(share.cut.holds(table["topic"].combine_chunks(), table["partition"])))
        # Another program may order columns otherwise, or say of some that they are never null.
        table = table.select(stored).cast(form)
        yield table.append_column(by, pa.repeat(file.part, len(table)).dictionary_encode())


def _form(layout: Table, stored: Iterable[str]) -> Any:
    """The types of these columns as they are read."""
    types = {field.name: field.type for field in arrow_schema(layout.columns)}
    return pa.schema([(name, _CODED if name in _NAMES else types[name]) for name in stored])


def _by_partition(table: Any) -> Iterator[Any]:
    """The rows a partition's one after another, each partition's in the order in which they were read."""
    topic, topic_id = (_codes(table.column(name)) for name in ("topic", "topic_id"))
    ids = int(topic_id.max(initial=0)) + 1
    order = np.argsort(((topic * ids + topic_id) << 32) | table.column("partition").to_numpy(), kind="stable")
    for begin in range(0, len(order), _ROWS_AT_ONCE):
        yield from _plain(table.take(pa.array(order[begin : begin + _ROWS_AT_ONCE])))


def _plain(table: Any) -> Iterator[Any]:
    """Rows with their strings as strings, which is what folds take."""
    columns = [c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    yield from pa.table(columns, names=table.column_names).combine_chunks().to_batches()


def _codes(column: Any) -> Ints:
    """What each row's name is called in the dictionary, which all chunks share."""
    return np.concatenate([chunk.indices.to_numpy() for chunk in column.chunks]).astype(np.int64)


@lru_cache(maxsize=2)
def _opened(url: str, at: Position, layout: Table) -> tuple[Any, tuple[File, ...]]:
    """How to open a table's files, and what its log says of them; once for a worker's shares."""
    table = DeltaTable(url, version=at.version)
    files = files_of(table, layout)
    sizes = {file.path: file.size_bytes for file in files}
    return PyFileSystem(DeltaStorageHandler(table.table_uri, known_sizes=sizes)), files

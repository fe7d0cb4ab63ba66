"""Arrow columns to NumPy and back, and groups that are whole across batches.  No Spark here: these run in its workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ballast.adapters.arrow_schema import arrow_schema, arrow_type
from ballast.core.cluster import Ints
from ballast.core.samples import PACKED, Column
from ballast.pipeline.schemas import Table


def numbers(column: Any) -> npt.NDArray[Any]:
    """A column without nulls as an array."""
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array: npt.NDArray[Any] = flat.to_numpy(zero_copy_only=False)
    return array


def values(column: Any) -> npt.NDArray[Any]:
    """The entries of a list column, one list after another."""
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array: npt.NDArray[Any] = flat.flatten().to_numpy(zero_copy_only=False)
    return array


def unpacked(name: str, cell: Any) -> npt.NDArray[Any] | None:
    """The entries of one packed cell of the minute table; None for a null."""
    if not cell.is_valid:
        return None
    entries: npt.NDArray[Any] = np.frombuffer(cell.as_buffer(), PACKED[name])
    return entries


def all_unpacked(name: str, column: Any) -> npt.NDArray[Any]:
    """The entries of every cell of a packed column, one after another."""
    cells = (unpacked(name, cell) for cell in column)
    return np.concatenate([c for c in cells if c is not None] or [np.zeros(0, PACKED[name])])


def lengths(column: Any) -> Ints:
    """How long each list is; a null is empty."""
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    offsets = flat.offsets.to_numpy()
    return np.where(flat.is_null().to_numpy(zero_copy_only=False), 0, np.diff(offsets)).astype(np.int64)


def starts(column: Any) -> Ints:
    """Where each list begins within ``values``; one longer than the column."""
    return np.concatenate(([0], np.cumsum(lengths(column))))


def matrix(column: Any, width: int) -> npt.NDArray[Any]:
    """A list column whose lists all have ``width`` entries, as rows."""
    return values(column).reshape(-1, width)


def type_of(column: Column) -> Any:
    """The Arrow type of a column."""
    return arrow_type(column.type)


def lists(start: Ints, flat: Any) -> Any:
    """Many lists from one run of values."""
    values_ = flat if isinstance(flat, pa.Array) else pa.array(flat)
    return pa.ListArray.from_arrays(pa.array(start, pa.int32()), values_)


def rows(matrix_: npt.NDArray[Any]) -> Any:
    """A list for each row of a matrix."""
    height, width = matrix_.shape
    return lists(np.arange(height + 1) * width, np.ascontiguousarray(matrix_).reshape(-1))


def batch(table: Table, columns: dict[str, Any]) -> Any:
    """A record batch in the table's column order and types."""
    schema = arrow_schema(table.columns)
    arrays = []
    for field in schema:
        found = columns[field.name]
        array = found if isinstance(found, pa.Array) else pa.array(found)
        arrays.append(array if array.type == field.type else array.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def boundaries(table: Any, keys: list[str]) -> Ints:
    """Where each run of equal keys begins, and the number of rows at the end."""
    changed = np.zeros(max(len(table) - 1, 0), np.bool_)
    for key in keys:
        column = table.column(key).combine_chunks()
        changed |= np.asarray(pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False), np.bool_)
    return np.concatenate(([0], np.flatnonzero(changed) + 1, [len(table)])) if len(table) else np.zeros(1, np.int64)


def whole_groups(batches: Iterable[Any], keys: list[str]) -> Iterator[Any]:
    """Regroup batches sorted by ``keys`` into tables that never split a group.

    Batches end anywhere; the last group of each batch is therefore held back until the next one is seen.
    """
    held: list[Any] = []
    for incoming in batches:
        if not incoming.num_rows:
            continue
        table = pa.Table.from_batches([*held, incoming])
        cuts = boundaries(table, keys)
        last = int(cuts[-2])
        if last:
            yield table.slice(0, last)
        held = table.slice(last).combine_chunks().to_batches()
    if held:
        yield pa.Table.from_batches(held)

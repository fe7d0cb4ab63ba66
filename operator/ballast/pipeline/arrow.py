"""Record batches of a table from columns, for the rows that are a whole cluster each."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ballast.adapters.samples.arrow_schema import arrow_schema
from ballast.core.cluster import Ints
from ballast.core.samples import Table


def lists(start: Ints, flat: Any) -> Any:
    """Many lists from one run of values."""
    values = flat if isinstance(flat, pa.Array) else pa.array(flat)
    return pa.ListArray.from_arrays(pa.array(start, pa.int32()), values)


def batch(table: Table, columns: dict[str, Any]) -> Any:
    """A record batch in the table's column order and types."""
    schema = arrow_schema(table.columns)
    arrays = []
    for field in schema:
        found = columns[field.name]
        array = found if isinstance(found, pa.Array) else pa.array(found, field.type)
        arrays.append(array if array.type == field.type else array.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)

"""Turns the type words of ``core.samples.Column`` (Spark's and Delta's own) into Arrow types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from ballast.core.samples import Column

_SIMPLE: Final[dict[str, Any]] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def arrow_type(words: str) -> Any:
    """Return the Arrow type of a simple type, ``array<…>`` or ``struct<name:type,…>``."""
    if words.startswith("array<"):
        return pa.list_(pa.field("element", arrow_type(words[6:-1]), nullable=True))
    if words.startswith("struct<"):
        return pa.struct([_field(part) for part in _split(words[7:-1])])
    return _SIMPLE[words]


def arrow_schema(columns: Iterable[Column]) -> Any:
    """Return the Arrow schema of a table."""
    return pa.schema([pa.field(c.name, arrow_type(c.type)) for c in columns])


def array_with_nulls(values: Any, known: Any) -> Any:
    """An Arrow array of these NumPy values, null where they are not known."""
    return pa.array(values, mask=~known)


def typed_array(values: Any, field: Any) -> Any:
    """An Arrow array of these values in the type of the field."""
    array = values if isinstance(values, pa.Array) else pa.array(values, field.type)
    return array if array.type == field.type else array.cast(field.type)


def _field(part: str) -> Any:
    name, _, words = part.partition(":")
    return pa.field(name, arrow_type(words))


def _split(fields: str) -> list[str]:
    """Cut at the commas that are outside of every angle bracket."""
    parts, depth, begin = [], 0, 0
    for i, sign in enumerate(fields):
        depth += (sign == "<") - (sign == ">")
        if sign == "," and depth == 0:
            parts.append(fields[begin:i])
            begin = i + 1
    return [*parts, fields[begin:]]

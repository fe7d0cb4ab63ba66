"""Types of fields that documents write otherwise than the inside has them.

Here and not beside the types of documents: values of the core carry them, and pydantic's types take a tenth of a second to import.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Written:
    """Marks a field that is written otherwise."""

    write: Callable[[Any], Any]
    type: Any
    """Of what ``write`` makes."""
    format: str = ""
    """By JSON Schema's name."""

    def __get_pydantic_core_schema__(self, inside: Any, handler: Any) -> Any:
        from pydantic import PlainSerializer  # noqa: PLC0415

        return PlainSerializer(self.write, return_type=self.type).__get_pydantic_core_schema__(inside, handler)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return handler(schema) | ({"format": self.format} if self.format else {})


@dataclass(frozen=True, slots=True)
class OneOf:
    """Marks a text that is one of a few words: ``Annotated[str, OneOf("kraft", "zookeeper")]``; any other is a bug, and not written."""

    words: tuple[str, ...]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", words)

    def __get_pydantic_core_schema__(self, _: object, __: object) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415

        words = core_schema.literal_schema(list(self.words))
        return words | {
            "serialization": core_schema.plain_serializer_function_ser_schema(self._check, return_schema=words)
        }

    def _check(self, word: str) -> str:
        if word not in self.words:
            raise ValueError(f"{word!r} is none of {', '.join(self.words)}")
        return word


@dataclass(frozen=True, slots=True)
class Whole:
    """Marks a whole number that is refused below ``minimum`` and above ``maximum``."""

    minimum: int
    maximum: int | None = None

    def __get_pydantic_core_schema__(self, _: object, __: object) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415

        return core_schema.int_schema(ge=self.minimum, le=self.maximum)


def camel(value: object) -> object:
    """With the keys that documents have."""
    from pydantic.alias_generators import to_camel  # noqa: PLC0415

    match value:
        case dict():
            return {to_camel(str(k)): camel(v) for k, v in value.items()}
        case list():
            return [camel(v) for v in value]
    return value


def moment(at_ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC; the core has no clock and no calendar but NumPy's."""
    return f"{np.datetime64(at_ms, 'ms')}Z"


def milliseconds(moment_: str) -> int:
    """Back again; raises ``ValueError`` where it is no such text."""
    at = np.datetime64(moment_.removesuffix("Z"), "ms")
    if f"{at}Z" != moment_:
        raise ValueError("should be a time like 2026-11-21T14:35:25.394Z")
    return int(at.astype(np.int64))


Count = Annotated[int, Whole(0)]
"""A whole number that is never negative."""
Parameters = Annotated[dict[str, Any], Written(camel, dict[str, Any])]
"""The figures of a code as ``catalogue.plain`` gives them, by their names."""
Moment = Annotated[int, Whole(0, 253_402_300_799_999), Written(moment, str, "date-time")]
"""Milliseconds since 1970, up to the end of the year 9999; written as a time."""
Known = Annotated[int, Written(lambda n: None if n < 0 else n, int | None)]
"""A whole number that the inside marks with a negative one where it is not known; written as null."""
Text = Annotated[str, Written(lambda text: text or None, str | None)]
"""Empty inside where there is nothing to say; written as null."""

"""The style of JSON documents as a base of their types: what is printed, and the files that are read again.

An object has camelCase keys and nothing beside what its type names; a whole document has ``apiVersion`` and ``kind``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core.core_schema import CoreSchema, literal_schema

from ballast.errors import UsageError

API_VERSION: Final = "ballast/v1"


@dataclass(frozen=True, slots=True)
class OneOf:
    """Marks a text that is one of a few words: ``Annotated[str, OneOf("kraft", "zookeeper")]``."""

    words: tuple[str, ...]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", words)

    def __get_pydantic_core_schema__(self, _: object, __: object) -> CoreSchema:
        return literal_schema(list(self.words))


STYLE: Final = ConfigDict(
    alias_generator=to_camel,
    validate_by_name=True,
    validate_by_alias=True,
    serialize_by_alias=True,
    extra="forbid",
    frozen=True,
    allow_inf_nan=False,
    use_attribute_docstrings=True,
)
"""Built by the names here, read and written by those of JSON."""


class Part(BaseModel):
    """An object of a document."""

    model_config = STYLE


class Document(Part):
    """A whole document; a subclass sets ``kind`` to the name of its class."""

    api_version: Literal["ballast/v1"] = API_VERSION
    kind: str


def moment(at_ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC; the core has no clock and no calendar but NumPy's."""
    return f"{np.datetime64(at_ms, 'ms')}Z"


def milliseconds(moment_: str) -> int:
    """Back again; raises ``ValueError`` where it is no such text."""
    at = np.datetime64(moment_.removesuffix("Z"), "ms")
    if f"{at}Z" != moment_:
        raise ValueError("should be a time like 2026-11-21T14:35:25.394Z")
    return int(at.astype(np.int64))


Moment = Annotated[
    str, AfterValidator(lambda text: moment(milliseconds(text))), Field(json_schema_extra={"format": "date-time"})
]
"""A time as files have it."""
D = TypeVar("D", bound=Document)


def read(document: type[D], text: str, *, source: str, what: str, hint: str) -> D:
    """A document from a file; whatever is not one is refused with its place.  ``hint`` says how to make a right one."""
    try:
        return document.model_validate_json(text, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        found: list[Any] = error.errors(include_url=False, include_context=False)
    first = found[0]
    if first["type"] == "json_invalid":
        raise UsageError(f"{source} is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}.", hint=hint)
    if any(e["loc"] in {(), ("kind",)} for e in found):
        raise UsageError(f"{source} is not {what}.", hint=hint)
    for e in found:
        if e["loc"] == ("apiVersion",):
            raise UsageError(
                f"{source} is {what} of version {e['input']!r}; this Ballast reads {API_VERSION}.",
                hint="Make it again with this version.",
            )
    more = f" And {len(found) - 1} more like it." if len(found) > 1 else ""
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    raise UsageError(f"{source}: {_place(first['loc'])}: {message}.{more}", hint=hint)


def _place(loc: tuple[int | str, ...]) -> str:
    """``moves[3].new``."""
    out = ""
    for part in loc:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else part
    return out

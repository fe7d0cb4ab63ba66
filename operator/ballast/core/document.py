"""JSON read as the types that it has to be.

Whatever is read here loads pydantic at the first use and not before: a tenth of a second that no command pays which finds nothing to read.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


def parse(kind: type[T], text: bytes, *, extra: Literal["ignore", "forbid"] = "ignore") -> T:
    """What a text says; no value is made to fit, and ``ValidationError`` says where one does not.  ``extra`` keys are what no field names."""
    found: T = _adapter(kind).validate_json(text, strict=True, extra=extra)  # type: ignore[arg-type]
    return found


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(kind)

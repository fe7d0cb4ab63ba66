"""What all answers share: the style of their keys, of times and of what is not there.

A part is built from the view that it shows, by the same names; a view's time in milliseconds, ``since_ms``, is written as a
time, ``since``.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BeforeValidator, ConfigDict, model_validator
from pydantic.alias_generators import to_camel

from ballast.core import document_types
from ballast.core.document_types import Moment

__all__ = ["EMPTY", "STYLE", "Answer", "Moment", "Pair", "Part", "Text"]

EMPTY: Final = BeforeValidator(lambda text: text or None)
Text = Annotated[str | None, EMPTY]
"""Empty inside where there is nothing to say; written as null."""
STYLE: Final = ConfigDict(from_attributes=True, alias_generator=lambda name: to_camel(name.removesuffix("_ms")))


class Part(document_types.Part):
    """An object of an answer."""

    model_config = STYLE


class Pair(Part):
    """An object of two, which have no names inside."""

    @model_validator(mode="before")
    @classmethod
    def _of_pair(cls, found: object) -> object:
        return dict(zip(cls.model_fields, found, strict=True)) if isinstance(found, tuple) else found


class Answer(document_types.Document):
    """A whole answer."""

    model_config = STYLE

"""Reading the JSON documents that Ballast writes: nothing in them is trusted, and what is wrong is named with its place.

``Reader`` walks one JSON object.  Every mistake is a ``UsageError`` that says where it is and what belongs there; the hint
says what to do about the file as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ballast.errors import UsageError

T = TypeVar("T")


class Reader:
    """One JSON object being read, with the name of its place for errors."""

    def __init__(self, value: object, place: str, hint: str) -> None:
        if not isinstance(value, Mapping):
            raise UsageError(f"{place} should be an object.", hint=hint)
        self._value: Mapping[str, Any] = value
        self.place = place
        self.hint = hint

    def wrong(self, key: str, expected: str) -> UsageError:
        """A mistake at a key of this object."""
        return UsageError(f"{self.place}: {key!r} should be {expected}.", hint=self.hint)

    def _read_typed(self, key: str, kind: type[T], expected: str) -> T:
        value = self._value.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, expected)
        return value

    def text(self, key: str) -> str:
        """A text."""
        return self._read_typed(key, str, "a text")

    def optional_text(self, key: str) -> str | None:
        """A text, or null."""
        return None if self._value.get(key) is None else self.text(key)

    def integer(self, key: str, at_least: int = 0) -> int:
        """A whole number."""
        value = self._read_typed(key, int, "a whole number")
        if value < at_least:
            raise self.wrong(key, f"at least {at_least}")
        return value

    def text_or_null(self, key: str) -> str | None:
        """A text, or an explicit null: a key that is not there says neither."""
        if key not in self._value:
            raise self.wrong(key, "a text or null")
        return self.optional_text(key)

    def optional_integer(self, key: str) -> int | None:
        """A whole number, or null for one that is not known."""
        return None if self._value.get(key) is None else self.integer(key)

    def integer_or_null(self, key: str) -> int | None:
        """A whole number, or an explicit null: a key that is not there says neither."""
        if key not in self._value:
            raise self.wrong(key, "a whole number or null")
        return self.optional_integer(key)

    def flag(self, key: str) -> bool:
        """True or false."""
        return self._read_typed(key, bool, "true or false")

    def mapping(self, key: str) -> dict[str, Any]:
        """An object, as it is."""
        return self._read_typed(key, dict, "an object")

    def child(self, key: str) -> Reader:
        """An object, to be read."""
        return Reader(self.mapping(key), f"{self.place}: {key}", self.hint)

    def items(self, key: str) -> list[Any]:
        """A list, as it is."""
        return self._read_typed(key, list, "a list")

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        values = self.items(key)
        if not all(isinstance(v, str) for v in values):
            raise self.wrong(key, "a list of texts")
        return tuple(values)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        values = self.items(key)
        if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in values):
            raise self.wrong(key, "a list of whole numbers")
        return tuple(values)

    def has(self, key: str) -> bool:
        """Is there something other than null at this key?"""
        return self._value.get(key) is not None

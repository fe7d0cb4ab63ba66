"""What pydantic and readers of JSON find wrong with a file, said in one sentence with its place.

Here and not beside the types of documents, since pydantic's types take a tenth of a second to import.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic_core import ValidationError

from ballast.errors import UsageError


def refusal(
    error: ValidationError, *, source: str, what: str, hint: str, form: str, version: tuple[str, str | int]
) -> UsageError:
    """The failure to raise: at the keys ``form`` and ``version`` a file says what it is; ``hint`` says how to make a right one."""
    found: list[Any] = error.errors(include_url=False, include_context=False)
    first = found[0]
    if first["type"] == "json_invalid":
        return UsageError(f"{source} is not JSON: {problem(error)}", hint=hint)
    if any(e["loc"] in {(), (form,)} for e in found):
        return UsageError(f"{source} is not {what}.", hint=hint)
    for e in found:
        if e["loc"] == (version[0],):
            return UsageError(
                f"{source} is {what} of version {e['input']!r}; this Ballast reads {version[1]}.",
                hint="Make it again with this version.",
            )
    return UsageError(f"{source}: {problem(error)}", hint=hint)


def problem(error: ValidationError) -> str:
    """The first problem with its place, and how many more there are."""
    first, *others = error.errors(include_url=False, include_context=False)
    more = f" And {len(others)} more like it." if others else ""
    place = f"{_place(first['loc'])}: " if first["loc"] else ""
    said = first["msg"].removeprefix("Value error, ").removeprefix("Invalid JSON: ").rstrip(".")
    return f"{place}{said}.{more}"


def refuse_repeated_keys(text: str | bytes, keys: int, *, source: str, hint: str) -> None:
    """Raise where a file has a key of an object twice; ``keys`` is how many keys and colons in texts were read."""
    if said := repeated_key(text, keys):
        raise UsageError(f"{source}: {said}", hint=hint)


def repeated_key(text: str | bytes, keys: int | None = None) -> str:
    """What is wrong with JSON that has a key of an object twice, of which readers take one; empty where each is there once.

    Where ``keys`` and colons in texts were read and the text has just as many colons it has each key once, and is not read again.
    """
    colon, escaped = (":", "\\u003") if isinstance(text, str) else (b":", b"\\u003")
    if text.count(colon) == keys and escaped not in text:  # type: ignore[arg-type, operator]
        return ""
    loc = _find_repeated(json.loads(text, object_pairs_hook=_pairs))
    return f"{_place(loc)}: this key is there twice." if loc else ""


class _Repeated(dict[str, Any]):
    """An object that has a key twice."""

    key: str


def _pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(found)
    if len(made) == len(found):
        return made
    seen: set[str] = set()
    marked = _Repeated(made)
    marked.key = next(key for key, _ in found if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return marked


def _find_repeated(value: object) -> tuple[int | str, ...]:
    """Where the first key lies that is there twice; () for none."""
    if isinstance(value, _Repeated):
        return (value.key,)
    inside: Iterable[tuple[int | str, object]] = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return next(((at, *loc) for at, v in inside if (loc := _find_repeated(v))), ())


def _place(loc: tuple[int | str, ...]) -> str:
    """``moves[3].new``."""
    out = ""
    for part in loc:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else part
    return out

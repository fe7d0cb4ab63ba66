"""What a settings dataclass says of itself: its fields, their types, defaults and docstrings.

The docstring under a field is its documentation, wherever the field is declared; nothing is written twice.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, get_type_hints


@dataclass(frozen=True, slots=True)
class FieldDoc:
    """One setting."""

    path: tuple[str, ...]
    type: Any
    default: Any
    doc: str
    section: bool
    """It is a group of settings."""

    @property
    def name(self) -> str:
        """Its name as the file has it, with dots between sections."""
        return ".".join(self.path)


@cache
def docstrings(cls: type) -> dict[str, str]:
    """Field name to the string literal that stands under it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    body = tree.body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            found[before.target.id] = inspect.cleandoc(after.value.value)
    return found


def settable(section: Any) -> list[Field[Any]]:
    """The fields of a section that a file of settings may hold: all but those that only mean something to a command."""
    return [f for f in fields(section) if not f.metadata.get("command_only")]


@cache
def types(cls: type) -> dict[str, Any]:
    """Field name to its resolved type, constraints included."""
    return get_type_hints(cls, include_extras=True)


def walk(cls: type, path: tuple[str, ...] = (), within: Any = None) -> Iterator[FieldDoc]:
    """Every setting below a dataclass, sections before what they hold.

    ``within`` is the section as its own parent makes it: ``actions.moves`` has another cap than an action has by itself.
    """
    for f in settable(cls):
        kind = types(cls)[f.name]
        default = _default(f) if within is None else getattr(within, f.name)
        here = (*path, f.name)
        section = isinstance(kind, type) and is_dataclass(kind)
        yield FieldDoc(here, kind, default, docstrings(cls).get(f.name, ""), section)
        if section:
            yield from walk(kind, here, None if default is MISSING else default)


def _default(f: Field[Any]) -> Any:
    if f.default is not MISSING:
        return f.default
    return f.default_factory() if callable(f.default_factory) else MISSING


def under(cls: type, path: tuple[str, ...]) -> type | None:
    """The section at a path; None where the path names a single setting."""
    for name in path:
        kind = types(cls).get(name)
        if not (isinstance(kind, type) and is_dataclass(kind)):
            return None
        cls = kind
    return cls

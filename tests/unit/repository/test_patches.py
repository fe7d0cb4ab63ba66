"""Tests replace public parts alone: a private one may be renamed or dissolved without changing a test."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[2]
ALLOWED: Final[Mapping[str, str]] = {}
"""``file: what is replaced``, and the reason why it has no public part that could be."""
REPLACING: Final = {"setattr", "delattr", "patch", "object"}
"""The last names of the calls that replace something: of ``monkeypatch``, of ``unittest.mock.patch`` and Python's own."""


def replaced(tree: ast.AST) -> Iterator[str]:
    """The private attributes that are replaced or set, and those through which a part is, from outside their object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in REPLACING:
            named = [a.value for a in node.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            yield from (n for n in named if any(part.startswith("_") for part in n.split(".")))
            reached = [a for a in node.args[:1] if isinstance(a, ast.Attribute)]
        else:
            reached = [node] if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) else []
        yield from (path for path in map(ast.unparse, reached) if leads_through_private(path))


def leads_through_private(path: str) -> bool:
    """Is a private part of another object on this way?  An object's own attributes are its own."""
    owner, *chain = path.split(".")
    return any(part.startswith("_") for part in (chain[1:] if owner in {"self", "cls"} else chain))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('monkeypatch.setattr(log, "_end", 1)', ["_end"]),
        ('monkeypatch.setattr("ballast.core.compiled._found", 1)', ["ballast.core.compiled._found"]),
        ('patch.object(log, "_end")', ["_end"]),
        ('monkeypatch.setattr(compiled, "__file__", "x")', ["__file__"]),
        ("log._at += 1", ["log._at"]),
        ("journal.log._at = log._end", ["journal.log._at"]),
        ("parts._parts.spawn = begin", ["parts._parts.spawn"]),
        ("self.log._at = 1", ["self.log._at"]),
        ("self._server.socket = wrapped", []),
        ('monkeypatch.setattr(log._producer, "dead", True)', ["log._producer"]),
        ('monkeypatch.setattr("ballast.core.compiled._found.at", 1)', ["ballast.core.compiled._found.at"]),
        ('monkeypatch.setattr(log, "end", 1)', []),
        ("self._at = log._end", []),
    ],
)
def test_what_replaces_a_private_part_is_found(source: str, found: list[str]) -> None:
    """By name, by path, or by an assignment; an object's own attributes are its own."""
    assert list(replaced(ast.parse(source))) == found


def test_no_test_replaces_a_private_part() -> None:
    """Give the module a parameter, or a part with a public name, where a test must put another in its place."""
    found = {
        f"{path.relative_to(TESTS)}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in replaced(ast.parse(path.read_text()))
    }
    assert found == set(ALLOWED)

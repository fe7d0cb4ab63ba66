"""The glossary holds: what it says a thing must not be called is found in no help, message, metric or page of the docs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = [
    ROOT / "README.md",
    *(p for p in (ROOT / "docs").glob("*.md") if p != GLOSSARY),
    *(ROOT / "helm").rglob("*.md"),
    *(ROOT / "helm").rglob("*.yaml"),
    *(ROOT / "operator/ballast/daemon/web/static").glob("*.*s"),
    *(ROOT / "operator/ballast/daemon/web/static").glob("*.html"),
]
MODULES = sorted((ROOT / "operator/ballast").rglob("*.py"))


def retired() -> Iterator[str]:
    """The words of each table's last column; what stands in brackets says where a word is meant."""
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| **") and len(cells) == 3:
            yield from (word for word in re.split(r",\s*", re.sub(r"\(.*?\)", "", cells[2])) if word.strip())


def found(text: str) -> set[str]:
    """The retired words in a text."""
    return {
        w for w in map(str.strip, retired()) if re.search(rf"(?<![\w.-]){re.escape(w)}(?![\w-])", text, re.IGNORECASE)
    }


def messages(module: Path) -> str:
    """What a module may say: its strings, and the docstrings of commands and settings, which are their help."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    kept = {"cli", "settings"} & set(module.parts)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance(node.body[0], ast.Expr)
        and not (kept and isinstance(node, ast.FunctionDef))
    }
    strings = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return "\n".join(str(n.value) for n in strings if id(n) not in docs)


def test_the_glossary_retires_words() -> None:
    """Its last column is read; a table without words would let everything pass."""
    assert len(set(retired())) > 20
    assert found("The load is out of level, and a broker is sick.") == {"out of level", "sick"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_page_uses_a_retired_word(page: Path) -> None:
    """A reader learns one word for each thing."""
    assert found(page.read_text(encoding="utf-8")) == set()


def test_no_message_uses_a_retired_word() -> None:
    """Neither help nor messages."""
    assert {str(m.relative_to(ROOT)): words for m in MODULES if (words := found(messages(m)))} == {}

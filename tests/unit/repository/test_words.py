"""The glossary holds: what it says a thing must not be called is found in no page of the docs and in no source."""

from __future__ import annotations

import functools
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
SOURCES = sorted(
    path
    for folder in ("operator/ballast", "tools", "bench", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if path != Path(__file__)
)


def retired() -> Iterator[str]:
    """The words of each table's last column; what stands in brackets says where a word is meant."""
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| **") and len(cells) == 3:
            yield from (word for word in re.split(r",\s*", re.sub(r"\(.*?\)", "", cells[2])) if word.strip())


@functools.cache
def pattern() -> re.Pattern[str]:
    """Any of the retired words, the longest first."""
    words = sorted({word.strip() for word in retired()}, key=len, reverse=True)
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, words))})(?![\w-])", re.IGNORECASE)


def found(text: str) -> set[str]:
    """The retired words in a text."""
    return {word.lower() for word in pattern().findall(text)}


def test_the_glossary_retires_words() -> None:
    """Its last column is read; a table without words would let everything pass."""
    assert len(set(retired())) > 20
    assert found("The load is out of level, and a broker is sick.") == {"out of level", "sick"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_page_uses_a_retired_word(page: Path) -> None:
    """A reader learns one word for each thing."""
    assert found(page.read_text(encoding="utf-8")) == set()


def test_no_source_uses_a_retired_word() -> None:
    """Neither messages nor names, docstrings and comments, which are read with Kafka's documentation open beside them."""
    said = {str(path.relative_to(ROOT)): found(path.read_text(encoding="utf-8").replace("_", " ")) for path in SOURCES}
    assert {path: words for path, words in said.items() if words} == {}

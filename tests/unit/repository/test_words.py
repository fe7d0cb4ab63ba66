"""The glossary holds: what it says a thing must not be called is found in no page of the docs and in no source."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GLOSSARY = ROOT / "docs" / "glossary.md"
FOLDERS = {
    "docs": ("*.md", "changelog.d/*.md", "schemas/*.json"),
    "helm": ("**/*.md", "**/*.yaml", "**/*.tpl", "**/*.txt", "**/*.json"),
    "deploy": ("**/*.yaml", "**/*.json", "**/*.service"),
    "operator/ballast/daemon/web/static": ("*.*s", "*.html"),
    "tests/sim/scenarios": ("*.txt",),
}
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "Makefile")),
    *sorted(
        path for at, names in FOLDERS.items() for name in names for path in (ROOT / at).glob(name) if path != GLOSSARY
    ),
]
SOURCES = sorted(
    path
    for folder in ("operator/ballast", "tools", "bench", "deploy", "helm", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if path.name not in {"test_words.py", "test_help_words.py", "test_option_types.py"}
)
"""All but the files that name the retired words to keep them out."""
VERBS = {
    "come": "come|comes|came|coming",
    "give": "give|gives|gave|given|giving",
    "go": "go|goes|went|going",
    "lack": "lack|lacks|lacked|lacking",
    "let": "let|lets|letting",
    "stand": "stand|stands|stood|standing",
    "take": "take|takes|took|taken|taking",
}
"""The forms of the verbs with which a retired phrase begins."""
ENDINGS = "(?:s|es|ed|d|ing)?"
ENGLISH = ("zoo keeper", "letters, digits", "letters and digits", "letter spacing")
"""Names and true English in which a retired word is found."""


def retired() -> Iterator[str]:
    """The words of each table's last column; what stands in brackets says where a word is meant."""
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| **") and len(cells) == 3:
            yield from (word for word in re.split(r",\s*", re.sub(r"\(.*?\)", "", cells[2])) if word.strip())


def forms(phrase: str) -> str:
    """A retired phrase with its inflections: "take back" is "took it back" as well."""
    first, *rest = map(re.escape, phrase.split())
    if not rest:
        return first + ENDINGS
    verb = f"(?:{VERBS[first]})" if first in VERBS else first
    between = r"\b.{0,30}\b" if first == "take" and rest in (["back"], ["up", "again"]) else r"\s+"
    return verb + between + r"\s+".join(rest)


@functools.cache
def pattern() -> re.Pattern[str]:
    """Any of the retired words, the longest first."""
    words = sorted({word.strip() for word in retired()}, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(forms, words))})\b", re.IGNORECASE)


def spelled(text: str) -> str:
    """The words of a text, those of names among them: of CamelCase, of snake_case, and of what hyphens join."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text.replace("_", " "))
    apart = re.sub(r"(?<=\w)-(?=\w)", " ", apart)
    return re.sub("|".join(ENGLISH), "", apart, flags=re.IGNORECASE)


def found(text: str) -> set[str]:
    """The retired words in a text."""
    return {" ".join(word.lower().split()) for word in pattern().findall(spelled(text))}


def test_the_glossary_retires_words() -> None:
    """Its last column is read; a table without words would let everything pass."""
    assert len(set(retired())) > 20
    assert found("The load is out of level, and a broker is sick.") == {"out of level", "sick"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("BallastWishOpen", {"wish"}),
        ("a broker-keeper", {"keeper"}),
        ("pay_debts", {"pay debts"}),
        ("It took the throttles of its run back.", {"took the throttles of its run back"}),
        ("leaders that\ncame home", {"came home"}),
        ("ZooKeeper holds it.", set()),
        ("Use letters, digits and '-'.", set()),
    ],
)
def test_a_retired_word_is_found_in_any_form(text: str, words: set[str]) -> None:
    """In names, with hyphens, inflected, split and over the end of a line; a proper name is none."""
    assert found(text) == words


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_page_uses_a_retired_word(page: Path) -> None:
    """A reader learns one word for each thing."""
    assert found(page.read_text(encoding="utf-8")) == set()


def test_no_source_uses_a_retired_word() -> None:
    """Neither messages nor names, docstrings and comments, which are read with Kafka's documentation open beside them."""
    said = {str(path.relative_to(ROOT)): found(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {path: words for path, words in said.items() if words} == {}

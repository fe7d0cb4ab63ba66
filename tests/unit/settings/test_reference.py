"""The reference page follows the docstrings, and every setting has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ballast.settings.fields import walk
from ballast.settings.load import load_settings
from ballast.settings.model import Settings
from ballast.settings.reference import page, type_of
from ballast.settings.show import flat, text

ROOT = Path(__file__).resolve().parents[3]


def test_every_setting_says_what_it_means() -> None:
    """A setting without a docstring would be a hole in the reference."""
    assert [doc.name for doc in walk(Settings) if not doc.doc] == []


def test_the_page_is_the_generated_one() -> None:
    """``ballast config reference > docs/settings.md`` was run after the last change of a setting."""
    assert (ROOT / "docs" / "settings.md").read_text() == page()


def test_every_default_of_the_page_is_the_one_in_force() -> None:
    """A section that stands in several places has its own defaults in each: what is shown is what an empty file gives."""
    in_force = dict(flat(load_settings(None, {})))
    shown = {doc.name: text(doc.default) for doc in walk(Settings) if not doc.section and doc.name in in_force}
    assert shown == in_force
    assert shown["actions.moves.cool_down_s"] == "1800"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("execution.throttle", "int or string, one of `auto`, `none`"),
        ("actions.moves.mode", "string, one of `observe`, `approve`, `auto`"),
        ("actions.moves.per_day", "int, above 0"),
        ("actions.moves.windows", "list of window (below)"),
        ("leaders.imbalance_percentage", "double, at least 0 and at most 100"),
        ("balance.cordoned", "list of int"),
        ("balance.prove", "boolean"),
        ("balance.bands", "map of string to double"),
        ("web.tls_key", "string"),
    ],
)
def test_types_are_those_of_kafkas_tables(name: str, said: str) -> None:
    """With their bounds and the values that are allowed."""
    assert type_of(next(doc.type for doc in walk(Settings) if doc.name == name)) == said


def test_no_setting_speaks_python() -> None:
    """The page is read beside a YAML file: an unset value is empty there, and code stands between single backticks."""
    docs = [doc for doc in walk(Settings) if "``" in doc.doc or re.search(r"\bNone\b", doc.doc)]
    assert [doc.name for doc in docs] == []

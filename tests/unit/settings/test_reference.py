"""The reference page follows the docstrings, and every setting has one."""

from __future__ import annotations

from pathlib import Path

from ballast.settings.fields import walk
from ballast.settings.load import load_settings
from ballast.settings.model import Settings
from ballast.settings.reference import page
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

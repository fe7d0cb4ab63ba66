"""The reference page follows the docstrings, and every setting has one."""

from __future__ import annotations

from pathlib import Path

from ballast.settings.fields import walk
from ballast.settings.model import Settings
from ballast.settings.reference import page

ROOT = Path(__file__).resolve().parents[3]


def test_every_setting_says_what_it_means() -> None:
    """A setting without a docstring would be a hole in the reference."""
    assert [doc.name for doc in walk(Settings) if not doc.doc] == []


def test_the_page_is_the_generated_one() -> None:
    """``ballast config reference > docs/settings.md`` was run after the last change of a setting."""
    assert (ROOT / "docs" / "settings.md").read_text() == page()

"""What must hold of the repository itself."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_operator_folder_is_not_a_package() -> None:
    """``operator/__init__.py`` would shadow the standard library's ``operator`` and break every import from the root."""
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert (ROOT / "operator" / "ballast" / "__init__.py").exists()


def test_every_page_is_reached_from_the_readme() -> None:
    """A page that no page links to finds no reader, and a link to nowhere is worse."""
    linked = set(re.findall(r"\]\(([\w./-]+\.md)\)", (ROOT / "README.md").read_text()))
    there = {str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")}
    assert there - linked == set()
    assert {page for page in linked if not (ROOT / page).is_file()} == set()


def test_unit_tests_stand_where_their_modules_stand() -> None:
    """A file in a room's folder tests something of that room: a module's tests are found by the folder's name."""
    rooms = {path.name for path in (ROOT / "operator" / "ballast").iterdir() if path.is_dir()}
    astray = []
    for path in sorted((ROOT / "tests" / "unit").rglob("test_*.py")):
        room = path.relative_to(ROOT / "tests" / "unit").parts[0]
        used = set(re.findall(r"\b(?:ballast|tests\.unit)\.(\w+)", path.read_text()))
        if room in rooms and room not in used:
            astray.append(str(path.relative_to(ROOT)))
    assert astray == []

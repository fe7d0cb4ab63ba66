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
    """A file in a package's folder, or in one within it, tests something of that package: a module's tests are found by the folders' names."""
    package, units = ROOT / "operator" / "ballast", ROOT / "tests" / "unit"
    astray = []
    for path in sorted(units.rglob("test_*.py")):
        parts = path.parent.relative_to(units).parts
        while parts and not package.joinpath(*parts).is_dir():
            parts = parts[:-1]
        package_name = ".".join(parts)
        if parts and not re.search(rf"\b(?:ballast|tests\.unit)\.{re.escape(package_name)}\b", path.read_text()):
            astray.append(str(path.relative_to(ROOT)))
    assert astray == []

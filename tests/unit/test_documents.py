"""The documents: what they link to is there, and what they tell a newcomer to type exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ballast.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link names a file of the repository."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text())
    dead = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert dead == []


def test_the_readme_names_only_commands_that_exist() -> None:
    """A newcomer can type every ``ballast …`` line of the README."""
    named = set(re.findall(r"^\$ ballast ([a-z]+)", (ROOT / "README.md").read_text(), flags=re.MULTILINE))
    assert named
    assert named <= set(COMMANDS)


def test_the_rooms_of_the_architecture_are_the_rooms_of_the_package() -> None:
    """A room that is added or renamed is explained."""
    rooms = {path.name for path in (ROOT / "operator" / "ballast").iterdir() if (path / "__init__.py").exists()}
    explained = set(re.findall(r"^\*\*`(\w+)`\*\*:", (ROOT / "ARCHITECTURE.md").read_text(), flags=re.MULTILINE))
    assert explained == rooms | {"errors"}

"""The documents: what they link to is there, and what they tell a newcomer to type exists."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from ballast.cli.main import cli
from ballast.cli.registry import COMMANDS

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def anchors(document: Path) -> set[str]:
    """What can be linked to in a page: headings whose anchor is the same on a code host and in the site."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE):
        kept = re.sub(r"[^\w\s-]", "", heading).strip().lower()
        if kept.replace(" ", "-") == re.sub(r"[-\s]+", "-", kept):
            found.add(kept.replace(" ", "-"))
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link names a file of the repository, and every anchor a heading of it."""
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)[^)]*\)", document.read_text()):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if "://" in link:
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


COMMAND_LINE = re.compile(r"(?:^|`|^\$ )(ballast [a-z][^`\n#;|]*)", re.MULTILINE)
TYPED = [d for d in DOCUMENTS if "changelog" not in str(d).lower() and COMMAND_LINE.search(d.read_text())]


@pytest.mark.parametrize("document", TYPED, ids=lambda path: path.name)
def test_what_a_page_tells_to_type_exists(document: Path) -> None:
    """Each ``ballast …`` names a command, its subcommand and options that they have."""
    lines = COMMAND_LINE.findall(document.read_text())
    assert lines
    wrong = [line for line in lines if not understood(line.split()[1:])]
    assert wrong == []


def understood(words: list[str]) -> bool:
    """Whether these words reach a command that has all their options."""
    command: click.Command = cli
    context = click.Context(cli)
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "--version"}
    for word in words:
        if word.startswith("-"):
            if word.partition("=")[0] not in known:
                return False
        elif isinstance(command, click.Group):
            if not re.fullmatch(r"[a-z-]+", word):
                return True  # stands for any of them
            found = command.get_command(context, word)
            if found is None:
                return False
            command = found
            known |= {o for parameter in command.params for o in (*parameter.opts, *parameter.secondary_opts)}
            if isinstance(command, click.Group) and (default := command.get_command(context, "list")):
                known |= {o for parameter in default.params for o in parameter.opts}
    return True


def every_option(command: click.Command) -> set[str]:
    """Of a command and all below it."""
    found = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    if isinstance(command, click.Group):
        context = click.Context(command)
        below = (command.get_command(context, name) for name in command.list_commands(context))
        found |= {option for each in below if each is not None for option in every_option(each)}
    return found


@pytest.mark.parametrize("name", ["from-cruise-control", "from-reassign-partitions", "from-topicmappr"])
def test_options_beside_those_of_other_tools_exist(name: str) -> None:
    """Also where the page names an option without its command, in the column that is Ballast's."""
    known = every_option(cli)
    rows = [line.split("|") for line in (ROOT / "docs" / f"{name}.md").read_text().splitlines() if line.startswith("|")]
    named = {o for row in rows for o in re.findall(r"(?<![\w-])--[a-z][a-z-]*", row[2])}
    assert named
    assert named <= known


def test_the_readme_names_only_commands_that_exist() -> None:
    """A newcomer can type every ``ballast …`` line of the README."""
    named = set(re.findall(r"^\$ ballast ([a-z]+)", (ROOT / "README.md").read_text(), flags=re.MULTILINE))
    assert named
    assert named <= set(COMMANDS)


def test_the_rooms_of_the_architecture_are_the_rooms_of_the_package() -> None:
    """A package that is added or renamed is explained."""
    packages = {path.name for path in (ROOT / "operator" / "ballast").iterdir() if (path / "__init__.py").exists()}
    explained = set(re.findall(r"^\*\*`(\w+)`\*\*:", (ROOT / "ARCHITECTURE.md").read_text(), flags=re.MULTILINE))
    assert explained == packages | {"errors"}

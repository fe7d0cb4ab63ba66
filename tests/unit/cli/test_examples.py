"""Every page of help ends with examples, and each of them is a command line that the command takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from tests.unit.cli.test_shell import ALL

from ballast.cli.commands.man import page, roff
from ballast.cli.main import cli
from ballast.cli.registry import COMMANDS

EXAMPLE = re.compile(r"^ +(ballast\b.*)$", re.MULTILINE)


def examples_in(context: click.Context) -> list[str]:
    """The command lines below ``Examples:`` on a page of help."""
    _, heading, below = context.get_help().partition("Examples:\n")
    assert heading, f"{context.command_path} --help has no examples"
    return EXAMPLE.findall(below)


def parse(line: str) -> str:
    """The path of the command that takes the line; raises ``click.ClickException`` where none does."""
    program, *words = shlex.split(line)
    context = cli.make_context(program, words)
    while isinstance(group := context.command, click.Group) and (rest := [*context._protected_args, *context.args]):
        name, command, rest = group.resolve_command(context, rest)
        assert name is not None
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    return context.command_path


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that examples read, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r"[\w-]+\.(?:json|yaml|txt|properties)\b", str(COMMANDS)):
        Path(name).touch()


@pytest.mark.parametrize("context", ALL, ids=lambda c: c.command_path)
@pytest.mark.usefixtures("files")
def test_every_page_has_examples_that_the_command_takes(context: click.Context) -> None:
    """By the parser itself: names, options and values; nothing is executed."""
    lines = examples_in(context)
    assert lines
    for line in lines:
        reached = parse(line)
        assert f"{reached} ".startswith(f"{context.command_path} "), "it shows another command"


@pytest.mark.parametrize("context", ALL, ids=lambda c: c.command_path)
def test_manual_pages_have_the_same_examples(context: click.Context) -> None:
    """In a section of their own."""
    _, heading, below = page(context).partition(".SH EXAMPLES\n")
    assert heading
    assert all(roff(line) in below for line in examples_in(context))


def test_an_example_that_no_command_takes_is_found() -> None:
    """An option that there is not, and a value that the option does not take."""
    for line in ("ballast status --no-such-option", "ballast plan change-rf orders", "ballast statsu"):
        with pytest.raises(click.ClickException):
            parse(line)

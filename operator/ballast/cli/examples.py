"""Examples at the end of every ``--help``, from the table of commands."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ballast.cli.registry import examples_of


def add_examples(command: click.Command, *words: str) -> click.Command:
    """End the help of the command, and of those below it that are loaded, with the examples of the registry."""
    command.epilog = _epilog(examples_of(words))
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            add_examples(below, *words, name)
    return command


def _epilog(examples: Sequence[str]) -> str:
    # click leaves a paragraph as it stands that begins with \b.
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in examples)))

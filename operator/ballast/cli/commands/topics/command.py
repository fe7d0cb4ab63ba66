"""``ballast topics``: describe, create and expand topics; each subcommand lives in a module of its own."""

from __future__ import annotations

import importlib
from typing import Final

import click

from ballast.cli.examples import add_examples

SUBCOMMANDS: Final[dict[str, tuple[str, str]]] = {
    "describe": (
        "ballast.cli.commands.topics.describe:describe",
        "Leader, replicas, offsets, lag and size of every partition.",
    ),
    "create": ("ballast.cli.commands.topics.changes:create", "Create a topic, placed as Kafka would or as told."),
    "expand": (
        "ballast.cli.commands.topics.changes:expand",
        "Give a topic more partitions, placed as Kafka would or as told.",
    ),
}
"""Name to module and function, and the line that the overview shows."""


class LazySubcommands(click.Group):
    """Imports a subcommand when it is called, so that help stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name in the table."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module behind the name."""
        if cmd_name not in SUBCOMMANDS:
            return None
        module, _, attribute = SUBCOMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return add_examples(command, "topics", cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, without importing a single subcommand."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in SUBCOMMANDS.items()])


@click.group(cls=LazySubcommands)
def topics() -> None:
    """Describe, create and expand topics."""

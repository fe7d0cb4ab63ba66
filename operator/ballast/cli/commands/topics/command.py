"""``ballast topics``: list, describe and create topics, add partitions; each subcommand lives in a module of its own."""

from __future__ import annotations

from typing import Final

import click

from ballast.cli.default_command import LazyGroup

SUBCOMMANDS: Final[dict[str, tuple[str, str]]] = {
    "list": (
        "ballast.cli.commands.topics.listing:list_topics",
        "Partitions, replication factor, size and under-replicated partitions of every topic.",
    ),
    "describe": (
        "ballast.cli.commands.topics.describe:describe",
        "Leader, replicas, offsets, lag and size of every partition.",
    ),
    "create": ("ballast.cli.commands.topics.changes:create", "Create a topic, placed as Kafka would or as told."),
    "add-partitions": (
        "ballast.cli.commands.topics.changes:add_partitions",
        "Add partitions to a topic, placed as Kafka would or as told.",
    ),
}
"""Name to module and function, and the line that the overview shows."""


class Topics(LazyGroup):
    """The overview comes from the table."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A line for each, without importing a single subcommand."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in SUBCOMMANDS.items()])


@click.group(cls=Topics, targets={name: target for name, (target, _) in SUBCOMMANDS.items()}, words=("topics",))
def topics() -> None:
    """List, describe and create topics, and add partitions."""

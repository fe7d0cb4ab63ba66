"""Groups of commands: imported when they are called, told in a whole sentence, or with one that is meant when none is named."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from ballast.cli.examples import add_examples


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported on first use: help and completion stay instant."""

    def __init__(self, *args: Any, targets: Mapping[str, str], words: tuple[str, ...] = (), **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.targets = targets
        """Name to ``module:function``, in the order of the overview."""
        self.words = words
        """How the group itself is called, after ``ballast``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name in the table."""
        return list(self.targets)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module behind the name."""
        if cmd_name not in self.targets:
            return None
        module, _, attribute = self.targets[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return add_examples(command, *self.words, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the likeliest command for one that there is not."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand:
            raise click.exceptions.NoSuchCommand(args[0], possibilities=self.targets, ctx=ctx) from None


class WholeLines(click.Group):
    """The overview cuts no command's sentence short, as click would."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A line, or several, for each command."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, c.get_short_help_str(limit=1000).removesuffix(".") + ".") for name, c in found if c is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class GroupWithDefault(WholeLines):
    """``ballast runs`` is ``ballast runs list``: options right after the group's name belong to the command ``default``."""

    def __init__(self, *args: Any, default: str, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command's name where another's is missing; ``--help`` stays the group's."""
        asks_for_help = bool(args) and args[0] in self.get_help_option_names(ctx)
        if not asks_for_help and (not args or args[0].startswith("-")):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

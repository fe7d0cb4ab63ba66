"""Groups of commands: each told in its whole first sentence, and of some one command is meant when none is named."""

from __future__ import annotations

from typing import Any

import click


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

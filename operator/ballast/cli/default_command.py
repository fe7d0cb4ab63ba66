"""A group of commands of which one is meant when none is named: ``ballast runs`` is ``ballast runs list``."""

from __future__ import annotations

from typing import Any

import click


class GroupWithDefault(click.Group):
    """Options right after the group's name belong to the command ``default``."""

    def __init__(self, *args: Any, default: str, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command's name where another's is missing; ``--help`` stays the group's."""
        asks_for_help = bool(args) and args[0] in self.get_help_option_names(ctx)
        if not asks_for_help and (not args or args[0].startswith("-")):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

"""``ballast throttles``: list, clean up, set and remove replication throttles; each subcommand lives in a module of its own."""

from __future__ import annotations

from typing import Final

import click

from ballast.cli.default_command import GroupWithDefault, LazyGroup

SUBCOMMANDS: Final[dict[str, str]] = {
    "list": "ballast.cli.commands.throttles.listing:list_throttles",
    "remove": "ballast.cli.commands.throttles.by_hand:remove_throttle",
    "set": "ballast.cli.commands.throttles.by_hand:set_throttle",
}
"""Name to module and function."""


class Throttles(GroupWithDefault, LazyGroup):
    """Its commands are imported when they are called."""


@click.group(cls=Throttles, default="list", targets=SUBCOMMANDS, words=("throttles",))
def throttles() -> None:
    """List replication throttles (the default), clean up with --clean, or set and remove them by hand."""

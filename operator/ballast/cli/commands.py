"""The table of subcommands; a new command is one line here and one module."""

from __future__ import annotations

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """Where a command lives and what the overview says of it."""

    target: str
    section: str
    help: str


SECTIONS: Final = ("Look", "Plan", "Act", "Kafka's own tools", "Run", "History and load", "Try it")

COMMANDS: Final[dict[str, Entry]] = {
    "status": Entry(
        "ballast.cli.status:status", "Look", "Brokers, leader imbalance, sick and moving partitions, throttles."
    ),
    "topics": Entry("ballast.cli.topics:topics", "Look", "Describe, create and expand topics."),
    "run": Entry("ballast.cli.run:run", "Run", "The daemon: observe, decide, act, report."),
    "config": Entry("ballast.cli.config:config", "Run", "Check a settings file, explain settings."),
    "sandbox": Entry("ballast.cli.sandbox:sandbox", "Try it", "A real Kafka on this machine to play with."),
}

"""The table of subcommands; a new command is one line here and one module."""

from __future__ import annotations

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """Where a command lives and what the overview says of it."""

    target: str
    section: str
    help: str


SECTIONS: Final = ("Look", "Plan", "Act", "Kafka's own tools", "Run", "History and load", "Try it", "Shell")

ARGUMENTS: Final = {
    "RUN": "ballast runs lists the runs.",
    "PLAN": "ballast plan balance --save plan.json writes one; ballast plan --help lists what can be planned.",
    "PLAN|RUN": "ballast runs lists the runs; ballast plan … --save plan.json writes a plan.",
}
"""Where to find what an argument stands for, by its name in the usage line."""

COMMANDS: Final[dict[str, Entry]] = {
    "status": Entry(
        "ballast.cli.commands.status.command:status",
        "Look",
        "Brokers, leader imbalance, under-replicated, offline and reassigning partitions, throttles.",
    ),
    "topics": Entry("ballast.cli.commands.topics.command:topics", "Look", "Describe, create and expand topics."),
    "leaders": Entry(
        "ballast.cli.commands.leaders:leaders",
        "Look",
        "Skew of preferred leaders over brokers, racks and topics.",
    ),
    "snapshot": Entry(
        "ballast.cli.commands.snapshot:snapshot",
        "Look",
        "Write the cluster as it is to a file, with or without its names.",
    ),
    "plan": Entry(
        "ballast.cli.commands.plan.command:plan",
        "Plan",
        "The cheapest plan for an intent: balance, decommission, expand, …",
    ),
    "simulate": Entry(
        "ballast.cli.commands.simulate.command:simulate",
        "Plan",
        "Play a plan, or the loss of brokers, without touching the cluster.",
    ),
    "apply": Entry(
        "ballast.cli.commands.apply.command:apply",
        "Act",
        "Carry out a plan: throttled, journaled, verified, resumable.",
    ),
    "decommission": Entry(
        "ballast.cli.commands.decommission:decommission",
        "Act",
        "Empty brokers: leadership, data, then report when they can be stopped.",
    ),
    "drains": Entry(
        "ballast.cli.commands.drains:drains",
        "Act",
        "Brokers that were drained on the page: list them, end their drain.",
    ),
    "verify": Entry("ballast.cli.commands.verify:verify", "Act", "Compare the cluster with a plan or a run."),
    "throttles": Entry(
        "ballast.cli.commands.throttles.command:throttles", "Act", "List, clean and set replication throttles."
    ),
    "elect": Entry("ballast.cli.commands.elect:elect", "Act", "Run preferred leader elections."),
    "runs": Entry("ballast.cli.commands.runs:runs", "Act", "List, show and resume runs."),
    "cancel": Entry("ballast.cli.commands.runs:cancel", "Act", "Cancel a run's reassignments in progress."),
    "rollback": Entry("ballast.cli.commands.runs:rollback", "Act", "Undo a run from the journal alone."),
    "uninstall": Entry(
        "ballast.cli.commands.uninstall:uninstall", "Act", "Delete the topics that Ballast keeps in a cluster."
    ),
    "run": Entry("ballast.cli.commands.run:run", "Run", "The daemon: observe, decide, act, report."),
    "config": Entry("ballast.cli.commands.config:config", "Run", "Check a settings file, explain settings."),
    "reassign": Entry(
        "ballast.cli.commands.reassign.command:reassign",
        "Kafka's own tools",
        "What kafka-reassign-partitions does, same options.",
    ),
    "sample": Entry(
        "ballast.cli.commands.sample:sample", "History and load", "Record one minute of the cluster in a Delta table."
    ),
    "pipeline": Entry(
        "ballast.cli.commands.pipeline:pipeline", "History and load", "Make the load model from samples, on Spark."
    ),
    "fleet": Entry(
        "ballast.cli.commands.fleet.command:fleet",
        "History and load",
        "Collect, plan and rank many clusters in one job.",
    ),
    "sandbox": Entry(
        "ballast.cli.commands.sandbox.command:sandbox", "Try it", "A real Kafka on this machine to play with."
    ),
    "completion": Entry(
        "ballast.cli.commands.completion:completion",
        "Shell",
        "Print the script for bash, zsh or fish that completes commands.",
    ),
    "man": Entry("ballast.cli.commands.man:man", "Shell", "Write a manual page for each command."),
    "version": Entry(
        "ballast.cli.commands.version:version", "Try it", "Show the versions of Ballast, Python and the libraries."
    ),
}

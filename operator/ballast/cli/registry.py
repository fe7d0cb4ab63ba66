"""The table of subcommands; a new command is one line here and one module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple


class Entry(NamedTuple):
    """Where a command lives and what the overview says of it."""

    target: str
    section: str
    help: str
    examples: tuple[str, ...]
    """Command lines, each as it is typed."""
    below: Mapping[str, tuple[str, ...]] = {}
    """The same for the subcommands of a group."""


SECTIONS: Final = ("Inspect", "Plan", "Change", "Kafka's own tools", "Daemon", "History and load", "Sandbox", "Shell")

ARGUMENTS: Final = {
    "RUN": "ballast runs lists the runs.",
    "PLAN": "ballast plan balance --save plan.json writes one; ballast plan --help lists what can be planned.",
    "PLAN|RUN": "ballast runs lists the runs; ballast plan … --save plan.json writes a plan.",
}
"""Where to find what an argument stands for, by its name in the usage line."""

COMMANDS: Final[dict[str, Entry]] = {
    "status": Entry(
        "ballast.cli.commands.status.command:status",
        "Inspect",
        "Brokers, leader imbalance, under-replicated, offline and reassigning partitions, throttles.",
        (
            "ballast status",
            "ballast status --check --output json",
            "ballast status --watch --interval 10s",
        ),
    ),
    "topics": Entry(
        "ballast.cli.commands.topics.command:topics",
        "Inspect",
        "List, describe and create topics, and add partitions.",
        (
            "ballast topics list",
            "ballast topics describe orders",
            "ballast topics create orders --partitions 12 --replication-factor 3",
        ),
        {
            "list": (
                "ballast topics list",
                "ballast topics list --topics 'orders.*' --output json",
            ),
            "describe": (
                "ballast topics describe orders",
                "ballast topics describe orders --output json",
            ),
            "create": (
                "ballast topics create orders --partitions 12 --replication-factor 3 --dry-run",
                "ballast topics create orders --partitions 6 --replication-factor 3 --topic-config retention.ms=60000",
                "ballast topics create orders --replica-assignment 1:2:3,2:3:1",
            ),
            "add-partitions": ("ballast topics add-partitions orders --partitions 24 --dry-run",),
        },
    ),
    "leaders": Entry(
        "ballast.cli.commands.leaders:leaders",
        "Inspect",
        "Skew of preferred leaders over brokers, racks and topics.",
        (
            "ballast leaders",
            "ballast leaders --output json",
        ),
    ),
    "snapshot": Entry(
        "ballast.cli.commands.snapshot:snapshot",
        "Inspect",
        "Write the cluster as it is to a file, with or without its names.",
        (
            "ballast snapshot --save cluster.json",
            "ballast snapshot --save cluster.json --measure 1m --anonymise",
        ),
    ),
    "plan": Entry(
        "ballast.cli.commands.plan.command:plan",
        "Plan",
        "The cheapest plan for an intent: balance, decommission, expand, …",
        (
            "ballast plan balance --save plan.json --report plan.html",
            "ballast plan decommission 4 --save plan.json",
        ),
        {
            "balance": (
                "ballast plan balance --save plan.json --report plan.html",
                "ballast plan balance --max-bytes 200GB --topics 'orders.*'",
                "ballast plan balance --why orders-3",
            ),
            "leaders": (
                "ballast plan leaders --save plan.json",
                "ballast plan leaders --minimize counts",
            ),
            "demote": ("ballast plan demote 4 --save plan.json",),
            "decommission": ("ballast plan decommission 4 5 --save plan.json",),
            "expand": ("ballast plan expand 6-8 --save plan.json",),
            "evacuate": (
                "ballast plan evacuate 4 --save plan.json",
                "ballast plan evacuate --rack eu-west-1a --save plan.json",
                "ballast plan evacuate 4 --offline-only --save plan.json",
            ),
            "change-rf": ("ballast plan change-rf orders --replication-factor 3 --save plan.json",),
            "racks": ("ballast plan racks --save plan.json",),
            "replace": ("ballast plan replace 4 7 --save plan.json",),
            "place": (
                "ballast plan place orders --save plan.json",
                "ballast plan place 'orders.*' --brokers 1,2,5-7 --placement kraft",
            ),
        },
    ),
    "simulate": Entry(
        "ballast.cli.commands.simulate.command:simulate",
        "Plan",
        "Play a plan, or the loss of brokers, without touching the cluster.",
        (
            "ballast simulate plan.json --throttle 50MB",
            "ballast simulate --kill-broker 4",
            "ballast simulate plan.json --kill-broker 4 --at 10m --restart-after 5m",
        ),
    ),
    "apply": Entry(
        "ballast.cli.commands.apply:apply",
        "Change",
        "Execute a plan: throttled, journaled, verified, resumable.",
        (
            "ballast apply plan.json",
            "ballast apply plan.json --throttle 50MB --yes",
            "ballast apply plan.json --on-drift replan",
        ),
    ),
    "decommission": Entry(
        "ballast.cli.commands.decommission:decommission",
        "Change",
        "Empty brokers: leadership, data, then report when they can be stopped.",
        (
            "ballast decommission 4",
            "ballast decommission 4 5 --follow 10m --yes",
        ),
    ),
    "drains": Entry(
        "ballast.cli.commands.drains:drains",
        "Change",
        "Brokers that are draining, as asked on the web page: list them, end their drain.",
        (
            "ballast drains",
            "ballast drains end 4",
        ),
        {"list": ("ballast drains list --output json",), "end": ("ballast drains end 4",)},
    ),
    "verify": Entry(
        "ballast.cli.commands.verify:verify",
        "Change",
        "Compare the cluster with a plan or a run.",
        (
            "ballast verify plan.json",
            "ballast verify 0729-101500-3fa2",
        ),
    ),
    "throttles": Entry(
        "ballast.cli.commands.throttles.command:throttles",
        "Change",
        "List, clean and set replication throttles.",
        (
            "ballast throttles",
            "ballast throttles --clean",
        ),
        {
            "list": (
                "ballast throttles list",
                "ballast throttles --clean --brokers 4",
            ),
            "set": (
                "ballast throttles set --rate 50MB --topic orders",
                "ballast throttles set --rate 50MB --moves-of moves.json",
            ),
            "remove": (
                "ballast throttles remove",
                "ballast throttles remove --topic orders",
            ),
        },
    ),
    "elect": Entry(
        "ballast.cli.commands.elect:elect",
        "Change",
        "Run preferred leader elections.",
        (
            "ballast elect",
            "ballast elect --brokers 1,2,5-7",
            "ballast elect --election-type unclean --topic orders",
        ),
    ),
    "runs": Entry(
        "ballast.cli.commands.runs:runs",
        "Change",
        "List, show and resume runs.",
        (
            "ballast runs",
            "ballast runs show 0729-101500-3fa2",
            "ballast runs resume",
        ),
        {
            "list": ("ballast runs list --output json",),
            "show": ("ballast runs show 0729-101500-3fa2",),
            "resume": (
                "ballast runs resume",
                "ballast runs resume 0729-101500-3fa2",
            ),
        },
    ),
    "cancel": Entry(
        "ballast.cli.commands.runs:cancel",
        "Change",
        "Cancel a run's reassignments in progress.",
        (
            "ballast cancel",
            "ballast cancel 0729-101500-3fa2 --yes --reason 'release at noon'",
        ),
    ),
    "rollback": Entry(
        "ballast.cli.commands.runs:rollback",
        "Change",
        "Undo a run from the journal alone.",
        ("ballast rollback 0729-101500-3fa2",),
    ),
    "uninstall": Entry(
        "ballast.cli.commands.uninstall:uninstall",
        "Change",
        "Delete the topics that Ballast keeps in a cluster.",
        ("ballast uninstall",),
    ),
    "daemon": Entry(
        "ballast.cli.commands.daemon:daemon",
        "Daemon",
        "Keep the cluster balanced: observe, decide, act, report, until told to stop.",
        (
            "ballast daemon --config ballast.yaml",
            "ballast daemon --sandbox",
        ),
    ),
    "config": Entry(
        "ballast.cli.commands.config:config",
        "Daemon",
        "Check a settings file, explain settings.",
        (
            "ballast config check ballast.yaml",
            "ballast config explain balance.band",
        ),
        {
            "check": (
                "ballast config check ballast.yaml",
                "ballast config check ballast.yaml --all",
            ),
            "explain": (
                "ballast config explain balance.band",
                "ballast config explain auto.leader.rebalance.enable",
            ),
            "reference": ("ballast config reference --page metrics",),
        },
    ),
    "reassign": Entry(
        "ballast.cli.commands.reassign:reassign",
        "Kafka's own tools",
        "What kafka-reassign-partitions does, throttled by default.",
        (
            "ballast reassign --bootstrap-server kafka:9092 --generate --topics-to-move-json-file topics.json --broker-list 1,2,3",
            "ballast reassign --bootstrap-server kafka:9092 --execute --reassignment-json-file moves.json --throttle 50000000",
            "ballast reassign --bootstrap-server kafka:9092 --verify --reassignment-json-file moves.json",
        ),
    ),
    "sample": Entry(
        "ballast.cli.commands.sample:sample",
        "History and load",
        "Record one minute of the cluster in a Delta table.",
        ("ballast sample --store s3://ballast/store",),
    ),
    "pipeline": Entry(
        "ballast.cli.commands.pipeline:pipeline",
        "History and load",
        "Make the load model from samples, on Spark.",
        ("ballast pipeline run --store s3://ballast/store",),
        {"run": ("ballast pipeline run --store s3://ballast/store --maintenance",)},
    ),
    "fleet": Entry(
        "ballast.cli.commands.fleet.command:fleet",
        "History and load",
        "Collect, plan and rank many clusters in one job.",
        (
            "ballast fleet collect fleet.yaml --store s3://ballast/store",
            "ballast fleet plan --store s3://ballast/store",
            "ballast fleet report --store s3://ballast/store --report fleet.html",
        ),
        {
            "collect": ("ballast fleet collect fleet.yaml --store s3://ballast/store",),
            "plan": ("ballast fleet plan --store s3://ballast/store --what-if lose-broker --what-if grow=90",),
            "report": ("ballast fleet report --store s3://ballast/store --report fleet.html",),
        },
    ),
    "sandbox": Entry(
        "ballast.cli.commands.sandbox.command:sandbox",
        "Sandbox",
        "A real Kafka on this machine to play with.",
        (
            "ballast sandbox up --brokers 5",
            "ballast sandbox fill --shape leaders",
            "ballast sandbox down",
        ),
        {
            "up": (
                "ballast sandbox up",
                "ballast sandbox up --brokers 5 --mode zookeeper",
            ),
            "down": ("ballast sandbox down",),
            "status": ("ballast sandbox status",),
            "versions": ("ballast sandbox versions",),
            "kill-broker": (
                "ballast sandbox kill-broker 2",
                "ballast sandbox kill-broker 2 --freeze",
            ),
            "start-broker": ("ballast sandbox start-broker 2",),
            "fill": (
                "ballast sandbox fill --topics 20 --megabytes 100",
                "ballast sandbox fill --shape empty-broker",
            ),
            "prepare": ("ballast sandbox prepare --kafka-version 3.9.1 --tools",),
            "demo": (
                "ballast sandbox demo",
                "ballast sandbox demo --keep",
            ),
        },
    ),
    "completion": Entry(
        "ballast.cli.commands.completion:completion",
        "Shell",
        "Print the script for bash, zsh or fish that completes commands.",
        ("ballast completion bash",),
    ),
    "man": Entry(
        "ballast.cli.commands.man:man",
        "Shell",
        "Write a manual page for each command.",
        (
            "ballast man",
            "ballast man --folder man1",
        ),
    ),
    "version": Entry(
        "ballast.cli.commands.version:version",
        "Sandbox",
        "Show the versions of Ballast, Python and the libraries.",
        ("ballast version",),
    ),
}

EXAMPLES: Final = ("ballast status", "ballast plan balance --save plan.json", "ballast apply plan.json")
"""Those of ``ballast`` itself."""


def examples_of(words: Sequence[str]) -> tuple[str, ...]:
    """Command lines for a command, which is named by the words after ``ballast``."""
    if not words:
        return EXAMPLES
    entry = COMMANDS[words[0]]
    return entry.examples if len(words) == 1 else entry.below[words[1]]

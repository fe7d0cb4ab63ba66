"""``ballast reassign``: what ``kafka-reassign-partitions`` does, under the same options, with the same answers.

The exit codes are the stock tool's, 0 and 1.  What differs is said on stderr.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import click

from ballast.cli.cluster_options import ClusterOptions
from ballast.errors import BallastError, UsageError

ACTIONS: Final = ("generate", "execute", "verify", "cancel", "list")

CONNECTION: Final = ("bootstrap_server", "bootstrap_controller", "command_config", "zookeeper", "config")
REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "generate": ("topics_to_move_json_file", "broker_list"),
    "execute": ("reassignment_json_file",),
    "verify": ("reassignment_json_file",),
    "cancel": ("reassignment_json_file",),
    "list": (),
}
PERMITTED: Final[dict[str, tuple[str, ...]]] = {
    "generate": ("disable_rack_aware", "placement", "seed"),
    "execute": (
        "throttle",
        "no_throttle",
        "replica_alter_log_dirs_throttle",
        "timeout",
        "additional",
        "disallow_replication_factor_change",
        "unknown_disk_space",
        "replicas_below_min_isr",
    ),
    "verify": ("preserve_throttles", "clear_throttles"),
    "cancel": ("preserve_throttles", "clear_throttles", "timeout"),
    "list": (),
}
"""What may be given with each action, besides what it needs and the connection; as in the stock tool."""


class StockCommand(click.Command):
    """Leaves with 1, as the stock tool does, where other commands leave with their own codes."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse; a mistake in the options ends with 1."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as mistake:
            mistake.show()
            raise click.exceptions.Exit(1) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run; a failure is one sentence and ends with 1."""
        try:
            return super().invoke(ctx)
        except click.UsageError as mistake:
            mistake.show()
        except BallastError as failure:
            click.echo(f"Error: {failure.message}", err=True)
            if failure.hint:
                click.echo(f"  → {failure.hint}", err=True)
        return 1


def _file(**about: Any) -> Any:
    return click.Path(exists=True, dir_okay=False, path_type=Path, **about)


@click.command(cls=StockCommand)
@click.option(
    "--generate",
    "generate",
    is_flag=True,
    help="Generate a candidate partition reassignment configuration. It does not execute it.",
)
@click.option(
    "--execute",
    "execute",
    is_flag=True,
    help="Kick off the reassignment as specified by the --reassignment-json-file option.",
)
@click.option(
    "--verify",
    "verify",
    is_flag=True,
    help="Verify if the reassignment completed as specified by the --reassignment-json-file option.",
)
@click.option("--cancel", "cancel", is_flag=True, help="Cancel an active reassignment.")
@click.option("--list", "list_", is_flag=True, help="List all active partition reassignments.")
@click.option(
    "--bootstrap-server",
    "-b",
    envvar="BALLAST_BOOTSTRAP_SERVER",
    metavar="HOST:PORT,…",
    help="The server(s) to use for bootstrapping.",
)
@click.option("--bootstrap-controller", metavar="HOST:PORT,…", help="Not supported: Ballast talks to brokers.")
@click.option(
    "--command-config",
    type=_file(),
    envvar="BALLAST_COMMAND_CONFIG",
    help="Property file containing configs to be passed to Admin Client.",
)
@click.option(
    "--zookeeper",
    envvar="BALLAST_ZOOKEEPER",
    metavar="HOST:PORT[/CHROOT]",
    help="For clusters that still have ZooKeeper: finds their brokers as well.",
)
@click.option("--config", type=_file(), envvar="BALLAST_CONFIG", help="Ballast's settings file (YAML).")
@click.option(
    "--topics-to-move-json-file",
    type=_file(),
    help="Generate a reassignment configuration to move the partitions of the specified topics to the list of brokers specified by the "
    '--broker-list option. The format to use is {"topics": [{"topic": "foo"}], "version": 1}.',
)
@click.option(
    "--broker-list", metavar="0,1,2", help="The list of brokers to which the partitions need to be reassigned."
)
@click.option("--disable-rack-aware", is_flag=True, help="Disable rack aware replica assignment.")
@click.option(
    "--placement",
    type=click.Choice(["auto", "classic", "kraft"]),
    default="auto",
    show_default=True,
    help="How --generate places: as kafka-reassign-partitions of the cluster's version does, or by the named algorithm. Not in kafka-reassign-partitions.",
)
@click.option("--seed", type=int, help="Repeat a proposal of --generate. Not in kafka-reassign-partitions.")
@click.option(
    "--reassignment-json-file",
    type=_file(),
    help='The JSON file with the partition reassignment configuration. The format to use is {"partitions": [{"topic": "foo", "partition": 1, "replicas": [1, 2], "log_dirs": ["any", "/d"]}], "version": 1}; '
    '"log_dirs" is optional.',
)
@click.option(
    "--throttle",
    type=int,
    metavar="BYTES/S",
    help="The movement of partitions between brokers will be throttled to this value (bytes/sec); -1 is --no-throttle.  [default: for each broker by its traffic "
    "and the size of its copies, raised while it is used, and halved when other replicas fall behind]",
)
@click.option(
    "--no-throttle",
    is_flag=True,
    help="Let --execute copy at full speed, as kafka-reassign-partitions does where no --throttle is given.",
)
@click.option(
    "--replica-alter-log-dirs-throttle",
    type=int,
    metavar="BYTES/S",
    help="The movement of replicas between log directories on the same broker will be throttled to this value "
    "(bytes/sec).",
)
@click.option(
    "--timeout",
    type=int,
    default=10_000,
    show_default=True,
    metavar="MS",
    help="The maximum time in ms to wait for log directory replica assignment to begin. Not used: a copy between log directories begins once its replica is there.",
)
@click.option("--additional", is_flag=True, help="Execute this reassignment in addition to any other ongoing ones.")
@click.option(
    "--disallow-replication-factor-change",
    is_flag=True,
    help="Denies the ability to change a partition's replication factor as part of this reassignment through adding validation "
    "against it.",
)
@click.option(
    "--unknown-disk-space",
    type=click.Choice(["refuse", "allow"]),
    default="refuse",
    show_default=True,
    help="Whether --execute may copy where a broker's free disk space, or a partition's size, is not known. Not in kafka-reassign-partitions.",
)
@click.option(
    "--replicas-below-min-isr",
    type=click.Choice(["refuse", "allow"]),
    default="refuse",
    show_default=True,
    help="Whether --execute may add a replica where there are fewer than min.insync.replicas, though writes with acks=all are "
    "rejected meanwhile. Not in kafka-reassign-partitions.",
)
@click.option("--preserve-throttles", is_flag=True, help="Do not modify broker or topic throttles.")
@click.option(
    "--clear-throttles",
    is_flag=True,
    help="Let --verify and --cancel remove throttles of the file's topics that are no longer needed, set by anyone, as "
    "kafka-reassign-partitions does. Without it only Ballast's own are removed.",
)
@click.pass_context
def reassign(ctx: click.Context, /, **given: Any) -> int:
    """Do what kafka-reassign-partitions does: its options, its JSON and its exit codes, with a throttle by default.

    Exactly one of --generate, --execute, --verify, --cancel and --list says what.
    """
    action = _action(ctx, given)
    cluster = ClusterOptions(
        bootstrap_server=given["bootstrap_server"],
        command_config=given["command_config"],
        zookeeper=given["zookeeper"],
        config=given["config"],
        timeout_s=30.0,
    )
    if action == "generate":
        return _generate(cluster, given)
    if action == "list":
        return _list(cluster)
    from functools import partial

    from ballast.app.reassign.cancel import cancel
    from ballast.app.reassign.execute import execute
    from ballast.app.reassign.session import ReassignOptions, ReassignSession
    from ballast.app.reassign.verify import verify
    from ballast.core.stock.files import parse_reassignment
    from ballast.wiring.run_follower import start_follower

    if given["preserve_throttles"] and given["clear_throttles"]:
        raise click.UsageError("--preserve-throttles and --clear-throttles contradict each other.")
    path = given["reassignment_json_file"]
    options = ReassignOptions(
        entries=parse_reassignment(read_text(path), source=path.name),
        source=path.name,
        throttle=_throttle(given["throttle"], no_throttle=given["no_throttle"]),
        replica_alter_log_dirs_throttle=_rate(given["replica_alter_log_dirs_throttle"]),
        additional=given["additional"],
        unknown_disk_space=given["unknown_disk_space"],
        replicas_below_min_isr=given["replicas_below_min_isr"],
        disallow_replication_factor_change=given["disallow_replication_factor_change"],
        preserve_throttles=given["preserve_throttles"],
        clear_throttles=given["clear_throttles"],
    )
    act = {"execute": execute, "verify": verify, "cancel": cancel}[action]
    with cluster.open() as opened:
        follower = partial(start_follower, opened, command_config=cluster.command_config, config=cluster.config)
        return act(ReassignSession(opened, click.echo, print_own_line, follower), options)


def print_own_line(text: str) -> None:
    """A line of Ballast's own, beside those of the stock tool."""
    click.echo(f"ballast: {text}", err=True)


def read_text(path: Path) -> str:
    """A file's text; Kafka's tools read UTF-8 too."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise UsageError(f"{path} cannot be read: {failure}.") from None


def _action(ctx: click.Context, given: dict[str, Any]) -> str:
    """The one action, checked against the options that came with it as the stock tool checks them."""
    given["list"] = given.pop("list_")
    chosen = [a for a in ACTIONS if given[a]]
    if len(chosen) != 1:
        raise click.UsageError(f"Command must include exactly one action: {', '.join(f'--{a}' for a in ACTIONS)}")
    action = chosen[0]
    if given["bootstrap_controller"] is not None:
        raise click.UsageError("--bootstrap-controller is not supported: name brokers with --bootstrap-server.")
    for name in REQUIRED[action]:
        if given[name] is None:
            raise click.UsageError(f"Missing required argument --{name.replace('_', '-')} for --{action}.")
    allowed = {action, *REQUIRED[action], *PERMITTED[action], *CONNECTION, "list_"}
    for name in given:
        source = ctx.get_parameter_source("list_" if name == "list" else name)
        if name not in allowed and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"Option --{name.replace('_', '-')} can't be used with action --{action}.")
    return action


def _throttle(rate: int | None, *, no_throttle: bool) -> int | Literal["auto", "none"]:
    """What limits copies between brokers: a rate, none, or what is known of the cluster."""
    if no_throttle and rate is not None:
        raise click.UsageError("--throttle and --no-throttle exclude each other.")
    if rate is None:
        return "none" if no_throttle else "auto"
    return rate if rate >= 0 else "none"


def _rate(value: int | None) -> int | None:
    """A negative rate means none, as the stock tool's default of -1 does."""
    return None if value is None or value < 0 else value


def _generate(cluster: ClusterOptions, given: dict[str, Any]) -> int:
    import secrets

    from ballast.app.journal_reading import read_drained
    from ballast.core.placement.java_random import JavaRandom
    from ballast.core.placement.placer import tools_algorithm
    from ballast.core.stock.checks import check_topics
    from ballast.core.stock.files import parse_broker_list, parse_topics_to_move
    from ballast.core.stock.generate import propose

    path = given["topics_to_move_json_file"]
    brokers = parse_broker_list(given["broker_list"])
    topics = parse_topics_to_move(read_text(path), source=path.name)
    with cluster.open() as opened:
        state = opened.cluster.snapshot(configs=False)
        drained = read_drained(opened, state, print_own_line)
    check_topics(topics, state, source=path.name)
    algorithm = tools_algorithm(state) if given["placement"] == "auto" else given["placement"]
    seed = given["seed"] if given["seed"] is not None else secrets.randbits(47)
    proposal = propose(
        state,
        topics,
        brokers,
        algorithm=algorithm,
        rng=JavaRandom(seed),
        rack_aware="disabled" if given["disable_rack_aware"] else "enforced",
        drained=cluster.settings().balance.with_drained(drained).draining,
    )
    for warning in proposal.warnings:
        click.echo(f"ballast: {warning}", err=True)
    click.echo(proposal)
    click.echo(f"ballast: placed by the {algorithm} algorithm; --seed {seed} proposes the same again.", err=True)
    return 0


def _list(cluster: ClusterOptions) -> int:
    from ballast.core.stock.generate import describe_moves

    with cluster.open() as opened:
        moves = opened.cluster.reassignments()
    click.echo(describe_moves({name: (m.replicas, m.adding, m.removing) for name, m in moves.items()}))
    return 0

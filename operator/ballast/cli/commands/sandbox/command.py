"""``ballast sandbox``: a real Kafka on this machine, to play with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ballast.cli.default_command import WholeLines
from ballast.cli.tables import output_option, print_json

if TYPE_CHECKING:
    from ballast.sandbox import Sandbox


def print_progress(line: str) -> None:
    """Progress, on stderr."""
    click.echo(f"[sandbox] {line}", err=True)


def attach() -> Sandbox:
    """The person's running sandbox; raises ``UsageError`` when there is none."""
    from ballast.errors import UsageError
    from ballast.sandbox import Sandbox
    from ballast.sandbox.current_sandbox import current_folder
    from ballast.sandbox.folders import has_supervisor

    if not has_supervisor(current_folder()):
        raise UsageError("No sandbox is running.", hint="Start one: ballast sandbox up")
    return Sandbox.attach(current_folder())


@click.group(cls=WholeLines)
def sandbox() -> None:
    """A real Kafka on this machine's loopback.

    One sandbox per user; the other commands find it when no --bootstrap-server is given.  It listens on 127.0.0.1 only and
    lives in the temporary folder until `ballast sandbox down` or a reboot.
    """


@sandbox.command()
@click.option("--brokers", type=int, default=3, show_default=True, help="How many brokers; their ids are 1, 2, 3, …")
@click.option(
    "--racks", type=int, default=3, show_default=True, help="Over how many racks they are spread; 0 for none."
)
@click.option("--mode", type=click.Choice(["kraft", "zookeeper"]), default="kraft", show_default=True)
@click.option("--kafka-version", default=None, metavar="VERSION", help="One of `ballast sandbox versions`.")
@click.option("--controllers", type=int, default=1, show_default=True, help="Separate KRaft controllers.")
@click.option("--log-dirs", type=int, default=1, show_default=True, help="Log dirs of each broker.")
@click.option("--security", default=None, metavar="KIND", help="Client authentication: see `ballast sandbox versions`.")
@click.option("--set", "configs", multiple=True, metavar="NAME=VALUE", help="Further broker settings; repeatable.")
def up(
    *,
    brokers: int,
    racks: int,
    mode: str,
    kafka_version: str | None,
    controllers: int,
    log_dirs: int,
    security: str | None,
    configs: tuple[str, ...],
) -> None:
    """Start the sandbox and leave it running."""
    from ballast.errors import UsageError
    from ballast.sandbox import Sandbox, SandboxSpec
    from ballast.sandbox.current_sandbox import new_current_folder
    from ballast.sandbox.prepare import prepare
    from ballast.sandbox.spec import NEWEST, NEWEST_WITH_ZOOKEEPER

    if unreadable := [word for word in configs if "=" not in word]:
        raise UsageError(f"--set takes NAME=VALUE, not {unreadable[0]!r}.")
    spec = SandboxSpec(
        brokers=brokers,
        racks=racks,
        mode="zookeeper" if mode == "zookeeper" else "kraft",
        kafka_version=kafka_version or (NEWEST_WITH_ZOOKEEPER if mode == "zookeeper" else NEWEST),
        controllers=controllers,
        log_dirs=log_dirs,
        security=security,
        broker_configs=dict(word.split("=", maxsplit=1) for word in configs),
    )
    folder = new_current_folder()
    prepare(spec.kafka_version, on_line=print_progress)
    _show(Sandbox.up(spec, folder=folder, owned=False, on_line=print_progress), "table")


@sandbox.command()
def down() -> None:
    """End the sandbox and remove everything of it; fine to call twice, and after a crash."""
    from ballast.sandbox.current_sandbox import end

    print_progress("ended; nothing of it is left" if end() else "none was running")


@sandbox.command()
@output_option("Sandbox")
def status(*, output: str) -> None:
    """Say how to reach the sandbox and which brokers run."""
    _show(attach(), output)


def _show(running: Sandbox, output: str) -> None:
    from ballast.cli.documents import sandbox as documents

    alive = running.running()
    facts = documents.Sandbox(
        kafka_version=running.spec.kafka_version,
        mode=running.spec.mode,
        bootstrap_server=running.bootstrap_server,
        zookeeper=running.zookeeper,
        command_config=str(running.client_properties_file) if running.spec.security else None,
        folder=str(running.folder),
        brokers=[
            documents.SandboxBroker(id=broker, rack=running.spec.rack_of(broker), running=alive[broker])
            for broker in running.broker_ids
        ],
    )
    if output == "json":
        print_json(facts)
        return
    for name, value in facts.model_dump(by_alias=False, exclude={"api_version", "kind", "brokers"}).items():
        if value is not None:
            click.echo(f"{name.replace('_', ' '):17} {value}")
    for b in facts.brokers:
        click.echo(f"broker {b.id:<10} {b.rack or 'no rack'}, {'running' if b.running else 'down'}")


@sandbox.command()
@output_option("SandboxVersions")
def versions(*, output: str) -> None:
    """List the Kafka versions and kinds of security that a sandbox can have."""
    from ballast.sandbox.jars import versions as locked_versions
    from ballast.sandbox.security import KINDS

    if output == "json":
        from ballast.cli.documents.sandbox import SandboxVersions

        print_json(SandboxVersions(kafka_versions=list(locked_versions()), security=list(KINDS)))
        return
    click.echo(f"Kafka     {', '.join(locked_versions())}")
    for kind, meaning in KINDS.items():
        click.echo(f"{kind:9} {meaning}")


@sandbox.command("kill-broker")
@click.argument("broker", type=int)
@click.option("--graceful", is_flag=True, help="Controlled shutdown instead of kill -9.")
@click.option("--freeze", is_flag=True, help="Stop its process with SIGSTOP; its connections stay open.")
def kill_broker(*, broker: int, graceful: bool, freeze: bool) -> None:
    """Kill a broker as a crash would; its data stays."""
    from ballast.errors import UsageError

    if graceful and freeze:
        raise UsageError("--graceful and --freeze exclude each other.")
    running = attach()
    if freeze:
        running.pause_broker(broker)
        print_progress(f"broker {broker} is frozen; `ballast sandbox start-broker {broker}` resumes it")
        return
    (running.stop_broker if graceful else running.kill_broker)(broker)
    print_progress(f"broker {broker} is down; `ballast sandbox start-broker {broker}` brings it back")


@sandbox.command("start-broker")
@click.argument("broker", type=int)
def start_broker(*, broker: int) -> None:
    """Start a broker that is down, or resume a frozen one, and wait until it serves."""
    running = attach()
    if running.running().get(broker):
        running.resume_broker(broker)
    running.start_broker(broker)
    print_progress(f"broker {broker} serves")


@sandbox.command()
@click.option("--topics", type=int, default=8, show_default=True, help="How many topics.")
@click.option("--partitions", type=int, default=6, show_default=True, help="Partitions of each.")
@click.option("--replication-factor", type=int, default=2, show_default=True, help="Replicas of each partition.")
@click.option("--megabytes", type=float, default=20.0, show_default=True, help="Data in all, replicas not counted.")
@click.option(
    "--shape",
    default="even",
    show_default=True,
    metavar="SHAPE",
    help="even · empty-broker (nothing on the last broker) · leaders (all preferred leaders on low ids) · one-rack · hot (a few big partitions)",
)
@click.option("--prefix", default="orders", show_default=True, help="What the topics' names begin with.")
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same cluster.")
def fill(
    *, topics: int, partitions: int, replication_factor: int, megabytes: float, shape: str, prefix: str, seed: int
) -> None:
    """Create topics with data, balanced, or unbalanced in a chosen way."""
    from ballast.sandbox.fill import Filling
    from ballast.sandbox.fill import fill as pour

    filling = Filling(
        topics=topics,
        partitions=partitions,
        replication_factor=replication_factor,
        megabytes=megabytes,
        shape=shape,
        prefix=prefix,
        seed=seed,
    )
    pour(attach(), filling, on_line=print_progress)
    print_progress("filled")


@sandbox.command()
@click.option(
    "--kafka-version", "kafka_versions", multiple=True, metavar="VERSION", help="Repeatable; default: newest."
)
@click.option("--tools", is_flag=True, help="Also Kafka's own command line tools.")
def prepare(*, kafka_versions: tuple[str, ...], tools: bool) -> None:
    """Download Java and Kafka into the cache, so that starting a sandbox later needs no network."""
    from ballast.sandbox.jars import TOOLS, ensure_jars
    from ballast.sandbox.prepare import prepare as bring
    from ballast.sandbox.spec import NEWEST

    for version in kafka_versions or (NEWEST,):
        bring(version, on_line=print_progress)
    if tools:
        ensure_jars(TOOLS, on_line=print_progress)


@sandbox.command()
@click.option("--keep", is_flag=True, help="Leave the sandbox running afterwards.")
def demo(*, keep: bool) -> None:
    """Five brokers in three racks, unbalanced, planned for, balanced and verified."""
    from ballast.cli.commands.sandbox.demo import run

    run(keep=keep)

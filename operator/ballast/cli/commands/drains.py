"""``ballast drains``: brokers that people drained through the daemon, and the end of a drain."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from ballast.app.requests import ask_holder
from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.default_command import GroupWithDefault
from ballast.cli.run_options import LockOptions, lock_options
from ballast.cli.tables import Column, console, human_moment, output_option, print_json, print_line, render_table
from ballast.errors import Refused

if TYPE_CHECKING:
    from ballast.ports.journal import Journal


@click.group(cls=GroupWithDefault, default="list")
def drains() -> None:
    """List brokers whose drain was started on the page (default), end a drain."""


@drains.command("list")
@click.option("--journal", metavar="file:PATH", help="The journal, where it is not the cluster's own.")
@output_option("Drains")
@cluster_options
def list_drains(*, journal: str | None, output: str, cluster: ClusterOptions) -> int:
    """List draining brokers, who started each drain and when. Brokers in balance.draining are not listed."""
    from ballast.executor.journal.drains import drains_in
    from ballast.wiring.journal import journal_to_look_at

    with cluster.open() as opened, closing(journal_to_look_at(opened, journal)) as log:
        found = drains_in(log.read())
    if output == "json":
        from ballast.cli.documents import cluster as documents

        print_json(documents.Drains(drains=found))
    elif found:
        columns = [Column("BROKER"), Column("SINCE", "left"), Column("BY", "left")]
        screen = console()
        screen.print(
            render_table(columns, [(str(d.broker), human_moment(d.since_ms), d.by) for d in found], screen.width)
        )
    else:
        print_line("No broker is draining on request.")
    return 0


@drains.command("end")
@click.argument("broker", type=int)
@lock_options
@cluster_options
def end(*, broker: int, lock: LockOptions, cluster: ClusterOptions) -> int:
    """Let BROKER take replicas again: the daemon's next balance fills it."""
    from ballast.executor.journal.drains import drain_record
    from ballast.wiring.journal import journal_to_look_at

    with cluster.open() as opened:
        with closing(journal_to_look_at(opened, lock.journal)) as log:
            _require(log, broker)
            told = ask_holder(
                log, "end-drain", {"broker": str(broker)}, f"end the drain of broker {broker}", print_line
            )
            if told is not None:
                print_line(f"Answer: {told}")
                return 0
        with lock.writer(opened, "ballast drains end") as writer:
            _require(writer.journal, broker)
            writer.journal.append([drain_record(broker, None)])
    print_line(f"The drain of broker {broker} is ended.")
    return 0


def _require(log: Journal, broker: int) -> None:
    from ballast.executor.journal.drains import drains_in

    if broker not in {d.broker for d in drains_in(log.read())}:
        raise Refused(f"Broker {broker} is not draining on request.", hint="ballast drains lists those that are.")

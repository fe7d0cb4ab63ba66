"""``ballast status``: is the cluster balanced, is it well, is anything moving, is anything left over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.option_types import Time
from ballast.cli.store_option import load_model_option
from ballast.cli.tables import output_option, print_line
from ballast.errors import Unavailable

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState
    from ballast.core.planner import Loads
    from ballast.core.status import ClusterStatus

EXIT_NEEDS_ATTENTION = 3


@click.command()
@output_option("Status")
@click.option("--watch", is_flag=True, help="Read and show again until interrupted; as JSON, one line per reading.")
@click.option(
    "--interval",
    type=Time(positive=True),
    default="5s",
    show_default=True,
    help="Pause between readings of --watch.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 100),
    default=None,
    metavar="PERCENT",
    help="Leader imbalance above which a broker counts as imbalanced.  [default: settings, else the cluster's own with ZooKeeper, else 10]",
)
@click.option(
    "--all",
    "show_all",
    is_flag=True,
    help="Name every under-replicated, offline or reassigning partition, not the first few.",
)
@load_model_option("show the traffic between racks")
@click.option("--check", is_flag=True, help="Exit with 3 when something needs attention.")
@cluster_options
def status(
    *,
    output: str,
    watch: bool,
    interval: float,
    threshold: float | None,
    show_all: bool,
    store: str | None,
    check: bool,
    cluster: ClusterOptions,
) -> int:
    """Show brokers, leader imbalance, under-replicated, offline and reassigning partitions, throttles, and who else balances this cluster.

    A figure that a broker did not give is shown as ? and never as zero; what is missing is listed at the end.
    """
    from dataclasses import replace

    from ballast.app.journal_reading import journal_state, read_held
    from ballast.core.leadership.limits import imbalance_percentage
    from ballast.core.status import cluster_status

    settings = cluster.settings()
    given = threshold if threshold is not None else settings.leaders.imbalance_percentage

    with cluster.open() as opened:

        def read() -> ClusterStatus:
            state = opened.cluster.snapshot(patient=False)
            held = read_held(opened, state, print_line)
            balance = settings.balance.with_drained(d.broker for d in held.drains or ())
            loads = None if store is None else _loads(state, store)
            found = cluster_status(state, imbalance_percentage(state, given), balance, loads)
            begun_ms = held.restart.at_ms if held.restart is not None else None
            found = replace(found, journal=journal_state(opened, state, held), journal_recreated_ms=begun_ms)
            return replace(found.with_ledgers(held.runs, held.set_by_hand), drains=held.drains)

        if watch:
            _watch(read, output=output, interval_s=interval, show_all=show_all)
            return 0
        result = read()
    _show(result, output=output, show_all=show_all)
    return EXIT_NEEDS_ATTENTION if check and result.needs_attention else 0


def _loads(state: ClusterState, store: str) -> Loads:
    from datetime import UTC, datetime

    from ballast.wiring.loads import HistoryPolicy, loads_from_history

    return loads_from_history(state, HistoryPolicy(store=store), now=datetime.now(UTC))


def _show(result: ClusterStatus, *, output: str, show_all: bool) -> None:
    from ballast.cli.commands.status import view as status_view
    from ballast.cli.tables import console, print_json

    if output == "json":
        print_json(status_view.document(result))
    else:
        status_view.draw(result, console(), limit=None if show_all else status_view.FEW)


def _watch(read: Callable[[], ClusterStatus], *, output: str, interval_s: float, show_all: bool) -> None:
    """Show reading after reading; a cluster that is away for a while is waited for."""
    import time

    from ballast.cli.commands.status import view as status_view
    from ballast.cli.tables import console, print_json_line

    screen = console()
    try:
        while True:
            try:
                result = read()
            except Unavailable as failure:
                if not failure.retryable:
                    raise
                click.echo(f"ballast: {failure.message} Trying again.", err=True)
            else:
                if output == "json":
                    print_json_line(status_view.document(result))
                else:
                    if screen.is_terminal:
                        screen.clear()
                    status_view.draw(result, screen, limit=None if show_all else status_view.FEW)
            time.sleep(interval_s)
    except KeyboardInterrupt:
        # Ctrl-C is how a watch ends; it is no failure.
        return

"""``ballast decommission``: take brokers away, from leadership to the word that they can be stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.option_types import BROKERS, TIME, union_of
from ballast.cli.run_options import LockOptions, execution_options, lock_options, policy_from
from ballast.cli.run_screen import RUN_DOCUMENTS
from ballast.cli.tables import output_option, print_json

if TYPE_CHECKING:
    from ballast.app.runs import Session
    from ballast.core.named_brokers import NamedBrokers


@click.command()
@click.argument("brokers_", type=BROKERS, nargs=-1, required=True, metavar="BROKER…")
@click.option(
    "--follow",
    type=TIME,
    default="0s",
    show_default=True,
    help="Keep watching for new replicas this long after the brokers are empty.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@execution_options
@lock_options
@output_option(*RUN_DOCUMENTS, "Decommission")
@cluster_options
def decommission(
    *,
    brokers_: tuple[NamedBrokers, ...],
    follow: float,
    yes: bool,
    policy_options: Mapping[str, Any],
    lock: LockOptions,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Empty brokers so that they can be stopped: leadership first (no data copied), then data; it says when they can be.

    Run it again after an interruption: it continues from the cluster's current state.  ballast plan decommission shows the cost only.
    """
    from ballast.app.decommission import decommission as execute
    from ballast.cli.terminal import Terminal
    from ballast.executor.driver.events import RunResult

    terminal = Terminal(output, yes)

    @contextmanager
    def begin() -> Iterator[Session]:
        with cluster.open() as opened:
            yield lock.session(opened, terminal, "ballast decommission")

    ended = execute(
        begin,
        union_of(brokers_),
        cluster.settings().balance,
        policy_from(policy_options, cluster.settings().execution),
        follow_s=follow,
    )
    if isinstance(ended, RunResult):
        return ended.exit_code
    if output == "json":
        from ballast.cli.documents.runs import Decommission

        print_json(Decommission(brokers=sorted(ended.brokers)))
    else:
        click.echo(ended.sentence)
    return 0

"""``ballast throttles list``: what is set, who needs it, what is stale; clean it up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.option_types import BROKERS
from ballast.cli.run_options import LockOptions, lock_options
from ballast.cli.tables import Column, console, human_many, output_option, print_json, print_line, render_table

if TYPE_CHECKING:
    from ballast.cli.documents.cluster import Throttle
    from ballast.core.named_brokers import NamedBrokers
    from ballast.core.throttles.stale import FoundThrottle


@click.command("list")
@click.option(
    "--clean",
    is_flag=True,
    help="Remove stale throttles, throttles that Ballast has not yet removed, and those set with ballast throttles set.",
)
@click.option(
    "--topic", "topics", multiple=True, metavar="NAME", help="With --clean: only this topic's lists; may be repeated."
)
@click.option("--brokers", type=BROKERS, help="With --clean: these brokers' rates as well.")
@click.option("--yes", "-y", is_flag=True, help="With --clean: do not ask.")
@lock_options
@output_option("Throttles", "ThrottlesRemoved")
@cluster_options
def list_throttles(
    *,
    clean: bool,
    topics: tuple[str, ...],
    brokers: NamedBrokers | None,
    yes: bool,
    lock: LockOptions,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """List every throttle that is set, and what needs it; with --clean remove those that are no longer needed.

    Each is shown with the proof that it is no longer needed, and checked again right before it is removed. A rate on a broker may be
    a person's own: it is removed only if a stale list or --brokers names its broker. Throttles set with ballast throttles set
    are removed too, and previous values are restored.
    """
    from ballast.app.throttles import judge, shortened

    if not clean and (topics or brokers or yes):
        raise click.UsageError("--topic, --brokers and --yes go with --clean.")
    with cluster.open() as opened:
        if clean:
            from ballast.app.throttles import clean as remove
            from ballast.cli.terminal import Terminal

            begin = partial(lock.writer, opened, "ballast throttles --clean")
            gone = remove(opened, begin, Terminal(yes=yes), journal=lock.journal, topics=topics, brokers=brokers)
            if output == "json":
                from ballast.cli.documents.cluster import ThrottlesRemoved

                print_json(ThrottlesRemoved(removed=[_document(s) for s in gone]))
            print_line(f"Removed {human_many(len(gone), 'setting')}." if gone else "No stale throttles.")
            return 0
        found = [s for s in judge(opened, lock.journal, print_line) if s.value]
    if output == "json":
        from ballast.cli.documents.cluster import Throttles

        print_json(Throttles(throttles=[_document(s) for s in found]))
        return 0
    if not found:
        print_line("No throttle is set.")
        return 0
    columns = [Column("resource", "left"), Column("setting", "left"), Column("value", "left", 1), Column("why", "left")]
    rows = [[s.resource, s.setting.key, shortened(s.value), s.why] for s in found]
    out = console()
    out.print(render_table(columns, rows, out.width))
    if any(s.stale for s in found):
        print_line("Remove the stale ones with: ballast throttles --clean")
    return 0


def _document(s: FoundThrottle) -> Throttle:
    from ballast.cli.documents.cluster import Throttle

    return Throttle(
        resource_type=s.setting.kind,
        resource_name=s.setting.name,
        key=s.setting.key,
        value=s.value,
        stale=s.stale,
        set_by_ballast=s.in_ledger,
        set_by_hand=s.set_by_hand,
        detail=s.why,
    )

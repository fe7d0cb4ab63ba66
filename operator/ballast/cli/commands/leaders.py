"""``ballast leaders``: who is preferred where, how uneven that is, and what reorders alone can do about it."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.run_screen import say
from ballast.cli.tables import output_option
from ballast.core.wording import human_many, planned_elections
from ballast.errors import UsageError

if TYPE_CHECKING:
    from ballast.cli.documents import cluster as documents
    from ballast.core.cluster import ClusterState
    from ballast.core.leadership import LeaderImbalance
    from ballast.core.leadership.plan import LeaderBalance
    from ballast.core.leadership.skew import Share, Skew

EXIT_PENDING = 3
SHOWN_TOPICS = 10


@click.command()
@click.option(
    "--balance",
    "measure",
    type=click.Choice(["counts", "bytes"]),
    help="Find the reorders that balance how many partitions, or how many bytes, each broker leads.",
)
@click.option("--topics", metavar="REGEX", help="Reorder only topics whose whole name matches; all count.")
@click.option("--exclude-broker", "excluded", type=int, multiple=True, metavar="BROKER", help="Gets no leaders.")
@click.option(
    "--save",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="With --balance: write the plan, to be carried out with ballast apply FILE.",
)
@click.option(
    "--kafka-json", is_flag=True, help="With --balance: print the reorders as kafka-reassign-partitions reads them."
)
@click.option("--check", is_flag=True, help="With --balance: exit with 3 when there is something to reorder.")
@output_option("Leaders", "LeaderBalance")
@cluster_options
def leaders(
    *,
    measure: str | None,
    topics: str | None,
    excluded: tuple[int, ...],
    save: Path | None,
    kafka_json: bool,
    check: bool,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Show how preferred leadership is spread over brokers, racks and topics, and balance it without moving a byte.

    With --balance counts the result is the least possible maximum with the fewest reorders; with --balance bytes it comes with
    the gap to a bound that nothing beats.  Brokers that are drained get no leaders.
    """
    from ballast.app.journal_reading import heeding, read_drained

    if measure is None and (save is not None or kafka_json or check or topics is not None or excluded):
        raise UsageError("These options go with --balance counts or --balance bytes.")
    with cluster.open() as opened:
        state = opened.cluster.snapshot(configs=False)
        drained = read_drained(opened, state, say) if measure is not None else frozenset()
    if measure is None:
        return _report(state, output)
    found = _balance(state, measure, topics, excluded, heeding(cluster.settings().balance, drained).draining)
    _write(state, found, save)
    if kafka_json:
        from ballast.core.stock.files import format_reassignment

        click.echo(format_reassignment({m.name: m.new for m in found.moves}))
    elif output == "json":
        _balance_document(found)
    else:
        _draw_balance(found)
    return EXIT_PENDING if check and found.moves else 0


def _balance(
    state: ClusterState, measure: str, topics: str | None, excluded: tuple[int, ...], draining: frozenset[int]
) -> LeaderBalance:
    from ballast.core.leadership.plan import balance

    try:
        pattern = re.compile(topics) if topics is not None else None
    except re.error as wrong:
        raise UsageError(f"{topics!r} is not a regular expression: {wrong}.") from None
    unknown = sorted(set(excluded) - {b.id for b in state.brokers})
    if unknown:
        raise UsageError(f"There is no broker {', '.join(map(str, unknown))} in this cluster.")
    names = None if pattern is None else [t.name for t in state.topics if pattern.fullmatch(t.name)]
    return balance(state, "bytes" if measure == "bytes" else "counts", excluded=draining.union(excluded), topics=names)


def _write(state: ClusterState, found: LeaderBalance, save: Path | None) -> None:
    if save is None:
        return
    from ballast.cli.commands.plan.view import warn
    from ballast.core.leadership.plan import leader_plan
    from ballast.core.plan.file import dumps

    made = leader_plan(state, found, created_at_ms=int(time.time() * 1000))
    try:
        save.write_text(dumps(made), encoding="utf-8")
    except OSError as failure:
        raise UsageError(f"The plan cannot be written to {save}: {failure.strerror}.") from None
    click.echo(f"Plan saved; carry it out with: ballast apply {save}", err=True)
    warn(made)


def _report(state: ClusterState, output: str) -> int:
    from ballast.cli.tables import Column, console, human_count, human_names, print_json, render_table
    from ballast.core.leadership import imbalance
    from ballast.core.leadership.skew import preferred_skew

    skew, drift = preferred_skew(state), imbalance(state)
    if output == "json":
        print_json(_document(state, skew, drift))
        return 0
    screen = console()
    shared = [Column("PREFERRED LEADERS"), Column("VS AVERAGE"), Column("BYTES"), Column("VS AVERAGE")]
    rows = [
        [s.name, str(b.rack or "-"), "ok" if b.alive else "down", *_cells(s), human_count(drift[b.id].not_led)]
        for s, b in zip(skew.brokers, state.brokers, strict=True)
    ]
    columns = [Column("BROKER"), Column("RACK", "left", rank=1), Column("STATE", "left"), *shared]
    screen.print(render_table([*columns, Column("NOT LED BY PREFERRED")], rows, screen.width))
    if skew.racks:
        screen.print()
        rack_rows = [[s.name, *_cells(s)] for s in skew.racks]
        screen.print(render_table([Column("RACK", "left"), *shared], rack_rows, screen.width))
    if skew.topics:
        screen.print()
        topic_rows = [
            [t.topic, human_count(t.partitions), human_count(t.most), str(t.on), human_count(t.least_possible)]
            for t in skew.topics[:SHOWN_TOPICS]
        ]
        titles = [Column("TOPIC", "left"), Column("PARTITIONS"), Column("MOST"), Column("ON BROKER"), Column("IDEAL")]
        screen.print(render_table(titles, topic_rows, screen.width))
        left = [t.topic for t in skew.topics[SHOWN_TOPICS:]]
        if left:
            screen.print(f"… also uneven: {human_names(left)}")
    if skew.unknown_sizes:
        click.echo(f"ballast: {skew.unknown_sizes:,} partitions have no known size and count as 0 bytes.", err=True)
    return 0


def _document(state: ClusterState, skew: Skew, drift: LeaderImbalance) -> documents.Leaders:
    from ballast.cli.documents import cluster as documents

    return documents.Leaders(
        brokers=[
            documents.BrokerShare(
                **_share(s), broker=b.id, not_led=drift[b.id].not_led, imbalance_ratio=drift[b.id].ratio
            )
            for s, b in zip(skew.brokers, state.brokers, strict=True)
        ],
        racks=[documents.RackShare(**_share(s), rack=s.name) for s in skew.racks],
        topics=[
            documents.TopicSkew(topic=t.topic, partitions=t.partitions, most=t.most, on=t.on, ideal=t.least_possible)
            for t in skew.topics
        ],
        unknown_sizes=skew.unknown_sizes,
    )


def _share(share: Share) -> dict[str, Any]:
    return {
        "partitions": share.partitions,
        "partitions_of_fair": round(share.partitions_ratio, 4),
        "bytes": share.size_bytes,
        "bytes_of_fair": round(share.bytes_ratio, 4),
    }


def _cells(share: Share) -> list[str]:
    from ballast.cli.tables import human_bytes, human_count, human_percent

    return [
        human_count(share.partitions),
        human_percent(share.partitions_ratio) if share.fair_partitions else "-",
        human_bytes(share.size_bytes),
        human_percent(share.bytes_ratio) if share.fair_bytes else "-",
    ]


def _balance_document(found: LeaderBalance) -> None:
    from ballast.cli.documents import cluster as documents
    from ballast.cli.tables import print_json

    loads = zip(found.brokers.tolist(), found.before.tolist(), found.found.load.tolist(), strict=True)
    print_json(
        documents.LeaderBalance(
            measure=found.measure,
            most_before=found.most_before,
            most_after=found.found.maximum,
            bound=found.found.bound,
            gap=found.found.gap,
            exact=found.measure == "counts",
            brokers=[documents.BrokerLeads(broker=b, before=before, after=after) for b, before, after in loads],
            reorders=[
                documents.Reorder(topic=m.topic, partition=m.partition, old=list(m.old), new=list(m.new))
                for m in found.moves
            ],
            elections=len(found.elections),
            unknown_sizes=found.unknown_sizes,
        )
    )


def _draw_balance(found: LeaderBalance) -> None:
    from ballast.cli.tables import Column, console, human_bytes, human_count, render_table

    show = human_bytes if found.measure == "bytes" else human_count
    rows = [
        [str(b), show(before), show(after)]
        for b, before, after in zip(
            found.brokers.tolist(), found.before.tolist(), found.found.load.tolist(), strict=True
        )
    ]
    screen = console()
    title = "LED BYTES" if found.measure == "bytes" else "PREFERRED LEADERS"
    screen.print(render_table([Column("BROKER"), Column(f"{title} NOW"), Column("AFTER")], rows, screen.width))
    screen.print()
    if not found.moves:
        screen.print("Nothing to reorder: as balanced as reorders can make it.")
        return
    result = f"{human_many(len(found.moves), 'reorder')} and {planned_elections(len(found.elections))}."
    quality = (
        "The least possible maximum, with the fewest reorders."
        if found.measure == "counts"
        else f"The maximum is {found.found.gap * 100:.3f} % above a bound that nothing beats ({show(found.found.bound)})."
    )
    screen.print(f"{result} {quality}")
    if sys.stdout.isatty():
        click.echo("Save the plan with --save FILE, then: ballast apply FILE", err=True)

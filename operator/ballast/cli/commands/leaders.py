"""``ballast leaders``: who is preferred where, and how uneven that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.tables import output_option

if TYPE_CHECKING:
    from ballast.cli.documents import cluster as documents
    from ballast.core.cluster import ClusterState
    from ballast.core.leadership import LeaderImbalance
    from ballast.core.leadership.skew import Share, Skew

SHOWN_TOPICS = 10


@click.command()
@output_option("Leaders")
@cluster_options
def leaders(*, output: str, cluster: ClusterOptions) -> int:
    """Show how preferred leadership is spread over brokers, racks and topics; ballast plan leaders balances it."""
    with cluster.open() as opened:
        return _report(opened.cluster.snapshot(configs=False), output)


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
            [t.topic, human_count(t.partitions), human_count(t.maximum), str(t.on), human_count(t.ideal)]
            for t in skew.topics[:SHOWN_TOPICS]
        ]
        titles = [Column("TOPIC", "left"), Column("PARTITIONS"), Column("MAX"), Column("ON BROKER"), Column("IDEAL")]
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
                **_share(s), broker=b.id, preferred_not_led=drift[b.id].not_led, imbalance_ratio=drift[b.id].ratio
            )
            for s, b in zip(skew.brokers, state.brokers, strict=True)
        ],
        racks=[documents.RackShare(**_share(s), rack=s.name) for s in skew.racks],
        topics=skew.topics,
        unknown_sizes=skew.unknown_sizes,
    )


def _share(share: Share) -> dict[str, Any]:
    return {
        "partitions": share.partitions,
        "partitions_ratio": round(share.partitions_ratio, 4),
        "bytes": share.size_bytes,
        "bytes_ratio": round(share.bytes_ratio, 4),
    }


def _cells(share: Share) -> list[str]:
    from ballast.cli.tables import human_bytes, human_count, human_percent

    return [
        human_count(share.partitions),
        human_percent(share.partitions_ratio) if share.fair_partitions else "-",
        human_bytes(share.size_bytes),
        human_percent(share.bytes_ratio) if share.fair_bytes else "-",
    ]

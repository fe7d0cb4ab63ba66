"""``ballast topics list``: every topic with its partitions, replication factor and size, and what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.documents import cluster as documents
from ballast.cli.tables import (
    Cell,
    Column,
    Row,
    console,
    human_bytes,
    human_count,
    output_option,
    print_json,
    render_table,
)

if TYPE_CHECKING:
    from ballast.core.cluster.topic_list import TopicFigures

_COLUMNS: Final = (
    Column("NAME", "left"),
    Column("PARTITIONS"),
    Column("RF"),
    Column("MIN ISR", rank=2),
    Column("SIZE", rank=1),
    Column("UNDER-REPLICATED"),
    Column("OFFLINE"),
    Column("REASSIGNING", rank=3),
)


@click.command("list")
@click.option("--topics", "pattern", metavar="REGEX", help="Only topics whose whole name matches.")
@output_option("Topics")
@cluster_options
def list_topics(*, pattern: str | None, output: str, cluster: ClusterOptions) -> None:
    """List topics: partitions, replication factor, min ISR, size of all replicas; under-replicated, offline, reassigning partitions.

    A figure that a broker did not give is shown as ? and never as zero; +? where the size of some replicas is not known.
    """
    from ballast.core.cluster.topic_list import list_topics as listed
    from ballast.core.planner import Selection

    selection = Selection(topics=pattern)
    with cluster.open() as opened:
        found = [t for t in listed(opened.cluster.snapshot()) if selection.topic(t.topic.name)]
    if output == "json":
        print_json(document(found))
        return
    screen = console()
    screen.print(render_table(_COLUMNS, [_row(t) for t in found], screen.width))


def document(found: list[TopicFigures]) -> documents.Topics:
    """For programs; every figure that is not known is null."""
    return documents.Topics(
        topics=[
            documents.ListedTopic(
                topic=t.topic.name,
                topic_id=t.topic.topic_id,
                internal=t.topic.internal,
                deleting=t.topic.deleting,
                min_isr=t.topic.min_isr,
                partitions=t.partitions,
                min_replication_factor=t.min_replicas,
                max_replication_factor=t.max_replicas,
                replica_bytes=t.replica_bytes,
                replicas_of_unknown_size=t.unknown_sizes,
                under_replicated=t.under_replicated,
                offline=t.offline,
                reassigning=t.moving,
            )
            for t in found
        ]
    )


def _row(t: TopicFigures) -> Row:
    size = human_bytes(t.replica_bytes) + ("+?" if t.replica_bytes >= 0 and t.unknown_sizes else "")
    return (
        t.topic.name + (" (being deleted)" if t.topic.deleting else ""),
        human_count(t.partitions),
        human_count(t.min_replicas) if t.min_replicas == t.max_replicas else f"{t.min_replicas} … {t.max_replicas}",
        human_count(t.topic.min_isr),
        size,
        Cell(human_count(t.under_replicated), "yellow" if t.under_replicated else ""),
        Cell(human_count(t.offline), "red" if t.offline else ""),
        human_count(t.moving),
    )

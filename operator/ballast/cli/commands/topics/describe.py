"""``ballast topics describe NAME``: where every replica of a topic is, and how far behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.documents import cluster as documents
from ballast.cli.documents.base import span_ms
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
from ballast.core.cluster.isr import leaving_sentence
from ballast.core.wording import human_many, human_replicas
from ballast.errors import UsageError

if TYPE_CHECKING:
    from ballast.core.cluster.topic_description import PartitionDescription, ReplicaDescription, TopicDescription


_PARTITION_COLUMNS: Final = (
    Column("PARTITION"),
    Column("LEADER"),
    Column("AR", "left"),
    Column("ISR", "left"),
    Column("OSR", "left", rank=2),
    Column("EARLIEST", rank=4),
    Column("LOCAL START", rank=4),
    Column("HIGH WATERMARK", rank=1),
    Column("EPOCH", rank=4),
    Column("SIZE", rank=1),
    Column("NOTE", "left", rank=3),
)
_REPLICA_COLUMNS: Final = (
    Column("PARTITION"),
    Column("REPLICA"),
    Column("STATE", "left"),
    Column("LOG END"),
    Column("LAG"),
    Column("SIZE"),
    Column("LOG DIR", "left", rank=1),
)


@click.command()
@click.argument("topic", metavar="NAME")
@output_option("Topic")
@cluster_options
def describe(topic: str, *, output: str, cluster: ClusterOptions) -> None:
    """Show each partition of topic NAME: leader, replicas (AR, ISR, OSR), high watermark, and each replica's log end, lag, size.

    A figure that a broker did not give is shown as ? and never as zero.
    """
    from ballast.core.cluster.log_ends import holders, tiered_leaders
    from ballast.core.cluster.topic_description import Depth, describe_topic

    with cluster.open() as opened:
        state = opened.cluster.snapshot()
        names = [name for name in state.index if name.topic == topic]
        epochs = opened.cluster.epochs(names)
        tiered = {b: mine for b, led in tiered_leaders(state).items() if (mine := [n for n in led if n.topic == topic])}
        depth = Depth(
            {n.partition: (o.earliest, o.high_watermark) for n, o in opened.cluster.offsets(names).items()},
            opened.cluster.log_ends(holders(state, (state.index[n] for n in names))),
            {n.partition: (e.leader, e.controller) for n, e in epochs.items()},
            opened.cluster.local_starts(tiered) if tiered else {},
        )
    described = describe_topic(state, topic, depth)
    if described is None:
        raise UsageError(
            f"There is no topic {topic} on this cluster, or the user has no DESCRIBE right on it.",
            hint=_nearest(topic, [t.name for t in state.topics]),
        )
    if output == "json":
        print_json(document(described))
    else:
        draw(described, console())


def _nearest(topic: str, names: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(topic, names, n=3)
    return (
        f"Did you mean {' or '.join(near)}?"
        if near
        else "Check the name and the Describe permission of Ballast's user."
    )


def document(described: TopicDescription) -> documents.Topic:
    """For programs; every figure that is not known is null."""
    topic = described.topic
    return documents.Topic(
        topic=topic.name,
        topic_id=topic.topic_id,
        internal=topic.internal,
        deleting=topic.deleting,
        min_isr=topic.min_isr,
        configs={k: v.value for k, v in sorted(topic.configs.items())},
        partitions=[_partition(p) for p in described.partitions],
    )


def _partition(p: PartitionDescription) -> documents.TopicPartition:
    return documents.TopicPartition(
        partition=p.number,
        leader=p.leader,
        preferred_leader=p.preferred,
        assigned_replicas=list(p.assigned),
        in_sync_replicas=list(p.in_sync),
        out_of_sync_replicas=list(p.out_of_sync),
        reassigning=p.moving,
        earliest_offset=p.earliest,
        local_log_start_offset=p.local_start,
        high_watermark=p.high_watermark,
        leader_epoch=p.leader_epoch,
        controller_epoch=p.controller_epoch,
        leaves_isr_after_ms=span_ms(p.leaves_isr_after_s),
        size_bytes=p.size_bytes,
        replicas=p.replicas,
    )


def draw(described: TopicDescription, screen: Any) -> None:
    """Print it on a rich console."""
    topic = described.topic
    facts = [f"{human_many(len(described.partitions), 'partition')}"]
    facts += [f"min ISR {topic.min_isr}"] if topic.min_isr >= 0 else []
    facts += ["internal"] if topic.internal else []
    facts += ["being deleted"] if topic.deleting else []
    facts += [f"id {topic.topic_id}"] if topic.topic_id else []
    screen.print(f"Topic {topic.name}: {', '.join(facts)}", markup=False, soft_wrap=True)
    for key, entry in sorted(topic.configs.items()):
        screen.print(f"  {key}={entry.value}", markup=False, soft_wrap=True)
    screen.print()
    screen.print(render_table(_PARTITION_COLUMNS, [_partition_row(p) for p in described.partitions], screen.width))
    screen.print()
    rows = [_replica_row(p, r) for p in described.partitions for r in p.replicas]
    screen.print(render_table(_REPLICA_COLUMNS, rows, screen.width))
    waits = {p.leaves_isr_after_s for p in described.partitions} - {-1}
    if waits:
        screen.print()
        screen.print(leaving_sentence(max(waits)), markup=False, soft_wrap=True)


def _partition_row(p: PartitionDescription) -> Row:
    return (
        str(p.number),
        Cell(str(p.leader), "" if p.leader == p.preferred else "yellow") if p.leader >= 0 else Cell("none", "red"),
        human_replicas(p.assigned),
        human_replicas(p.in_sync),
        Cell(human_replicas(p.out_of_sync), "red" if p.out_of_sync else ""),
        human_count(p.earliest),
        human_count(p.local_start),
        human_count(p.high_watermark),
        _epoch(p),
        human_bytes(p.size_bytes),
        _note(p),
    )


def _epoch(p: PartitionDescription) -> str:
    """The leader epoch and, with ZooKeeper, the controller epoch."""
    return human_count(p.leader_epoch) + (f" / {human_count(p.controller_epoch)}" if p.controller_epoch >= 0 else "")


def _note(p: PartitionDescription) -> Cell:
    if p.moving:
        return Cell(f"being reassigned to {human_replicas([r.broker for r in p.replicas if not r.removing])}", "yellow")
    if p.leader != p.preferred:
        return Cell(f"preferred leader is {p.preferred}", "yellow")
    return Cell("")


def _replica_row(p: PartitionDescription, r: ReplicaDescription) -> Row:
    state = _replica_state(p, r)
    log_dir = r.log_dir or "-"
    if r.future_size_bytes >= 0:
        log_dir += f" (moving to another dir, {human_bytes(r.future_size_bytes)} there)"
    return (
        str(p.number),
        str(r.broker),
        Cell(state, "" if r.in_sync else "red"),
        human_count(r.log_end_offset),
        human_count(r.lag),
        human_bytes(r.size_bytes),
        log_dir,
    )


def _replica_state(p: PartitionDescription, r: ReplicaDescription) -> str:
    words = ["leader" if r.broker == p.leader else "in sync" if r.in_sync else "out of sync"]
    if not r.broker_alive:
        words.append("broker down")
    elif r.offline:
        words.append("offline")
    words += ["adding"] if r.adding else []
    words += ["removing"] if r.removing else []
    return ", ".join(words)

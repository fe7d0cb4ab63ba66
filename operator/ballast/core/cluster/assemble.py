"""Packs what a cluster's responses said into a ``ClusterState``, column by column.

Readers hand over flat columns in whatever order the responses had; this module sorts, joins and marks.  Everything is
vectorised: 200,000 partitions of three replicas are a matter of a second, and no object is made per replica.
(``core.cluster.build`` does the same from rows, for tests and for small things.)

The one decision made here is how a reassignment that is read *around* the metadata colours a replica list, since
metadata shows the union of old and new replicas while a move is in progress: see ``Moves``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ballast.core.cluster.state import (
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    Flags,
    Gap,
    Ints,
    LogDir,
    Partitions,
    SmallInts,
    Topic,
    TopicPartition,
)


class Change(NamedTuple):
    """A move in progress: the replica list that metadata shows meanwhile, and its two halves."""

    union: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionColumns:
    """Metadata as it came; ``topic`` counts in the order of ``topics``, replicas follow each other row by row."""

    topics: Sequence[Topic]
    topic: SmallInts
    number: SmallInts
    leader: SmallInts
    replicas: SmallInts
    """How many replicas each partition has."""
    replica: SmallInts
    in_sync: Flags
    offline: Flags


@dataclass(frozen=True, slots=True, eq=False)
class LogColumns:
    """One broker's answer about its log dirs; one element per replica copy."""

    dirs: tuple[LogDir, ...]
    names: Sequence[str]
    topic: SmallInts
    """Index into ``names``."""
    number: SmallInts
    size_bytes: Ints
    log_dir: SmallInts
    future: Flags


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything about the cluster that is not per partition."""

    cluster_id: str
    taken_at_ms: int
    brokers: Sequence[Broker]
    """Without log dirs; brokers that only replica lists name are added as down."""
    broker_configs: Mapping[int, Mapping[str, ConfigValue]] = field(default_factory=dict)
    cluster_configs: Mapping[str, ConfigValue] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    api: frozenset[str] = frozenset()
    kafka_version: str | None = None
    controller_id: int = UNKNOWN


def assemble(
    facts: Facts,
    columns: PartitionColumns,
    *,
    moves: Mapping[TopicPartition, Change] | None = None,
    logs: Mapping[int, LogColumns] | None = None,
) -> ClusterState:
    """Join the parts; replicas of brokers without ``logs`` have ``UNKNOWN`` sizes."""
    logs = logs or {}
    columns = _sort(columns)
    start = np.zeros(len(columns.number) + 1, np.int64)
    np.cumsum(columns.replicas, out=start[1:])
    adding, removing = _colour(columns, start, moves or {})
    size, log_dir, future, future_dir = _join_logs(columns, logs)
    return ClusterState(
        cluster_id=facts.cluster_id,
        taken_at_ms=facts.taken_at_ms,
        brokers=_brokers(facts.brokers, columns.replica, logs),
        topics=tuple(columns.topics),
        partitions=Partitions(
            topic=columns.topic,
            number=columns.number,
            leader=columns.leader,
            start=start,
            replica=columns.replica,
            in_sync=columns.in_sync,
            adding=adding,
            removing=removing,
            size_bytes=size,
            lag=np.full(len(columns.replica), UNKNOWN, np.int64),
            log_dir=log_dir,
            future_size_bytes=future,
            future_log_dir=future_dir,
            offline=columns.offline,
        ),
        broker_configs=facts.broker_configs,
        cluster_configs=facts.cluster_configs,
        gaps=facts.gaps,
        api=facts.api,
        kafka_version=facts.kafka_version,
        controller_id=facts.controller_id,
    )


def _sort(columns: PartitionColumns) -> PartitionColumns:
    """Topics by name, partitions by ``(topic, number)``, each partition's replicas in their own order."""
    by_name = sorted(range(len(columns.topics)), key=lambda i: columns.topics[i].name)
    rank = np.empty(len(by_name), np.int32)
    rank[by_name] = np.arange(len(by_name), dtype=np.int32)
    topic = rank[columns.topic]
    order = np.lexsort((columns.number, topic))
    start = np.concatenate(([0], np.cumsum(columns.replicas, dtype=np.int64)))
    counts = columns.replicas[order]
    # For each row in the new order: the run of its replicas in the old flat columns.
    first = np.repeat(start[:-1][order] - np.concatenate(([0], np.cumsum(counts, dtype=np.int64)[:-1])), counts)
    flat = first + np.arange(int(counts.sum()), dtype=np.int64)
    return PartitionColumns(
        topics=[columns.topics[i] for i in by_name],
        topic=topic[order],
        number=columns.number[order],
        leader=columns.leader[order],
        replicas=counts,
        replica=columns.replica[flat],
        in_sync=columns.in_sync[flat],
        offline=columns.offline[flat],
    )


def _brokers(known: Iterable[Broker], replica: SmallInts, logs: Mapping[int, LogColumns]) -> tuple[Broker, ...]:
    brokers = {b.id: b for b in known}
    for i in np.unique(replica).tolist():
        brokers.setdefault(i, Broker(i, alive=False))
    return tuple(
        replace(brokers[i], log_dirs=logs[i].dirs, log_dirs_known=True) if i in logs else brokers[i]
        for i in sorted(brokers)
    )


def _colour(columns: PartitionColumns, start: Ints, moves: Mapping[TopicPartition, Change]) -> tuple[Flags, Flags]:
    """Mark the replicas that are coming and going; moves in progress are few, so this may walk them."""
    adding = np.zeros(len(columns.replica), np.bool_)
    removing = np.zeros(len(columns.replica), np.bool_)
    if not moves:
        return adding, removing
    topic_at = {t.name: i for i, t in enumerate(columns.topics)}
    key = row_key(columns.topic, columns.number)
    for name, change in moves.items():
        t = topic_at.get(name.topic)
        if t is None:
            continue
        wanted = (t << 32) + name.partition
        row = int(np.searchsorted(key, wanted))
        if row == len(key) or key[row] != wanted:
            continue
        run = slice(start[row], start[row + 1])
        adding[run] = np.isin(columns.replica[run], change.adding)
        removing[run] = np.isin(columns.replica[run], change.removing)
    return adding, removing


def row_key(topic: SmallInts, number: SmallInts) -> Ints:
    """One sortable integer for (topic index, partition number)."""
    return (topic.astype(np.int64) << 32) + number


def _join_logs(columns: PartitionColumns, logs: Mapping[int, LogColumns]) -> tuple[Ints, SmallInts, Ints, SmallInts]:
    """Look up every reported copy among the replicas; a copy that metadata does not list is left out."""
    total = len(columns.replica)
    size = np.full(total, UNKNOWN, np.int64)
    log_dir = np.full(total, UNKNOWN, np.int32)
    future, future_dir = np.full(total, UNKNOWN, np.int64), np.full(total, UNKNOWN, np.int32)
    if not logs or not total:
        return size, log_dir, future, future_dir
    topic_at = {t.name: i for i, t in enumerate(columns.topics)}
    key = np.repeat(row_key(columns.topic, columns.number), columns.replicas)
    by_broker = np.argsort(columns.replica, kind="stable")
    sorted_replica = columns.replica[by_broker]
    for broker, answer in logs.items():
        here = by_broker[
            np.searchsorted(sorted_replica, broker) : np.searchsorted(sorted_replica, broker, side="right")
        ]
        rank = np.array([topic_at.get(n, UNKNOWN) for n in answer.names], np.int32)
        reported = row_key(rank[answer.topic], answer.number) if len(rank) else np.zeros(0, np.int64)
        at = np.searchsorted(key[here], reported)
        hit = (at < len(here)) & (key[here[np.minimum(at, len(here) - 1)]] == reported) if len(here) else at < 0
        present = hit & ~answer.future
        rows = here[at[present]]
        size[rows] = answer.size_bytes[present]
        log_dir[rows] = answer.log_dir[present]
        coming = hit & answer.future
        rows = here[at[coming]]
        future[rows], future_dir[rows] = answer.size_bytes[coming], answer.log_dir[coming]
    return size, log_dir, future, future_dir


def reconcile(
    before: Mapping[TopicPartition, Change],
    after: Mapping[TopicPartition, Change],
    replicas: Mapping[TopicPartition, Sequence[int]],
    *,
    ended: Mapping[TopicPartition, Change] | None = None,
) -> tuple[dict[TopicPartition, Change], frozenset[TopicPartition]]:
    """Decide what each move listed around a metadata read means for the replica list that was read between.

    ``replicas`` gives that list for every partition named in any listing.  Returned are the moves to colour with and the
    partitions whose list fits neither listing: the cluster changed under the read, so read again.

    A list that equals a move's union is coloured with it.  A list that holds nothing of what is added, or all of it and
    nothing of what is removed, is a settled assignment: the move had not begun, or had ended, when the metadata was read.
    ``ended`` are moves that were listed a moment ago: metadata may lag behind an empty listing, so their unions count too.
    """
    settled: dict[TopicPartition, Change] = {}
    torn: set[TopicPartition] = set()
    for name in before.keys() | after.keys():
        if name not in replicas:
            continue
        listed = set(replicas[name])
        candidates = [moves[name] for moves in (after, before) if name in moves]
        union = next((c for c in candidates if listed == set(c.union)), None)
        if union is not None:
            settled[name] = union
        elif (name in before and name in after) or not any(_is_settled(listed, c) for c in candidates):
            torn.add(name)
    settled |= {
        name: change
        for name, change in (ended or {}).items()
        if name not in before and name not in after and set(replicas.get(name, ())) == set(change.union)
    }
    return settled, frozenset(torn)


def _is_settled(listed: set[int], change: Change) -> bool:
    adding, removing = set(change.adding), set(change.removing)
    return not adding & listed or (adding <= listed and not removing & listed)

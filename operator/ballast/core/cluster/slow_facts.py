"""Gives a light reading, of metadata alone, the slow facts that an earlier reading knew.

Slow facts are those that each broker must be asked for: log dirs, what lies in them and whether the broker answered; configs, and with
them min ISRs; and the gaps of both.  Everything else is as the light reading tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from ballast.core.cluster.state import (
    CONFIGS,
    LOG_DIRS,
    UNKNOWN,
    Broker,
    ClusterState,
    Flags,
    Gap,
    Ints,
    LogDir,
    Partitions,
    SmallInts,
    Topic,
)

NONE_READ_SINCE: Final[Mapping[int, tuple[LogDir, ...]]] = MappingProxyType({})


def with_slow_facts(
    light: ClusterState, known: ClusterState, read_since: Mapping[int, tuple[LogDir, ...]] = NONE_READ_SINCE
) -> ClusterState:
    """The light reading with the slow facts that are ``known``, replica by replica; a sort of the known replicas at most.

    A replica, a topic or a broker that was not there before has none: they stay unknown until the next full reading.  A topic that was
    deleted and recreated under its name is another topic, as far as ids tell.  ``read_since`` are the log dirs of brokers that were
    asked for nothing else since; what lay in them is as it is known.
    """
    topics = _same_topics(light, known)
    return replace(
        light,
        brokers=tuple(_broker(b, known.broker(b.id), read_since.get(b.id)) for b in light.brokers),
        topics=tuple(
            _topic(t, None if at < 0 else known.topics[at]) for t, at in zip(light.topics, topics, strict=True)
        ),
        partitions=_with_sizes(light, known, topics, read_since),
        broker_configs=known.broker_configs,
        cluster_configs=known.cluster_configs,
        gaps=light.gaps + tuple(g for g in known.gaps if _is_slow(g) and g not in light.gaps),
    )


def _is_slow(gap: Gap) -> bool:
    return gap.missing in (LOG_DIRS, CONFIGS)


def _broker(b: Broker, known: Broker | None, read_since: tuple[LogDir, ...] | None) -> Broker:
    if read_since is not None:
        return replace(b, log_dirs=read_since, log_dirs_known=True)
    if known is None:
        return b
    # Metadata alone asks no broker: one that did not answer the last time is not there before it answers again.
    return replace(b, reachable=known.reachable, log_dirs=known.log_dirs, log_dirs_known=known.log_dirs_known)


def _topic(t: Topic, known: Topic | None) -> Topic:
    return t if known is None else replace(t, min_isr=known.min_isr, configs=known.configs)


def _same_topics(light: ClusterState, known: ClusterState) -> list[int]:
    """Per topic of ``light``: its position among those of ``known``, or -1."""
    out = []
    for t in light.topics:
        at = known.topic_index.get(t.name, -1)
        told = None if at < 0 else known.topics[at].topic_id
        out.append(-1 if None not in (t.topic_id, told) and t.topic_id != told else at)
    return out


def _with_sizes(
    light: ClusterState, known: ClusterState, topics: list[int], read_since: Mapping[int, tuple[LogDir, ...]]
) -> Partitions:
    p, q = known.partitions, light.partitions
    if not len(p.replica):
        return q
    at, found = _same_replicas(p, q, np.array(topics, np.int64))
    places, future_places = (
        _renumber(np.where(found, column[at], UNKNOWN), q.replica, known, read_since)
        for column in (p.log_dir, p.future_log_dir)
    )
    return replace(
        q,
        size_bytes=np.where(found, p.size_bytes[at], q.size_bytes),
        log_dir=np.where(found, places, q.log_dir),
        future_size_bytes=np.where(found, p.future_size_bytes[at], q.future_size_bytes),
        future_log_dir=np.where(found, future_places, q.future_log_dir),
    )


def _renumber(
    places: SmallInts, replica: SmallInts, known: ClusterState, read_since: Mapping[int, tuple[LogDir, ...]]
) -> SmallInts:
    """Log dirs by their position among those ``read_since``, where a broker lists others, or in another order."""
    for b, dirs in read_since.items():
        broker = known.broker(b)
        before, now = [d.path for d in broker.log_dirs] if broker is not None else [], [d.path for d in dirs]
        if before != now:
            position = np.array([now.index(d) if d in now else UNKNOWN for d in before] + [UNKNOWN], np.int32)
            # ``UNKNOWN`` is -1, and so finds the last.
            places = np.where(replica == b, position[np.where(replica == b, places, UNKNOWN)], places)
    return places


def _same_replicas(p: Partitions, q: Partitions, topics: Ints) -> tuple[Ints, Flags]:
    """Per replica of ``q``: where it stands among those of ``p``, and whether it does."""
    brokers = np.unique(np.concatenate([p.replica, q.replica]))
    numbers = 1 + max(p.number.max(), q.number.max(initial=0))
    before = _replica_keys(p, p.topic, brokers, int(numbers))
    wanted = _replica_keys(q, topics[q.topic], brokers, int(numbers))
    order = np.argsort(before, kind="stable")
    at = order[np.minimum(np.searchsorted(before, wanted, sorter=order), len(before) - 1)]
    return at, np.asarray(before[at] == wanted)


def _replica_keys(p: Partitions, topic: Ints | SmallInts, brokers: SmallInts, numbers: int) -> Ints:
    """Per replica one number for topic, partition and broker; negative where the topic is -1."""
    partition = topic.astype(np.int64) * numbers + p.number
    of_replica = np.where(topic < 0, -1, partition)[np.repeat(np.arange(len(p)), np.diff(p.start))]
    return np.where(of_replica < 0, -1, of_replica * len(brokers) + np.searchsorted(brokers, p.replica))

"""Turns Kafka's response messages into columns and values; no connection is touched here.

The loops below run once per partition or per replica of the whole cluster, so they append plain integers to flat lists and
make no object per row.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import numpy as np
from confluent_kafka.admin import ClusterMetadata

from ballast.adapters.kafka.confluent import CONFIG_SOURCES
from ballast.adapters.kafka.kafka_python import code_name, raise_for
from ballast.adapters.kafka.rights import TOPICS
from ballast.core.cluster import (
    NO_LEADER,
    NO_LEADERSHIP_RECORD,
    UNKNOWN,
    Broker,
    ConfigValue,
    Gap,
    LogDir,
    Topic,
    TopicPartition,
)
from ballast.core.cluster.assemble import Change, LogColumns, PartitionColumns
from ballast.ports.cluster import BrokerLogs, Epochs, PartitionState, Reassignment, ReplicaLog

_UNKNOWN_TOPIC: Final = 3
_LEADER_KNOWN_CODES: Final = frozenset({0, 5, 9, 72})
"""No error, no leader now, a replica is missing, the leader has no listener of our kind: leadership itself is known."""
_LEADER_DURING_DELETE: Final = -2
"""What ZooKeeper controllers write while a topic is being deleted."""

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Kafka's own, as its ``Topic.isInternal`` names them; ``list_topics`` does not tell."""
TOPIC_SOURCE: Final = "DYNAMIC_TOPIC_CONFIG"
DEFAULT_SOURCE: Final = "DEFAULT_CONFIG"


@dataclass(frozen=True, slots=True, eq=False)
class Metadata:
    """What ``list_topics`` answered, in columns."""

    cluster_id: str
    controller_id: int
    brokers: tuple[Broker, ...]
    """Those that are registered and unfenced."""
    columns: PartitionColumns
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """What librdkafka leaves out of metadata."""

    ids: Mapping[str, str | None]
    """By topic name."""
    offline: Mapping[TopicPartition, Sequence[int]]
    """The replicas that cannot serve, of the partitions that have any."""
    racks: Mapping[int, str | None]


def read_metadata(answer: ClusterMetadata) -> Metadata:
    """Linear in replicas; topics that the broker could not describe leave a gap.  ``join_facts`` adds what it does not tell.

    The answer's topics are used up: an object for each partition beside the columns would be most of what a reading needs.
    """
    topics: list[Topic] = []
    gaps: list[Gap] = []
    topic, number, leader, counts, replica = (array("i") for _ in range(5))
    in_sync = bytearray()
    for name in list(answer.topics):
        t = answer.topics.pop(name)
        error = 0 if t.error is None else t.error.code()
        deleting = error == _UNKNOWN_TOPIC
        if error:
            gaps.append(Gap(f"topic {name}", "partitions", code_name(error)))
        for p in t.partitions.values():
            replicas, isr = p.replicas, p.isrs
            topic.append(len(topics))
            number.append(p.id)
            deleting = deleting or p.leader == _LEADER_DURING_DELETE
            leader.append(_leader(p.leader, 0 if p.error is None else p.error.code()))
            counts.append(len(replicas))
            replica.extend(replicas)
            in_sync.extend(b"\1" * len(replicas) if len(isr) == len(replicas) else (r in isr for r in replicas))
        topics.append(Topic(name, internal=name in INTERNAL_TOPICS, deleting=deleting))
    controller = answer.controller_id
    columns = PartitionColumns(
        topics=topics,
        topic=np.array(topic, np.int32),
        number=np.array(number, np.int32),
        leader=np.array(leader, np.int32),
        replicas=np.array(counts, np.int32),
        replica=np.array(replica, np.int32),
        in_sync=np.frombuffer(in_sync, np.bool_),
        offline=np.zeros(len(replica), np.bool_),
    )
    return Metadata(
        cluster_id=answer.cluster_id or "",
        controller_id=controller,
        brokers=tuple(
            Broker(b.id, host=b.host, port=b.port, controller=b.id == controller) for b in answer.brokers.values()
        ),
        columns=columns,
        gaps=tuple(gaps),
    )


def join_facts(metadata: Metadata, facts: MetadataFacts) -> Metadata:
    """Add racks, topic ids and offline replicas; a broker without its rack leaves a gap."""
    unknown = [Gap.of_broker(b.id, "rack", "no broker reports it") for b in metadata.brokers if b.id not in facts.racks]
    topics = [replace(t, topic_id=facts.ids.get(t.name)) for t in metadata.columns.topics]
    columns = replace(metadata.columns, topics=topics)
    _mark_offline(columns, facts.offline)
    return replace(
        metadata,
        brokers=tuple(replace(b, rack=facts.racks.get(b.id)) for b in metadata.brokers),
        columns=columns,
        gaps=(*metadata.gaps, *unknown),
    )


def _mark_offline(columns: PartitionColumns, offline: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Few partitions have any, except where a broker is down."""
    if not offline:
        return
    names = [t.name for t in columns.topics]
    ends = columns.replicas.cumsum()
    for row, (t, n) in enumerate(zip(columns.topic.tolist(), columns.number.tolist(), strict=True)):
        down = offline.get(TopicPartition(names[t], n))
        if down:
            run = slice(int(ends[row] - columns.replicas[row]), int(ends[row]))
            columns.offline[run] = np.isin(columns.replica[run], down)


def read_metadata_facts(response: Any) -> MetadataFacts:
    """Out of kafka-python's metadata answer: what librdkafka's has not."""
    return MetadataFacts(
        ids={t.name: topic_id(t.topic_id) for t in response.topics},
        offline={
            TopicPartition(t.name, p.partition_index): tuple(p.offline_replicas)
            for t in response.topics
            for p in t.partitions
            if p.offline_replicas
        },
        racks={b.node_id: b.rack for b in response.brokers},
    )


def _leader(leader_id: int, error_code: int) -> int:
    if error_code not in _LEADER_KNOWN_CODES:
        return NO_LEADERSHIP_RECORD
    return leader_id if leader_id >= 0 else NO_LEADER


def topic_id(value: UUID | None) -> str | None:
    """A topic id as Kafka writes it; None from brokers before 2.8."""
    if value is None or not value.int:
        return None
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def _existing(response: Any) -> Iterator[Any]:
    """The topics that exist.  One that we may no longer describe, or that the broker fails over, is not a missing one."""
    for t in response.topics:
        if t.error_code != _UNKNOWN_TOPIC:
            raise_for(t.error_code, TOPICS)
            yield t


def read_partition_states(response: Any, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionState]:
    """The partitions asked for that exist; raises where a topic's existence is not told."""
    names = set(wanted)
    return {
        name: PartitionState(
            _leader(p.leader_id, p.error_code), tuple(p.replica_nodes), tuple(p.isr_nodes), topic_id(t.topic_id)
        )
        for t in _existing(response)
        for p in t.partitions
        if (name := TopicPartition(t.name, p.partition_index)) in names
    }


def read_epochs(response: Any, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, Epochs]:
    """Leader epochs of the partitions asked for that exist."""
    names = set(wanted)
    return {
        name: Epochs(p.leader_epoch)
        for t in _existing(response)
        for p in t.partitions
        if (name := TopicPartition(t.name, p.partition_index)) in names
    }


def read_reassignments(response: Any) -> dict[TopicPartition, Reassignment]:
    """Every move in a ListPartitionReassignments response."""
    return {
        TopicPartition(t.name, p.partition_index): Reassignment(
            tuple(p.replicas), tuple(p.adding_replicas), tuple(p.removing_replicas)
        )
        for t in response.topics
        for p in t.partitions
    }


def changes(moves: Mapping[TopicPartition, Reassignment]) -> dict[TopicPartition, Change]:
    """The same moves in the core's words."""
    return {name: Change(m.replicas, m.adding, m.removing) for name, m in moves.items()}


def read_log_columns(response: Any) -> LogColumns:
    """One broker's log dirs in columns."""
    names: list[str] = []
    counts, number, log_dir = (array("i") for _ in range(3))
    size, future = array("q"), bytearray()
    for d, result in enumerate(response.results):
        names += [t.name for t in result.topics]
        counts.extend([len(t.partitions) for t in result.topics])
        copies = [p for t in result.topics for p in t.partitions]
        number.extend([p.partition_index for p in copies])
        size.extend([p.partition_size for p in copies])
        future.extend([p.is_future_key for p in copies])
        log_dir.extend([d] * len(copies))
    return LogColumns(
        dirs=read_dirs(response),
        names=names,
        topic=np.repeat(np.arange(len(names), dtype=np.int32), np.array(counts, np.int32)),
        number=np.array(number, np.int32),
        size_bytes=np.array(size, np.int64),
        log_dir=np.array(log_dir, np.int32),
        future=np.frombuffer(future, np.bool_),
    )


def read_dirs(response: Any) -> tuple[LogDir, ...]:
    """The log dirs themselves; a failed one carries the broker's error name."""
    return tuple(
        LogDir(
            path=r.log_dir,
            total_bytes=_figure_or_unknown(r.total_bytes),
            usable_bytes=_figure_or_unknown(r.usable_bytes),
            cordoned=bool(r.is_cordoned),
            error=code_name(r.error_code) if r.error_code else None,
        )
        for r in response.results
    )


def _figure_or_unknown(figure: int | None) -> int:
    return UNKNOWN if figure is None or figure < 0 else figure


def read_broker_logs(response: Any) -> BrokerLogs:
    """One broker's log dirs, replica by replica."""
    replicas: dict[TopicPartition, list[ReplicaLog]] = {}
    for r in response.results:
        for t in r.topics:
            for p in t.partitions:
                copy = ReplicaLog(r.log_dir, p.partition_size, p.offset_lag, bool(p.is_future_key))
                replicas.setdefault(TopicPartition(t.name, p.partition_index), []).append(copy)
    return BrokerLogs(read_dirs(response), {name: tuple(copies) for name, copies in replicas.items()})


def read_config_entries(entries: Sequence[Any]) -> dict[str, ConfigValue]:
    """Every entry of one resource, defaults included; a sensitive one has no value."""
    return {
        e.name: ConfigValue(None if e.is_sensitive else e.value, CONFIG_SOURCES.get(e.config_source, "UNKNOWN_CONFIG"))
        for e in entries
    }


def set_entries(entries: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
    """Only what is set: without defaults and entries of unknown source."""
    return {k: v for k, v in entries.items() if v.source not in {DEFAULT_SOURCE, "UNKNOWN_CONFIG"}}


def own_topic_entries(entries: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
    """What is set on the topic itself and not inherited from its brokers."""
    return {k: v for k, v in entries.items() if v.source == TOPIC_SOURCE}

"""Kafka's responses become columns and values without losing what they say or making up what they do not."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import UUID

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import BrokerMetadata, ClusterMetadata, PartitionMetadata, TopicMetadata
from kafka.protocol.admin import DescribeLogDirsResponse
from kafka.protocol.metadata import MetadataResponse

from ballast.adapters.kafka.responses import (
    MetadataFacts,
    join_facts,
    own_topic_entries,
    read_broker_logs,
    read_epochs,
    read_log_columns,
    read_metadata,
    read_metadata_facts,
    read_partition_states,
    set_entries,
)
from ballast.core.cluster import NO_LEADER, NO_LEADERSHIP_RECORD, UNKNOWN, ConfigValue, TopicPartition
from ballast.errors import AuthorizationFailed, Refused, Unavailable

TOPIC = MetadataResponse.MetadataResponseTopic
PARTITION = TOPIC.MetadataResponsePartition
RESULT = DescribeLogDirsResponse.DescribeLogDirsResult
NO_ID = UUID(int=0)
NO_FACTS = MetadataFacts({}, {}, {1: None, 2: None})


def wire_metadata(*topics: tuple[str, int, UUID, tuple[int, ...]], version: int = 12) -> MetadataResponse:
    """kafka-python's answer as it comes off the wire: topics with an error or a partition, an id and offline replicas."""
    names = list(dict.fromkeys(t[0] for t in topics))
    sent = MetadataResponse(
        throttle_time_ms=0,
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="h", port=9092, rack=None)],
        cluster_id="c",
        controller_id=1,
        topics=[_wire_topic(name, [t for t in topics if t[0] == name]) for name in names],
        version=version,
    )
    received = MetadataResponse.decode(sent.encode(version=version), version=version)
    assert isinstance(received, MetadataResponse)
    return received


def _wire_topic(name: str, rows: list[tuple[str, int, UUID, tuple[int, ...]]]) -> object:
    missing = rows[0][1] == 3
    partitions = [
        PARTITION(
            error_code=0,
            partition_index=row[1],
            leader_id=1,
            leader_epoch=0,
            replica_nodes=[1, 2],
            isr_nodes=[1],
            offline_replicas=list(row[3]),
        )
        for row in rows
    ]
    return TOPIC(
        error_code=3 if missing else 0,
        name=name,
        topic_id=rows[0][2],
        is_internal=False,
        partitions=[] if missing else partitions,
    )


def partition(number: int, leader: int, *, error: int = 0) -> PartitionMetadata:
    """A partition on brokers 1 and 2, of which 1 is in sync."""
    told = PartitionMetadata()
    told.id, told.leader, told.replicas, told.isrs = number, leader, [1, 2], [1]
    told.error = KafkaError(error) if error else None
    return told


def topic(name: str, *partitions: PartitionMetadata, error: int = 0) -> TopicMetadata:
    """A topic of the answer."""
    told = TopicMetadata()
    told.topic, told.partitions = name, {p.id: p for p in partitions}
    told.error = KafkaError(error) if error else None
    return told


def metadata(*topics: TopicMetadata) -> ClusterMetadata:
    """What ``list_topics`` answers."""
    told = ClusterMetadata()
    told.cluster_id, told.controller_id = "c", 1
    told.topics = {t.topic: t for t in topics}
    for broker in (1, 2):
        b = BrokerMetadata()
        b.id, b.host, b.port = broker, "h", 9092
        told.brokers[broker] = b
    return told


def test_leadership_has_three_kinds_of_no_leader() -> None:
    """No leader now, no record of leadership at all, and a topic being deleted (the controller's -2) are told apart."""
    read = read_metadata(
        metadata(
            topic("live", partition(0, 1), partition(1, -1, error=5), partition(2, -1, error=-1)),
            topic("dying", partition(0, -2, error=5)),
        )
    )
    assert read.columns.leader.tolist() == [1, NO_LEADER, NO_LEADERSHIP_RECORD, NO_LEADER]
    assert [(t.name, t.deleting) for t in read.columns.topics] == [("live", False), ("dying", True)]


def test_replicas_in_sync_and_offline_are_marked() -> None:
    """One mark per replica, in assignment order; what is offline comes from the second answer."""
    facts = MetadataFacts({}, {TopicPartition("t", 1): (2,)}, NO_FACTS.racks)
    read = join_facts(read_metadata(metadata(topic("t", partition(0, 1), partition(1, 1)))), facts)
    assert read.columns.replica.tolist() == [1, 2, 1, 2]
    assert read.columns.in_sync.tolist() == [True, False, True, False]
    assert read.columns.offline.tolist() == [False, False, False, True]


def test_a_topic_that_cannot_be_described_leaves_a_gap() -> None:
    """Its error is named and no partition is invented."""
    read = read_metadata(metadata(topic("lost", error=3), topic("t", partition(0, 1))))
    assert [(g.subject, g.missing, g.detail) for g in read.gaps] == [
        ("topic lost", "partitions", "UNKNOWN_TOPIC_OR_PARTITION")
    ]
    assert read.columns.number.tolist() == [0]


def test_racks_come_from_another_answer() -> None:
    """The answer of ``list_topics`` has none; a broker that the other answer does not name has a gap."""
    picture = read_metadata(metadata(topic("t", partition(0, 1))))
    read = join_facts(picture, MetadataFacts({}, {}, {1: "a"}))
    assert [(b.id, b.rack, b.controller) for b in read.brokers] == [(1, "a", True), (2, None, False)]
    assert [(g.subject, g.missing) for g in read.gaps] == [("broker 2", "rack")]


@pytest.mark.parametrize("version", [8, 12])
def test_topic_ids_are_written_as_kafka_writes_them(version: int) -> None:
    """Base 64 without padding; the zero id of old brokers is none; only what is offline is kept of the partitions."""
    known = UUID("4270c2d4-2ce1-46da-9aa4-7118d45596c8")
    facts = read_metadata_facts(
        wire_metadata(("a", 0, known, (2,)), ("b", 0, UUID(int=0), ()), version=version),
    )
    assert facts.ids == {"a": None if version < 10 else "QnDC1CzhRtqapHEY1FWWyA", "b": None}
    assert facts.offline == {TopicPartition("a", 0): (2,)}
    picture = read_metadata(metadata(topic("a", partition(0, 1)), topic("__consumer_offsets")))
    read = join_facts(picture, facts)
    assert [(t.topic_id, t.internal) for t in read.columns.topics] == [(facts.ids["a"], False), (None, True)]


def test_only_the_partitions_asked_for_are_given() -> None:
    """Others of the same topic, and those of a topic in error, are left out."""
    wanted = [TopicPartition("t", 1), TopicPartition("lost", 0)]
    states = read_partition_states(
        wire_metadata(("t", 0, NO_ID, ()), ("t", 1, NO_ID, ()), ("lost", 3, NO_ID, ())), wanted
    )
    assert set(states) == {TopicPartition("t", 1)}


@pytest.mark.parametrize(("code", "kind"), [(29, AuthorizationFailed), (5, Unavailable), (-1, Refused)])
def test_a_topic_that_cannot_be_read_is_not_a_missing_one(code: int, kind: type[Exception]) -> None:
    """Rights that were taken away, or a broker in trouble: who asks must not conclude that it owes the topic nothing."""
    told = TOPIC(error_code=code, name="t", topic_id=NO_ID, is_internal=False, partitions=[])
    answer = SimpleNamespace(topics=[told])
    for read in (read_partition_states, read_epochs):
        with pytest.raises(kind):
            read(answer, [TopicPartition("t", 0)])


def log_dirs(version: int) -> DescribeLogDirsResponse:
    """Two dirs: one with a replica and a copy in the making, one that has failed."""
    held = RESULT.DescribeLogDirsTopic(
        name="t",
        partitions=[
            RESULT.DescribeLogDirsTopic.DescribeLogDirsPartition(
                partition_index=0, partition_size=size, offset_lag=3, is_future_key=future
            )
            for size, future in ((100, False), (40, True))
        ],
    )
    sent = DescribeLogDirsResponse(
        throttle_time_ms=0,
        error_code=0,
        results=[
            RESULT(error_code=0, log_dir="/a", topics=[held], total_bytes=1000, usable_bytes=0, is_cordoned=True),
            RESULT(error_code=56, log_dir="/b", topics=[], total_bytes=-1, usable_bytes=-1, is_cordoned=False),
        ],
        version=version,
    )
    received = DescribeLogDirsResponse.decode(sent.encode(version=version), version=version)
    assert isinstance(received, DescribeLogDirsResponse)
    return received


def test_log_dirs_tell_space_cordons_and_failures() -> None:
    """A full dir has zero free bytes, a failed one unknown ones and its error."""
    one, two = read_log_columns(log_dirs(5)).dirs
    assert (one.total_bytes, one.usable_bytes, one.cordoned, one.error) == (1000, 0, True, None)
    assert (two.total_bytes, two.usable_bytes, two.cordoned, two.error) == (
        UNKNOWN,
        UNKNOWN,
        False,
        "KAFKA_STORAGE_ERROR",
    )


def test_old_brokers_do_not_tell_their_space() -> None:
    """Before KIP-827 (version 4) the figures are unknown, not zero."""
    one, _ = read_log_columns(log_dirs(3)).dirs
    assert (one.total_bytes, one.usable_bytes, one.cordoned) == (UNKNOWN, UNKNOWN, False)


def test_a_copy_in_the_making_is_told_from_the_replica() -> None:
    """In columns and replica by replica alike."""
    columns = read_log_columns(log_dirs(5))
    assert list(zip(columns.size_bytes.tolist(), columns.future.tolist(), strict=True)) == [(100, False), (40, True)]
    copies = read_broker_logs(log_dirs(5)).replicas[TopicPartition("t", 0)]
    assert [(c.size_bytes, c.is_future, c.log_dir) for c in copies] == [(100, False, "/a"), (40, True, "/a")]


def test_config_entries_are_sorted_by_who_set_them() -> None:
    """Defaults count as not set; of a topic only its own entries count."""
    entries = {
        "a": ConfigValue("1", "DYNAMIC_TOPIC_CONFIG"),
        "b": ConfigValue("2", "STATIC_BROKER_CONFIG"),
        "c": ConfigValue("3", "DEFAULT_CONFIG"),
    }
    assert set(set_entries(entries)) == {"a", "b"}
    assert set(own_topic_entries(entries)) == {"a"}

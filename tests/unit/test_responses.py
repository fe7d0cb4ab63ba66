"""Kafka's responses become columns and values without losing what they say or making up what they do not."""

from __future__ import annotations

from uuid import UUID

import pytest
from kafka.protocol.admin import DescribeLogDirsResponse
from kafka.protocol.metadata import MetadataResponse

from ballast.adapters.responses import (
    own_topic_entries,
    read_broker_logs,
    read_log_columns,
    read_metadata,
    read_partition_states,
    set_entries,
)
from ballast.core.cluster import NO_LEADER, NO_LEADERSHIP_RECORD, UNKNOWN, ConfigValue, TopicPartition

TOPIC = MetadataResponse.MetadataResponseTopic
PARTITION = TOPIC.MetadataResponsePartition
RESULT = DescribeLogDirsResponse.DescribeLogDirsResult
NO_ID = UUID(int=0)


def partition(number: int, leader: int, *, error: int = 0, offline: tuple[int, ...] = ()) -> object:
    """A partition on brokers 1 and 2, of which 1 is in sync."""
    return PARTITION(
        error_code=error,
        partition_index=number,
        leader_id=leader,
        leader_epoch=0,
        replica_nodes=[1, 2],
        isr_nodes=[1],
        offline_replicas=list(offline),
    )


def metadata(*topics: object, version: int = 12) -> MetadataResponse:
    """A response as it comes off the wire in this version of the protocol."""
    sent = MetadataResponse(
        throttle_time_ms=0,
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="h", port=9092, rack=None)],
        cluster_id="c",
        controller_id=1,
        topics=list(topics),
        version=version,
    )
    received = MetadataResponse.decode(sent.encode(version=version), version=version)
    assert isinstance(received, MetadataResponse)
    return received


def topic(name: str, *partitions: object, error: int = 0, topic_id: UUID = NO_ID, internal: bool = False) -> object:
    """A topic of the response."""
    return TOPIC(error_code=error, name=name, topic_id=topic_id, is_internal=internal, partitions=list(partitions))


@pytest.mark.parametrize("version", [5, 8, 12])
def test_leadership_has_three_kinds_of_nobody(version: int) -> None:
    """No leader now, no record of leadership at all, and a topic being deleted (the controller's -2) are told apart."""
    read = read_metadata(
        metadata(
            topic("live", partition(0, 1), partition(1, -1, error=5), partition(2, -1, error=-1)),
            topic("dying", partition(0, -2, error=5)),
            version=version,
        )
    )
    assert read.columns.leader.tolist() == [1, NO_LEADER, NO_LEADERSHIP_RECORD, NO_LEADER]
    assert [(t.name, t.deleting) for t in read.columns.topics] == [("live", False), ("dying", True)]


def test_replicas_in_sync_and_offline_are_marked() -> None:
    """One mark per replica, in assignment order."""
    read = read_metadata(metadata(topic("t", partition(0, 1, offline=(2,)))))
    assert read.columns.replica.tolist() == [1, 2]
    assert read.columns.in_sync.tolist() == [True, False]
    assert read.columns.offline.tolist() == [False, True]


def test_a_topic_that_cannot_be_described_leaves_a_gap() -> None:
    """Its error is named and no partition is invented."""
    read = read_metadata(metadata(topic("lost", error=3), topic("t", partition(0, 1))))
    assert [(g.subject, g.missing, g.reason) for g in read.gaps] == [
        ("topic lost", "partitions", "UNKNOWN_TOPIC_OR_PARTITION")
    ]
    assert read.columns.number.tolist() == [0]


def test_topic_ids_are_written_as_kafka_writes_them() -> None:
    """Base 64 without padding; the zero id of old brokers is none."""
    known = UUID("4270c2d4-2ce1-46da-9aa4-7118d45596c8")
    read = read_metadata(
        metadata(topic("a", partition(0, 1), topic_id=known, internal=True), topic("b", partition(0, 1)))
    )
    assert [(t.topic_id, t.internal) for t in read.columns.topics] == [("QnDC1CzhRtqapHEY1FWWyA", True), (None, False)]


def test_only_the_partitions_asked_for_are_given() -> None:
    """Others of the same topic, and those of a topic in error, are left out."""
    wanted = [TopicPartition("t", 1), TopicPartition("lost", 0)]
    states = read_partition_states(
        metadata(topic("t", partition(0, 1), partition(1, 1)), topic("lost", error=3)), wanted
    )
    assert set(states) == {TopicPartition("t", 1)}


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

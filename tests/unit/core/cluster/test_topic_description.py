"""``topics describe`` tells every replica's place, log end and lag, and unknown figures stay unknown."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
from rich.console import Console

from ballast.cli.commands.topics.describe import document, draw
from ballast.core.cluster import (
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    LogDir,
    PartitionRow,
    Topic,
    TopicPartition,
    build,
)
from ballast.core.cluster.isr import leaves_isr_after_s
from ballast.core.cluster.topic_description import Depth, TopicDescription, describe_topic

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ENDS = {1: {T0: 105, T1: 50}, 2: {T0: 95}}
LAG_TIME = "replica.lag.time.max.ms"


def picture() -> ClusterState:
    """Topic t: partition 0 is moving from 2 to 3, partition 1 is led by another than its preferred leader."""
    dirs = (LogDir("/a"), LogDir("/b"))
    brokers = (
        Broker(1, log_dirs=dirs, log_dirs_known=True),
        Broker(2, log_dirs=dirs, log_dirs_known=True),
        Broker(3, alive=False),
    )
    rows = [
        PartitionRow(
            "t",
            0,
            1,
            (3, 1, 2),
            (1, 2),
            adding=(3,),
            removing=(2,),
            sizes=(UNKNOWN, 1000, 900),
            log_dirs=(UNKNOWN, 0, 1),
            future_sizes=(UNKNOWN, UNKNOWN, 300),
        ),
        PartitionRow("t", 1, 2, (1, 2), (2,), sizes=(1, 2), log_dirs=(0, 0)),
        PartitionRow("u", 0, 1, (1,), (1,)),
    ]
    entries = {"min.insync.replicas": ConfigValue("2", "DYNAMIC_TOPIC_CONFIG")}
    topics = (Topic("t", topic_id="abc", min_isr=2, configs=entries), Topic("u"))
    return build("c", brokers, topics, rows, broker_configs={1: {}}, kafka_version="4.3")


def described() -> TopicDescription:
    """The topic with offsets of partition 0 only."""
    found = describe_topic(picture(), "t", Depth({0: (10, 100)}, ENDS, {0: (7, 3)}))
    assert found is not None
    return found


def test_a_replica_is_offline_where_metadata_say_so() -> None:
    """One on a failed log dir, whose broker is alive; a log dir that its broker does not name is unknown."""
    state = picture()
    p = state.partitions
    offline, log_dir = np.zeros(len(p.replica), np.bool_), p.log_dir.copy()
    offline[1], log_dir[2] = True, 2
    told = describe_topic(replace(state, partitions=replace(p, offline=offline, log_dir=log_dir)), "t", Depth({}))
    assert told is not None
    assert [(r.broker, r.offline, r.log_dir) for r in told.partitions[0].replicas] == [
        (3, False, None), (1, True, "/a"), (2, False, None)
    ]  # fmt: skip


def test_a_tiered_topics_log_begins_on_disk_where_its_leader_says() -> None:
    """Elsewhere it begins at the earliest offset; what the leader of a tiered topic does not tell is unknown, not the earliest."""
    state = picture()
    first = TopicPartition("t", 0)
    tiered = {"remote.storage.enable": ConfigValue("true", "DYNAMIC_TOPIC_CONFIG")}
    remote = replace(state, topics=(replace(state.topics[0], configs=tiered), *state.topics[1:]))
    offsets = {0: (10, 100), 1: (10, 100)}
    told = describe_topic(remote, "t", Depth(offsets, local_starts={1: {first: 70}}))
    assert told is not None
    assert [(p.earliest, p.local_start) for p in told.partitions] == [(10, 70), (10, UNKNOWN)]
    plain = describe_topic(state, "t", Depth(offsets, local_starts={1: {first: 70}}))
    assert plain is not None
    assert [p.local_start for p in plain.partitions] == [10, 10]


def test_a_topic_that_is_not_there_is_none() -> None:
    """The caller says so; nothing is made up."""
    assert describe_topic(picture(), "v", Depth()) is None


def test_replicas_have_log_ends_lags_and_places() -> None:
    """Each replica's own broker tells its log end, the lag is against the leader's; the down broker's are unknown."""
    first = described().partitions[0]
    assert (first.assigned, first.in_sync, first.out_of_sync) == ((3, 1, 2), (1, 2), (3,))
    assert (first.moving, first.preferred, first.size_bytes) == (True, 3, 1000)
    three, one, two = first.replicas
    assert (one.log_end_offset, one.lag, one.log_dir, one.future_size_bytes) == (105, 0, "/a", UNKNOWN)
    assert (two.log_end_offset, two.lag, two.log_dir, two.future_size_bytes) == (95, 10, "/b", 300)
    assert (three.log_end_offset, three.lag, three.size_bytes, three.log_dir) == (UNKNOWN, UNKNOWN, UNKNOWN, None)
    assert (three.adding, two.removing, three.broker_alive) == (True, True, False)


def test_without_the_leaders_log_end_there_is_no_lag() -> None:
    """A replica's own end alone does not make one; a follower read a moment later is not ahead."""
    second = described().partitions[1]
    assert (second.high_watermark, second.replicas[0].log_end_offset, second.replicas[0].lag) == (UNKNOWN, 50, UNKNOWN)
    first = describe_topic(picture(), "t", Depth(ends={1: {T0: 10}, 2: {T0: 12}}))
    assert first is not None
    assert [r.lag for r in first.partitions[0].replicas] == [UNKNOWN, 0, 0]


def test_epochs_and_the_time_to_leave_the_isr() -> None:
    """The epochs as they were told; 1.5 times the leader's replica.lag.time.max.ms, which a leader without configs hides."""
    first, second = described().partitions
    assert (first.leader_epoch, first.controller_epoch) == (7, 3)
    assert (second.leader_epoch, second.controller_epoch) == (UNKNOWN, UNKNOWN)
    assert (first.leaves_isr_after_s, second.leaves_isr_after_s) == (45.0, UNKNOWN)
    old = replace(picture(), kafka_version="2.3", broker_configs={1: {}, 2: {LAG_TIME: ConfigValue("4000", "STATIC")}})
    assert (leaves_isr_after_s(old, 1), leaves_isr_after_s(old, 2)) == (15.0, 6.0)


def test_unknown_figures_are_null_in_json_and_question_marks_for_people() -> None:
    """Never zeros."""
    replica = document(described()).model_dump(mode="json")["partitions"][0]["replicas"][0]
    assert (replica["sizeBytes"], replica["lag"], replica["logEndOffset"], replica["logDir"]) == (
        None,
        None,
        None,
        None,
    )
    screen = Console(width=160, record=True, file=io.StringIO())
    draw(described(), screen)
    lines = [line.split() for line in screen.export_text().splitlines()]
    down = next(words for words in lines if words[:2] == ["0", "3"] and "adding" in words)
    assert down.count("?") == 3
    assert any("preferred leader is 1" in " ".join(words) for words in lines)

"""Who is asked for offsets of which replicas, and how far each replica is behind its leader."""

from __future__ import annotations

import numpy as np

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, ConfigValue, PartitionRow, Topic, TopicPartition, build
from ballast.core.cluster.log_ends import holders, lags, log_end, tiered_leaders

T0, T1, U0, V0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0), TopicPartition("v", 0)


def picture() -> ClusterState:
    """Topics t and v are tiered; broker 3 is down and leads v."""
    tiered = {"remote.storage.enable": ConfigValue("true", "DYNAMIC_TOPIC_CONFIG")}
    rows = [
        PartitionRow("t", 0, 1, (1, 2, 3), (1, 2)),
        PartitionRow("t", 1, 1, (2, 1), (1, 2)),
        PartitionRow("u", 0, 2, (2, 1), (1, 2)),
        PartitionRow("v", 0, 3, (3, 1), (3,)),
    ]
    topics = (Topic("t", configs=tiered), Topic("u"), Topic("v", configs=tiered))
    return build("c", (Broker(1), Broker(2), Broker(3, alive=False)), topics, rows)


def test_a_broker_that_is_alive_is_asked_for_the_replicas_that_it_holds() -> None:
    """Of the partitions that are asked for; one that is down could not tell."""
    assert holders(picture(), [0, 2, 3]) == {1: [T0, U0, V0], 2: [T0, U0]}


def test_the_leaders_of_tiered_topics_are_asked_where_their_logs_begin_on_disk() -> None:
    """Those that are alive, all their partitions at once; the logs of other topics begin at the earliest offset."""
    assert tiered_leaders(picture()) == {1: [T0, T1]}


def test_lags_are_those_of_each_replica_against_its_own_leader() -> None:
    """A follower read a moment later is not ahead; where either log end is not told the lag is unknown, also of the leader."""
    ends = {1: {T0: 100, T1: 50, V0: 5}, 2: {T0: 99, T1: 52}}
    found = lags(picture(), ends)
    assert found.dtype == np.int64
    assert found.tolist() == [0, 1, UNKNOWN, 0, 0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]
    assert [log_end(ends, *asked) for asked in ((2, T0), (2, U0), (3, T0))] == [99, UNKNOWN, UNKNOWN]

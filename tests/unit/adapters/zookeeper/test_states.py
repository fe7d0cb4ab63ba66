"""A partition of ZooKeeper's exists once its topic lists it, whether or not its state has been written yet."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from ballast.adapters.zookeeper.admin import ZooKeeperWrites
from ballast.adapters.zookeeper.client import LeaderAndIsr, ZooKeeper
from ballast.adapters.zookeeper.cluster import with_true_isr
from ballast.core.cluster import NO_LEADERSHIP_RECORD, Broker, PartitionRow, Topic, TopicPartition, build
from ballast.ports.cluster import PartitionState

OLD, NEW, GONE = (TopicPartition("t", n) for n in range(3))


class Scripted:
    """Two partitions, of which the newer one has no state znode yet."""

    client = None

    def assignments(self, topics: Collection[str]) -> dict[TopicPartition, tuple[int, ...]]:
        """What the topic's znode lists."""
        return {OLD: (1, 2), NEW: (2, 1)} if "t" in topics else {}

    def partition_states(self, names: Collection[TopicPartition]) -> dict[TopicPartition, LeaderAndIsr]:
        """What the controller has written."""
        return {OLD: LeaderAndIsr(1, (1, 2), 0, 1)} if OLD in names else {}


def test_a_partition_without_a_state_is_there_and_has_no_leadership_record() -> None:
    """Taken for deleted, its moves would be given up and its throttles forgotten."""
    found = ZooKeeperWrites(cast("ZooKeeper", Scripted())).partitions([OLD, NEW, GONE])
    assert found == {OLD: PartitionState(1, (1, 2), (1, 2)), NEW: PartitionState(NO_LEADERSHIP_RECORD, (2, 1), ())}


def test_a_picture_keeps_what_metadata_said_of_it() -> None:
    """No state is no word on its leader."""
    rows = [PartitionRow("t", n, 2, (1, 2), (2,)) for n in range(2)]
    state = build("c", (Broker(1, host="h"), Broker(2, host="h")), (Topic("t"),), rows)
    true = with_true_isr(state, ZooKeeperWrites(cast("ZooKeeper", Scripted())).partitions([OLD, NEW]))
    assert true.partitions.leader.tolist() == [1, 2]

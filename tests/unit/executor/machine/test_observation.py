"""What one look shows of copies between log dirs."""

from __future__ import annotations

import pytest

from ballast.core.cluster import UNKNOWN, Broker, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.executor.machine.observation import DirCopy, Disks

DIRS = (LogDir("/a"), LogDir("/b"))


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("broker", [1, 2])
def test_a_copy_between_log_dirs_is_told_with_the_partition_of_its_replica(number: int, broker: int) -> None:
    """Whichever replica of it is copied, the first of the list or the last."""
    brokers = tuple(Broker(b, log_dirs=DIRS, log_dirs_known=True) for b in (1, 2))
    rows = [
        PartitionRow(
            "t",
            n,
            1,
            (1, 2),
            (1, 2),
            sizes=(20, 20),
            log_dirs=(0, 0),
            future_sizes=tuple(5 if (n, b) == (number, broker) else UNKNOWN for b in (1, 2)),
            future_dirs=tuple(1 if (n, b) == (number, broker) else UNKNOWN for b in (1, 2)),
        )
        for n in range(3)
    ]
    state = build("c", brokers, (Topic("t"),), rows)
    assert Disks(state).dir_copies == (DirCopy(TopicPartition("t", number), broker, "/b", 20, 5),)

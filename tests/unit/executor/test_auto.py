"""The lag by which ``auto`` judges is that of the replicas' own log ends."""

from __future__ import annotations

from ballast.core.cluster import Broker, PartitionRow, Topic, TopicPartition, build
from ballast.executor.machine.auto import LAG_GROWTH, falls_behind, follow_cluster
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Run
from ballast.ports.cluster import BrokerLogs, ReplicaLog

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_bystanders_are_measured_by_their_log_ends() -> None:
    """What log dirs say counts for nothing; a replica whose end, or whose leader's end, is not told is left out."""
    rows = [PartitionRow("t", 0, 1, (1, 2), (1, 2)), PartitionRow("t", 1, 3, (3, 2), (3, 2))]
    state = build("c", tuple(Broker(b) for b in (1, 2, 3)), (Topic("t"),), rows)
    picture = Picture(
        reassignments={},
        partitions={},
        names=frozenset(),
        alive=frozenset({1, 2, 3}),
        logs={2: BrokerLogs((), {T0: (ReplicaLog("/a", 10, 0),), T1: (ReplicaLog("/a", 10, 0),)})},
        ends={1: {T0: 900}, 2: {T0: 400, T1: 7}},
        state=state,
    )
    run = follow_cluster(Run("r", "test", "c", ExecutionPolicy(), {}, {}), picture, Now(1000, 1.0))
    assert run.auto is not None
    assert run.auto.lags == {(T0, 1): 0, (T0, 2): 500}


def test_falling_behind_is_judged_by_those_read_twice() -> None:
    """A replica that is read for the first time, or no longer, is no sign of anything."""
    assert not falls_behind({(T0, 2): 10}, {(T0, 2): 10, (T1, 2): 10 * LAG_GROWTH})
    assert not falls_behind({(T0, 2): 10}, {})
    assert falls_behind({(T0, 2): 10, (T1, 2): 5}, {(T0, 2): 21 + LAG_GROWTH})

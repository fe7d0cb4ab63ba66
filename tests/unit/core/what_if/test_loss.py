"""Losing brokers on paper: who leads, what is offline, what refuses writes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.planner.clusters import cluster, clusters

from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.status import unhealthy_partitions
from ballast.core.what_if.loss import brokers_of, health_of, loss_of
from ballast.errors import UsageError


@settings(max_examples=150)
@given(st.data())
def test_leaders_are_alive_and_in_sync_or_there_is_none(data: st.DataObject) -> None:
    """A partition is led exactly when a live replica is in sync, and its ISR never becomes empty."""
    state = data.draw(clusters())
    lost = data.draw(st.sets(st.sampled_from([b.id for b in state.brokers]), max_size=4))
    after = loss_of(state, frozenset(lost)).after
    for row in range(len(state.partitions)):
        may = [b for b in after.replicas(row) if b in state.isr(row) and b in state.alive - lost]
        leader = int(after.partitions.leader[row])
        assert (leader in may) if may else leader == -1
        if state.isr(row):
            assert after.isr(row)
        was = int(state.partitions.leader[row])
        if was in may:
            assert leader == was


def test_each_trouble_is_counted_once_and_named() -> None:
    """Three partitions with a minimum of 2 after one broker of three is gone, one of them already short."""
    rows = [
        PartitionRow("t", 0, 1, (1, 2, 3), (1, 2, 3)),
        PartitionRow("t", 1, 1, (1, 2, 3), (1, 3)),
        PartitionRow("t", 2, 1, (1,), (1,)),
        PartitionRow("t", 3, 2, (2, 3), (2, 3)),
    ]
    state = build("c", (Broker(1), Broker(2), Broker(3)), (Topic("t", min_isr=2),), rows)
    lost = loss_of(state, frozenset({1}))
    health = lost.health_after
    assert health.offline.tolist() == [2]
    assert health.under_min_isr.tolist() == [1]
    assert health.at_min_isr.tolist() == [0]
    assert health.under_replicated.tolist() == [0, 1]
    assert [str(n) for n in lost.find_new("under_min_isr")] == ["t-1"]
    assert [str(n) for n in lost.find_new("at_min_isr")] == ["t-0"]
    assert lost.leaders_moved == 2
    assert lost.after.partitions.leader.tolist() == [2, 3, -1, 2]
    assert lost.after.isr(2) == (1,)


def test_a_replica_that_a_move_adds_is_not_missing() -> None:
    """As in Kafka's own count and in ``status``; one that a move removes is counted until the move has ended."""
    rows = [
        PartitionRow("t", 0, 1, (1, 2, 3), (1, 2), adding=(3,)),
        PartitionRow("t", 1, 1, (1, 2, 3), (1, 2), removing=(3,)),
        PartitionRow("t", 2, 1, (1, 2, 3), (1,), adding=(3,)),
        PartitionRow("t", 3, 1, (1, 2, 3), (1, 2, 3), removing=(3,)),
    ]
    state = build("c", (Broker(1), Broker(2), Broker(3)), (Topic("t", min_isr=2),), rows)
    health = health_of(state)
    assert health.under_replicated.tolist() == [1, 2]
    assert [str(name) for name in unhealthy_partitions(state).under_replicated] == ["t-1", "t-2"]
    assert health.under_min_isr.tolist() == [2]
    assert health.at_min_isr.tolist() == [1]
    assert loss_of(state, frozenset({3})).find_new("under_replicated") == [state.name(3)]


def test_a_min_isr_that_the_snapshot_does_not_tell_is_not_one() -> None:
    """What lacks a replica then is in a list of its own, and neither under nor at its minimum."""
    rows = [PartitionRow("t", 0, 1, (1, 2, 3), (1, 2)), PartitionRow("t", 1, 2, (2, 3), (2, 3))]
    state = build("c", (Broker(1), Broker(2), Broker(3)), (Topic("t"),), rows)
    lost = loss_of(state, frozenset({1}))
    health = lost.health_after
    assert health.min_isr_unknown.tolist() == health.under_replicated.tolist() == [0]
    assert health.under_min_isr.tolist() == health.at_min_isr.tolist() == []
    assert lost.find_new("min_isr_unknown") == [], "it lacked a replica before"


def test_a_rack_is_all_of_its_brokers() -> None:
    """Ids and racks add up; a name that is not there is refused with those that are."""
    state = cluster((1, 2), brokers=4, racks=2)
    assert brokers_of(state, (1,), ("r0",)) == {1, 2, 4}
    with pytest.raises(UsageError, match=r"no broker 9.*brokers 1, 2, 3, 4"):
        brokers_of(state, (9,), ())
    with pytest.raises(UsageError, match=r"no rack 'r7'.*r0, r1"):
        brokers_of(state, (), ("r7",))


def test_a_broker_that_is_down_already_changes_nothing_more() -> None:
    """Losing it again is no loss."""
    state = cluster((1, 2), (2, 1), brokers=3)
    once = loss_of(state, frozenset({1})).after
    twice = loss_of(replace(once), frozenset({1}))
    assert twice.leaders_moved == 0
    assert twice.find_new("under_replicated") == []


def test_the_brokers_are_down_and_everything_else_is_as_it_was() -> None:
    """A broker that is down has no host; replicas that were offline before still are; the first id is as good as any."""
    rows = [
        PartitionRow("t", 0, 2, (2, 0), (0, 2)),
        PartitionRow("t", 1, 1, (1, 0), (1,), offline=(0,)),
        PartitionRow("t", 2, 0, (0, 1), (0, 1)),
    ]
    brokers = tuple(Broker(b, f"r{b}", host=f"b{b}", port=9092) for b in (0, 1, 2))
    state = build("c", brokers, (Topic("t", min_isr=1),), rows)
    assert health_of(state).offline.tolist() == []
    lost = loss_of(state, frozenset({2}))
    assert (lost.brokers, lost.before) == ((2,), state)
    assert lost.after.brokers == (*brokers[:2], Broker(2, "r2", alive=False))
    leader, offline = lost.after.partitions.leader, lost.after.partitions.offline
    assert leader.tolist() == [0, 1, 0]
    assert leader.dtype == state.partitions.leader.dtype
    assert offline.tolist() == [True, False, False, True, False, False]
    assert lost.leaders_moved == 1
    assert lost.health_after.offline.tolist() == []
    assert loss_of(state, frozenset({2, 1})).brokers == (1, 2)


def test_a_cluster_without_racks_has_none_to_lose() -> None:
    """The refusal says so."""
    with pytest.raises(UsageError) as caught:
        brokers_of(build("c", (Broker(1),), (), []), (), ("r0",))
    assert caught.value.hint == "The brokers name no rack at all."


def test_nothing_is_lost_of_an_empty_cluster() -> None:
    """No partition, no trouble."""
    lost = loss_of(build("c", (Broker(1),), (), []), frozenset({1}))
    assert lost.leaders_moved == 0
    assert lost.find_new("offline") == []

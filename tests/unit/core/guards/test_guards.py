"""The guards' verdicts on moves, and the drift of plans, on one small cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, ConfigValue, PartitionRow, Topic, TopicPartition, build
from ballast.core.guards import judge
from ballast.core.guards.drift import drift, keep_valid, mismatches
from ballast.core.plan import Move, Plan
from ballast.core.plan.file import dumps
from ballast.core.plan.file import loads as read_plan
from ballast.core.plan.fingerprint import fingerprint, with_topic_ids


def cluster(*rows: PartitionRow, down: tuple[int, ...] = (), min_isr: int = 1) -> ClusterState:
    """Brokers 1 to 5 and topics a and b, in which every partition holds a few bytes."""
    brokers = tuple(Broker(i, alive=i not in down, host="h") for i in range(1, 6))
    sized = [replace(row, sizes=(9,) * len(row.replicas)) for row in rows]
    return build("c", brokers, (Topic("a", min_isr=min_isr), Topic("b", min_isr=min_isr)), sized)


def verdict(state: ClusterState, move: Move) -> str | None:
    """The code of the guards' verdict on this one move."""
    found = judge([move], state, ours={move.name: move}, room={})
    return found[move.name].code if found else None


def test_unrelated_problems_stop_nothing_but_min_isr_does() -> None:
    """A unhealthy partition on other brokers is none of our business, until it is down to its minimum."""
    a = PartitionRow("a", 0, 1, (1, 2), (1, 2))
    unhealthy = PartitionRow("b", 0, 4, (4, 5, 3), (4, 5))
    assert verdict(cluster(a, unhealthy, min_isr=1), Move("a", 0, (1, 2), (1, 2), 1)) == "already-there"
    assert verdict(cluster(a, PartitionRow("b", 0, 4, (4, 5), (4,)), min_isr=0), Move("a", 0, (1, 2), (3, 2))) is None
    assert verdict(cluster(a, unhealthy, min_isr=2), Move("a", 0, (1, 2), (3, 2))) == "at-min-isr"
    assert verdict(cluster(a, unhealthy, min_isr=1), Move("a", 0, (1, 2), (3, 2))) == "under-replicated"


def test_the_last_replicas_in_sync_are_not_given_up_for_one_that_is_not() -> None:
    """Fewer replicas cost no copy, and must not cost what is in sync; dropping the unhealthy one is right at any time."""
    three = PartitionRow("a", 0, 1, (1, 2, 3), (1, 3))
    for state in (cluster(three), cluster(PartitionRow("a", 0, 1, (1, 2, 3), (1, 2, 3)), down=(2,))):
        assert verdict(state, Move("a", 0, (1, 2, 3), (1, 2))) == "drops-in-sync"
        assert verdict(state, Move("a", 0, (1, 2, 3), (2,))) == "drops-in-sync"
        assert verdict(state, Move("a", 0, (1, 2, 3), (1, 3))) is None
        assert verdict(state, Move("a", 0, (1, 2, 3), (3, 2, 1))) is None
    well = cluster(PartitionRow("a", 0, 1, (1, 2, 3), (1, 2, 3)))
    assert verdict(well, Move("a", 0, (1, 2, 3), (2,))) is None
    going = PartitionRow("a", 0, 1, (1, 2, 3), (1, 3), removing=(3,))
    assert verdict(cluster(going), Move("a", 0, (1, 2, 3), (1, 2))) is None


@pytest.mark.parametrize(("told", "within_s"), [({}, 45.0), ({"replica.lag.time.max.ms": "4000"}, 6.0), (None, -1)])
def test_a_refusal_over_an_isr_says_when_that_is_settled(told: dict[str, str] | None, within_s: float) -> None:
    """1.5 times what the leader of the unhealthy partition has set; nothing where it did not report its configs."""
    a = PartitionRow("a", 0, 1, (1, 2, 3), (1, 2, 3))
    entries = {} if told is None else {4: {k: ConfigValue(v, "STATIC_BROKER_CONFIG") for k, v in told.items()}}
    elsewhere = PartitionRow("b", 0, 4, (4, 5, 3), (4, 5))
    for min_isr, code in ((2, "at-min-isr"), (1, "under-replicated")):
        state = replace(cluster(a, elsewhere, min_isr=min_isr), broker_configs=entries)
        move = Move("a", 0, (1, 2, 3), (1, 2, 4))
        (found,) = judge([move], state, ours={move.name: move}, room={}).values()
        assert (found.code, found.isr_within_s) == (code, within_s)
        assert ("45 s" in str(found)) is (within_s == 45)
    # A broker that has died and still stands in the ISR.
    state = cluster(PartitionRow("a", 0, 4, (4, 2, 3), (4, 2, 3)), down=(2,))
    move = Move("a", 0, (4, 2, 3), (4, 2))
    (found,) = judge([move], replace(state, broker_configs=entries), ours={move.name: move}, room={}).values()
    assert (found.code, found.isr_within_s) == ("drops-in-sync", within_s)


def test_an_unknown_minimum_isr_is_not_taken_for_none() -> None:
    """A partition that lacks a replica may be down to it: nothing but a repair begins beside it."""
    a = PartitionRow("a", 0, 1, (1, 2), (1, 2))
    unhealthy = PartitionRow("b", 0, 4, (4, 5), (4,))
    state = cluster(a, unhealthy, min_isr=UNKNOWN)
    assert verdict(state, Move("a", 0, (1, 2), (3, 2))) == "min-isr-unknown"
    assert verdict(state, Move("b", 0, (4, 5), (4, 3))) is None
    assert verdict(cluster(a, min_isr=UNKNOWN), Move("a", 0, (1, 2), (3, 2))) is None


def test_a_plan_is_not_for_another_topic_of_the_same_name() -> None:
    """Deleted and made again with the same replicas: the fingerprint is the same, the topic is not."""

    def picture(id_: str | None) -> ClusterState:
        state = cluster(PartitionRow("a", 0, 1, (1, 2), (1, 2)), PartitionRow("b", 0, 1, (1, 2), (1, 2)))
        return replace(state, topics=tuple(replace(t, topic_id=id_ if t.name == "a" else "B") for t in state.topics))

    before, after = picture("A1"), picture("A2")
    plan = Plan("balance", "c", fingerprint(before), (Move("a", 0, (1, 2), (3, 2)), Move("b", 0, (1, 2), (3, 2))))
    plan = with_topic_ids(plan, before)
    assert plan.topic_ids == {"a": "A1", "b": "B"}
    assert read_plan(dumps(plan)) == plan
    assert not drift(plan, before).touches_plan
    found = drift(plan, after)
    assert (found.same_fingerprint, found.touches_plan) == (True, True)
    assert found.recreated == {"a": ("A1", "A2")}
    assert [m.topic for m in keep_valid(plan, found, after).moves] == ["b"]
    assert not drift(plan, picture(None)).recreated
    assert with_topic_ids(plan, picture(None)).topic_ids == {"b": "B"}


def test_verdicts_on_the_partition_and_the_destination() -> None:
    """Gone, already there, changed or moved by another user, no leader, down destination: each has its code."""
    a = PartitionRow("a", 0, 1, (1, 2), (1, 2))
    assert verdict(cluster(a), Move("a", 7, (1, 2), (3, 2))) == "deleted"
    assert verdict(cluster(a), Move("a", 0, (2, 1), (1, 2))) == "already-there"
    assert verdict(cluster(a), Move("a", 0, (4, 5), (3, 5))) == "modified-externally"
    assert verdict(cluster(a, down=(3,)), Move("a", 0, (1, 2), (3, 2))) == "destination-down"
    moving = PartitionRow("a", 0, 1, (4, 2, 1), (1, 2), adding=(4,), removing=(1,))
    assert verdict(cluster(moving), Move("a", 0, (1, 2), (3, 2))) == "foreign-reassignment"
    leaderless = PartitionRow("a", 0, -1, (1, 2), ())
    assert verdict(cluster(leaderless), Move("a", 0, (1, 2), (3, 2))) == "no-leader"
    assert verdict(cluster(a), Move("a", 0, (1, 2), (2, 1))) is None


def test_a_plan_that_was_executed_has_nothing_left_to_do() -> None:
    """Every move is made and every election completed; where one is still to be completed, that is what is left."""
    before = cluster(PartitionRow("a", 0, 1, (1, 2), (1, 2)), PartitionRow("a", 1, 1, (1, 2), (1, 2)))
    elected = (TopicPartition("a", 0),)
    plan = Plan("balance", "c", fingerprint(before), (Move("a", 0, (1, 2), (3, 2)),), elections=elected)
    for leader, left in ((3, ()), (2, elected)):
        after = cluster(PartitionRow("a", 0, leader, (3, 2), (3, 2)), PartitionRow("a", 1, 1, (1, 2), (1, 2)))
        found = drift(plan, after)
        assert found.all_done
        assert (keep_valid(plan, found, after).moves, keep_valid(plan, found, after).elections) == ((), left)
    assert not drift(plan, before).all_done
    moving = cluster(
        PartitionRow("a", 0, 1, (3, 2, 1), (1, 2), adding=(3,), removing=(1,)), PartitionRow("a", 1, 1, (1, 2), (1, 2))
    )
    assert drift(plan, moving).done
    assert not drift(plan, moving).all_done, "what is still in flight has not arrived"


def test_drift_is_explained_and_the_rest_of_the_plan_kept() -> None:
    """A plan made for another picture says what changed; what still holds can be executed."""
    before = cluster(PartitionRow("a", 0, 1, (1, 2), (1, 2)), PartitionRow("a", 1, 1, (1, 2), (1, 2)))
    after = cluster(PartitionRow("a", 0, 1, (1, 4), (1, 4)), PartitionRow("a", 1, 1, (1, 2), (1, 2)))
    moves = (Move("a", 0, (1, 2), (3, 2)), Move("a", 1, (1, 2), (3, 2)), Move("b", 0, (1, 2), (3, 2)))
    plan = Plan("balance", "c", fingerprint(before), moves)
    assert drift(plan, before).same_fingerprint
    found = drift(plan, after)
    assert found.changed == {TopicPartition("a", 0): (1, 4)}
    assert found.gone == (TopicPartition("b", 0),)
    assert [d.code for d in found.differences] == ["replicas-changed", "deleted"]
    assert [m.name for m in keep_valid(plan, found, after).moves] == [TopicPartition("a", 1)]


def test_verify_names_each_mismatch() -> None:
    """Gone, moving, elsewhere, in another order, out of sync: verify says which."""
    state = cluster(
        PartitionRow("a", 0, 1, (1, 2), (1, 2)),
        PartitionRow("a", 1, 1, (2, 1), (1, 2)),
        PartitionRow("a", 2, 1, (1, 2), (1,)),
        PartitionRow("a", 3, 1, (1, 2, 3), (1, 3), adding=(2,), removing=(3,)),
        PartitionRow("a", 4, 1, (4, 5), (4, 5)),
    )
    wanted = tuple(Move("a", i, (), (1, 2)) for i in range(6))
    found = mismatches(wanted[::-1], state)
    assert [(m.name.partition, m.difference.code) for m in found] == [
        (1, "order"),
        (2, "out-of-sync"),
        (3, "moving"),
        (4, "replicas"),
        (5, "gone"),
    ]

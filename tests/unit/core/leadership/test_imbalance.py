"""Leader imbalance: the ratio to the last detail of Kafka's rules, and the elections that follow from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.core.cluster import (
    NO_LEADER,
    NO_LEADERSHIP_RECORD,
    Broker,
    ClusterState,
    PartitionRow,
    Topic,
    TopicPartition,
    build,
)
from ballast.core.leadership import imbalance, tally
from ballast.core.leadership.elections import election_plan, elections


def state(rows: list[PartitionRow], *, down: tuple[int, ...] = (), deleting: tuple[str, ...] = ()) -> ClusterState:
    """A cluster of the brokers 0 to 3."""
    brokers = tuple(Broker(b, alive=b not in down) for b in range(4))
    topics = tuple(Topic(name, deleting=name in deleting) for name in {r.topic for r in rows})
    return build("c", brokers, topics, rows)


def row(
    number: int, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...] | None = None, topic: str = "t"
) -> PartitionRow:
    """A partition that is in sync unless told otherwise."""
    return PartitionRow(topic, number, leader, replicas, replicas if isr is None else isr)


def test_ratio_counts_other_leaders_and_no_leader() -> None:
    """Led by another and led by none both count as not led."""
    found = imbalance(state([row(0, 0, (0, 1)), row(1, 1, (0, 1)), row(2, NO_LEADER, (0, 1)), row(3, 1, (1, 0))]))
    assert (found[0].broker, found[0].preferred, found[0].not_led, found[0].ratio) == (0, 3, 2, 2 / 3)
    assert (found[1].preferred, found[1].not_led, found[1].over) == (1, 0, False)
    assert found.over_ids == (0,)
    assert found.total_ratio == 2 / 4


def test_missing_leadership_record_stays_in_the_denominator_only() -> None:
    """A partition that the controller has no record of can hide a broker's drift but not add to it."""
    found = imbalance(state([row(0, NO_LEADERSHIP_RECORD, (0, 1)), row(1, 1, (0, 1))]))
    assert (found[0].preferred, found[0].not_led) == (2, 1)


def test_topics_being_deleted_leave_both_counts() -> None:
    """A topic that is queued for deletion is neither judged nor elected."""
    cluster = state([row(0, 1, (0, 1), topic="gone"), row(0, 0, (0, 1), topic="kept")], deleting=("gone",))
    assert (imbalance(cluster)[0].preferred, imbalance(cluster)[0].not_led) == (1, 0)
    assert elections(cluster, range(4)) == ()


@pytest.mark.parametrize(
    ("percent", "not_led", "over"), [(10, 1, False), (10, 2, True), (9.9, 1, True), (0, 1, True), (30, 3, False)]
)
def test_over_means_strictly_more(percent: float, not_led: int, *, over: bool) -> None:
    """Exactly ten percent is not over ten percent, whatever binary fractions do."""
    found = imbalance(state([row(i, 1 if i < not_led else 0, (0, 1)) for i in range(10)]), percent)
    assert found[0].over is over
    assert found.threshold_percent == percent


def test_a_broker_that_is_no_preferred_leader_is_listed_and_never_over() -> None:
    """Every broker has its line, also one without preferred partitions and one that only a replica list names."""
    found = imbalance(state([row(0, 1, (1, 9))]))
    assert [b.broker for b in found] == [0, 1, 2, 3, 9]
    assert found[2].ratio == 0.0
    assert found.over_ids == ()
    with pytest.raises(KeyError, match="7"):
        found[7]


def test_brokers_and_counts_are_told_as_whole_numbers() -> None:
    """Also where no broker is named but by replica lists, and those are of small numbers."""
    found = tally(np.array([1, 1, 2], np.int32), np.array([1, 2, 2], np.int32))
    assert repr(found.over_ids) == "(1,)"
    assert [repr((b.broker, b.preferred, b.not_led)) for b in found] == ["(1, 2, 1)", "(2, 1, 0)"]


def test_a_moving_partition_is_judged_by_where_it_goes_and_not_elected() -> None:
    """Mid-move the first replica of the target is the preferred one; an election waits until the move is done."""
    moving = PartitionRow("t", 0, 1, (2, 3, 1), (2, 3, 1), adding=(2, 3), removing=(1,))
    cluster = state([moving])
    assert imbalance(cluster).over_ids == (2,)
    assert elections(cluster, range(4)) == ()


def test_elected_are_alive_in_sync_and_of_a_broker_that_is_over() -> None:
    """The preferred leader must be alive and in the ISR; brokers at or under the threshold are left alone."""
    rows = [
        row(0, 1, (0, 1)),
        row(1, 1, (0, 1), isr=(1,)),
        row(2, 1, (3, 1)),
        *[row(3 + i, 2, (2, 1)) for i in range(10)],
        row(13, 1, (2, 1)),
        row(14, NO_LEADER, (0, 1), isr=(0,)),
    ]
    cluster = state(rows, down=(3,))
    assert elections(cluster, imbalance(cluster).over_ids) == (TopicPartition("t", 0), TopicPartition("t", 14))
    every = (TopicPartition("t", 0), TopicPartition("t", 14), TopicPartition("t", 13))
    assert elections(cluster, imbalance(cluster, 0).over_ids) == every
    assert elections(cluster, {2, 3}) == (TopicPartition("t", 13),)


def test_the_plan_holds_the_elections_and_moves_nothing() -> None:
    """It says which elections it holds, and that there is nothing to do where there is none."""
    cluster = state([row(i, 1, (0, 1)) for i in range(7)])
    plan = election_plan(cluster, elections(cluster, {0}), created_at_ms=5)
    assert (plan.purpose.code, len(plan.elections), plan.moves, plan.created_at_ms) == ("elect", 7, (), 5)
    assert election_plan(cluster, plan.elections, unclean=True).purpose.code == "elect-unclean"
    assert (plan.status, election_plan(cluster, ()).status) == ("meets-all-goals", "nothing-to-do")


def test_leaders_of_one_broker_are_elected_one_after_the_other() -> None:
    """Brokers by id, and the partitions of each in their own order, however many there are."""
    cluster = state([row(i, 3, (i % 3, 3)) for i in range(300)])
    assert [name.partition for name in elections(cluster, range(4))] == [i for b in range(3) for i in range(b, 300, 3)]


def test_an_empty_cluster_is_balanced() -> None:
    """Nothing to count is not an error."""
    cluster = state([])
    assert imbalance(cluster).worst_ratio == 0.0
    assert imbalance(cluster).total_ratio == 0.0
    assert elections(cluster, range(4)) == ()


@given(
    st.lists(st.tuples(st.integers(-1, 6), st.integers(-2, 6), st.booleans()), max_size=60),
    st.integers(0, 100),
)
def test_tally_agrees_with_counting_by_hand(rows: list[tuple[int, int, bool]], percent: int) -> None:
    """The columns give what a plain loop over Kafka's rules gives."""
    preferred, leader, doomed = (np.array([r[i] for r in rows], np.int64) for i in range(3))
    found = tally(preferred, leader, range(3), deleting=doomed.astype(np.bool_), threshold_percent=percent)
    for b in found:
        judged = [r for r in rows if r[0] == b.broker and not r[2]]
        astray = [r for r in judged if r[1] not in {b.broker, NO_LEADERSHIP_RECORD}]
        assert (b.preferred, b.not_led) == (len(judged), len(astray))
        assert b.over == (len(astray) * 100 > percent * len(judged))
    assert int(found.preferred.sum()) == len([r for r in rows if r[0] >= 0 and not r[2]])

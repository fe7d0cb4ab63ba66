"""How a cluster differs from what a plan was made for: every difference is found, counted and named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.messages import figures_of

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.guards.drift import Difference, Drift, drift, keep_valid, mismatches
from ballast.core.plan import Move, Plan
from ballast.core.plan.fingerprint import fingerprint, with_topic_ids


def cluster(*rows: PartitionRow, topic_id: str = "A") -> ClusterState:
    """Brokers 1 to 5 and the one topic."""
    return build("c", tuple(Broker(b, host="h") for b in range(1, 6)), (Topic("a", topic_id=topic_id),), list(rows))


def row(n: int, *replicas: int, isr: tuple[int, ...] | None = None) -> PartitionRow:
    """A partition on these brokers, led by the first."""
    return PartitionRow("a", n, replicas[0], replicas, isr or replicas)


def test_every_partition_that_differs_is_counted_and_the_first_named() -> None:
    """Wherever in the plan it stands."""
    moves = tuple(Move("a", n, (1, 2), (3, 2)) for n in range(6))
    before = cluster(*(row(n, 1, 2) for n in range(6)))
    plan = Plan("balance", "c", fingerprint(before), moves)
    found = drift(plan, cluster(row(1, 3, 2), row(2, 4, 5), row(3, 1, 2), row(4, 3, 2), row(5, 5, 4)))
    names = [m.name for m in moves]
    assert (found.gone, found.done) == ((names[0],), (names[1], names[4]))
    assert found.changed == {names[2]: (4, 5), names[5]: (5, 4)}
    assert found.differences == (
        Difference("replicas-changed", {"count": 2, "partition": names[2], "replicas": (4, 5)}),
        Difference("deleted", {"count": 1, "partition": names[0]}),
        Difference("already-there", {"count": 2, "partition": names[1]}),
    )
    assert found.explain() == "; ".join(map(str, found.differences))
    assert Drift(same_fingerprint=False).differences == (Difference("elsewhere"),)


def test_a_topic_that_was_made_again_is_a_difference() -> None:
    """With its ids then and now."""
    before = cluster(row(0, 1, 2))
    plan = with_topic_ids(Plan("balance", "c", fingerprint(before), (Move("a", 0, (1, 2), (3, 2)),)), before)
    (found,) = drift(plan, cluster(row(0, 1, 2), topic_id="B")).differences
    assert found == Difference("topic-recreated", {"topic": "a", "was": "A", "now": "B"})


@pytest.mark.parametrize("code", Difference.sentences)
def test_every_difference_has_a_sentence_that_takes_its_values(code: str) -> None:
    """Nothing of the template is left."""
    names = figures_of(Difference, code)
    said = str(Difference(code, {**dict.fromkeys(names, (1, 2)), "count": 2}))
    assert said
    assert not set("{}<") & set(said)


def test_a_plan_was_not_executed_where_some_of_it_is_gone() -> None:
    """Neither where an election's partition is, nor where the topic is another of the name."""
    before = cluster(row(0, 1, 2), row(1, 1, 2))
    plan = Plan("balance", "c", fingerprint(before), (Move("a", 0, (1, 2), (3, 2)),), (TopicPartition("a", 1),))
    plan = with_topic_ids(plan, before)
    assert drift(plan, cluster(row(0, 3, 2), row(1, 1, 2))).all_done
    assert not drift(plan, cluster(row(0, 3, 2))).all_done
    assert not drift(plan, cluster(row(0, 3, 2), row(1, 1, 2), topic_id="B")).all_done


def test_what_is_left_of_a_plan_is_for_the_cluster_as_it_is() -> None:
    """It can be executed, and is not refused for what the whole plan was made from."""
    before = cluster(row(0, 1, 2), row(1, 1, 2))
    plan = Plan("balance", "c", fingerprint(before), tuple(Move("a", n, (1, 2), (3, 2)) for n in (0, 1)))
    now = cluster(row(0, 4, 5), row(1, 1, 2))
    left = keep_valid(plan, drift(plan, now), now)
    assert [m.partition for m in left.moves] == [1]
    assert drift(left, now).same_fingerprint
    assert replace(left, fingerprint=plan.fingerprint, moves=plan.moves) == plan


def test_each_mismatch_tells_what_is_there() -> None:
    """And what was wanted."""
    moving = PartitionRow("a", 3, 1, (1, 2, 3), (1, 3), adding=(2,), removing=(3,))
    state = cluster(row(0, 4, 5), row(2, 1, 2, 3, isr=(1,)), moving, row(4, 2, 1))
    wanted = (*(Move("a", n, (), (1, 2)) for n in (0, 1, 3, 4)), Move("a", 2, (), (1, 2, 3)))
    expected: list[tuple[str, dict[str, object]]] = [
        ("replicas", {"replicas": [4, 5], "wanted": [1, 2]}),
        ("gone", {}),
        ("out-of-sync", {"brokers": [2, 3]}),
        ("moving", {"replicas": [1, 2]}),
        ("order", {"replicas": [2, 1], "wanted": [1, 2]}),
    ]
    found = mismatches(wanted, state)
    assert [m.name for m in found] == [TopicPartition("a", n) for n in range(5)]
    assert [(m.difference.code, m.difference.parameters) for m in found] == expected

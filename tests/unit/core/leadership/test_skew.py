"""Skew of preferred leadership per broker, rack and topic."""

from __future__ import annotations

import pytest

from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.leadership import imbalance
from ballast.core.leadership.reorder import balance_counts, choices, reorder_moves
from ballast.core.leadership.skew import partition_bytes, preferred_skew


def row(topic: str, number: int, replicas: tuple[int, ...], size: int | None = 10) -> PartitionRow:
    """A partition led by its preferred replica."""
    sizes = None if size is None else (size,) * len(replicas)
    return PartitionRow(topic, number, replicas[0], replicas, replicas, sizes=sizes)


BROKERS = (Broker(1, "a"), Broker(2, "a"), Broker(3, "b"), Broker(4, "b", alive=False), Broker(5))


def test_skew_is_what_imbalance_does_not_see() -> None:
    """Every preferred leader on broker 1: nothing is imbalanced and everything is skewed."""
    state = build("c", BROKERS, (Topic("t"),), [row("t", i, (1, 2, 3), 100) for i in range(8)])
    assert imbalance(state).worst_ratio == 0
    skew = preferred_skew(state)
    one, two, _, dead, _ = skew.brokers
    assert (one.partitions, one.size_bytes, one.fair_partitions, one.partitions_ratio) == (8, 800, 2.0, 4.0)
    assert (two.partitions, two.bytes_ratio) == (0, 0.0)
    assert (dead.fair_partitions, dead.partitions_ratio) == (0.0, 0.0)
    (topic,) = skew.topics
    assert (topic.topic, topic.partitions, topic.most, topic.on, topic.least_possible) == ("t", 8, 8, 1, 2)


def test_racks_share_by_their_alive_brokers() -> None:
    """Rack a has two of the four alive brokers, rack b one, and one stands outside."""
    rows = [row("t", 0, (1,)), row("t", 1, (3,)), row("t", 2, (3,)), row("t", 3, (5,))]
    a, b, bare = preferred_skew(build("c", BROKERS, (Topic("t"),), rows)).racks
    assert (a.name, a.partitions, a.fair_partitions) == ("a", 1, 2.0)
    assert (b.name, b.partitions, b.fair_partitions, b.partitions_ratio) == ("b", 2, 1.0, 2.0)
    assert (bare.name, bare.partitions) == ("(no rack)", 1)
    assert preferred_skew(build("c", (Broker(1),), (Topic("t"),), [row("t", 0, (1,))])).racks == ()


def test_topics_worst_first_and_balanced_ones_left_out() -> None:
    """A topic spread as well as numbers allow is not named; one being deleted is not counted."""
    rows = [
        *[row("balance", i, ((1, 2), (2, 1), (3, 1), (5, 1), (1, 2))[i]) for i in range(5)],
        *[row("bad", i, (2, 1)) for i in range(4)],
        *[row("worse", i, (3, 1)) for i in range(8)],
        row("gone", 0, (1, 2)),
    ]
    topics = (Topic("balance"), Topic("bad"), Topic("worse"), Topic("gone", deleting=True))
    skew = preferred_skew(build("c", BROKERS, topics, rows))
    assert [(t.topic, t.most, t.on, t.least_possible) for t in skew.topics] == [("worse", 8, 3, 2), ("bad", 4, 2, 1)]
    assert sum(b.partitions for b in skew.brokers) == 17


def test_unknown_sizes_are_counted_and_weigh_nothing() -> None:
    """What no broker said is not zero bytes in silence."""
    state = build("c", BROKERS, (Topic("t"),), [row("t", 0, (1, 2), None), row("t", 1, (2, 1), 7)])
    assert partition_bytes(state).tolist() == [-1, 7]
    skew = preferred_skew(state)
    assert skew.unknown_sizes == 1
    assert [b.size_bytes for b in skew.brokers] == [0, 7, 0, 0, 0]


def test_reorders_repair_the_skew() -> None:
    """After the moves the first replicas are balanced, and every partition has the brokers it had."""
    state = build("c", BROKERS, (Topic("t"),), [row("t", i, (1, 2, 3)) for i in range(9)])
    new = {m.name: m.new for m in reorder_moves(state, balance_counts(choices(state)))}
    after = build("c", BROKERS, (Topic("t"),), [row("t", i, new.get(state.name(i), (1, 2, 3))) for i in range(9)])
    assert [b.partitions for b in preferred_skew(after).brokers] == [3, 3, 3, 0, 0]
    assert all(sorted(after.target(i)) == [1, 2, 3] for i in range(9))


def test_nothing_to_measure() -> None:
    """An empty cluster has no skew and divides by nothing."""
    skew = preferred_skew(build("c", (), (), []))
    assert (skew.brokers, skew.racks, skew.topics) == ((), (), ())
    only = preferred_skew(build("c", (Broker(1, "a"),), (), []))
    assert only.brokers[0].partitions_ratio == pytest.approx(0.0)

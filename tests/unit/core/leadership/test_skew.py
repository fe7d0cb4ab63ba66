"""Skew of preferred leadership per broker, rack and topic."""

from __future__ import annotations

import pytest

from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.leadership import imbalance
from ballast.core.leadership.reorder import balance_counts, choices, reorder_moves
from ballast.core.leadership.skew import partition_bytes, preferred_skew


def row(topic: str, number: int, replicas: tuple[int, ...], size: int | None = 10) -> PartitionRow:
    """A partition led by its preferred leader."""
    sizes = None if size is None else (size,) * len(replicas)
    return PartitionRow(topic, number, replicas[0], replicas, replicas, sizes=sizes)


BROKERS = (Broker(1, "a"), Broker(2, "a"), Broker(3, "b"), Broker(4, "b", alive=False), Broker(5))


def test_skew_is_what_imbalance_does_not_see() -> None:
    """Every preferred leader on broker 1: nothing is imbalanced and everything is skewed."""
    state = build("c", BROKERS, (Topic("t"),), [row("t", i, (1, 2, 3), 100) for i in range(8)])
    assert imbalance(state).worst_ratio == 0
    skew = preferred_skew(state)
    one, two, _, down, _ = skew.brokers
    assert (one.partitions, one.size_bytes, one.fair_partitions, one.partitions_ratio) == (8, 800, 2.0, 4.0)
    assert (two.partitions, two.bytes_ratio) == (0, 0.0)
    assert (down.fair_partitions, down.partitions_ratio) == (0.0, 0.0)
    (topic,) = skew.topics
    assert (topic.topic, topic.partitions, topic.maximum, topic.on, topic.ideal) == ("t", 8, 8, 1, 2)


def test_racks_share_by_their_alive_brokers() -> None:
    """Rack a has two of the four alive brokers, rack b one, and one stands outside."""
    rows = [row("t", 0, (1,)), row("t", 1, (3,)), row("t", 2, (3,)), row("t", 3, (5,))]
    a, b, bare = preferred_skew(build("c", BROKERS, (Topic("t"),), rows)).racks
    assert (a.name, a.partitions, a.fair_partitions) == ("a", 1, 2.0)
    assert (b.name, b.partitions, b.fair_partitions, b.partitions_ratio) == ("b", 2, 1.0, 2.0)
    assert (bare.name, bare.partitions) == ("(no rack)", 1)
    assert preferred_skew(build("c", (Broker(1),), (Topic("t"),), [row("t", 0, (1,))])).racks == ()


def test_bytes_are_shared_as_partitions_are() -> None:
    """By broker and by rack; where every broker has a rack, none stands outside."""
    brokers = tuple(Broker(b, "ab"[b // 2], alive=b < 3) for b in range(4))
    rows = [row("t", 0, (0,), 100), row("t", 1, (1,), 20), row("t", 2, (2,), 0), row("t", 3, (0,), 30)]
    skew = preferred_skew(build("c", brokers, (Topic("t"),), rows))
    assert [(b.name, b.size_bytes, b.fair_bytes) for b in skew.brokers] == [
        ("0", 130, 50.0),
        ("1", 20, 50.0),
        ("2", 0, 50.0),
        ("3", 0, 0.0),
    ]
    assert (skew.brokers[0].bytes_ratio, skew.brokers[3].bytes_ratio) == (2.6, 0.0)
    assert [(r.name, r.size_bytes, r.fair_bytes) for r in skew.racks] == [("a", 150, 100.0), ("b", 0, 50.0)]


def test_one_broker_has_no_skew() -> None:
    """All is its fair share, however different its topics are."""
    rows = [row("few", 0, (1,)), *[row("many", i, (1,)) for i in range(5)]]
    skew = preferred_skew(build("c", (Broker(1),), (Topic("few"), Topic("many")), rows))
    assert (skew.brokers[0].fair_partitions, skew.brokers[0].partitions_ratio) == (6.0, 1.0)
    assert skew.topics == ()


def test_the_worst_topic_is_the_one_that_is_furthest_from_its_least_possible_number() -> None:
    """Of equals the one with more on a broker; the broker is the one that has the most of it."""
    rows = [
        *[row("four", i, (2, 1)) for i in range(4)],
        *[row("eight", i, (3, 1)) for i in range(8)],
        *[row("twelve", i, ((1,), (2,), (3,), (5,), (3,), (3,), (3,), (3,), (3,), (1,), (2,), (5,))[i]) for i in range(12)],
        *[row("uneven", i, ((1,), (2,), (2,), (2,), (2,))[i]) for i in range(5)],
        row("zz-gone", 0, (1, 2)),
    ]  # fmt: skip
    topics = tuple(Topic(t, deleting=t == "zz-gone") for t in ("four", "eight", "twelve", "uneven", "zz-gone"))
    found = preferred_skew(build("c", BROKERS, topics, rows)).topics
    assert [(t.topic, t.partitions, t.maximum, t.on, t.ideal) for t in found] == [
        ("eight", 8, 8, 3, 2),
        ("four", 4, 4, 2, 1),
        ("twelve", 12, 6, 3, 3),
        ("uneven", 5, 4, 2, 2),
    ]


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
    assert [(t.topic, t.maximum, t.on, t.ideal) for t in skew.topics] == [("worse", 8, 3, 2), ("bad", 4, 2, 1)]
    assert sum(b.partitions for b in skew.brokers) == 17


def test_unknown_sizes_are_counted_and_weigh_nothing() -> None:
    """What no broker said is not zero bytes in silence."""
    rows = [row("t", 0, (1, 2), None), row("t", 1, (2, 1), 7), row("t", 2, (3, 1), None)]
    state = build("c", BROKERS, (Topic("t"),), rows)
    assert partition_bytes(state).tolist() == [-1, 7, -1]
    skew = preferred_skew(state)
    assert skew.unknown_sizes == 2
    assert [b.size_bytes for b in skew.brokers] == [0, 7, 0, 0, 0]


def test_replica_list_changes_repair_the_skew() -> None:
    """After the moves the first replicas are balanced, and every partition has the brokers it had."""
    state = build("c", BROKERS, (Topic("t"),), [row("t", i, (1, 2, 3)) for i in range(9)])
    new = {m.name: m.new for m in reorder_moves(state, balance_counts(choices(state)))}
    after = build("c", BROKERS, (Topic("t"),), [row("t", i, new.get(state.name(i), (1, 2, 3))) for i in range(9)])
    assert [b.partitions for b in preferred_skew(after).brokers] == [3, 3, 3, 0, 0]
    assert all(sorted(after.target(i)) == [1, 2, 3] for i in range(9))


def test_the_only_alive_broker_must_lead_all() -> None:
    """What leads beside it is down, so that no fewer would be possible."""
    rows = [row("t", 0, (2, 1)), row("t", 1, (2, 1)), row("t", 2, (1, 2)), row("t", 3, (2, 1))]
    down = build("c", (Broker(1), Broker(2, alive=False)), (Topic("t"),), rows)
    assert preferred_skew(down).topics == ()
    both = build("c", (Broker(1), Broker(2)), (Topic("t"),), rows)
    assert [(t.maximum, t.ideal) for t in preferred_skew(both).topics] == [(3, 2)]


def test_nothing_to_measure() -> None:
    """An empty cluster has no skew and divides by nothing."""
    skew = preferred_skew(build("c", (), (), []))
    assert (skew.brokers, skew.racks, skew.topics) == ((), (), ())
    only = preferred_skew(build("c", (Broker(1, "a"),), (), []))
    assert only.brokers[0].partitions_ratio == pytest.approx(0.0)

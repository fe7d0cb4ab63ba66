"""Between two full readings sizes and configs are carried over, replica by replica."""

from __future__ import annotations

import numpy as np

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, PartitionRow, Topic, build
from ballast.daemon.observing.observe import carry_over


def picture(rows: list[PartitionRow], *, ids: dict[str, str] | None = None) -> ClusterState:
    """Brokers 1 to 4 and the topics of these rows, in the order of their names as brokers tell them."""
    names = sorted({r.topic for r in rows})
    topics = tuple(Topic(n, topic_id=(ids or {}).get(n, f"id-{n}")) for n in names)
    return build("c", tuple(Broker(b, host=f"b{b}") for b in range(1, 5)), topics, rows)


def row(topic: str, number: int, replicas: tuple[int, ...], sizes: tuple[int, ...] = ()) -> PartitionRow:
    """With sizes as a full reading has them, or without."""
    return PartitionRow(topic, number, replicas[0], replicas, replicas, sizes=sizes or (UNKNOWN,) * len(replicas))


def sizes(state: ClusterState) -> dict[tuple[str, int, int], int]:
    """Topic, partition and broker to size."""
    p = state.partitions
    of = np.repeat(np.arange(len(p)), np.diff(p.start))
    return {
        (state.topics[p.topic[r]].name, int(p.number[r]), int(b)): int(s)
        for r, b, s in zip(of, p.replica, p.size_bytes, strict=True)
    }


FULL = picture([row("b", 0, (1, 2), (10, 11)), row("b", 1, (2, 3), (20, 21)), row("d", 0, (3, 1), (30, 31))])


def test_the_same_layout_keeps_every_size() -> None:
    """Also where only the order of a replica list has changed."""
    lean = picture([row("b", 0, (2, 1)), row("b", 1, (2, 3)), row("d", 0, (3, 1))])
    assert sizes(carry_over(FULL, lean)) == sizes(FULL)


def test_new_topics_and_moves_make_only_their_own_sizes_unknown() -> None:
    """A topic is made before and after the known ones, one is expanded, a replica moves; the rest is as it was."""
    lean = picture(
        [row("a", 0, (1, 2)), row("b", 0, (1, 4)), row("b", 1, (2, 3)), row("b", 2, (1, 2)), row("d", 0, (3, 1)), row("e", 0, (4, 1))]
    )  # fmt: skip
    found = sizes(carry_over(FULL, lean))
    assert {k: v for k, v in found.items() if v != UNKNOWN} == {
        ("b", 0, 1): 10, ("b", 1, 2): 20, ("b", 1, 3): 21, ("d", 0, 3): 30, ("d", 0, 1): 31,
    }  # fmt: skip
    assert len(found) == 12


def test_a_topic_that_was_made_again_is_another_one() -> None:
    """Its name is the same and its data is not."""
    lean = picture([row("b", 0, (1, 2)), row("b", 1, (2, 3)), row("d", 0, (3, 1))], ids={"d": "id-new"})
    found = sizes(carry_over(FULL, lean))
    assert {k[0] for k, v in found.items() if v == UNKNOWN} == {"d"}


def test_nothing_before_and_nothing_now_are_no_trouble() -> None:
    """The first topics of a cluster, and the last ones gone."""
    empty = picture([])
    assert set(sizes(carry_over(empty, FULL)).values()) == set(sizes(FULL).values())
    assert sizes(carry_over(FULL, empty)) == {}

"""A plan's fingerprint tells assignments apart, and its topic ids tell a topic from another one of its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Move, Plan
from ballast.core.plan.fingerprint import find_recreated, fingerprint, with_topic_ids


def row(topic: str, number: int, *replicas: int) -> PartitionRow:
    """A partition that its first replica leads, all of them in sync."""
    return PartitionRow(topic, number, replicas[0], replicas, replicas, sizes=(5,) * len(replicas))


ROWS = [row("a", 0, 1, 2), row("a", 1, 2, 3), row("b", 0, 3)]


def picture(rows: Sequence[PartitionRow] = tuple(ROWS), *, cluster: str = "c", **ids: str | None) -> ClusterState:
    """Three brokers and these topics, with the ids that are given or those of before."""
    topics = [Topic(n, topic_id=ids.get(n, f"id-{n}")) for n in sorted({r.topic for r in rows})]
    return build(cluster, tuple(Broker(b) for b in (1, 2, 3, 4)), tuple(topics), list(rows))


def test_every_other_assignment_has_another_fingerprint() -> None:
    """Another cluster, topic, partition, broker or order of brokers; the bounds between replica lists count too."""
    others = [
        picture(cluster="d"),
        picture([row("a", 0, 1, 2), row("a", 1, 2, 3), row("c", 0, 3)]),
        picture([row("a", 0, 1, 2), row("a", 2, 2, 3), row("b", 0, 3)]),
        picture([row("a", 0, 1, 2), row("b", 1, 2, 3), row("b", 0, 3)]),
        picture([row("a", 0, 1, 4), row("a", 1, 2, 3), row("b", 0, 3)]),
        picture([row("a", 0, 2, 1), row("a", 1, 2, 3), row("b", 0, 3)]),
        picture([row("a", 0, 1), row("a", 1, 2, 3), row("b", 0, 4)]),
        picture([row("a", 0, 1, 2), row("a", 1, 3), row("b", 0, 4)]),
        picture(ROWS[:2]),
        picture([]),
        picture([], cluster="d"),
    ]
    assert len({fingerprint(state) for state in [picture(), *others]}) == 1 + len(others)


def test_a_plan_of_an_earlier_version_fits_the_assignment_that_it_was_made_from() -> None:
    """The hash of an assignment stays as it is."""
    assert fingerprint(picture()) == "sha256:abac254f2b87f0e579bfd18e7a66656b"


def test_leaders_isrs_and_sizes_do_not_count() -> None:
    """They change by themselves; a plan is as good as before."""
    drifted = [replace(r, leader=r.replicas[-1], isr=r.replicas[-1:], sizes=(9,) * len(r.replicas)) for r in ROWS]
    assert fingerprint(picture(drifted)) == fingerprint(picture())


def test_a_move_in_flight_counts_as_done() -> None:
    """What is being removed is no part of the assignment any more."""
    moving = replace(ROWS[0], replicas=(4, 1, 2), adding=(4,), removing=(2,))
    assert fingerprint(picture([moving, *ROWS[1:]])) == fingerprint(picture([row("a", 0, 4, 1), *ROWS[1:]]))


PLAN = Plan(
    intent="balance",
    cluster_id="c",
    fingerprint="f",
    moves=(Move("a", 0, (1, 2), (1, 3), size_bytes=5),),
    elections=(TopicPartition("b", 0),),
)


def test_a_plan_knows_the_ids_of_the_topics_that_it_moves_or_elects_leaders_of() -> None:
    """And of no others; a cluster without ids has none to tell."""
    state = picture([*ROWS, row("z", 0, 1)])
    assert with_topic_ids(PLAN, state).topic_ids == {"a": "id-a", "b": "id-b"}
    assert with_topic_ids(PLAN, picture(a=None)).topic_ids == {"b": "id-b"}
    assert with_topic_ids(PLAN, picture(ROWS[:2])).topic_ids == {"a": "id-a"}


def test_a_topic_is_made_again_when_its_name_has_another_id() -> None:
    """Not when it is gone, nor where the cluster tells no id now."""
    made = with_topic_ids(PLAN, picture())
    assert find_recreated(made, picture()) == {}
    assert find_recreated(made, picture(b="id-new")) == {"b": ("id-b", "id-new")}
    assert find_recreated(made, picture(ROWS[:2])) == {}
    assert find_recreated(made, picture(b=None)) == {}

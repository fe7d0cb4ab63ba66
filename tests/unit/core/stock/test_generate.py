"""Which placement a cluster would use, and what ``--generate`` and ``--list`` say."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.placement import IncompleteRacks, InvalidReplicationFactor, assign_replicas, expand_replicas
from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.kraft import place_kraft
from ballast.core.placement.placer import (
    Algorithm,
    controllers_algorithm,
    expand,
    place,
    tool_shows_log_dirs,
    tools_algorithm,
)
from ballast.core.stock.generate import GeneratedAssignment, describe_moves, propose


def cluster(
    version: str | None = "4.3", api: frozenset[str] = frozenset({"kraft"}), *, rows: list[PartitionRow] | None = None
) -> ClusterState:
    """Brokers 1 to 4 in two racks with a log dir each; 4 is down, 3 is cordoned."""
    dirs = {b: (LogDir(f"/d{b}", cordoned=b == 3),) for b in (1, 2, 3, 4)}
    brokers = tuple(Broker(b, "ab"[b % 2], alive=b != 4, log_dirs=dirs[b], log_dirs_known=True) for b in (1, 2, 3, 4))
    some = [PartitionRow("t", i, 1, (1, 2), (1, 2), log_dirs=(0, -1)) for i in range(4)]
    rows = some if rows is None else rows
    return build("c", brokers, tuple(Topic(n) for n in {r.topic for r in rows}), rows, api=api, kafka_version=version)


@pytest.mark.parametrize(
    ("version", "controller", "tool", "dirs"),
    [
        ("2.3", "classic", "classic", False),
        ("3.9", "kraft", "classic", False),
        ("4.0", "kraft", "classic", False),
        ("4.1", "kraft", "kraft", False),
        ("4.2", "kraft", "kraft", True),
        ("4.10", "kraft", "kraft", True),
        (None, "kraft", "kraft", False),
    ],
)
def test_the_algorithm_follows_the_cluster(version: str | None, controller: str, tool: str, *, dirs: bool) -> None:
    """Controllers by who keeps the metadata, the stock tool by version; so does what the tool shows."""
    state = cluster(version, frozenset({"zookeeper" if controller == "classic" else "kraft"}))
    assert controllers_algorithm(state) == controller
    assert tools_algorithm(state) == tool
    assert tool_shows_log_dirs(state) is dirs


def test_one_call_for_both() -> None:
    """``place`` and ``expand`` are the two algorithms and nothing of their own."""
    brokers = [Broker(i, "abc"[i % 3]) for i in range(6)]
    assert place("classic", brokers, 9, 3, JavaRandom(5)) == assign_replicas(brokers, 9, 3, rng=JavaRandom(5))
    assert place("kraft", brokers, 9, 3, JavaRandom(5)) == place_kraft(brokers, 9, 3, JavaRandom(5))
    existing = {0: (3, 1), 1: (1, 2)}
    assert expand("classic", brokers, existing, 6, JavaRandom(5)) == expand_replicas(brokers, existing, 6)
    assert list(expand("kraft", brokers, existing, 6, JavaRandom(5))) == [2, 3, 4, 5]
    assert {len(r) for r in expand("kraft", brokers, existing, 6, JavaRandom(5)).values()} == {2}


def test_the_kraft_placer_takes_racks_as_told() -> None:
    """As the controller does, brokers without a rack are one rack more; the stock tool refuses such a mixture."""
    mixed = [Broker(0, "a"), Broker(1), Broker(2), Broker(3, "a")]
    placed = place_kraft(mixed, 8, 2, JavaRandom(3))
    assert all({0, 3} & set(r) and {1, 2} & set(r) for r in placed.values())
    with pytest.raises(IncompleteRacks):
        place_kraft(mixed, 8, 2, JavaRandom(3), rack_aware="enforced")
    bare = [Broker(i) for i in range(4)]
    for mode in ("safe", "disabled"):
        found = place_kraft(mixed, 8, 2, JavaRandom(3), rack_aware=mode)
        assert found == place_kraft(bare, 8, 2, JavaRandom(3))


def test_fenced_brokers_come_last_and_never_first() -> None:
    """A fenced broker is used only when no other is left."""
    brokers = [Broker(i) for i in range(4)]
    fenced = frozenset({1, 2})
    assert all(not set(r) & fenced for r in place_kraft(brokers, 9, 2, JavaRandom(1), fenced=fenced).values())
    three = place_kraft(brokers, 9, 3, JavaRandom(1), fenced=fenced)
    assert all(r[0] not in fenced and set(r[:2]) == {0, 3} for r in three.values())


def test_proposal_leaves_out_who_cannot_take_replicas() -> None:
    """Down and cordoned brokers are named on the side; too few that are left is Kafka's own refusal."""
    state = cluster()
    with pytest.raises(InvalidReplicationFactor):
        propose(state, ["t"], [1, 3, 4], algorithm="kraft", rng=JavaRandom(1))
    found = propose(state, ["t"], [1, 2, 3, 4, 9], algorithm="kraft", rng=JavaRandom(1))
    assert {b for r in found.proposed.values() for b in r} == {1, 2}
    assert found.warnings == (
        "Not alive and excluded, as kafka-reassign-partitions does: broker 4, 9.",
        "Cordoned and left out, since they take no replicas: broker 3.",
    )


def test_drained_brokers_are_left_out_and_named() -> None:
    """Each broker by what it is: down, cordoned, drained, in this order."""
    dirs = (LogDir("/d", cordoned=True),)
    brokers = (
        Broker(0),
        Broker(1),
        Broker(2),
        Broker(3, log_dirs=dirs),
        Broker(4, log_dirs=dirs),
        Broker(5, alive=False),
    )
    state = build("c", brokers, (Topic("t"),), [PartitionRow("t", 0, 1, (1,), (1,))])
    found = propose(state, ["t"], [0, 1, 2, 3, 4, 5], algorithm="kraft", rng=JavaRandom(1), drained={1, 2, 3, 5, 7})
    assert set(found.proposed.values()) == {(0,)}
    assert found.warnings == (
        "Not alive and excluded, as kafka-reassign-partitions does: broker 5.",
        "Cordoned and left out, since they take no replicas: broker 3, 4.",
        "Drained and left out: broker 1, 2.",
    )


def test_every_partition_of_every_topic_is_placed() -> None:
    """One topic after the other with one generator; other topics of the cluster are left alone."""
    rows = [PartitionRow(topic, n, 1, (1,), (1,), log_dirs=(0,)) for topic in "tx" for n in range(2)]
    state = cluster(rows=[*rows[:2], PartitionRow("u", 0, 2, (2,), (2,), log_dirs=(0,)), *rows[2:]])
    rng = JavaRandom(1)
    placed = {topic: place("classic", [b for b in state.brokers if b.id in {1, 2}], 2, 1, rng) for topic in "xt"}
    found = propose(state, ["x", "t"], [1, 2], algorithm="classic", rng=JavaRandom(1))
    assert found.proposed == {TopicPartition(topic, n): placed[topic][n] for topic in "xt" for n in range(2)}
    assert found.current == {TopicPartition(topic, n): (1,) for topic in "xt" for n in range(2)}
    assert found.log_dirs == {(TopicPartition(topic, n), 1): "/d1" for topic in "xt" for n in range(2)}


@pytest.mark.parametrize("algorithm", ["classic", "kraft"])
def test_the_proposal_is_that_of_the_algorithm_asked_for(algorithm: Algorithm) -> None:
    """With racks or without, as told; racks are heeded unless told otherwise."""
    brokers = tuple(Broker(b, "ab"[b > 3]) for b in range(1, 7))
    state = build("c", brokers, (Topic("t"),), [PartitionRow("t", n, 1, (1, 2), (1, 2)) for n in range(9)])
    rack_of = {b.id: b.rack for b in brokers}

    def proposed(found: GeneratedAssignment) -> dict[int, tuple[int, ...]]:
        return {name.partition: replicas for name, replicas in found.proposed.items()}

    heeding = proposed(propose(state, ["t"], [*rack_of], algorithm=algorithm, rng=JavaRandom(1)))
    ignoring = proposed(
        propose(state, ["t"], [*rack_of], algorithm=algorithm, rng=JavaRandom(1), rack_aware="disabled")
    )
    assert heeding == place(algorithm, brokers, 9, 2, JavaRandom(1), rack_aware="enforced")
    assert ignoring == place(algorithm, brokers, 9, 2, JavaRandom(1), rack_aware="disabled")
    assert all(rack_of[a] != rack_of[b] for a, b in heeding.values())
    assert any(rack_of[a] == rack_of[b] for a, b in ignoring.values())


def test_present_log_dirs_are_shown_where_the_stock_tool_shows_them() -> None:
    """Since 4.2, and ``any`` where the broker did not say."""
    new = propose(cluster("4.3"), ["t"], [1, 2], algorithm="kraft", rng=JavaRandom(1))
    assert '"replicas":[1,2],"log_dirs":["/d1","any"]' in str(new).splitlines()[1]
    old = propose(cluster("4.1"), ["t"], [1, 2], algorithm="kraft", rng=JavaRandom(1))
    assert "/d1" not in str(old)


def test_a_move_in_flight_is_shown_as_it_will_be() -> None:
    """Rolled back to the union of old and new the partition would grow."""
    moving = [PartitionRow("t", n, 1, (1, 2, 3), (1, 2), adding=(3,), removing=(2,)) for n in range(2)]
    other = PartitionRow("u", 0, 1, (1, 2), (1, 2), removing=(2,))
    found = propose(cluster(rows=[*moving, other]), ["t"], [1, 2], algorithm="kraft", rng=JavaRandom(1))
    assert found.current == {TopicPartition("t", 0): (1, 3), TopicPartition("t", 1): (1, 3)}
    assert found.warnings == ("In mid-move and shown as they will be: t-0, t-1.",)


def test_unequal_replica_counts_are_named() -> None:
    """The stock tool takes whichever partition its map yields first; here it is partition 0."""
    rows = [PartitionRow("t", 0, 1, (1,), (1,)), PartitionRow("t", 1, 1, (1, 2), (1, 2))]
    found = propose(cluster(rows=rows), ["t"], [1, 2], algorithm="kraft", rng=JavaRandom(1))
    assert {len(r) for r in found.proposed.values()} == {1}
    assert "The partitions of t differ in replica count; all get the 1 of the first." in found.warnings


def test_topics_do_not_all_start_on_the_same_broker() -> None:
    """Neighbouring seeds would; one generator for all does not."""
    brokers = [Broker(i) for i in range(8)]
    rng = JavaRandom(1)
    assert len({place("classic", brokers, 1, 1, rng)[0] for _ in range(40)}) == 8
    assert len({place("classic", brokers, 1, 1, JavaRandom(seed))[0] for seed in range(40)}) < 3


def test_list_text() -> None:
    """One line each, by topic and number; adding and removing only where there is something."""
    moves = {
        TopicPartition("b", 0): ((1, 2), (2,), ()),
        TopicPartition("a", 10): ((3, 1), (3,), (1,)),
        TopicPartition("a", 9): ((3, 1), (), (1,)),
    }
    assert describe_moves(moves).splitlines() == [
        "Current partition reassignments:",
        "a-9: replicas: 3,1. removing: 1.",
        "a-10: replicas: 3,1. adding: 3. removing: 1.",
        "b-0: replicas: 1,2. adding: 2.",
    ]
    assert describe_moves({}) == "No partition reassignments found."


racked = st.lists(
    st.tuples(st.integers(0, 500), st.sampled_from("abcde")), min_size=1, max_size=12, unique_by=lambda b: b[0]
)


@given(racked, st.integers(1, 40), st.integers(1, 6), st.integers(0, 1 << 47))
def test_kraft_invariants(rows: list[tuple[int, str]], partitions: int, factor: int, seed: int) -> None:
    """No broker twice, racks as spread as can be, and racks lead the same number of partitions to within one a round."""
    brokers = [Broker(i, rack) for i, rack in rows]
    racks = dict(rows)
    factor = min(factor, len(brokers))
    placed = place_kraft(brokers, partitions, factor, JavaRandom(seed))
    assert list(placed) == list(range(partitions))
    for replicas in placed.values():
        assert len(set(replicas)) == len(replicas) == factor
        assert len({racks[b] for b in replicas}) == min(factor, len(set(racks.values())))
    first_round = list(placed.values())[: len(brokers)]
    leaders = Counter(dict.fromkeys(racks.values(), 0))
    leaders.update(racks[r[0]] for r in first_round)
    assert max(leaders.values()) - min(leaders.values()) <= 1

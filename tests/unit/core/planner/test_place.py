"""Kafka's own placement as a plan: the lists that the algorithm gives, what they cost, and what cannot be had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.placement import assign_replicas
from ballast.core.placement.colocation import colocation
from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.placer import place
from ballast.core.plan.file import dumps, loads
from ballast.core.planner import Balance, Place, PlannerPolicy, Selection, TopicRule, plan
from ballast.core.planner.checker.checker import check
from ballast.core.planner.loads import Loads
from ballast.core.planner.place import kafka_placement_intent
from ballast.core.planner.request import load_request
from ballast.errors import BallastError, NoPlanFound, UsageError

GIB = 1 << 30
T = Selection(topics="t")


def cluster(
    lists: dict[int, tuple[int, ...]],
    *,
    brokers: int = 5,
    racks: int = 0,
    size: int = GIB,
    down: tuple[int, ...] = (),
) -> ClusterState:
    """Topic ``t`` with these lists, and ``other`` on broker 0."""
    members = tuple(
        Broker(
            i,
            host=f"b{i}",
            alive=i not in down,
            rack=f"r{i % racks}" if racks else None,
        )
        for i in range(brokers)
    )
    rows = [PartitionRow("t", p, r[0], r, r, sizes=(size,) * len(r)) for p, r in lists.items()]
    rows.append(PartitionRow("other", 0, 0, (0,), (0,), sizes=(size,)))
    return build("c", members, (Topic("t"), Topic("other")), rows)


NAIVE = {i: tuple((i + j) % 5 for j in range(3)) for i in range(10)}


def placed(made_of: ClusterState, made: object) -> dict[int, tuple[int, ...]]:
    """The lists of ``t`` when every move is made."""
    new = {m.name: m.new for m in made.moves}  # type: ignore[attr-defined]
    rows = [row for row in range(len(made_of.partitions)) if made_of.name(row).topic == "t"]
    return {made_of.name(row).partition: new.get(made_of.name(row), made_of.target(row)) for row in rows}


def test_the_worked_example_comes_out_list_by_list() -> None:
    """Ten partitions of three on five brokers, start 0, shift 0: the table of the classic algorithm."""
    state = cluster(NAIVE)
    made = plan(state, Place(selection=T, start=0, shift=0))
    assert placed(state, made) == {
        0: (0, 1, 2), 1: (1, 2, 3), 2: (2, 3, 4), 3: (3, 4, 0), 4: (4, 0, 1),
        5: (0, 2, 3), 6: (1, 3, 4), 7: (2, 4, 0), 8: (3, 0, 1), 9: (4, 1, 2),
    }  # fmt: skip
    assert {m.partition for m in made.moves} == {5, 6, 7, 8, 9}, "the first round is the naive one already"
    assert {m.reason.code for m in made.moves} == {"placement"}
    assert made.bytes_moved == 5 * GIB
    assert made.bound_bytes is not None
    assert made.bound_bytes <= made.bytes_moved
    assert made.status == "meets-all-goals"


def test_other_algorithms_racks_brokers_and_counts() -> None:
    """Striped from a seed, racks, some brokers only, another replica count: each as the algorithm says."""
    state = cluster(NAIVE, brokers=6, racks=3)
    usable = list(state.brokers)
    classic = plan(state, Place(selection=T, start=3, shift=0))
    assert placed(state, classic) == assign_replicas(usable, 10, 3, start_index=3, replica_shift=0)
    kraft = plan(state, Place(selection=T, algorithm="kraft"), seed=7)
    assert placed(state, kraft) == place("kraft", usable, 10, 3, JavaRandom(7))
    drawn = plan(state, Place(selection=T), seed=7)
    assert placed(state, drawn) == assign_replicas(usable, 10, 3, rng=JavaRandom(7))
    some = plan(state, Place(selection=Selection(topics="t", brokers="[0-3]"), start=1, replication_factor=2))
    assert placed(state, some) == assign_replicas(usable[:4], 10, 2, start_index=1)
    assert some.allow_replication_factor_change
    more = plan(state, Place(selection=T, start=0, replication_factor=4))
    assert placed(state, more) == assign_replicas(usable, 10, 4, start_index=0)


def test_what_balancing_would_have_moved_instead_and_how_losses_fare() -> None:
    """The plan carries both beside it, and the naive layout with them."""
    state = cluster(NAIVE)
    made = plan(state, Place(selection=T, start=0, shift=0))
    instead = plan(state, Balance(selection=T), policy=PlannerPolicy(prove=False))
    assert made.summary["instead"]["bytes_moved"] == instead.bytes_moved
    figures = made.summary["placement"]
    assert figures["now"] == figures["naive"] == colocation(list(NAIVE.values()), range(5)).as_json()
    assert figures["placed"]["different_sets"] == 10
    assert figures["naive"]["different_sets"] == 5
    assert figures["naive"]["min_brokers_taking_over"] == 1, "one neighbour takes all that a down broker led"
    assert figures["placed"]["min_brokers_taking_over"] == 2
    assert loads(dumps(made), source="plan") == replace(made, created_at_ms=made.created_at_ms)


def test_co_location_counts_pairs_and_heirs() -> None:
    """By hand: two lists share brokers 1 and 2, each broker leads one."""
    found = colocation([(1, 2), (2, 1), (3, 1)], [1, 2, 3])
    assert (
        found.max_partitions_shared_by_pair,
        found.different_sets,
        found.max_leaders_taken_over,
        found.min_brokers_taking_over,
    ) == (2, 2, 1, 1)
    assert found.mean_partitions_shared_by_pair == 1.0
    assert colocation([(1,)], [1, 2]).preferred_leaders_min == 0


def test_naive_has_no_start_and_is_refused_where_it_breaks_racks() -> None:
    """On racks that its neighbours share it would put replicas together, which no plan does."""
    with pytest.raises(UsageError):
        Place(selection=T, algorithm="naive", start=1)
    assert not plan(cluster(NAIVE), Place(selection=T, algorithm="naive")).moves
    spread = assign_replicas([Broker(i, rack=f"r{i // 2}") for i in range(6)], 6, 3, start_index=0)
    members = tuple(Broker(i, host="h", rack=f"r{i // 2}") for i in range(6))
    rows = [PartitionRow("t", p, r[0], r, r) for p, r in spread.items()]
    with pytest.raises(NoPlanFound, match="rack"):
        plan(build("c", members, (Topic("t"),), rows), Place(selection=T, algorithm="naive"))


@pytest.mark.slow
def test_a_topic_that_kafka_placed_stays_whatever_it_has_drawn() -> None:
    """With partition 0's own start and shift nothing moves; one list that was changed goes back alone."""
    for racks in (0, 3):
        members = [Broker(i, rack=f"r{i % racks}" if racks else None) for i in range(6)]
        for start in range(6):
            for shift in range(5):
                lists = assign_replicas(members, 9, 3, start_index=start, replica_shift=shift)
                state = cluster(lists, brokers=6, racks=racks)
                assert plan(state, Place(selection=T, as_partition_0=True)).is_empty
    lists[4] = tuple(reversed(lists[4]))
    made = plan(cluster(lists, brokers=6, racks=3), Place(selection=T, as_partition_0=True))
    assert [m.partition for m in made.moves] == [4]
    assert made.bytes_moved == 0


def test_down_cordoned_and_ruled_brokers_take_no_part() -> None:
    """Lists are drawn over the brokers that may hold the topic."""
    state = cluster(NAIVE, brokers=7, down=(6,))
    policy = PlannerPolicy(cordoned=frozenset({5}), topic_rules=(TopicRule(topics="t", not_brokers=frozenset({4})),))
    made = plan(state, Place(selection=T, start=0), policy=policy)
    assert placed(state, made) == assign_replicas([Broker(i) for i in range(4)], 10, 3, start_index=0)


@pytest.mark.parametrize(
    ("intent", "policy"),
    [
        (Place(selection=Selection(topics="absent")), PlannerPolicy()),
        (Place(selection=T), PlannerPolicy(pinned_topics="t")),
        (Place(selection=T, replication_factor=9), PlannerPolicy()),
        (Place(selection=T), PlannerPolicy(topic_rules=(TopicRule(topics="t", leader_brokers=frozenset({0})),))),
    ],
)
def test_what_cannot_be_placed_is_refused(intent: Place, policy: PlannerPolicy) -> None:
    """No topic, a pinned one, too few brokers, a rule that the algorithm knows nothing of."""
    with pytest.raises(BallastError) as refused:
        plan(cluster(NAIVE), intent, policy=policy)
    assert isinstance(refused.value, UsageError | NoPlanFound)


def test_the_checker_knows_the_lists_by_itself() -> None:
    """A plan that leaves a move out, or sends one elsewhere, does not pass."""
    state = cluster(NAIVE)
    intent = Place(selection=T, start=0, shift=0)
    made = plan(state, intent)
    known = Loads.from_state(state)
    assert check(state, made, intent, loads=known, policy=PlannerPolicy()) == []
    short = replace(made, moves=made.moves[1:])
    assert "promise" in {f.code for f in check(state, short, intent, loads=known, policy=PlannerPolicy())}
    wrong = replace(made, moves=(replace(made.moves[0], new=(4, 3, 2)), *made.moves[1:]))
    assert "intent" in {f.code for f in check(state, wrong, intent, loads=known, policy=PlannerPolicy())}


def test_the_question_is_in_the_plan() -> None:
    """It can be asked again of a cluster that has changed."""
    intent = Place(selection=Selection(topics="t", brokers="[0-3]"), start=1, shift=2, replication_factor=2)
    made = plan(cluster(NAIVE), intent, seed=5)
    assert load_request(made.request) == (intent, PlannerPolicy(), 5)
    assert TopicPartition("other", 0) not in {m.name for m in made.moves}


def test_topics_that_follow_kafka_are_repaired_and_left_alone_by_balancing() -> None:
    """The rule closes them for balancing, and names what the daemon's repair asks for."""
    state = cluster(dict.fromkeys(range(10), (0, 1, 2)))
    policy = PlannerPolicy(topic_rules=(TopicRule(topics="t", kafka_placement=True),))
    assert "t" not in {m.topic for m in plan(state, Balance(), policy=policy).moves}
    assert "t" in {m.topic for m in plan(state, Balance()).moves}
    wanted, refusals = kafka_placement_intent(state, policy)
    assert wanted is not None
    assert not refusals
    made = plan(state, wanted, policy=policy)
    assert placed(state, made) == assign_replicas([Broker(i) for i in range(5)], 10, 3, start_index=0, replica_shift=0)
    repaired = cluster(placed(state, made))
    assert plan(repaired, wanted, policy=policy).is_empty
    assert kafka_placement_intent(state, PlannerPolicy()) == (None, ())


UNLIKE = {0: (0, 1), 1: (1, 2, 3), 2: (2, 3, 4)}


def test_unlike_replica_counts_are_refused_until_one_is_named() -> None:
    """No replica is added or taken away that the user did not ask for."""
    with pytest.raises(UsageError) as refused:
        plan(cluster(UNLIKE), Place(selection=T, start=0))
    assert "--replication-factor" in (refused.value.hint or "")
    made = plan(cluster(UNLIKE), Place(selection=T, start=0, replication_factor=3))
    assert placed(cluster(UNLIKE), made) == assign_replicas([Broker(i) for i in range(5)], 3, 3, start_index=0)


@pytest.mark.parametrize(
    ("lists", "beside"),
    [
        (UNLIKE, ()),
        ({0: (0, 1), 2: (1, 2)}, ()),
        (NAIVE, (TopicRule(topics="t", leader_brokers=frozenset({0})),)),
    ],
    ids=["counts", "gap", "rule"],
)
def test_a_topic_that_cannot_follow_kafka_does_not_block_the_others(
    lists: dict[int, tuple[int, ...]], beside: tuple[TopicRule, ...]
) -> None:
    """It is left out and named."""
    policy = PlannerPolicy(topic_rules=(TopicRule(topics=".*", kafka_placement=True), *beside))
    wanted, refusals = kafka_placement_intent(cluster(lists), policy)
    assert wanted is not None
    assert wanted.selection.topic("other")
    assert not wanted.selection.topic("t")
    assert len(refusals) == 1
    assert plan(cluster(lists), wanted, policy=policy).is_empty

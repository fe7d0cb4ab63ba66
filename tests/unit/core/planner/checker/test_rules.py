"""The rules by which the checker judges moves, elections and the status: each with what breaks it and what just keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Move, Obstacle, Plan
from ballast.core.planner import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Loads,
    PlannerPolicy,
    Racks,
    ReplaceBroker,
    Selection,
    TopicRule,
)
from ballast.core.planner.checker.checker import NAMED, check, demand_possible, demand_sound
from ballast.core.planner.intents import Place
from ballast.core.planner.place import kafka_placements
from ballast.core.planner.policy import Capacity
from ballast.errors import NoPlanFound, PlanRejected

POLICY: Final = PlannerPolicy(prove=False)
BALANCE: Final = Balance()
FIGURES: Final = frozenset({"sum", "bound", "band", "regression"})
"""Codes of findings about figures, which the second half of the checker counts."""
DISK: Final = LogDir("/d", 10_000, 5_000)
LISTS: Final = {"t": ((1, 2), (2, 3), (3, 1)), "u": ((4, 5), (1, 4), (1, 2, 4)), "v": ((1, 2),)}
"""Two of ``u`` share a rack."""


def cluster(
    *,
    down: tuple[int, ...] = (),
    racks: str = "abcabc",
    dirs: Mapping[int, tuple[LogDir, ...]] | None = None,
    topics: dict[str, dict[str, Any]] | None = None,
    rows: dict[tuple[str, int], dict[str, Any]] | None = None,
    version: str | None = None,
) -> ClusterState:
    """Brokers 1 to 6 in racks a, b, c, a, b, c, with partitions of 100 bytes; broker 6 is empty."""
    brokers = tuple(
        Broker(
            b,
            rack=rack if rack != "-" else None,
            alive=b not in down,
            log_dirs=(dirs or {}).get(b, (DISK,)),
            log_dirs_known=True,
        )
        for b, rack in enumerate(racks, 1)
    )
    found = []
    for topic, lists in LISTS.items():
        for n, members in enumerate(lists):
            alive = tuple(b for b in members if b not in down)
            row = PartitionRow(topic, n, alive[0] if alive else -1, members, alive, sizes=(100,) * len(members))
            found.append(replace(row, **(rows or {}).get((topic, n), {})))
    told = tuple(Topic(t, **(topics or {}).get(t, {})) for t in LISTS)
    return build("c", brokers, told, found, kafka_version=version)


def move(name: str, *new: int, old: tuple[int, ...] | None = None, **known: Any) -> Move:
    """A move of this partition from where it is."""
    topic, number = name.split("-")
    return Move(topic, int(number), old or LISTS[topic][int(number)], new, 100, **known)


def plan_of(*moves: Move, **known: Any) -> Plan:
    """A plan of these moves that calls itself done."""
    return Plan("test", "c", "", moves, **{"status": "meets-all-goals" if moves else "nothing-to-do", **known})


def found(
    *moves: Move,
    intent: Intent = BALANCE,
    policy: PlannerPolicy = POLICY,
    state: ClusterState | None = None,
    **known: Any,
) -> list[tuple[str, str]]:
    """Code and subject of each broken rule, apart from those of figures."""
    state = state or cluster()
    told = check(state, plan_of(*moves, **known), intent, loads=Loads.from_state(state), policy=policy)
    return [(f.code, f.subject) for f in told if f.code not in FIGURES]


BROKEN = LogDir("/d", 10_000, 5_000, error="KAFKA_STORAGE_ERROR")
CORDONED = LogDir("/d", 10_000, 5_000, cordoned=True)
T0 = move("t-0", 4, 2)
ADMITTED: Final[dict[str, Any]] = {
    "status": "misses-some-goals",
    "obstacles": (Obstacle("other", "the plan", "a reason"),),
}


@pytest.mark.parametrize(
    ("moves", "codes"),
    [
        pytest.param((T0,), [], id="sound"),
        pytest.param((T0, move("t-0", 4, 5)), ["repeat"], id="twice"),
        pytest.param((T0, move("u-0", 4, 2)), [], id="another-topic-of-that-number"),
        pytest.param((Move("t", 9, (1, 2), (4, 2), 100),), ["stale"], id="unknown"),
        pytest.param((move("t-0", 2, 4, old=(2, 1)),), ["stale"], id="other-order-before"),
        pytest.param((move("t-0", 1, 2),), ["intent"], id="no-change"),
        pytest.param((move("t-0"),), ["intent", "factor"], id="no-replica"),
        pytest.param((move("t-0", 1, 1),), ["duplicate", "rack", "rack"], id="twice-on-a-broker"),
        pytest.param((move("t-0", 1, 7),), ["down"], id="unknown-broker"),
        pytest.param((move("t-0", 1),), ["factor"], id="a-replica-fewer"),
        pytest.param((move("t-0", 1, 2, 3),), ["factor"], id="a-replica-more"),
        pytest.param((move("t-0", 1, 4),), ["rack", "rack"], id="two-in-a-rack"),
        pytest.param((move("u-1", 1, 5),), [], id="out-of-a-shared-rack"),
        pytest.param((move("u-1", 4, 1),), [], id="stays-in-a-shared-rack"),
        pytest.param((move("u-2", 1, 3, 4),), [], id="as-crowded-as-before"),
        pytest.param((move("u-2", 1, 2, 5),), ["rack"], id="another-rack-crowded"),
    ],
)
def test_a_move_keeps_to_the_cluster_and_its_racks(moves: tuple[Move, ...], codes: list[str]) -> None:
    """Each finding names the partition of the last move."""
    assert found(*moves) == [(code, str(moves[-1].name)) for code in codes]


@pytest.mark.parametrize(
    ("paths", "codes"),
    [
        pytest.param(("/d", "/d"), [], id="there"),
        pytest.param(("any", "any"), [], id="any"),
        pytest.param(("any",), ["log-dirs"], id="one-too-few"),
        pytest.param(("/d", "/d", "any"), ["log-dirs"], id="one-too-many"),
        pytest.param(("/x", "any"), ["log-dirs"], id="not-there"),
        pytest.param(("any", "/other"), ["log-dirs"], id="failed"),
        pytest.param(("/other", "any"), ["log-dirs"], id="cordoned"),
        pytest.param(("/x", "/other"), ["log-dirs"] * 2, id="each-is-told"),
    ],
)
def test_a_named_log_dir_is_there_and_takes_replicas(paths: tuple[str, ...], codes: list[str]) -> None:
    """Of each broker that the move names one for."""
    dirs = {4: (DISK, replace(CORDONED, path="/other")), 2: (DISK, replace(BROKEN, path="/other"))}
    told = found(move("t-0", 4, 2, log_dirs=paths), state=cluster(dirs=dirs))
    assert told == [(code, "t-0") for code in codes]


def test_a_broker_that_is_not_there_has_no_log_dir() -> None:
    """Nor does it live."""
    assert found(move("t-0", 1, 7, log_dirs=("any", "/d"))) == [("log-dirs", "t-0"), ("down", "t-0")]


@pytest.mark.parametrize(
    ("known", "code"),
    [
        pytest.param({"intent": Balance(selection=Selection(topics="u"))}, "selection", id="topic-left-out"),
        pytest.param({"intent": Balance(selection=Selection(topics="t"))}, None, id="topic-chosen"),
        pytest.param({"policy": replace(POLICY, pinned_topics="t")}, "selection", id="pinned"),
        pytest.param({"policy": replace(POLICY, pinned_topics="t.+")}, None, id="pins-go-by-the-whole-name"),
        pytest.param({"state": cluster(topics={"t": {"deleting": True}})}, "selection", id="deleted"),
        pytest.param({"state": cluster(topics={"u": {"deleting": True}})}, None, id="another-topic-deleted"),
        pytest.param(
            {
                "state": cluster(
                    rows={("t", 0): {"replicas": (1, 2, 5), "adding": (5,), "removing": (5,), "sizes": None}}
                )
            },
            "selection",
            id="moving",
        ),
        pytest.param(
            {"policy": replace(POLICY, topic_rules=(TopicRule(topics="t", kafka_placement=True),))},
            "selection",
            id="placed-by-kafka",
        ),
        pytest.param(
            {"policy": replace(POLICY, topic_rules=(TopicRule(topics="u", kafka_placement=True),))},
            None,
            id="another-topic-placed-by-kafka",
        ),
        pytest.param(
            {
                "policy": replace(POLICY, topic_rules=(TopicRule(topics="t", kafka_placement=True),)),
                "intent": ReplaceBroker(old=1, new=4),
                **ADMITTED,
            },
            None,
            id="placed-by-kafka-and-asked-for",
        ),
        pytest.param({"state": cluster(topics={"t": {"min_isr": 3}})}, "selection", id="replicas-below-min-isr"),
        pytest.param({"state": cluster(topics={"t": {"min_isr": 2}})}, None, id="replicas-enough"),
        pytest.param(
            {"state": cluster(topics={"t": {"min_isr": 3}}, version="3.6")}, None, id="brokers-refuse-writes-anyway"
        ),
        pytest.param(
            {"state": cluster(topics={"t": {"min_isr": 3}}, rows={("t", 0): {"isr": (1,)}})}, None, id="out-of-sync"
        ),
        pytest.param(
            {
                "state": cluster(topics={"t": {"min_isr": 3}}),
                "policy": replace(POLICY, replicas_below_min_isr=True),
            },
            None,
            id="replicas-below-min-isr-allowed",
        ),
        pytest.param(
            {"state": cluster(topics={"t": {"min_isr": 3}}), "intent": Expand(brokers=frozenset({4}))},
            "selection",
            id="replicas-below-min-isr-of-expand",
        ),
        pytest.param(
            {"state": cluster(topics={"t": {"min_isr": 3}}), "intent": ReplaceBroker(old=1, new=4), **ADMITTED},
            None,
            id="replicas-below-min-isr-asked-for",
        ),
    ],
)
def test_what_may_not_change_stays(known: dict[str, Any], code: str | None) -> None:
    """Topics that are left out, pinned, deleted, moving or placed by Kafka, and those that a copy would stop writes to."""
    assert found(T0, **known) == ([(code, "t-0")] if code else [])


@pytest.mark.parametrize(
    ("known", "code"),
    [
        pytest.param({"policy": replace(POLICY, cordoned=frozenset({4}))}, "closed", id="cordoned-by-policy"),
        pytest.param({"state": cluster(dirs={4: (CORDONED,)})}, "closed", id="cordoned"),
        pytest.param({"policy": replace(POLICY, draining=frozenset({4})), **ADMITTED}, "closed", id="draining"),
        pytest.param({"intent": Balance(selection=Selection(exclude_brokers="4"))}, "closed", id="left-out"),
        pytest.param({"state": cluster(down=(4,)), **ADMITTED}, "down", id="down"),
        pytest.param({"policy": replace(POLICY, cordoned=frozenset({1, 2}))}, None, id="others-cordoned"),
        pytest.param({"intent": Expand(brokers=frozenset({6, 5}))}, "closed", id="no-new-broker"),
        pytest.param({"intent": ReplaceBroker(old=1, new=6), **ADMITTED}, "closed", id="not-the-broker-that-replaces"),
    ],
)
def test_a_replica_goes_only_where_replicas_are_taken(known: dict[str, Any], code: str | None) -> None:
    """By the cluster, the policy and the intent; what is there already may stay."""
    told = found(move("t-1", 2, 4), **known)
    assert [pair for pair in told if pair[0] in {"closed", "down"}] == ([(code, "t-1")] if code else [])


@pytest.mark.parametrize("intent", [Expand(brokers=frozenset({6})), ReplaceBroker(old=1, new=6)])
def test_a_new_broker_that_is_cordoned_receives_nothing(intent: Intent) -> None:
    """Though the intent names it."""
    policy = replace(POLICY, cordoned=frozenset({6}))
    assert found(move("t-0", 6, 2), intent=intent, policy=policy, **ADMITTED) == [("closed", "t-0")]


def test_a_broker_to_be_emptied_receives_nothing() -> None:
    """Nor does one whose rack is to be."""
    for intent in (Decommission(brokers=frozenset({1, 4})), Evacuate(brokers=frozenset({1}), racks=frozenset({"a"}))):
        told = found(move("t-0", 4, 2), intent=intent, **ADMITTED)
        assert told == [("closed", "t-0"), ("leader", "t-0")]
        assert found(move("t-0", 6, 2), intent=intent, **ADMITTED) == []


@pytest.mark.parametrize(
    ("known", "found_too"),
    [
        pytest.param({"intent": Balance(selection=Selection(exclude_brokers="2"))}, True, id="left-out"),
        pytest.param({"intent": Balance(selection=Selection(exclude_brokers="1"))}, False, id="another-left-out"),
        pytest.param(
            {"intent": Decommission(brokers=frozenset({2}), selection=Selection(exclude_brokers="2")), **ADMITTED},
            False,
            id="to-be-emptied",
        ),
        pytest.param(
            {"state": cluster(down=(2,)), "intent": Balance(selection=Selection(exclude_brokers="2"))},
            False,
            id="down",
        ),
    ],
)
def test_a_broker_that_the_selection_leaves_out_keeps_its_replicas(known: dict[str, Any], *, found_too: bool) -> None:
    """Unless it is down, or is what the plan is to empty."""
    assert found(move("t-0", 1, 5), **known) == ([("selection", "t-0")] if found_too else [])


@pytest.mark.parametrize(
    ("new", "known", "code"),
    [
        ((4, 2), {"policy": replace(POLICY, demoted=frozenset({4}))}, "leader"),
        ((4, 2), {"policy": replace(POLICY, demoted=frozenset({2}))}, None),
        ((1, 5), {"policy": replace(POLICY, demoted=frozenset({1, 5}))}, None),
        ((2, 1), {"policy": replace(POLICY, draining=frozenset({2})), **ADMITTED}, "leader"),
    ],
)
def test_no_move_makes_a_broker_first_that_must_not_lead(
    new: tuple[int, ...], known: dict[str, Any], code: str | None
) -> None:
    """One that is first already may stay so."""
    assert found(move("t-0", *new), **known) == ([(code, "t-0")] if code else [])


def more_sole_leaders(count: int) -> Obstacle:
    """So many partitions that the plan does not name, in words that decide nothing."""
    return Obstacle("sole-leader", "several of them", "a reason", cause="more", values={"count": count})


SHRINK: Final = ChangeReplicationFactor(to=1, selection=Selection(topics="v"))


@pytest.mark.parametrize(
    ("obstacle", "codes"),
    [
        pytest.param(Obstacle("sole-leader", "v-0", "a reason"), [], id="named"),
        pytest.param(more_sole_leaders(1), [], id="counted"),
        pytest.param(more_sole_leaders(0), ["leader"], id="not-counted"),
        pytest.param(Obstacle("sole-leader", "1 more partitions", "a reason"), ["leader"], id="counted-in-words-alone"),
        pytest.param(Obstacle("sole-leader", "t-0", "a reason"), ["leader"], id="another-named"),
        pytest.param(Obstacle("other", "v-0", "a reason"), ["leader"], id="another-reason"),
    ],
)
def test_a_shrinking_list_of_demoted_brokers_is_led_by_one_where_the_plan_says_so(
    obstacle: Obstacle, codes: list[str]
) -> None:
    """By name, or in the number of those that are not named; a list with another broker never is."""
    policy = replace(POLICY, demoted=frozenset({2}))
    admitted: dict[str, Any] = {"status": "misses-some-goals", "obstacles": (obstacle,), "policy": policy}
    assert found(move("v-0", 2), intent=SHRINK, **admitted) == [(code, "v-0") for code in codes]
    three = ChangeReplicationFactor(to=2, selection=Selection(topics="u"))
    named = {**admitted, "obstacles": (Obstacle("sole-leader", "u-2", "a reason"),)}
    assert found(move("u-2", 2, 1), intent=three, **named) == [("leader", "u-2")]
    assert found(move("u-2", 2, 1), intent=three, state=cluster(down=(1,)), **named) == []
    without = replace(three, selection=Selection(topics="u", exclude_brokers="1"))
    assert found(move("u-2", 2, 1), intent=without, **named) == []


def test_a_list_that_does_not_shrink_is_led_by_a_broker_that_may_whatever_the_plan_says() -> None:
    """Another broker could be found for it."""
    admitted = {**ADMITTED, "obstacles": (Obstacle("sole-leader", "v-0", "a reason"),)}
    assert found(move("v-0", 2, 6), policy=replace(POLICY, demoted=frozenset({2, 6})), **admitted) == [
        ("leader", "v-0")
    ]


def test_no_more_lists_are_led_by_such_a_broker_than_the_plan_counts() -> None:
    """Each partition is one."""
    policy = replace(POLICY, demoted=frozenset({2}))
    intent = ChangeReplicationFactor(to=1, selection=Selection(topics="t|v"))
    moves = (move("t-0", 2), move("v-0", 2))
    for count, codes in ((1, [("leader", "v-0")]), (2, [])):
        told = {**ADMITTED, "obstacles": (more_sole_leaders(count),)}
        assert found(*moves, intent=intent, policy=policy, **told) == codes


def test_racks_count_only_where_every_broker_alive_has_one() -> None:
    """A down broker without one makes no difference."""
    assert found(move("t-0", 1, 4), state=cluster(racks="abcab-")) == []
    told = found(move("t-0", 1, 4), state=cluster(racks="abcab-", down=(6,)))
    assert told == [("rack", "t-0")] * 2


def test_a_rack_holds_no_more_than_its_part_where_racks_are_few() -> None:
    """Three replicas over two racks: two in one of them are right, three are not."""
    state = cluster(racks="ababab", rows={("u", 2): {"replicas": (1, 2, 3), "isr": (1, 2, 3)}})
    old = (1, 2, 3)
    assert found(move("u-2", 1, 2, 4, old=old), state=state) == []
    assert found(move("u-2", 1, 3, 5, old=old), state=state) == [("rack", "u-2")] * 2


def test_racks_of_brokers_that_must_go_are_no_racks_to_keep() -> None:
    """With them gone, two replicas share the last rack that there is; brokers that the selection leaves out hold nothing new."""
    state = cluster(racks="aabbbb")
    gone = frozenset({3, 4, 5, 6})
    into_one = move("t-1", 2, 1)
    assert found(into_one, state=state, intent=Decommission(brokers=gone), **ADMITTED) == []
    assert found(into_one, state=state, policy=replace(POLICY, draining=gone), **ADMITTED) == []
    assert found(into_one, state=state, **ADMITTED) == [("rack", "t-1")] * 2


@pytest.mark.parametrize(("keep", "codes"), [(True, [("rack", "u-2")]), (False, [])])
def test_an_evacuated_rack_counts_as_one_where_that_is_asked(codes: list[tuple[str, str]], *, keep: bool) -> None:
    """Then no two replicas share a rack for want of it."""
    state = cluster(rows={("u", 2): {"replicas": (1, 2, 3), "isr": (1, 2, 3)}})
    intent = Evacuate(racks=frozenset({"c"}), keep_racks=keep)
    assert found(move("u-2", 1, 2, 4, old=(1, 2, 3)), intent=intent, state=state, **ADMITTED) == codes


def test_a_shorter_list_may_be_in_fewer_racks() -> None:
    """The replica that goes may be the only one of its rack."""
    intent = ChangeReplicationFactor(to=2, selection=Selection(topics="u"))
    assert found(move("u-2", 1, 4), intent=intent, **ADMITTED) == []


@pytest.mark.parametrize(
    ("left_out", "codes"),
    [
        pytest.param("[3-6]", [("rack", "u-1")], id="a-down-broker-that-takes-no-part-keeps-its-rack"),
        pytest.param("[356]", [], id="one-that-takes-part-leaves-it"),
    ],
)
def test_the_rack_of_a_down_broker_is_kept_where_its_replica_need_not_leave(
    left_out: str, codes: list[tuple[str, str]]
) -> None:
    """No other broker of that rack takes part."""
    state = cluster(racks="aabbbb", down=(4,))
    intent = Balance(selection=Selection(exclude_brokers=left_out))
    assert found(move("u-1", 1, 2), intent=intent, state=state, **ADMITTED) == codes


EMPTY_ONE: Final = Decommission(brokers=frozenset({1}))


@pytest.mark.parametrize(
    ("intent", "new", "allowed"),
    [
        (Leaders(), (2, 1), True),
        (Leaders(), (4, 2), False),
        (Leaders(), (1, 5), False),
        (Demote(brokers=frozenset({1})), (2, 1), True),
        (Demote(brokers=frozenset({2})), (2, 1), False),
        (Demote(brokers=frozenset({3})), (2, 1), False),
        (Demote(brokers=frozenset({1, 2})), (2, 1), False),
        (Demote(brokers=frozenset({1})), (4, 2), False),
        (EMPTY_ONE, (4, 2), True),
        (EMPTY_ONE, (2, 4), True),
        (EMPTY_ONE, (2, 1), True),
        (EMPTY_ONE, (6, 5), False),
        (EMPTY_ONE, (1, 5), False),
        (Decommission(brokers=frozenset({3})), (2, 1), False),
        (Evacuate(brokers=frozenset({1})), (4, 2), True),
        (Evacuate(brokers=frozenset({1})), (1, 5), False),
        (Evacuate(racks=frozenset({"c"})), (4, 2), False),
        (Evacuate(racks=frozenset({"a"})), (3, 2), True),
        (Expand(brokers=frozenset({4, 6})), (4, 2), True),
        (Expand(brokers=frozenset({4, 6})), (1, 6), True),
        (Expand(brokers=frozenset({4, 6})), (2, 6), False),
        (Expand(brokers=frozenset({4, 6})), (1, 5), False),
        (Expand(brokers=frozenset({1, 6})), (6, 2), False),
        (ReplaceBroker(old=1, new=4), (4, 2), True),
        (ReplaceBroker(old=1, new=4), (2, 4), True),
        (ReplaceBroker(old=1, new=4), (4, 5), False),
        (ReplaceBroker(old=2, new=4), (4, 2), False),
        (Racks(), (4, 2), False),
        (ChangeReplicationFactor(to=3), (1, 2, 3), True),
        (ChangeReplicationFactor(to=3), (1, 2, 6, 5), False),
        (ChangeReplicationFactor(to=3), (2, 1), False),
    ],
)
def test_each_intent_allows_the_moves_that_it_names(intent: Intent, new: tuple[int, ...], *, allowed: bool) -> None:
    """Of a partition on brokers 1 and 2, led by 1; what the plan leaves undone it admits."""
    told = found(move("t-0", *new), intent=intent, **ADMITTED)
    assert not told if allowed else {code for code, _ in told} & {"intent", "factor"}, told


def test_racks_moves_what_shares_a_rack_and_nothing_else() -> None:
    """To a list in which fewer do."""
    assert found(move("u-1", 1, 5), intent=Racks(), **ADMITTED) == []
    assert found(move("u-1", 4, 1), intent=Racks(), **ADMITTED) == [("intent", "u-1")]
    assert found(move("u-2", 1, 2, 6), intent=Racks(), **ADMITTED) == []
    assert found(move("u-2", 1, 3, 4), intent=Racks(), **ADMITTED) == [("intent", "u-2")]


def test_topics_that_may_share_racks_are_no_affair_of_racks() -> None:
    """Neither is leaving one a repair, nor staying in it a promise that is broken."""
    policy = replace(POLICY, topic_rules=(TopicRule(topics="u", ignore_racks=True),))
    assert found(move("u-1", 1, 5), intent=Racks(), policy=policy, **ADMITTED) == [("intent", "u-1")]


def test_leaders_adds_no_replica_and_takes_none_away() -> None:
    """The number is wrong as well."""
    for new in ((1, 2, 3), (1,)):
        assert found(move("t-0", *new), intent=Leaders(), **ADMITTED) == [("factor", "t-0"), ("intent", "t-0")]


def test_an_intent_that_the_checker_does_not_know_moves_nothing() -> None:
    """Not even what every other would allow."""
    assert found(T0, intent=Intent(), **ADMITTED) == [("intent", "t-0")]


def test_where_kafka_places_each_list_is_the_one_that_it_gives() -> None:
    """Another list is wrong, and so is one that stays."""
    intent = Place(selection=Selection(topics="v"), start=2, shift=0)
    assert found(move("v-0", 3, 4), intent=intent) == []
    assert found(move("v-0", 3, 5), intent=intent) == [("intent", "v-0")]
    assert found(move("v-0", 3), intent=intent) == [("factor", "v-0"), ("intent", "v-0")]
    assert found(intent=intent) == [("promise", "v-0")]


def test_where_kafka_places_a_broker_that_is_left_out_may_be_left() -> None:
    """The brokers of the selection are those that the lists are made of."""
    intent = Place(selection=Selection(topics="v", exclude_brokers="1"), start=0, shift=0)
    ((name, new),) = kafka_placements(cluster(), intent, POLICY, 0).items()
    assert 1 not in new
    assert found(move(str(name), *new), intent=intent) == []


@pytest.mark.parametrize(
    ("moves", "elections", "state", "codes"),
    [
        pytest.param((), ("t-0",), None, [], id="of-the-first-replica"),
        pytest.param((), ("t-0", "t-1", "t-0"), None, [("election", "t-0")], id="twice"),
        pytest.param((), ("t-9", "t-0"), None, [("stale", "t-9")], id="not-there"),
        pytest.param((), ("t-9", "t-1"), cluster(down=(2,)), [("stale", "t-9"), ("election", "t-1")], id="down"),
        pytest.param(
            (move("t-0", 2, 1),), ("t-0",), cluster(down=(1,)), [], id="first-of-the-list-that-the-plan-makes"
        ),
        pytest.param((), ("t-0",), cluster(down=(1,)), [("election", "t-0")], id="first-of-the-list-that-stays"),
    ],
)
def test_an_election_is_held_once_for_a_first_replica_that_is_alive(
    moves: tuple[Move, ...], elections: tuple[str, ...], state: ClusterState | None, codes: list[tuple[str, str]]
) -> None:
    """Of a partition that is there."""
    names = tuple(TopicPartition(name.split("-")[0], int(name.split("-")[1])) for name in elections)
    told = found(*moves, intent=Leaders(), elections=names, state=state, status="meets-all-goals")
    assert told == codes


BAND: Final = Obstacle("band", "disk", "a reason")


@pytest.mark.parametrize(
    ("moves", "obstacles", "intent", "policy", "status"),
    [
        ((T0,), (), Balance(), POLICY, "meets-all-goals"),
        ((), (), Balance(), POLICY, "nothing-to-do"),
        ((T0,), (BAND,), Balance(), POLICY, "misses-some-goals"),
        ((), (BAND,), Balance(), POLICY, "nothing-to-do"),
        ((), (BAND, Obstacle("uneven-racks", "racks", "a reason")), Balance(), POLICY, "nothing-to-do"),
        ((), (BAND, Obstacle("other", "x", "a reason")), Balance(), POLICY, "no-plan-found"),
        ((), (BAND,), Leaders(), POLICY, "no-plan-found"),
        ((), (BAND,), Balance(), replace(POLICY, max_replica_moves=1), "no-plan-found"),
    ],
)
def test_a_plan_has_the_status_that_it_deserves(
    moves: tuple[Move, ...], obstacles: tuple[Obstacle, ...], intent: Intent, policy: PlannerPolicy, status: str
) -> None:
    """By whether it changes anything and what it admits; every other word is wrong."""
    for said in ("meets-all-goals", "nothing-to-do", "misses-some-goals", "no-plan-found"):
        told = found(*moves, intent=intent, policy=policy, obstacles=obstacles, status=said)
        assert told == ([] if said == status else [("status", "the plan")]), said


@pytest.mark.parametrize(
    ("intent", "known", "names"),
    [
        (Balance(), {"state": cluster(down=(5,))}, ["u-0"]),
        (Balance(selection=Selection(exclude_brokers="5")), {"state": cluster(down=(5,))}, []),
        (Balance(selection=Selection(brokers="[1-6]")), {"state": cluster(down=(5,))}, ["u-0"]),
        (Balance(selection=Selection(topics="t")), {"state": cluster(down=(5,))}, []),
        (Balance(), {"policy": replace(POLICY, draining=frozenset({5}))}, ["u-0"]),
        (Leaders(), {"policy": replace(POLICY, draining=frozenset({5}))}, []),
        (Decommission(brokers=frozenset({5})), {}, ["u-0"]),
        (Evacuate(brokers=frozenset({3})), {}, ["t-1", "t-2"]),
        (Evacuate(racks=frozenset({"c"})), {}, ["t-1", "t-2"]),
        (ReplaceBroker(old=5, new=6), {}, ["u-0"]),
        (Demote(brokers=frozenset({2, 5})), {}, ["t-1"]),
        (ChangeReplicationFactor(to=2), {}, ["u-2"]),
        (ChangeReplicationFactor(to=3, selection=Selection(topics="v")), {}, ["v-0"]),
        (Racks(), {}, ["u-1", "u-2"]),
        (Racks(selection=Selection(topics="t")), {}, []),
        (Racks(), {"policy": replace(POLICY, topic_rules=(TopicRule(topics="u", ignore_racks=True),))}, []),
        (Racks(), {"state": cluster(racks="abcab-")}, []),
        (Expand(brokers=frozenset({6})), {}, []),
    ],
)
def test_what_a_plan_leaves_undone_and_does_not_admit_is_found(
    intent: Intent, known: dict[str, Any], names: list[str]
) -> None:
    """By each partition of which the promise is not kept, as long as it may change; what is admitted is not."""
    assert found(intent=intent, **known) == [("promise", name) for name in names]
    admitted = {**known, "status": "no-plan-found", "obstacles": ADMITTED["obstacles"]}
    assert found(intent=intent, **admitted) == []


def test_what_moves_is_judged_by_its_new_list() -> None:
    """A promise that the moves keep is kept."""
    assert found(move("u-0", 4, 6), intent=ReplaceBroker(old=5, new=6)) == []
    assert found(move("t-1", 3, 2), intent=Demote(brokers=frozenset({2}))) == []
    assert found(move("u-0", 4, 6), state=cluster(down=(5,))) == []


def test_a_partition_of_which_every_broker_is_down_is_promised_as_well() -> None:
    """It is named with those that have another replica."""
    state = cluster(down=(5,), rows={("v", 0): {"replicas": (5,), "isr": (), "leader": -1, "sizes": None}})
    assert found(state=state) == [("promise", "u-0"), ("promise", "v-0")]


def test_only_partitions_with_a_lost_replica_leave_where_that_is_asked() -> None:
    """The others on the same broker are not to be moved, and promise nothing."""
    state = cluster(rows={("t", 1): {"offline": (3,)}})
    intent = Evacuate(brokers=frozenset({3}), offline_only=True)
    assert found(move("t-1", 2, 6), intent=intent, state=state) == []
    assert found(intent=intent, state=state) == [("promise", "t-1")]
    assert found(move("t-1", 2, 6), move("t-2", 6, 1), intent=intent, state=state) == [("selection", "t-2")]
    assert found(intent=intent, state=cluster(rows={("t", 1): {"offline": (2,)}})) == []
    assert found(intent=intent, state=cluster(rows={("t", 2): {"offline": (3,)}})) == [("promise", "t-2")]


# Disks: broker 6 is empty, and each partition has 100 bytes.

ONTO_SIX: Final = (move("t-0", 6, 2), move("u-0", 6, 5))


def disk(total: int, *more: LogDir) -> dict[int, tuple[LogDir, ...]]:
    """Broker 6 with a log dir of this size, and others."""
    return {6: (LogDir("/d", total, total), *more)}


@pytest.mark.parametrize(
    ("known", "full"),
    [
        pytest.param({"state": cluster(dirs=disk(250))}, False, id="fits"),
        pytest.param({"state": cluster(dirs=disk(222))}, True, id="over-the-limit"),
        pytest.param({"state": cluster(dirs=disk(222)), "policy": replace(POLICY, disk_limit=1.0)}, False, id="limit"),
        pytest.param({"state": cluster(dirs=disk(0))}, False, id="size-not-told"),
        pytest.param(
            {"policy": replace(POLICY, capacities={6: Capacity(disk_bytes=222)})}, True, id="as-the-policy-says"
        ),
        pytest.param(
            {"state": cluster(dirs=disk(222)), "policy": replace(POLICY, capacities={6: Capacity(disk_bytes=223)})},
            False,
            id="the-policy-goes-first",
        ),
        pytest.param(
            {"state": cluster(dirs=disk(222)), "policy": replace(POLICY, capacities={6: Capacity(cpu=1.0)})},
            True,
            id="the-policy-tells-no-disk",
        ),
    ],
)
def test_what_arrives_at_a_broker_fits_on_its_disk(known: dict[str, Any], *, full: bool) -> None:
    """By its own size, or what the policy says it is."""
    assert found(*ONTO_SIX, **known) == ([("disk", "broker 6")] if full else [])


def test_a_replica_that_is_being_removed_takes_no_room() -> None:
    """Broker 5 keeps one partition and gets one."""
    moving = {"replicas": (1, 2, 5), "removing": (5,), "sizes": (100, 100, 100)}
    state = cluster(dirs={5: (LogDir("/d", 230, 30),)}, rows={("t", 0): moving})
    assert found(move("t-2", 3, 5), state=state) == []
    assert found(move("t-2", 3, 5), move("v-0", 1, 5), state=state) == [("disk", "broker 5")]


def test_what_leaves_a_disk_makes_room_only_in_a_plan_in_order() -> None:
    """And on a broker with one log dir: of several, which one has room then is not known."""
    full = {1: (LogDir("/d", 556, 56),)}
    rows = {("t", 0): {"sizes": (100, 100)}}
    moves = (move("t-0", 4, 2), move("t-1", 1, 3))
    in_order = cluster(dirs=full, rows=rows)
    assert found(*moves, state=in_order) == [("disk", "broker 1")]
    assert found(*moves, state=in_order, in_order=True) == []
    assert found(*moves[::-1], state=in_order, in_order=True) == [("disk", "broker 1")]
    two = cluster(dirs={1: (LogDir("/d", 500, 50), LogDir("/e", 56, 6))})
    assert found(*moves, state=two, in_order=True) == [("disk", "broker 1")]


# What is raised.


def test_a_rejection_quotes_the_first_findings_and_counts_the_others() -> None:
    """Nothing is counted where all are quoted."""
    state = cluster()
    loads = Loads.from_state(state)
    wrong = tuple(Move("t", n, (1, 2), (4, 2), 100) for n in range(7, 7 + NAMED + 2))
    for count, more in ((NAMED, ""), (NAMED + 2, " (and 2 more)")):
        with pytest.raises(PlanRejected) as told:
            demand_sound(state, plan_of(*wrong[:count]), Balance(), loads=loads, policy=POLICY)
        assert told.value.message.endswith(f"[stale]{more}.")
        assert told.value.message.count("[stale]") == NAMED


def test_given_lists_that_break_a_rule_are_infeasible_and_what_only_a_bug_makes_is_rejected() -> None:
    """The first finding is told, with the number of the others."""
    state = cluster(dirs=disk(150))
    loads = Loads.from_state(state)

    def demand(*moves: Move, **known: Any) -> None:
        demand_possible(state, plan_of(*moves, **known), ReplaceBroker(old=1, new=6), loads=loads, policy=POLICY)

    one, other = move("t-0", 6, 2), move("v-0", 6, 2)
    with pytest.raises(NoPlanFound) as told:
        demand(one, other, **ADMITTED)
    assert told.value.message.startswith("test cannot be executed: broker 6:")
    assert told.value.message.endswith("[disk].")
    with pytest.raises(NoPlanFound, match=r"t-2: would have 2 replicas in rack c, .*\[rack\] \(and 2 more\)\.$"):
        demand(one, move("t-2", 3, 6), **ADMITTED)
    with pytest.raises(PlanRejected):
        demand(one, one, other, **ADMITTED)


def test_the_number_of_other_findings_is_told_from_the_second_on() -> None:
    """Here the disks of two brokers."""
    state = cluster(dirs={6: (LogDir("/d", 100, 100),), 5: (LogDir("/d", 200, 100),)})
    made = plan_of(move("t-0", 6, 2), move("t-2", 3, 5))
    with pytest.raises(NoPlanFound, match=r"broker 5: .*\[disk\] \(and 1 more\)\.$"):
        demand_possible(state, made, BALANCE, loads=Loads.from_state(state), policy=POLICY)

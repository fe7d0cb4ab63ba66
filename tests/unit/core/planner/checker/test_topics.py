"""How the checker judges a plan by topics' own rules: what no plan may break, and what one that admits nothing must repair."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from tests.unit.core.planner.checker.test_rules import ADMITTED, POLICY, cluster, found, move

from ballast.core.plan import Move, Obstacle
from ballast.core.planner import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Intent,
    Leaders,
    PlannerPolicy,
    Racks,
    Selection,
    TopicRule,
)


def ruled(*said: dict[str, Any], **known: Any) -> PlannerPolicy:
    """A policy with such rules for topic ``t``, whose lists are 1,2 and 2,3 and 3,1."""
    return replace(POLICY, topic_rules=tuple(TopicRule(**{"topics": "t", **rule}) for rule in said), **known)


ONLY_1: Final = {"leader_brokers": frozenset({1})}
NOT_3: Final = {"not_brokers": frozenset({3})}


@pytest.mark.parametrize(
    ("rules", "moved", "broken"),
    [
        pytest.param([{"not_brokers": frozenset({4})}], move("t-0", 4, 2), ["t-0"], id="kept-off"),
        pytest.param([{"not_brokers": frozenset({4})}], move("t-0", 1, 5), [], id="elsewhere"),
        pytest.param([{"not_brokers": frozenset({4})}], move("v-0", 4, 2), [], id="another-topic"),
        pytest.param([{"brokers": frozenset({1, 2, 3})}], move("t-0", 4, 5), ["t-0", "t-0"], id="each-broker-is-told"),
        pytest.param([{"brokers": frozenset({4, 5})}], move("t-0", 1, 5), [], id="what-is-there-may-stay"),
        pytest.param(
            [{"not_brokers": frozenset({6})}, {"not_brokers": frozenset({4})}],
            move("t-0", 4, 2),
            ["t-0"],
            id="any-of-two-rules",
        ),
        pytest.param([ONLY_1], move("t-0", 2, 1), ["t-0"], id="led-by-another"),
        pytest.param([ONLY_1], move("t-1", 1, 3), [], id="led-by-the-right-one"),
        pytest.param([ONLY_1], move("t-1", 2, 4), [], id="led-as-before"),
        pytest.param([{**ONLY_1, "leader_racks": frozenset({"b"})}], move("t-0", 2, 1), [], id="or-by-its-rack"),
        pytest.param([{"leader_racks": frozenset({"c"})}], move("t-0", 2, 1), ["t-0"], id="led-from-another-rack"),
        pytest.param([{"leader_brokers": frozenset({9})}], move("t-0", 2, 1), [], id="no-leader-is-alive"),
        pytest.param([ONLY_1, {"not_brokers": frozenset({1})}], move("t-1", 3, 2), [], id="no-leader-may-hold-it"),
        pytest.param([{"max_per_broker": 2}], move("t-0", 1, 3), ["topic t"], id="too-many-on-a-broker"),
        pytest.param([{"max_per_broker": 2}], move("t-0", 1, 6), [], id="as-many-as-allowed"),
        pytest.param([{"max_per_broker": 1}], move("t-0", 4, 2), [], id="too-many-and-no-more-than-before"),
        pytest.param([{"spread_evenly": True}], move("t-0", 1, 3), ["topic t"], id="more-than-an-even-spread"),
        pytest.param(
            [{"spread_evenly": True}, {"max_per_broker": 5}], move("t-0", 1, 3), ["topic t"], id="the-lower-limit"
        ),
    ],
)
def test_no_plan_breaks_a_topics_rule(rules: list[dict[str, Any]], moved: Move, broken: list[str]) -> None:
    """Even where it admits that something is left undone."""
    assert found(moved, policy=ruled(*rules), **ADMITTED) == [("topic-rule", subject) for subject in broken]


def test_a_topic_that_shrinks_may_be_led_against_its_rule_where_the_plan_says_so() -> None:
    """No broker that stays may lead it."""
    policy = replace(POLICY, topic_rules=(TopicRule(topics="v", leader_brokers=frozenset({1})),))
    intent = ChangeReplicationFactor(to=1, selection=Selection(topics="v"))
    assert found(move("v-0", 2), intent=intent, policy=policy, **ADMITTED) == [("topic-rule", "v-0")]
    named = {**ADMITTED, "obstacles": (Obstacle("sole-leader", "v-0", "a reason"),)}
    assert found(move("v-0", 2), intent=intent, policy=policy, **named) == []
    two = ChangeReplicationFactor(to=2, selection=Selection(topics="u"))
    one_stays = replace(POLICY, topic_rules=(TopicRule(topics="u", leader_brokers=frozenset({1})),))
    told = {**ADMITTED, "obstacles": (Obstacle("sole-leader", "u-2", "a reason"),)}
    assert found(move("u-2", 2, 1), intent=two, policy=one_stays, **told) == [("topic-rule", "u-2")]


def test_a_broker_that_is_not_there_leads_nothing() -> None:
    """Its rack is not known either."""
    told = found(move("t-1", 7, 3), policy=ruled({"leader_racks": frozenset({"a"})}), **ADMITTED)
    assert told == [("down", "t-1"), ("topic-rule", "t-1")]


@pytest.mark.parametrize(
    ("intent", "policy", "left"),
    [
        pytest.param(Balance(), ruled(NOT_3), ["t-1", "t-2"], id="kept-off"),
        pytest.param(Racks(selection=Selection(topics="t")), ruled(NOT_3), ["t-1", "t-2"], id="racks-repairs-it"),
        pytest.param(Leaders(), ruled(NOT_3), [], id="leaders-moves-nothing"),
        pytest.param(Decommission(brokers=frozenset({6})), ruled(NOT_3), [], id="decommission-does-not"),
        pytest.param(Balance(selection=Selection(exclude_brokers="3")), ruled(NOT_3), [], id="broker-left-out"),
        pytest.param(Balance(selection=Selection(topics="u")), ruled(NOT_3), [], id="topic-left-out"),
        pytest.param(Balance(), ruled(NOT_3, pinned_topics="t"), [], id="pinned"),
        pytest.param(Balance(), ruled(ONLY_1), ["t-1", "t-2"], id="led-by-another"),
        pytest.param(Leaders(), ruled(ONLY_1), ["t-1", "t-2"], id="leaders-repairs-that"),
        pytest.param(Racks(selection=Selection(topics="t")), ruled(ONLY_1), [], id="racks-does-not"),
        pytest.param(Balance(selection=Selection(exclude_brokers="3")), ruled(ONLY_1), ["t-1"], id="leader-left-out"),
        pytest.param(Balance(), ruled({"max_per_broker": 1}), ["topic t"] * 3, id="too-many-on-each"),
        pytest.param(Balance(), ruled({"max_per_broker": 2}), [], id="as-many-as-allowed"),
        pytest.param(Leaders(), ruled({"max_per_broker": 1}), [], id="leaders-thins-nothing-out"),
        pytest.param(
            Balance(selection=Selection(exclude_brokers="[12]")),
            ruled({"max_per_broker": 1}),
            ["topic t"],
            id="too-many-on-brokers-left-out",
        ),
        pytest.param(Balance(), ruled({"max_per_broker": 1}, pinned_topics="t"), [], id="too-many-and-pinned"),
        pytest.param(Balance(), ruled({"spread_evenly": True}), ["topic t"] * 3, id="not-spread"),
        pytest.param(
            Balance(), ruled({"spread_evenly": True, "brokers": frozenset({1, 2, 3})}), [], id="spread-over-its-brokers"
        ),
        pytest.param(
            Balance(),
            ruled({"spread_evenly": True}, cordoned=frozenset({4, 5, 6})),
            [],
            id="spread-over-brokers-that-take-replicas",
        ),
        pytest.param(
            Balance(selection=Selection(exclude_brokers="[456]")),
            ruled({"spread_evenly": True}),
            [],
            id="spread-over-brokers-that-take-part",
        ),
        pytest.param(
            Balance(), ruled({"spread_evenly": True}, cordoned=frozenset({5, 6})), [], id="as-even-as-it-can-be"
        ),
        pytest.param(
            Balance(),
            ruled({"spread_evenly": True}, cordoned=frozenset({1})),
            ["topic t"] * 3,
            id="what-a-cordoned-broker-holds-counts",
        ),
        pytest.param(
            Balance(), ruled({"spread_evenly": True, "not_brokers": frozenset({4, 5, 6})}), [], id="spread-off-some"
        ),
    ],
)
def test_a_broken_rule_that_is_left_and_not_admitted_is_found(
    intent: Intent, policy: PlannerPolicy, left: list[str]
) -> None:
    """Where the intent repairs such a rule, and the topic and the broker take part."""
    assert found(intent=intent, policy=policy) == [("promise", subject) for subject in left]


def test_too_many_on_a_broker_are_no_finding_where_none_of_them_may_move() -> None:
    """Others of the topic may; they are on other brokers."""
    moving = {"replicas": (1, 2, 5), "adding": (5,), "removing": (5,), "sizes": None}
    state = cluster(rows={("t", 0): moving, ("t", 2): {**moving, "replicas": (3, 1, 5), "leader": 3}})
    assert found(policy=ruled({"max_per_broker": 1}), state=state) == [("promise", "topic t")] * 2


def test_a_partition_that_may_not_change_hides_no_other() -> None:
    """It is moving, and the next one is not."""
    moving = {"replicas": (1, 2, 5), "adding": (5,), "removing": (5,), "sizes": None}
    policy = ruled({"not_brokers": frozenset({1})})
    assert found(policy=policy, state=cluster(rows={("t", 0): moving})) == [("promise", "t-2")]


def test_what_moves_is_judged_by_its_rule_as_it_will_be() -> None:
    """A repair of some leaves the others to be found."""
    policy = ruled(NOT_3)
    assert found(move("t-1", 2, 6), policy=policy) == [("promise", "t-2")]
    assert found(move("t-1", 2, 6), move("t-2", 6, 1), policy=policy) == []
    assert found(move("t-1", 3, 2), policy=ruled(ONLY_1)) == [("topic-rule", "t-1")]
    assert found(move("t-0", 1, 5), policy=ruled({"max_per_broker": 1})) == [("promise", "topic t")] * 2


@pytest.mark.parametrize(
    ("rule", "moved", "repairs"),
    [
        (NOT_3, move("t-1", 2, 6), True),
        (NOT_3, move("t-1", 5, 3), False),
        (ONLY_1, move("t-1", 1, 3), True),
        (ONLY_1, move("t-0", 1, 3), False),
        ({"leader_brokers": frozenset({1, 3})}, move("t-2", 1, 3), False),
        ({"max_per_broker": 1}, move("t-0", 4, 2), True),
        ({"max_per_broker": 2}, move("t-0", 4, 2), False),
        (NOT_3, move("v-0", 4, 2), False),
    ],
)
def test_racks_moves_what_a_rule_does_not_want_where_it_is(rule: dict[str, Any], moved: Move, *, repairs: bool) -> None:
    """A replica, a leader, or one of too many; nothing else."""
    told = found(moved, intent=Racks(), policy=ruled(rule), **ADMITTED)
    assert told == ([] if repairs else [("intent", str(moved.name))])


def test_another_leader_that_a_rule_does_not_want_repairs_nothing() -> None:
    """Both rules are broken: the topic's, and that of the intent."""
    told = found(move("t-1", 3, 2), intent=Racks(), policy=ruled(ONLY_1), **ADMITTED)
    assert told == [("intent", "t-1"), ("topic-rule", "t-1")]


def test_racks_count_by_the_brokers_that_a_topic_may_be_on() -> None:
    """Three replicas over two racks: two may share one; where racks do not matter all may."""
    three = ChangeReplicationFactor(to=3, selection=Selection(topics="t"))
    two_racks = ruled({"brokers": frozenset({1, 2, 4, 5})})
    assert found(move("t-0", 1, 2, 4), intent=three, policy=two_racks, **ADMITTED) == []
    told = found(move("t-0", 1, 2, 4), intent=three, **ADMITTED)
    assert told == [("rack", "t-0")]
    assert found(move("t-0", 1, 4), policy=ruled({"ignore_racks": True}), **ADMITTED) == []
    assert found(move("t-0", 1, 4), policy=ruled({"not_brokers": frozenset({6})}), **ADMITTED) == [("rack", "t-0")] * 2
    one_rack = ruled({"brokers": frozenset({1, 4})})
    assert found(move("t-0", 1, 4), policy=one_rack, **ADMITTED) == []
    away = ruled({"brokers": frozenset({1, 2, 4, 5})}, draining=frozenset({2, 5}))
    assert found(move("t-0", 1, 4), policy=away, **ADMITTED) == []
    left_out = replace(three, selection=Selection(topics="t", exclude_brokers="4"))
    first_four = ruled({"brokers": frozenset({1, 2, 3, 4})})
    state = cluster(racks="aaabbb")
    assert found(move("t-0", 1, 2, 3), intent=left_out, policy=first_four, state=state, **ADMITTED) == []
    out = Balance(selection=Selection(exclude_brokers="5"))
    assert found(move("t-0", 1, 4), intent=out, policy=two_racks, **ADMITTED) == [("rack", "t-0")] * 2


def test_an_even_spread_is_that_of_the_replicas_which_the_topic_is_to_have() -> None:
    """Nine over six brokers are two at most, six are one; down and emptied brokers hold none for good."""
    three = ChangeReplicationFactor(to=3, selection=Selection(topics="t"))
    policy = ruled({"spread_evenly": True})
    assert found(move("t-0", 1, 2, 6), intent=three, policy=policy, **ADMITTED) == []
    assert found(move("t-0", 1, 2, 3), intent=three, policy=policy, **ADMITTED) == [("topic-rule", "topic t")]
    state = cluster(down=(6,))
    assert found(policy=ruled({"spread_evenly": True}), state=state) == []
    emptied = Decommission(brokers=frozenset({1, 6}))
    grown = move("t-0", 3, 2)
    assert found(grown, intent=emptied, policy=policy, **ADMITTED) == [("topic-rule", "topic t")]
    assert found(move("t-0", 4, 2), intent=emptied, policy=policy, **ADMITTED) == []
    unracked = cluster(racks="------")
    two_on_six = (move("t-0", 1, 2, 6), move("t-1", 2, 3, 6))
    assert found(*two_on_six, intent=three, policy=policy, state=unracked, **ADMITTED) == []
    some_closed = ruled({"spread_evenly": True}, cordoned=frozenset({5, 6}))
    assert found(move("t-0", 1, 3), policy=some_closed, **ADMITTED) == [("topic-rule", "topic t")]

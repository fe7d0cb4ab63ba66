"""Topics with rules of their own: kept by every plan, repaired where they are broken, named where they cannot be kept."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.planner.bound.test_bound import searched
from tests.unit.core.planner.clusters import cluster, clusters
from tests.unit.core.planner.test_planner import cluster_like

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Move, Plan
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
    Selection,
    TopicRule,
    plan,
)
from ballast.core.planner.checker.checker import check
from ballast.core.planner.checker.shares import TopicSplit
from ballast.core.planner.problem.classes import even_limit
from ballast.core.planner.problem.shares import by_rules
from ballast.core.planner.report.explain import why, why_not
from ballast.core.planner.report.sentences import obstacle
from ballast.errors import UsageError

TIGHT = PlannerPolicy(band=0.1, trigger=0.1, slack_bytes=0)
QUICK = replace(TIGHT, prove=False)
some_brokers = st.frozensets(st.integers(1, 7), min_size=1, max_size=4)


@st.composite
def rules(draw: st.DrawFn) -> tuple[TopicRule, ...]:
    """One or two rules that say something, for one topic or for all."""
    made = []
    for _ in range(draw(st.integers(1, 2))):
        said: dict[str, Any] = draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "brokers": some_brokers,
                    "leader_brokers": some_brokers,
                    "leader_racks": st.just(frozenset({"r0", "r1"})),
                    "max_per_broker": st.integers(1, 3),
                    "spread_evenly": st.just(True),
                    "ignore_racks": st.just(True),
                },
            )
        )
        made.append(TopicRule(topics=draw(st.sampled_from(["t0", "t[01]", ".*"])), not_brokers=frozenset({9}), **said))
    return tuple(made)


@st.composite
def intents(draw: st.DrawFn, state: ClusterState) -> Intent:
    """Any intent but ``replace``, whose newcomer is rarely allowed."""
    some = frozenset(draw(st.sets(st.sampled_from([b.id for b in state.brokers]), min_size=1, max_size=2)))
    live = frozenset(draw(st.sets(st.sampled_from(sorted(state.alive)), min_size=1, max_size=2)))
    selection = draw(
        st.sampled_from([Selection(), Selection(), Selection(topics="t0"), Selection(exclude_brokers="2")])
    )
    choices: list[Intent] = [
        Balance(selection=selection), Balance(selection=selection), Leaders(selection=selection), Racks(selection=selection),
        Expand(brokers=live, selection=selection), Decommission(brokers=some), Evacuate(brokers=some),
        Demote(brokers=some), ChangeReplicationFactor(to=draw(st.integers(1, 3))),
    ]  # fmt: skip
    return draw(st.sampled_from(choices))


def after(state: ClusterState, made: Plan) -> dict[TopicPartition, tuple[int, ...]]:
    """Every replica list once the plan is done."""
    lists = {state.name(r): state.target(r) for r in range(len(state.partitions))}
    return lists | {m.name: m.new for m in made.moves}


def kept(rule: TopicRule, state: ClusterState, topic: str, lists: list[tuple[int, ...]]) -> list[str]:
    """What is wrong with the replica lists of one topic, said by the words of the rule alone."""
    rack = {b.id: b.rack for b in state.brokers}
    wrong = []
    if rule.matches(topic):
        for members in lists:
            wrong += ["holds"] * sum(not rule.allows(b) for b in members)
            wrong += ["leads"] * (not rule.allows_leader(members[0], rack[members[0]]))
        held = Counter(b for members in lists for b in members)
        if rule.max_per_broker is not None:
            wrong += ["count"] * sum(max(n - rule.max_per_broker, 0) for n in held.values())
    return wrong


def leaders_alive(ruled: tuple[TopicRule, ...], state: ClusterState, topic: str) -> bool:
    """Is a broker alive that may lead the topic by all its rules?  If not, another one has to."""
    mine = [r for r in ruled if r.matches(topic)]
    return any(b.alive and all(r.allows(b.id) and r.allows_leader(b.id, b.rack) for r in mine) for b in state.brokers)


@pytest.mark.slow
@settings(max_examples=80)
@given(st.data())
def test_no_plan_breaks_a_rule_and_a_complete_one_keeps_all(data: st.DataObject) -> None:
    """On clusters of every kind and for every intent; the checker, which asked the rules itself, let each plan pass."""
    state = data.draw(clusters())
    policy = replace(TIGHT, topic_rules=data.draw(rules()), prove=data.draw(st.booleans()))
    intent = data.draw(intents(state))
    made = plan(state, intent, policy=policy)
    before, now = {state.name(r): state.target(r) for r in range(len(state.partitions))}, after(state, made)
    for topic, rule in itertools.product([t.name for t in state.topics], policy.topic_rules):
        past, new = ([m for n, m in lists.items() if n.topic == topic] for lists in (before, now))
        if not isinstance(intent, ChangeReplicationFactor):
            worse = Counter(kept(rule, state, topic, new)) - Counter(kept(rule, state, topic, past))
            assert not worse["holds"]
            assert not worse["count"]
            if rule.matches(topic) and leaders_alive(policy.topic_rules, state, topic):
                new_leaders = {m[0] for n, m in now.items() if n.topic == topic and m[0] != before[n][0]}
                assert all(rule.allows_leader(b, state.brokers[state.broker_index[b]].rack) for b in new_leaders)
        if isinstance(intent, Balance) and intent.selection.is_everything and not made.obstacles:
            assert kept(rule, state, topic, new) == []


def test_a_plan_that_is_made_faster_keeps_topics_spread() -> None:
    """Three partitions of t0 on three brokers, one each: whatever the search tries, it counts what lies where anew."""
    brokers = tuple(Broker(i, host="", port=0) for i in range(1, 6))
    rows = [PartitionRow("t0", n, 1, (1,), (1,), sizes=(size,)) for n, size in enumerate((1, 1, 7))]
    rows.append(PartitionRow("t1", 0, 1, (1,), (1,), sizes=(7,)))
    state = build("c", brokers, (Topic("t0"), Topic("t1")), rows)
    rule = TopicRule(topics="t[01]", brokers=frozenset({1, 2, 3}), spread_evenly=True)
    made = plan(state, Balance(), policy=replace(TIGHT, topic_rules=(rule,)))
    held = Counter(lists[0] for name, lists in after(state, made).items() if name.topic == "t0")
    assert held == {1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize("count", range(3, 15))
@pytest.mark.parametrize("racked", [False, True])
def test_shares_that_do_not_come_out_even_are_shares_all_the_same(count: int, *, racked: bool) -> None:
    """A topic is kept on broker 1; what the others share is 1/6 each on seven brokers, which decimals make more than the whole."""
    racks = ["r0" if racked else None] * (count - 1) + ["r1" if racked else None]
    brokers = tuple(Broker(i + 1, rack=rack, host="", port=0) for i, rack in enumerate(racks))
    rows = [PartitionRow(topic, n, 1, (1,), (1,), sizes=(0,)) for topic, n in (("t0", 0), ("t0", 1), ("t1", 0))]
    state = build("c", brokers, (Topic("t0"), Topic("t1")), rows)
    rule = TopicRule(topics="t0", brokers=frozenset({1}))
    made = plan(state, Balance(), policy=replace(TIGHT, topic_rules=(rule,)))
    assert [m.topic for m in made.moves] == ["t1"]
    assert made.status == "meets-all-goals"


def test_shares_whose_rounding_is_more_than_there_is_are_kept() -> None:
    """Broker 1 alone may hold four bytes of twelve; a third of the rest has no last digit, and is no reason to share out anew."""
    brokers = tuple(Broker(b, rack=None, host="", port=0, alive=b not in {2, 3}) for b in range(1, 7))
    rows = [PartitionRow("t1", n, 1, (1,), (1,), sizes=(1,)) for n in range(3)]
    rows.append(PartitionRow("t1", 3, 4, (4,), (4,), sizes=(1,)))
    rows += [PartitionRow("t2", n, 1, (1, 2), (1,), sizes=(1, 1)) for n in range(4)]
    state = build("c", brokers, (Topic("t1"), Topic("t2")), rows)
    rule = TopicRule(topics="t1", brokers=frozenset({1}), max_per_broker=1)
    made = plan(state, Balance(), policy=replace(TIGHT, topic_rules=(rule,)))
    assert made.status == "misses-some-goals"


def test_a_partition_that_no_broker_may_take_is_not_divided_into_cases() -> None:
    """One replica stays on a broker that is down, since no other may take it: the bound has no rule for that partition."""
    brokers = tuple(Broker(b, rack="r0", alive=b not in {5, 7}) for b in range(1, 8))
    rows = [PartitionRow("t0", n, 1, (1,), (1,), sizes=(0,)) for n in range(3)]
    members = ((6, 7, 5, 4), 100), ((1, 3, 4, 7), 0), ((1, 2, 3, 4), 7), ((1, 2, 3, 4), 0)
    for n, (those, size) in enumerate(members):
        rows.append(PartitionRow("t1", n, those[0], those, tuple({*those} - {5, 7}), sizes=(size,) * 4))
    rows += [PartitionRow("t2", n, 1, (1,), (1,), sizes=(7,)) for n in range(3)]
    state = build("c", brokers, tuple(Topic(t) for t in ("t0", "t1", "t2")), rows)
    rule = TopicRule(topics=".*", not_brokers=frozenset({9}), max_per_broker=3)
    made = plan(state, Balance(), policy=replace(TIGHT, topic_rules=(rule,)))
    assert made.bound_bytes is not None
    assert made.bound_bytes <= made.bytes_moved


@pytest.mark.slow
@settings(max_examples=60)
@given(clusters(), rules())
def test_the_bound_is_never_above_the_plan(state: ClusterState, ruled: tuple[TopicRule, ...]) -> None:
    """What a rule forces out counts, and nothing that it does not."""
    made = plan(state, Balance(), policy=replace(TIGHT, topic_rules=ruled))
    assert made.bound_bytes is not None
    assert made.bound_bytes <= made.bytes_moved


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.permutations([1, 2, 3, 4]), min_size=1, max_size=3), rules())
def test_the_bound_is_below_the_best_of_all_assignments(rows: list[list[int]], ruled: tuple[TopicRule, ...]) -> None:
    """Of every assignment that is as balanced as the plan's, and keeps replicas where it does, none copies less."""
    state = cluster(*[tuple(r[:2]) for r in rows], brokers=4)
    policy = replace(TIGHT, topic_rules=tuple(replace(r, topics="t") for r in ruled))
    made = plan(state, Balance(), policy=policy)
    assert made.bound_bytes is not None
    world = searched(state, Balance(), policy)
    share = {r.name: world.problem.share[:, k] for k, r in enumerate(world.problem.resources)}
    reached = {b["broker"]: b["after"] for b in made.summary["brokers"]}

    def holds(members: tuple[int, ...]) -> bool:
        return all(r.allows(b) for r in policy.topic_rules for b in members)

    bound_to = [holds(m) for m in after(state, made).values()]
    pairs = list(itertools.permutations([1, 2, 3, 4], 2))
    least = 1 << 60
    for lists in itertools.product(*[[m for m in pairs if not must or holds(m)] for must in bound_to]):
        held, led = Counter(b for m in lists for b in m), Counter(m[0] for m in lists)
        if all(
            within(count[b], reached[b][name], float(share[name][b - 1]))
            for name, count in (("replicas", held), ("preferred-leaders", led))
            for b in reached
        ):
            least = min(least, sum(100 * len(set(new) - set(old[:2])) for new, old in zip(lists, rows, strict=True)))
    assert made.bound_bytes <= least


def within(count: int, reached: int, share: float) -> bool:
    """No further from the share than what the plan reached."""
    return min(reached, share * 0.9) <= count <= max(reached, share * 1.1)


@settings(max_examples=150)
@given(st.data())
def test_both_ways_to_the_fair_shares_agree(data: st.DataObject) -> None:
    """Pouring until nothing changes, and linear programs level by level; some brokers take nothing."""
    groups, brokers = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    amounts = st.lists(st.integers(0, 50), min_size=brokers, max_size=brokers)
    scale = data.draw(st.sampled_from([1, 1 << 30, 10**12 + 7]))
    held = np.array(data.draw(st.lists(amounts, min_size=groups, max_size=groups)), np.float64) * scale
    flags = st.lists(st.booleans(), min_size=brokers, max_size=brokers)
    allowed = np.array(data.draw(st.lists(flags, min_size=groups, max_size=groups)), np.bool_)
    weight = np.array(data.draw(st.lists(st.sampled_from([0.0, 1, 1, 2.5]), min_size=brokers, max_size=brokers)))
    load, closed = held.sum(axis=1), np.array(data.draw(flags), np.bool_)
    poured = by_rules(load, held, allowed, weight, closed)
    assert np.allclose(poured, TopicSplit(load, held, allowed).shares(weight, closed), rtol=1e-7, atol=2e-6 * scale)
    assert (poured <= np.where(closed, held.sum(axis=0), np.inf) + 1e-6 * scale).all()
    if bool((weight > 0)[~closed].any()):
        assert poured.sum() == pytest.approx(load.sum(), abs=1e-5 * scale)


def pools(*, broken: bool = False) -> ClusterState:
    """Six brokers; a heavy topic meant for the first three, a light one for the others, both crowded on one broker."""
    brokers = tuple(Broker(i, rack=f"r{i % 3}", log_dirs_known=True) for i in range(1, 7))
    heavy = [(1, 2), (1, 3), (1, 2), (1, 3), (1, 2), (1, 3), (2, 3), (1, 2)]
    light = [(4, 5), (4, 6), (4, 5), (4, 6), (4, 5), (4, 6), (5, 6), (4, 5)]
    if broken:
        heavy[0], light[0] = (4, 2), (1, 5)
    rows = [PartitionRow("heavy", n, m[0], m, m, sizes=(9_000,) * 2) for n, m in enumerate(heavy)]
    rows += [PartitionRow("light", n, m[0], m, m, sizes=(1_000,) * 2) for n, m in enumerate(light)]
    return build("c", brokers, (Topic("heavy"), Topic("light")), rows)


POOLS = (
    TopicRule(topics="heavy", brokers=frozenset({1, 2, 3})),
    TopicRule(topics="light", not_brokers=frozenset({1, 2, 3})),
)


def test_pools_are_balanced_each_by_itself() -> None:
    """Shares follow what may be where: the plan is complete, and a second one has nothing to do."""
    policy = replace(TIGHT, band=0.2, trigger=0.2, topic_rules=POOLS)
    state = pools()
    made = plan(state, Balance(), policy=policy)
    assert (made.status, made.obstacles) == ("meets-all-goals", ())
    lists = after(state, made)
    again = plan(cluster_like(state, {(n.topic, n.partition): m for n, m in lists.items()}), Balance(), policy=policy)
    assert (again.status, again.moves) == ("nothing-to-do", ())
    held = Counter(b for n, m in lists.items() for b in m if n.topic == "heavy")
    assert sorted(held) == [1, 2, 3]
    assert max(held.values()) - min(held.values()) <= 1
    assert {b["broker"]: b["share"]["disk"] for b in made.summary["brokers"]} == dict.fromkeys(
        (1, 2, 3), 48_000
    ) | dict.fromkeys((4, 5, 6), 5_333)


@pytest.mark.parametrize("intent", [Balance(), Racks()])
def test_a_broken_rule_is_repaired_first(intent: Intent) -> None:
    """Replicas in the wrong pool return before anything else is copied, with the reason that says so."""
    policy = replace(TIGHT, topic_rules=POOLS)
    state = pools(broken=True)
    made = plan(state, intent, policy=policy)
    copies = [m for m in made.moves if m.adding]
    assert {str(m.name) for m in copies[:2]} == {"heavy-0", "light-0"}
    assert {m.reason.code for m in copies[:2]} == {"topic-rule"}
    assert copies[0].reason.detail in {"topic heavy may not be on broker 4", "topic light may not be on broker 1"}
    assert all(POOLS[0].allows(b) == (n.topic == "heavy") for n, m in after(state, made).items() for b in m)
    if isinstance(intent, Racks):
        assert len(made.moves) == 2
        assert made.bound_bytes == made.bytes_moved == 10_000


def test_other_intents_leave_a_broken_rule_and_do_not_break_another() -> None:
    """Emptying a broker puts nothing into the wrong pool, and touches nothing else."""
    policy = replace(QUICK, topic_rules=POOLS)
    made = plan(pools(broken=True), Decommission(brokers=frozenset({5})), policy=policy)
    assert made.moves
    assert all(set(m.adding) <= {4, 6} for m in made.moves)
    assert "heavy-0" not in {str(m.name) for m in made.moves}


def test_leaders_go_where_they_may_lead_for_free() -> None:
    """A rule for leaders alone is repaired by replica list changes."""
    state = cluster(*[(1, 2), (2, 3), (3, 1)] * 4, brokers=3, racks=3)
    for rule in (
        TopicRule(topics="t", leader_brokers=frozenset({1, 2})),
        TopicRule(topics="t", leader_racks=frozenset({"r1", "r2"})),
    ):
        for intent in (Leaders(), Balance()):
            made = plan(state, intent, policy=replace(QUICK, topic_rules=(rule,)))
            assert (made.status, made.bytes_moved) == ("meets-all-goals", 0)
            assert Counter(m[0] for m in after(state, made).values()) == {1: 6, 2: 6}


def test_a_leader_moves_where_no_follower_may_lead() -> None:
    """``balance`` copies one replica for it; ``leaders`` moves no data, and says what stands in the way."""
    state = cluster(*[(1, 2)] * 2, brokers=3)
    policy = replace(QUICK, band=0.9, trigger=0.9, topic_rules=(TopicRule(topics="t", leader_brokers=frozenset({3})),))
    made = plan(state, Balance(), policy=policy)
    assert {(m.new[0], len(m.adding), m.reason.detail) for m in made.moves} == {(3, 1, "broker 1 may not lead topic t")}
    made = plan(state, Leaders(), policy=policy)
    assert made.status == "no-plan-found"
    assert "sole-leader" in {o.code for o in made.obstacles}


def test_a_topic_is_thinned_out_by_its_smallest_replicas() -> None:
    """At most so many on a broker: the cheapest leave; even spread is the least that all brokers together can hold."""
    state = cluster(*[(1,)] * 4, (2,), (3,), brokers=3, sizes=(400, 10, 300, 20, 1, 1))
    wide = replace(QUICK, band=0.9, trigger=0.9)
    for rule in (TopicRule(topics="t", max_per_broker=2), TopicRule(topics="t", spread_evenly=True)):
        made = plan(state, Racks(), policy=replace(wide, topic_rules=(rule,)))
        assert made.bytes_moved == 30
        assert max(Counter(b for m in after(state, made).values() for b in m).values()) == 2
        assert {m.reason.detail for m in made.moves} == {"broker 1 has more replicas of t than its rule allows"}


def test_racks_may_be_shared_where_a_rule_says_so() -> None:
    """Three replicas in two racks of which one is crowded: right for this topic, to be repaired for another."""
    state = cluster(*[(1, 3)] * 4, brokers=4, racks=2)
    assert plan(state, Racks(), policy=QUICK).moves
    loose = replace(QUICK, topic_rules=(TopicRule(topics="t", ignore_racks=True),))
    assert plan(state, Racks(), policy=loose).status == "nothing-to-do"


@pytest.mark.parametrize(
    ("rule", "cause", "figures"),
    [
        (TopicRule(topics="t", brokers=frozenset({1})), "replicas", {"brokers": (1,), "replicas": 2}),
        (
            TopicRule(topics="t", max_per_broker=2),
            "max-per-broker",
            {"brokers": (1, 2, 3), "replicas": 24, "allowed": 2},
        ),
        (TopicRule(topics="t", brokers=frozenset({8, 9})), "replicas", {"brokers": (), "replicas": 2}),
    ],
)
def test_a_rule_that_cannot_be_kept_is_named_once(rule: TopicRule, cause: str, figures: dict[str, object]) -> None:
    """One sentence for the topic, not one for each partition; the rest of the cluster is planned for."""
    state = cluster(*[(1, 2)] * 12, brokers=3)
    made = plan(state, Racks(), policy=replace(QUICK, topic_rules=(rule,)))
    found = [o for o in made.obstacles if o.code == "topic-rule"]
    assert len([o for o in made.obstacles if o.code in {"topic-rule", "no-broker"}]) == 1
    assert (found[0].subject, found[0].cause, found[0].values) == ("topic t", cause, {"topic": "t", **figures})


@pytest.mark.parametrize("intent", [Balance(), Racks()])
def test_what_may_not_change_is_no_broken_rule(intent: Intent) -> None:
    """A pinned topic that crowds a broker asks for nothing, and nothing is said of brokers without room."""
    state = cluster(*[(1,)] * 3, (2,), (3,), brokers=3)
    rule = TopicRule(topics="t", max_per_broker=2)
    wide = replace(QUICK, band=0.9, trigger=0.9, topic_rules=(rule,))
    assert plan(state, intent, policy=wide).moves
    assert plan(state, intent, policy=replace(wide, pinned_topics="t")).status == "nothing-to-do"


def test_a_limit_that_keeps_a_replica_on_a_leaving_broker_is_named() -> None:
    """Two brokers that hold as many as they may: racks and disks are not the reason, and the limit is the remedy."""
    state = cluster(*[(1,), (2,), (3,)] * 2, brokers=3)
    policy = replace(QUICK, topic_rules=(TopicRule(topics="t", max_per_broker=2),))
    made = plan(state, Decommission(brokers=frozenset({3})), policy=policy)
    (found, _) = [o for o in made.obstacles if o.code == "no-broker"]
    assert (found.cause, found.values) == ("max-per-broker", {"allowed": 2})


@pytest.mark.parametrize(
    ("intent", "draining"), [(Decommission(brokers=frozenset({3})), frozenset()), (Balance(), frozenset({3}))]
)
def test_the_only_broker_that_may_lead_cannot_leave(intent: Intent, draining: frozenset[int]) -> None:
    """Neither disk nor racks are the reason, and more replicas alone would not help."""
    rule = TopicRule(topics="t", leader_brokers=frozenset({3}))
    made = plan(
        cluster(*[(3, 1)] * 3, brokers=4), intent, policy=replace(QUICK, draining=draining, topic_rules=(rule,))
    )
    told = {o.code: o for o in made.obstacles}
    assert told["no-broker"].cause == "leader"
    assert told["sole-leader"].cause == "barred-others"


@pytest.mark.parametrize("intent", [Balance(), Evacuate(brokers=frozenset({1}))])
def test_a_topic_whose_leaders_are_all_down_is_rebuilt(intent: Intent) -> None:
    """No broker that the rule wants is alive: others lead, what was lost is copied, and the plan says so once."""
    whole = cluster(*[(1, 2), (1, 3), (2, 3), (3, 2)] * 2, brokers=4)
    state = replace(whole, brokers=tuple(replace(b, alive=b.id != 1) for b in whole.brokers))
    rule = TopicRule(topics="t", leader_brokers=frozenset({1}))
    made = plan(state, intent, policy=replace(QUICK, topic_rules=(rule,)))
    assert not any(1 in members for members in after(state, made).values())
    waived = obstacle("topic-rule", "topic t", "leader-down", topic="t", brokers=(1,))
    told = [o for o in made.obstacles if o.code == "topic-rule"]
    if isinstance(intent, Balance):
        assert told == [waived]
    else:
        assert (told, f"Topic t: {waived.detail}." in made.assumptions) == ([], True)


def test_an_even_spread_does_not_count_on_brokers_that_take_nothing() -> None:
    """With one of four brokers cordoned, or left out, and empty, twelve replicas on three are as even as can be."""
    state = cluster(*[(1, 2), (2, 3), (3, 1)] * 2, brokers=4)
    policy = replace(QUICK, topic_rules=(TopicRule(topics="t", spread_evenly=True),))
    assert plan(state, Racks(), policy=policy).moves
    assert plan(state, Racks(), policy=replace(policy, cordoned=frozenset({4}))).status == "nothing-to-do"
    assert plan(state, Racks(selection=Selection(exclude_brokers="4")), policy=policy).status == "nothing-to-do"


@given(st.integers(0, 40), st.integers(0, 5), st.lists(st.integers(0, 9), max_size=5))
def test_the_even_limit_is_the_least_that_leaves_room(replicas: int, receivers: int, held: list[int]) -> None:
    """One less would leave a replica without a place."""

    def room(limit: int) -> int:
        return receivers * limit + sum(min(have, limit) for have in held)

    limit = even_limit(replicas, receivers, held)
    assert room(limit) >= replicas or limit == replicas
    assert limit == 0 or room(limit - 1) < replicas


def test_what_stays_where_it_should_not_be_is_told_without_a_share() -> None:
    """A broker that a rule wants empty has no share to be over; ``balance`` does not name itself as the remedy."""
    state = cluster((4, 2, 3), (4, 2, 3), brokers=4)
    rule = TopicRule(topics="t", brokers=frozenset({1, 2, 3}), leader_brokers=frozenset({1}))
    made = plan(state, Balance(), policy=replace(QUICK, cordoned=frozenset({1}), topic_rules=(rule,)))
    (disk,) = (o for o in made.obstacles if (o.code, o.subject) == ("band", "disk"))
    assert (disk.values["furthest"], disk.values["away"]) == (4, None)
    assert disk.cause != "one-replica"
    assert {o.cause for o in made.obstacles if o.code == "sole-leader"} == {"rule-in-balance"}


@pytest.mark.parametrize(
    "said",
    [
        {"topics": "("},
        {"topics": "t"},
        {"topics": "t", "max_per_broker": 0},
        {"topics": "t", "brokers": frozenset({1}), "not_brokers": frozenset({1})},
        {"topics": "t", "leader_brokers": frozenset()},
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(said: dict[str, object]) -> None:
    """Whatever the cluster: one sentence, and what to do."""
    with pytest.raises(UsageError) as refused:
        TopicRule(**said)  # type: ignore[arg-type]
    assert refused.value.hint


def test_the_checker_knows_the_rules_by_itself() -> None:
    """A move that breaks a rule is found whatever the search thinks of it."""
    state = pools()
    policy = replace(
        QUICK, topic_rules=(*POOLS, TopicRule(topics="heavy", leader_brokers=frozenset({1}), max_per_broker=6))
    )
    made = plan(state, Balance(), policy=policy)
    loads = Loads.from_state(state)

    def codes(*moves: Move, policy: PlannerPolicy = policy) -> set[str]:
        wrong = replace(made, moves=moves, elections=(), obstacles=(), status="meets-all-goals")
        return {f"{f.subject}: {f.detail}" for f in check(state, wrong, Balance(), loads=loads, policy=policy)}

    def said(words: str, found: set[str]) -> bool:
        return any(words in sentence for sentence in found)

    assert said("off which its topic's rule keeps it", codes(Move("heavy", 0, (1, 2), (1, 4), 9_000)))
    assert said("which its topic's rule does not let lead", codes(Move("heavy", 0, (1, 2), (2, 1), 9_000)))
    assert said(
        "would have 7 replicas on broker 3",
        codes(
            Move("heavy", 0, (1, 2), (1, 3), 9_000),
            Move("heavy", 2, (1, 2), (1, 3), 9_000),
            Move("heavy", 4, (1, 2), (1, 3), 9_000),
        ),
    )
    assert said("stays led by broker 2", codes(Move("light", 0, (4, 5), (5, 4), 1_000)))
    assert said("keeps 7 replicas on broker 1", codes(Move("light", 0, (4, 5), (5, 4), 1_000)))


def test_people_are_told_which_rule_it_was() -> None:
    """``--why-not`` counts what the rules keep off a broker, ``--why`` says why a partition stays."""
    policy = replace(QUICK, topic_rules=(*POOLS, TopicRule(topics="light", max_per_broker=7)))
    state, loads = pools(), Loads.from_state(pools())
    made = plan(state, Balance(), policy=policy)
    told = "\n".join(why_not(state, made, Balance(), 5, loads=loads, policy=policy))
    assert "8 of 16 partitions cannot be placed here: the rules of their topics keep them off it" in told
    told = "\n".join(why_not(state, made, Balance(), 4, loads=loads, policy=policy))
    assert "it holds as many replicas of their topics as the topics' rules allow" in told
    only = replace(policy, topic_rules=(TopicRule(topics="heavy", brokers=frozenset({2, 3})),))
    partition = TopicPartition("heavy", 6)
    told = "\n".join(why(state, plan(state, Balance(), policy=only), Balance(), partition, loads=loads, policy=only))
    assert "its topic's rules keep it off" in told


@pytest.mark.parametrize("size", [1, 1 << 30, 10**12])
@pytest.mark.parametrize(
    ("topics", "rules", "cordoned"),
    [
        pytest.param(
            {"a": [(1,), (2,)], "b": [(1,), (2,), (3,), (3,)]}, {"a": {2, 3}, "b": {1, 2}}, {2}, id="two-pools"
        ),
        pytest.param(
            {
                "a": [(1,), (1,)],
                "b": [(5, 2), (3, 1)],
                "c": [(3, 1), (1, 4), (1, 3), (4, 6), (6, 2)],
                "d": [(5,), (1,), (3,)],
            },
            {"a": {1, 5, 6}, "b": {2, 5, 6}},
            {1, 2, 5, 6},
            id="four-of-six",
        ),
        pytest.param(
            {
                "a": [(1, 3, 4), (3, 1, 2)],
                "b": [(1,)],
                "c": [(2, 4), (1, 2), (4, 2), (1, 4), (2, 4), (2, 4), (3, 2), (1, 3)],
            },
            {"a": {4}, "b": {4}},
            {1, 4},
            id="a-rule-for-a-cordoned-broker",
        ),
    ],
)
def test_a_cordoned_broker_of_several_pools_gets_a_plan_that_its_checker_accepts(
    topics: dict[str, list[tuple[int, ...]]], rules: dict[str, set[int]], cordoned: set[int], size: int
) -> None:
    """Its share follows what it holds, so that a plan for what the first one leaves may be worse by the first one's shares."""
    ids = {b for lists in topics.values() for replicas in lists for b in replicas}
    rows = [
        PartitionRow(topic, n, m[0], m, m, sizes=(size,) * len(m))
        for topic, lists in topics.items()
        for n, m in enumerate(lists)
    ]
    state = build("c", tuple(Broker(b) for b in sorted(ids)), tuple(Topic(t) for t in topics), rows)
    said = tuple(TopicRule(topics=t, brokers=frozenset(b)) for t, b in rules.items())
    made = plan(state, Balance(), policy=replace(TIGHT, topic_rules=said, cordoned=frozenset(cordoned)))
    assert made.moves  # A plan that its checker does not accept is raised.

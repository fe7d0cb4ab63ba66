"""Partitions with fewer replicas than their min ISR: ordinary plans leave them in place, and say so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Plan
from ballast.core.planner import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Evacuate,
    Expand,
    Intent,
    Loads,
    PlannerPolicy,
    Racks,
    ReplaceBroker,
    Selection,
    TopicRule,
    plan,
)
from ballast.core.planner.checker.checker import check
from ballast.core.planner.place import kafka_placement_intent
from ballast.core.planner.report.explain import why
from ballast.core.planner.request import dump_request, load_request

POLICY = PlannerPolicy(prove=False)
ALLOWED = replace(POLICY, replicas_below_min_isr=True)
FEW = "replicas-below-min-isr"


def scene(min_isr: int = 3, *, version: str | None = "4.3", down: int | None = None) -> ClusterState:
    """Brokers 1 and 2 hold everything, 3 and 4 nothing: topic ``few`` on two brokers of one rack, and ``enough`` beside it."""
    brokers = tuple(
        Broker(b, rack=f"r{b % 2 if b > 2 else 0}", alive=b != down, log_dirs_known=True) for b in (1, 2, 3, 4)
    )
    topics = (Topic("few", min_isr=min_isr), Topic("enough", min_isr=2))
    rows = []
    for name in ("few", "enough"):
        for n in range(6):
            members = (1, 2) if n % 2 else (2, 1)
            isr = tuple(b for b in members if b != down)
            rows.append(PartitionRow(name, n, isr[0], members, isr, sizes=(100_000_000,) * 2))
    return build("c", brokers, topics, rows, kafka_version=version)


def copied(made: Plan) -> set[str]:
    """Topics to which replicas are added."""
    return {m.topic for m in made.moves if m.adding}


ORDINARY = [
    pytest.param(Balance(), id="balance"),
    pytest.param(Expand(brokers=frozenset({3, 4})), id="expand"),
    pytest.param(Racks(), id="racks"),
]


@pytest.mark.parametrize("intent", ORDINARY)
def test_an_ordinary_plan_leaves_them_in_place_and_says_how_many(intent: Intent) -> None:
    """The others move all the same; nothing of what is left is a goal missed by itself."""
    made = plan(scene(), intent, policy=POLICY)
    assert copied(made) == {"enough"}
    (said,) = (a for a in made.assumptions if "min.insync.replicas" in a)
    assert said.startswith("6 partitions")
    assert FEW not in {o.code for o in made.obstacles}


@pytest.mark.parametrize("intent", ORDINARY)
@pytest.mark.parametrize(
    ("state", "policy"),
    [
        pytest.param(scene(), ALLOWED, id="allowed"),
        pytest.param(scene(2), POLICY, id="enough-replicas"),
        pytest.param(scene(version="3.6"), POLICY, id="refused-anyway"),
        pytest.param(scene(UNKNOWN), POLICY, id="not-known"),
    ],
)
def test_what_loses_no_writes_moves_as_ever(intent: Intent, state: ClusterState, policy: PlannerPolicy) -> None:
    """And what a setting allowed to lose them; before 3.7 brokers refuse those writes already."""
    made = plan(state, intent, policy=policy)
    assert copied(made) == {"few", "enough"}
    assert not any("min.insync.replicas" in a for a in made.assumptions)


@pytest.mark.parametrize(
    "intent",
    [
        pytest.param(ChangeReplicationFactor(selection=Selection(topics="few"), to=3), id="change-rf"),
        pytest.param(Decommission(brokers=frozenset({1})), id="decommission"),
        pytest.param(Evacuate(brokers=frozenset({1})), id="evacuate"),
        pytest.param(ReplaceBroker(old=1, new=3), id="replace"),
    ],
)
def test_a_person_who_names_what_is_to_move_means_them_too(intent: Intent) -> None:
    """The guard asks for a word before it begins."""
    assert "few" in copied(plan(scene(), intent, policy=POLICY))


def test_a_partition_that_has_lost_a_replica_is_rebuilt() -> None:
    """It takes no write now: a copy makes nothing worse."""
    state = scene(down=2)
    assert copied(plan(state, Evacuate(brokers=frozenset({2})), policy=POLICY)) == {"few", "enough"}
    assert copied(plan(state, Balance(), policy=POLICY)) == {"few", "enough"}


def test_a_drained_broker_that_keeps_them_is_an_obstacle() -> None:
    """Named one by one, in a plan that is otherwise executed and in one that is empty."""
    state = scene()
    for chosen, status in (("few|enough", "misses-some-goals"), ("few", "no-plan-found")):
        made = plan(state, Balance(selection=Selection(topics=chosen)), policy=POLICY.with_drained([1]))
        assert made.status == status
        stuck = {o.subject for o in made.obstacles if o.code == FEW}
        assert stuck == {f"few-{n}" for n in range(6)}


def test_the_checker_finds_one_that_moves_all_the_same() -> None:
    """By its own count, from the intent and the policy."""
    state, loads = scene(), Loads.from_state(scene())
    loose = plan(state, Balance(), policy=ALLOWED)
    assert check(state, loose, Balance(), loads=loads, policy=ALLOWED) == []
    found = check(state, loose, Balance(), loads=loads, policy=POLICY)
    assert {(f.code, f.subject.rsplit("-", 1)[0]) for f in found} == {("selection", "few")}


def test_why_it_stays_and_what_was_asked_are_told() -> None:
    """In an explanation, and in the plan file."""
    state = scene()
    made, loads = plan(state, Balance(), policy=POLICY), Loads.from_state(state)
    told = why(state, made, Balance(), TopicPartition("few", 0), loads=loads, policy=POLICY)
    assert any("min.insync.replicas" in line for line in told)
    assert load_request(dump_request(Balance(), ALLOWED, 1)) == (Balance(), ALLOWED, 1)


def test_a_topic_that_is_to_follow_kafkas_placement_waits_as_well() -> None:
    """No user asked for that by name; the daemon says why."""
    rule = TopicRule(topics="few|enough", kafka_placement=True)
    state = scene()
    wanted, refusals = kafka_placement_intent(state, replace(POLICY, topic_rules=(rule,)))
    assert wanted is not None
    assert (wanted.selection.topic("few"), wanted.selection.topic("enough"), len(refusals)) == (False, True, 1)
    wanted, refusals = kafka_placement_intent(state, replace(ALLOWED, topic_rules=(rule,)))
    assert wanted is not None
    assert (wanted.selection.topic("few"), refusals) == (True, ())

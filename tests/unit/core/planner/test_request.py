"""A plan says what was asked for, and the same can be asked again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.executor.scenes import MB, T, scene

from ballast.app.replan import difference, replan
from ballast.core.plan import Move, Plan
from ballast.core.plan.file import dumps, loads
from ballast.core.planner import (
    Balance,
    Capacity,
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Place,
    PlannerPolicy,
    Racks,
    ReplaceBroker,
    Selection,
    TopicRule,
    plan,
)
from ballast.core.planner.request import INTENTS, dump_request, load_request
from ballast.errors import UsageError

ASKED: tuple[Intent, ...] = (
    Balance(selection=Selection(topics="a|b", exclude_brokers="9")),
    Leaders(),
    Demote(brokers=frozenset({3, 1})),
    Decommission(brokers=frozenset({4})),
    Expand(brokers=frozenset({4})),
    Evacuate(racks=frozenset({"r1", "r2"})),
    ChangeReplicationFactor(to=3, selection=Selection(topics=".*")),
    Racks(),
    Place(selection=Selection(topics="a", brokers="1|2"), start=3, shift=0, replication_factor=2),
    ReplaceBroker(old=1, new=4),
)
POLICY = PlannerPolicy(
    band=0.05,
    bands={"disk": 0.1},
    max_bytes=7,
    draining=frozenset({2}),
    pinned_topics="x",
    topic_rules=(
        TopicRule(topics="a.*", brokers=frozenset({1, 2}), leader_racks=frozenset({"r1"}), max_per_broker=2),
        TopicRule(topics="b", not_brokers=frozenset({3}), spread_evenly=True, ignore_racks=True),
    ),
    capacities={1: Capacity(disk_bytes=5, cpu=2)},
    prove=False,
)


@pytest.mark.parametrize("intent", ASKED, ids=lambda i: type(i).__name__)
@pytest.mark.parametrize("policy", [PlannerPolicy(), POLICY], ids=["defaults", "every-kind-of-knob"])
def test_a_question_comes_back_as_it_was(intent: Intent, policy: PlannerPolicy) -> None:
    """Through JSON, whatever was asked."""
    written = json.loads(json.dumps(dump_request(intent, policy, 7)))
    assert load_request(written) == (intent, policy, 7)


def test_every_intent_can_be_asked_again() -> None:
    """A new intent has to be named where requests are read."""
    assert {type(i).__name__ for i in ASKED} == set(INTENTS) == {c.__name__ for c in Intent.__subclasses__()}


def test_defaults_are_not_written() -> None:
    """A plan stays readable: only what was said is in it."""
    assert dump_request(Balance(), PlannerPolicy(), 0) == {"intent": "Balance", "wanted": {}, "policy": {}, "seed": 0}


@pytest.mark.parametrize(
    "change",
    [
        {"intent": "Sideways"},
        {"wanted": {"brokers": ["x"]}},
        {"wanted": {"colour": 1}},
        {"wanted": None},
        {"policy": {"band": 7}},
        {"policy": {"band": "wide"}},
        {"policy": {"prove": 1}},
        {"policy": {"topic_rules": [{"topics": "a", "brokers": []}]}},
        {"policy": {"topic_rules": [{"brokers": [1]}]}},
        {"seed": None},
    ],
)
def test_a_request_that_was_changed_is_refused(change: dict[str, Any]) -> None:
    """Whatever is not a question is one sentence, never a traceback."""
    good = dump_request(Decommission(brokers=frozenset({4})), PlannerPolicy(), 0)
    with pytest.raises(UsageError, match="'request' cannot be read"):
        load_request({**good, **change})


def test_a_saved_plan_is_made_again_for_the_cluster_as_it_is() -> None:
    """Another user moves a partition of the plan meanwhile: the same intent is planned anew, and the change is told."""
    s = scene({0: (1, 2), 1: (1, 3), 2: (2, 3)}, size_bytes=10 * MB)
    made = plan(s.cluster.snapshot(), Decommission(brokers=frozenset({1})))
    saved = loads(dumps(made))
    assert {m.name.partition for m in saved.moves} == {0, 1}
    s.cluster.alter_reassignments({made.moves[0].name: (4, 2) if made.moves[0].partition == 0 else (4, 3)})
    s.world.clock.sleep(30)
    told: list[str] = []
    again = replan(saved, s.cluster.snapshot(), (), told.append)
    assert len(again.moves) == 1
    assert again.fingerprint != saved.fingerprint
    assert again.request == saved.request
    said = "\n".join(told)
    assert "Planned again (decommission 1): 1 move instead of 2" in said
    assert f"no longer: {made.moves[0].name}" in said


def test_a_plan_that_no_planner_made_cannot_be_made_again() -> None:
    """Stock JSON says where things go, not why."""
    s = scene()
    bare = s.plan(Move(T, 0, (1, 2), (3, 2), MB))
    with pytest.raises(UsageError, match="does not say what was asked for"):
        replan(bare, s.cluster.snapshot(), (), print)


def test_the_difference_names_a_few_and_counts_the_rest() -> None:
    """Ten thousand differences are not ten thousand lines."""
    moves = tuple(Move(T, i, (1, 2), (3, 2), MB) for i in range(20))
    before = Plan("balance", "c", "", moves)
    lines = difference(before, replace(before, moves=tuple(replace(m, new=(4, 2)) for m in moves[:12])))
    assert lines[0].startswith("Planned again (balance): 12 moves instead of 20")
    assert sum("no longer" in line for line in lines) == 6
    assert "  other: … and 7 more" in lines

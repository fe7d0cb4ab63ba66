"""What people are told about a plan: reasons, refusals, the page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from string import Formatter

import pytest
from tests.unit.core.planner.clusters import cluster

from ballast.core import planner
from ballast.core.catalogue import Key, codes_of
from ballast.core.cluster import Broker, TopicPartition
from ballast.core.planner import Balance, Decommission, Expand, Loads, PlannerPolicy, plan
from ballast.core.planner.report.explain import why, why_not
from ballast.core.planner.report.page import page
from ballast.core.planner.report.sentences import REJECTIONS
from ballast.core.planner.rules import Setup, Verdict, judge
from ballast.errors import UsageError

POLICY = PlannerPolicy(band=0.1, trigger=0.1, slack_bytes=0, prove=False)
STATE = cluster(*[(1, 2), (2, 3), (3, 1)] * 6, brokers=4)
LOADS = Loads.from_state(STATE)


def test_a_move_tells_its_reason_and_a_stay_its_cause() -> None:
    """Both answers name brokers and figures."""
    intent = Expand(brokers=frozenset({4}))
    made = plan(STATE, intent, policy=POLICY)
    moved = made.moves[-1].name
    assert "broker 4 is to be filled" in why(STATE, made, intent, moved, loads=LOADS, policy=POLICY)[0]
    told = why(STATE, made, intent, moved, loads=LOADS, policy=POLICY)
    assert "  Broker 4: disk at 0 % of its share before" in told[2]
    assert "  Not on brokers 1, 2, 3: no replica is taken there in this plan." in told
    stays = next(STATE.name(r) for r in range(18) if STATE.name(r) not in {m.name for m in made.moves})
    assert "stays on" in why(STATE, made, intent, stays, loads=LOADS, policy=POLICY)[0]
    with pytest.raises(UsageError, match="no partition t-99"):
        why(STATE, made, intent, TopicPartition("t", 99), loads=LOADS, policy=POLICY)


def test_a_closed_broker_says_why() -> None:
    """A broker that is being emptied takes nothing, and says so for every partition."""
    intent = Decommission(brokers=frozenset({3}))
    made = plan(STATE, intent, policy=POLICY)
    told = "\n".join(why_not(STATE, made, intent, 3, loads=LOADS, policy=POLICY))
    assert "is being decommissioned" in told
    assert "18 of 18 partitions cannot be placed here" in told


@pytest.mark.parametrize(
    ("broker", "expected"),
    [(1, ("already-replica", "")), (4, None), (3, ("broker-open", "cordoned")), (5, ("broker-open", "down"))],
)
def test_rules_answer_for_one_pair(broker: int, expected: tuple[str, str] | None) -> None:
    """Accept or reject, with the rule's name and its cause."""
    policy = replace(POLICY, cordoned=frozenset({3}))
    state = replace(STATE, brokers=(*STATE.brokers, Broker(5, alive=False)))
    verdict = judge(Setup.of(state, Balance(), LOADS, policy), 0, broker)
    assert (verdict and (verdict.code, verdict.cause)) == expected
    assert verdict is None or verdict.values == {"broker": broker}


@pytest.mark.parametrize("key", REJECTIONS)
def test_every_rejection_has_a_sentence_that_takes_its_values(key: Key) -> None:
    """Nothing of the template is left."""
    template = REJECTIONS[key]
    assert isinstance(template, str)
    names = {name for _, name, _, _ in Formatter().parse(template) if name}
    rule, cause = (key, "") if isinstance(key, str) else key
    said = Verdict(rule, dict.fromkeys(names, 7), cause, "pair").detail
    assert said
    assert not set("{}<") & set(said)


def test_every_rejection_is_made_somewhere() -> None:
    """No sentence is kept that no rule leads to."""
    sources = "\n".join((Path(planner.__path__[0]) / f"{name}.py").read_text() for name in ("rules", "problem/scope"))
    made = set(re.findall(r'_reject\("([a-z-]+)"', sources))
    assert made == set(codes_of(REJECTIONS))
    assert all(f'"{key[1]}"' in sources for key in REJECTIONS if not isinstance(key, str))


def test_a_rejection_without_a_sentence_is_a_bug() -> None:
    """It is found where it is made, not where it is shown."""
    setup = Setup.of(STATE, Balance(), LOADS, replace(POLICY, cordoned=frozenset({3})))
    setup.scope.why_closed[2] = "because"
    with pytest.raises(ValueError, match="because"):
        judge(setup, 0, 3)


def test_a_full_rack_takes_a_replica_in_exchange_for_its_own() -> None:
    """Where the replica in the rack may go, the rack is no reason; where it stays, it is."""
    state = cluster((1, 2), (2, 3), brokers=4, racks=2)
    loads = Loads.from_state(state)
    assert judge(Setup.of(state, Balance(), loads, POLICY), 0, 4) is None
    leaving = Setup.of(state, Decommission(brokers=frozenset({3})), loads, POLICY)
    assert judge(leaving, 1, 1) is None
    refused = judge(leaving, 0, 4)
    assert refused is not None
    assert (refused.code, refused.values) == ("rack-free", {"rack": "r0", "replicas": 1})


@pytest.mark.parametrize(
    ("name", "hint"),
    [(TopicPartition("t", 99), "Topic t has 18 partitions: t-0 to t-17."), (TopicPartition("x", 0), "Write TOPIC")],
)
def test_a_partition_that_is_not_there_is_answered_with_those_that_are(name: TopicPartition, hint: str) -> None:
    """A slip in the number shows the numbers; in the topic, how a partition is written."""
    with pytest.raises(UsageError) as wrong:
        why(STATE, plan(STATE, Balance(), policy=POLICY), Balance(), name, loads=LOADS, policy=POLICY)
    assert wrong.value.hint is not None
    assert wrong.value.hint.startswith(hint)


def test_the_search_accepts_only_what_the_rules_accept() -> None:
    """Every new replica of a plan without racks passes each rule."""
    made = plan(STATE, Balance(), policy=POLICY)
    setup = Setup.of(STATE, Balance(), LOADS, POLICY)
    pairs = [(STATE.index[m.name], b) for m in made.moves for b in m.adding]
    assert pairs
    assert all(judge(setup, row, b) is None for row, b in pairs)


def test_the_page_stands_alone_and_escapes_names() -> None:
    """No script, no address, no markup from names; every move is on it."""
    made = plan(STATE, Balance(), policy=POLICY)
    text = page(replace(made, intent="<b>balance</b>"), rate_bytes_per_s=1_000_000)
    assert "<b>balance</b>" not in text
    assert "<script" not in text
    assert "http" not in text
    assert all(f"<td>{m.name}</td>" in text for m in made.moves)

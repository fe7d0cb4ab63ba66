"""Brokers that people drain count in every plan made by hand; a journal that does not tell is said, and stops nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from tests.unit.executor.scenes import MB, T, scene

from ballast.app.apply import require_cluster
from ballast.app.elect import without_drained
from ballast.app.journal_reading import read_drained, read_held, refuse_filling
from ballast.app.replan import replan
from ballast.app.stop import rollback_outline
from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.leadership.plan import Measure, balance
from ballast.core.placement.java_random import JavaRandom
from ballast.core.plan import Move
from ballast.core.planner import Balance, Expand, PlannerPolicy, plan
from ballast.core.stock.generate import propose
from ballast.core.wording import human_bytes
from ballast.errors import Refused, UsageError
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.rollback import refilled_brokers
from ballast.executor.machine.run import Now, new_run, with_moves
from ballast.executor.machine.stages import Cancelling, Moving, Planned, Verified
from ballast.ports.cluster import Cluster
from ballast.ports.journal import JOURNAL_TOPIC
from ballast.wiring.cluster import OpenCluster

EMPTY = 4
"""The broker that holds nothing in the scene: every balance would fill it."""


def unasked_cluster() -> OpenCluster:
    """A cluster that must not be asked."""
    return OpenCluster(cast(Cluster, None), "127.0.0.1:1")


def refuse(line: str) -> None:
    """Nothing may be told."""
    raise AssertionError(line)


def test_no_journal_means_that_no_broker_is_drained() -> None:
    """A cluster that Ballast never changed is not asked for what it cannot have."""
    assert read_held(unasked_cluster(), scene().cluster.snapshot(), refuse).drains == ()


def test_a_journal_that_does_not_answer_is_said() -> None:
    """Unknown is not none: the drains are None, the person is told, and the command goes on."""
    brokers = (Broker(1, host="b1", port=9092, reachable=False), Broker(2, host="b2", port=9092))
    state = build("c", brokers, (Topic(JOURNAL_TOPIC),), [PartitionRow(JOURNAL_TOPIC, 0, 1, (1, 2), (1, 2))])
    told: list[str] = []
    assert read_held(unasked_cluster(), state, told.append).drains is None
    assert read_drained(unasked_cluster(), state, told.append) == frozenset()
    assert len(told) == 2
    assert "draining brokers are not known" in told[0]


def test_a_plan_by_hand_fills_no_drained_broker() -> None:
    """What a balance would fill stays empty once it is drained, in a plan that is made again, too."""
    state = scene({p: (1 + p % 3, 1 + (p + 1) % 3) for p in range(12)}, size_bytes=10 * MB).cluster.snapshot()
    filling = plan(state, Balance())
    assert any(EMPTY in m.adding for m in filling.moves)
    heeded = plan(state, Balance(), policy=PlannerPolicy().with_drained({EMPTY}))
    assert not any(EMPTY in m.adding for m in heeded.moves)
    again = replan(filling, state, {EMPTY}, print)
    assert not any(EMPTY in m.adding for m in again.moves)
    assert again.request == filling.request, "a drain is of the moment and no part of the question"


def test_a_plan_from_before_a_drain_is_refused() -> None:
    """It would fill the broker again; a plan that puts nothing there is none of its business."""
    s = scene()
    filling = s.plan(Move(T, 0, (1, 2), (EMPTY, 2), MB))
    with pytest.raises(Refused) as told:
        refuse_filling(filling, {EMPTY})
    assert told.value.hint is not None
    assert f"drains end {EMPTY}" in told.value.hint
    refuse_filling(filling, {3})
    refuse_filling(plan(s.cluster.snapshot(), Expand(brokers=frozenset({EMPTY}))), ())


def test_no_leader_is_elected_on_a_drained_broker() -> None:
    """It would only give it away again; that is told.  A partition without any leader is elected all the same."""
    rows = [PartitionRow("t", n, leader, (EMPTY, 1), (EMPTY, 1)) for n, leader in enumerate((1, 1, -1))]
    rows.append(PartitionRow("t", 3, 2, (1, 2), (1, 2)))
    state = build("c", tuple(Broker(i, host="h", port=9092) for i in range(1, 5)), (Topic("t"),), rows)
    names = list(state.index)
    told: list[str] = []
    assert without_drained(state, names, frozenset(), told.append) == names
    assert told == []
    assert [n.partition for n in without_drained(state, names, frozenset({EMPTY}), told.append)] == [2, 3]
    assert f"2 preferred leader elections left out, to broker {EMPTY}" in told[0]


@pytest.mark.parametrize("measure", ["counts", "bytes"])
def test_a_drained_broker_gets_no_preferred_leaders(measure: Measure) -> None:
    """As one that is excluded by hand; broker 3 would lead four of twelve."""
    s = scene({p: (1 + p % 3, 1 + (p + 1) % 3) for p in range(12)}, size_bytes=10 * MB)
    state = s.cluster.snapshot()
    assert balance(state, measure).moves == ()
    drained = balance(state, measure, excluded={3})
    gone = {m.name for m in drained.moves if m.old[0] == 3}
    assert gone == {n for n in state.index if int(state.preferred[state.index[n]]) == 3}
    assert 3 not in {m.new[0] for m in drained.moves}


def test_a_proposal_of_the_stock_tool_puts_nothing_on_a_drained_broker() -> None:
    """It is named on the side, like one that is cordoned."""
    state = scene().cluster.snapshot()
    found = propose(state, [T], [1, 2, 3], algorithm="kraft", rng=JavaRandom(1), drained={3})
    assert {b for r in found.proposed.values() for b in r} == {1, 2}
    assert [w for w in found.warnings if "3" in w and "rained" in w]


def test_a_rollback_that_would_fill_a_drained_broker_is_known_before() -> None:
    """Replicas that have left a broker, and those that may before the run has been cancelled; not those that never began to."""
    plan = scene().plan(*(Move(T, n, (n + 1, 5), (6, 5), MB) for n in range(4)))
    run = new_run("r", plan, ExecutionPolicy(), Now(0, 0.0))
    stages = (Verified(), Moving(), Planned(), Cancelling())
    run = with_moves(run, {m.move.name: replace(m, stage=st) for m, st in zip(run.moves.values(), stages, strict=True)})
    assert refilled_brokers(run) == {1, 2}


def test_what_a_rollback_copies_is_known_before() -> None:
    """Of moves that have arrived, each goes back; those that are open are cancelled."""
    plan = scene().plan(*(Move(T, n, (n + 1, 5), (6, 5), MB) for n in range(2)))
    run = new_run("r", plan, ExecutionPolicy(), Now(0, 0.0))
    stages = (Verified(), Moving())
    run = with_moves(run, {m.move.name: replace(m, stage=st) for m, st in zip(run.moves.values(), stages, strict=True)})
    told = rollback_outline(run, scene({0: (6, 5), 1: (2, 5)}, brokers=6).cluster.snapshot())
    assert human_bytes(MB) in told
    assert "1 open move " in told


def test_a_plan_of_another_cluster_is_refused_by_its_id() -> None:
    """By every command that compares a plan with a cluster, and whatever the topics there are called."""
    s = scene()
    made = s.plan(Move(T, 0, (1, 2), (EMPTY, 2), MB))
    state = s.cluster.snapshot()
    require_cluster(replace(made, cluster_id=state.cluster_id), state)
    with pytest.raises(UsageError):
        require_cluster(replace(made, cluster_id="another"), state)

"""Brokers that people drain count in every plan made by hand; a journal that does not tell is said, and stops nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from tests.unit.executor.scenes import MB, T, scene

from ballast.cli.commands.apply.command import require_cluster
from ballast.cli.commands.apply.replan import replanned
from ballast.cli.journal_reading import heeding, read_drained, read_held, refuse_filling
from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.plan import Move
from ballast.core.planner import Expand, Level, PlannerPolicy, plan
from ballast.errors import Refused, UsageError
from ballast.ports.journal import JOURNAL_TOPIC
from ballast.wiring.cluster import OpenCluster

EMPTY = 4
"""The broker that holds nothing in the scene: every balance would fill it."""


def nobody() -> OpenCluster:
    """A cluster that must not be asked."""
    return cast(OpenCluster, None)


def test_no_journal_means_that_nobody_is_drained() -> None:
    """A cluster that Ballast never changed is not asked for what it cannot have."""
    assert read_held(nobody(), scene().cluster.snapshot()).drains == ()


def test_a_journal_that_does_not_answer_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown is not none: the drains are None, the person is told, and the command goes on."""
    brokers = (Broker(1, host="b1", port=9092, reachable=False), Broker(2, host="b2", port=9092))
    state = build("c", brokers, (Topic(JOURNAL_TOPIC),), [PartitionRow(JOURNAL_TOPIC, 0, 1, (1, 2), (1, 2))])
    assert read_held(nobody(), state).drains is None
    assert read_drained(nobody(), state) == frozenset()
    assert "drained brokers are not known" in capsys.readouterr().err


def test_a_plan_by_hand_fills_no_drained_broker() -> None:
    """What a balance would fill stays empty once it is drained, in a plan that is made again, too."""
    state = scene({p: (1 + p % 3, 1 + (p + 1) % 3) for p in range(12)}, size_bytes=10 * MB).cluster.snapshot()
    filling = plan(state, Level())
    assert any(EMPTY in m.adding for m in filling.moves)
    heeded = plan(state, Level(), policy=heeding(PlannerPolicy(), {EMPTY}))
    assert not any(EMPTY in m.adding for m in heeded.moves)
    again = replanned(filling, state, {EMPTY})
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


def test_a_plan_of_another_cluster_is_refused_by_its_id() -> None:
    """By every command that compares a plan with a cluster, and whatever the topics there are called."""
    s = scene()
    made = s.plan(Move(T, 0, (1, 2), (EMPTY, 2), MB))
    state = s.cluster.snapshot()
    require_cluster(replace(made, cluster_id=state.cluster_id), state)
    with pytest.raises(UsageError):
        require_cluster(replace(made, cluster_id="another"), state)

"""What a run has made of each broker, before and after."""

from __future__ import annotations

import json

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.app.change import broker_figures, settled_snapshot
from ballast.cli.commands.apply import show_change
from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.plan import Move
from ballast.executor.machine.policy import ExecutionPolicy

T0, T1 = TopicPartition(T, 0), TopicPartition(T, 1)


def moved() -> tuple[Scene, Move]:
    """Two partitions led by broker 1, and a move of one to broker 3 with its leadership."""
    s = scene({0: (1, 2), 1: (1, 2)}, brokers=3, size_bytes=20 * MB)
    return s, Move(T, 0, (1, 2), (3, 2), 20 * MB)


def test_both_sides_of_a_run_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Leaders, replicas and data of each broker; what has not changed stands once, what was created meanwhile not at all."""
    s, move = moved()
    before = s.cluster.snapshot()
    plan = s.plan(move, elections=(T0,))
    assert s.driver.execute(plan, ExecutionPolicy(), run_id="r").status == "done"
    s.world.add_topic("meanwhile", {0: (1, 2)}, size_bytes=5 * MB)
    s.world.clock.sleep(5)
    show_change(before, settled_snapshot(s.cluster, plan), output="table")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[3:]]
    assert [r[:2] for r in rows] == [["1", "r1"], ["2", "r2"], ["3", "r3"]]
    assert " ".join(rows[0][2:]) == "2 → 1 2 → 1 38.1 MiB → 19.1 MiB"
    assert " ".join(rows[1][2:]) == "0 2 38.1 MiB"
    assert " ".join(rows[2][2:]) == "0 → 1 0 → 1 0 B → 19.1 MiB"


def test_programs_get_the_figures_and_null_where_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """A broker that does not answer has unknown bytes, not zero; one that is new has no before."""
    s, _ = moved()
    before = s.cluster.snapshot()
    s.world.kill(1)
    s.world.clock.sleep(30)
    show_change(before, s.cluster.snapshot(), output="json")
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] == "BrokerChanges"
    assert told["brokers"][0]["after"] == {"leaders": 0, "replicas": 2, "bytes": None}
    assert broker_figures(s.cluster.snapshot(), {T0})[1]["bytes"] == UNKNOWN


def test_metadata_that_lags_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look is not taken while leaders are still shown where they were."""
    s, move = moved()
    monkeypatch.setattr("ballast.app.change.time.sleep", s.world.clock.sleep)
    s.cluster.alter_reassignments({T0: move.new})
    s.world.clock.sleep(15)
    s.cluster.elect_leaders([T0])
    shown = settled_snapshot(s.cluster, s.plan(move, elections=(T0,)))
    assert broker_figures(shown, {T0})[3]["leaders"] == 1

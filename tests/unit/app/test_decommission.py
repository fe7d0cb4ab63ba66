"""A decommission is many runs: what holds the next one back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.core.planner.clusters import cluster

from ballast.app.decommission import decommission
from ballast.app.runs import Session
from ballast.core.named_brokers import NamedBrokers
from ballast.core.planner import PlannerPolicy
from ballast.errors import Incomplete
from ballast.executor.driver.events import RunResult
from ballast.executor.machine.policy import ExecutionPolicy


def test_a_pause_during_one_step_holds_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step's moves were all in progress, so that it ended; the step that would copy more is not begun."""
    monkeypatch.setattr("ballast.app.decommission.read_drained", lambda *_: frozenset())
    state = cluster((1, 2), (2, 1), (2, 3), brokers=4)
    carried: list[object] = []

    def execute(plan: Any, *_: object) -> RunResult:
        carried.append(plan)
        return RunResult("r", "done", paused_by="Ada")

    @contextmanager
    def begin() -> Iterator[Session]:
        user_interface = SimpleNamespace(show_line=lambda _: None, confirm=lambda _: None)
        opened = SimpleNamespace(cluster=SimpleNamespace(snapshot=lambda: state))
        session = SimpleNamespace(
            opened=opened,
            user_interface=user_interface,
            execute=execute,
            finish_open_runs=lambda: None,
            tell_pace=lambda *_: None,
        )
        yield cast("Session", session)

    with pytest.raises(Incomplete, match="Paused by Ada: nothing new starts"):
        decommission(begin, NamedBrokers.parse("1"), PlannerPolicy(), ExecutionPolicy())
    assert len(carried) == 1

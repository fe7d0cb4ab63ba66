"""What a command tells of the runs it executes: those that were left before it, its own, and those that end in an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.app.runs import Session
from ballast.cli.terminal import Terminal
from ballast.core.plan import Move
from ballast.errors import Fenced
from ballast.executor.driver.events import Listener, Performing
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.transitions import EffectKind
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.runs import Writer

POLICY = ExecutionPolicy(throttle=5 * MB, measure_s=0)
FIRST, SECOND = Move(T, 0, (1, 2), (3, 2), 100 * MB), Move(T, 1, (2, 1), (4, 1), 100 * MB)


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A cluster whose last process left a run behind in mid-move; commands take its lock instead of a real one."""
    s = scene({0: (1, 2), 1: (2, 1)})
    s.world.clock.after(10.0, s.driver.leave)
    assert s.driver.execute(s.plan(FIRST), POLICY, run_id="open-before").status == "left"
    s.process("the command")

    @contextmanager
    def writer(opened: OpenCluster, *, listener: Listener, **_: object) -> Iterator[Writer]:
        s.driver.listen(listener)
        yield Writer(opened, s.journal, s.driver, s.world.clock)

    monkeypatch.setattr("ballast.app.runs.open_writer", writer)
    return s


def apply(s: Scene, output: str) -> int:
    """``ballast apply`` of a second plan."""
    opened = OpenCluster(s.cluster, "sim:1")
    return Session(opened, Terminal(output), "ballast apply").execute(s.plan(SECOND), POLICY).exit_code


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The JSON lines on stdout."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_run_that_follows_one_that_was_left_tells_its_own_story(
    left: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both begin, move and end on stdout: the finished one's screen does not swallow what comes after it."""
    assert apply(left, "json") == 0
    lines = told(capsys)
    began = [(line["run"], line["resumed"]) for line in lines if line["kind"] == "RunBegan"]
    assert began[0] == ("open-before", True)
    assert [resumed for _, resumed in began] == [True, False]
    assert [line["status"] for line in lines if line["kind"] == "RunEnded"] == ["done", "done"]
    verified = [line["partition"] for line in lines if line["kind"] == "MoveChanged" and line["after"] == "verified"]
    assert verified == [0, 1]


def test_a_run_that_ends_in_an_error_has_told_its_story_until_then(
    left: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is lost when the second run is about to submit: the error comes through, after what led up to it."""
    listen = left.driver.listen

    class Loses:
        """Hears everything first, and loses the lock at the second run's submission."""

        def __init__(self, screen: Listener) -> None:
            self.screen = screen

        def on_event(self, event: Any) -> None:
            """Pass it on."""
            self.screen.on_event(event)
            if isinstance(event, Performing) and event.effect.kind is EffectKind.SUBMIT:
                raise Fenced("Another process has taken this cluster's lock.")

    monkeypatch.setattr(left.driver, "listen", lambda screen: listen(Loses(screen)))
    with pytest.raises(Fenced, match="has taken this cluster's lock"):
        apply(left, "table")
    story = capsys.readouterr().err
    assert "Run open-before (test) is still open; it is finished first." in story
    assert "Run open-before done: 1 move verified" in story
    begun = story[story.index("Run open-before done") :]
    assert "begins: test (1 move)." in begun, "what was heard before the error is shown"

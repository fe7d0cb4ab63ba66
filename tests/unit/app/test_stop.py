"""Cancel and roll back: which run is meant, and what is said where it is not there to be stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.app.runs import Session
from ballast.app.stop import stop
from ballast.cli.commands.runs import stopped_line
from ballast.cli.option_types import Reason
from ballast.cli.terminal import Terminal
from ballast.core.plan import Move
from ballast.errors import Refused, UsageError
from ballast.executor.driver.events import Listener
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Run
from ballast.executor.machine.step import Command
from ballast.ports.journal import Record, sign
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.runs import Writer

POLICY = ExecutionPolicy(throttle=5 * MB, measure_s=0)


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A cluster whose last process left run ``r`` behind in mid-move and released the lock."""
    s = scene({0: (1, 2)})
    s.world.clock.after(10.0, s.driver.leave)
    assert s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB)), POLICY, run_id="r").status == "left"
    s.journal.release()
    for module in ("app.stop", "app.journal_reading", "wiring.runs"):
        monkeypatch.setattr(f"ballast.{module}.journal_to_look_at", lambda *_: s.journal)
    monkeypatch.setattr("ballast.app.runs.open_writer", _writer(s))
    return s


def _writer(s: Scene, meanwhile: Callable[[], None] = lambda: None) -> Callable[..., object]:
    """The lock of the simulated cluster; ``meanwhile`` happens while it is waited for."""

    @contextmanager
    def writer(opened: OpenCluster, *, listener: Listener | None, **_: object) -> Iterator[Writer]:
        driver = s.process("the command")
        if listener is not None:
            driver.listen(listener)
        meanwhile()
        yield Writer(opened, s.journal, driver, s.world.clock)

    return writer


def session(s: Scene) -> Session:
    """``ballast cancel --yes``."""
    return Session(OpenCluster(s.cluster, "sim:1"), Terminal("table", yes=True), "ballast cancel")


def strip(s: Scene) -> None:
    """The records of its moves are gone: it cannot be read any more."""
    s.process("another user").leave()
    s.journal.append([Record(r.key, None) for r in s.journal.read() if r.key.startswith("move/r/")])
    s.journal.release()


def forget(s: Scene) -> None:
    """Nothing of the run is in the journal any more; a run whose id begins with its is."""
    records = [r for r in s.journal.read() if "/r" in r.key]
    renamed = [Record(r.key.replace("/r", "/r-back"), r.value) for r in records]
    s.journal.append([*(Record(r.key, None) for r in records), *renamed])


@pytest.mark.parametrize("run_id", [None, "r"])
@pytest.mark.parametrize("command", [Command.CANCEL, Command.ROLLBACK])
def test_an_open_run_that_cannot_be_read_is_named(left: Scene, command: Command, run_id: str | None) -> None:
    """It is never said that no run is open."""
    strip(left)
    with pytest.raises(Refused, match=r"^Run r cannot be read: Records of it are missing"):
        stop(session(left), command, run_id)


def test_one_that_can_be_read_is_stopped_beside_it(left: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """And the other one is named."""
    left.process("another user")
    records = [r for r in left.journal.read() if r.key == "run/r"]
    left.journal.append([Record("run/q", records[0].value)])
    left.journal.release()
    assert stop(session(left), Command.CANCEL, None) == 8
    assert "Run q cannot be read" in capsys.readouterr().err
    assert left.cluster.reassignments() == {}


@pytest.mark.parametrize("command", [Command.CANCEL, Command.ROLLBACK])
def test_a_run_that_is_forgotten_while_the_lock_is_waited_for_is_refused(
    left: Scene, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It expired, or the journal was made again; one whose id begins like it is not taken for it."""
    monkeypatch.setattr("ballast.app.runs.open_writer", _writer(left, lambda: forget(left)))
    with pytest.raises(Refused, match=r"^Run r is not in the journal any more"):
        stop(session(left), command, "r")


def test_a_run_that_becomes_unreadable_meanwhile_is_refused(left: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """With why."""

    def meanwhile() -> None:
        left.journal.append([Record(r.key, None) for r in left.journal.read() if r.key.startswith("move/r/")])

    monkeypatch.setattr("ballast.app.runs.open_writer", _writer(left, meanwhile))
    with pytest.raises(Refused, match=r"^Run r cannot be read"):
        stop(session(left), Command.CANCEL, "r")


@pytest.mark.parametrize("run_id", [None, "r"])
def test_resume_names_what_it_cannot_read(left: Scene, run_id: str | None) -> None:
    """A run that is open and cannot be resumed is not told as none."""
    strip(left)
    with pytest.raises(Refused, match=r"^Run r cannot be read"):
        session(left).resume(run_id)


@pytest.mark.parametrize("settled", [True, False])
def test_resume_refuses_a_run_that_is_not_there(left: Scene, *, settled: bool) -> None:
    """As every command that takes a run does: a mistyped id is not told as one of a run that has ended."""
    if settled:
        assert session(left).resume("r") == 0
    with pytest.raises(UsageError, match=r"^There is no run typo\."):
        session(left).resume("typo")


def test_resume_takes_the_only_run_whose_id_begins_so(left: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused where there is more than one; of one that has ended that is said."""
    left.process("another user")
    (header,) = (r for r in left.journal.read() if r.key == "run/r")
    left.journal.append([Record(f"run/{i}", {**(header.value or {}), "moves": 0}) for i in ("other-1", "other-2")])
    left.journal.release()
    with pytest.raises(UsageError, match=r"^More than one run begins with other-\."):
        session(left).resume("other-")
    assert session(left).resume("other-2") == 0
    assert [r.id for r in left.driver.open_runs()] == ["other-1", "r"]
    assert session(left).resume("other-2") == 0
    assert "Run other-2 has ended." in capsys.readouterr().err


def find(s: Scene, run_id: str) -> Run:
    """A run of the journal."""
    return load_runs(s.journal.read(), Now(0, 0.0))[run_id]


def test_the_reason_stands_with_who_cancelled(left: Scene) -> None:
    """Where no process holds the lock, and this one does it."""
    assert stop(session(left), Command.CANCEL, "r", "release at noon") == 8
    told = stopped_line(find(left, "r"))
    assert told.startswith("Cancelled by ")
    assert told.endswith(" (ballast cancel): release at noon.")


def test_the_holder_is_told_the_reason(left: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is from the page."""
    monkeypatch.setattr("ballast.app.requests.ANSWER_WITHIN_S", 0.0)
    left.process("the daemon")
    stop(session(left), Command.ROLLBACK, "r", "release at noon")
    (asked,) = left.journal.requests()
    assert (asked.kind, dict(asked.body)) == ("rollback", {"run": "r", "reason": "release at noon"})
    assert sign(asked).endswith("(ballast rollback): release at noon")


def test_the_rollback_of_a_run_that_has_ended_keeps_the_reason(left: Scene) -> None:
    """It was cancelled by no person: the intent of its rollback says why."""
    assert session(left).resume("r") == 0
    assert stop(session(left), Command.ROLLBACK, "r", "release at noon") == 0
    (back,) = (r for r in load_runs(left.journal.read(), Now(0, 0.0)).values() if r.rollback_of == "r")
    assert (back.intent, back.stopped_by, find(left, "r").stopped_by) == ("rollback r: release at noon", "", "")


@pytest.mark.parametrize("text", ["a\nb", "x" * 201])
def test_a_reason_is_a_line(text: str) -> None:
    """As long as the journal keeps it."""
    with pytest.raises(click.BadParameter, match="a line of at most 200 characters"):
        Reason().convert(text, None, None)

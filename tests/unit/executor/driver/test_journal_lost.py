"""The journal is deleted while a run goes on: the run ends as the person says, and nothing that they had set is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.errors import Unavailable
from ballast.executor.driver.events import MoveChanged, RunEvent, RunResult
from ballast.executor.journal.notes import RunNote
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now
from ballast.executor.machine.stages import Moving
from ballast.executor.machine.step import Command
from ballast.ports.journal import Request

THEIRS = "5000000"
RATE = "leader.replication.throttled.rate"


@dataclass
class AtFirstMove:
    """Does something once, when the first move is in flight."""

    act: Callable[[], None] | None
    notes: list[RunNote]

    def on_event(self, event: RunEvent) -> None:
        """Keep notes; act once."""
        if isinstance(event, RunNote):
            self.notes.append(event)
        if self.act is not None and isinstance(event, MoveChanged) and isinstance(event.after, Moving):
            act, self.act = self.act, None
            act()


def played(
    s: Scene, act: Callable[[], None], *, journal_lost: Literal["finish", "leave"] = "finish", rate: int = 3 * MB
) -> tuple[RunResult, list[RunNote]]:
    """A throttled run of two moves, one after the other; what came of it and what was told."""
    ears = AtFirstMove(act, [])
    s.driver.listen(ears)
    s.world.brokers[1].configs[RATE] = THEIRS
    plan = s.plan(Move(T, 0, (1, 2), (3, 2)), Move(T, 1, (1, 2), (4, 2)))
    policy = ExecutionPolicy(throttle=rate, moves_at_once=1, measure_s=0, journal_lost=journal_lost)
    return s.driver.execute(plan, policy, run_id="r"), ears.notes


def commands(notes: list[RunNote]) -> set[str]:
    """What was told to be typed."""
    return {n.values["command"] for n in notes if n.code == "restore-command"}


@pytest.fixture
def s() -> Scene:
    """Two partitions on four brokers."""
    return scene({0: (1, 2), 1: (1, 2)})


def test_a_run_goes_on_and_the_journal_holds_the_whole_of_it(s: Scene) -> None:
    """Made again from memory: a process that starts now finds the run, and the person's rate is back."""
    result, notes = played(s, s.store.lose)
    assert result.status == "done"
    assert result.throttles_to_restore == ()
    assert [n.values["how"] for n in notes if n.code == "journal-lost"] == ["deleted"]
    runs = load_runs(s.journal.read(), Now(0, 0.0))
    assert runs["r"].ended
    assert len(runs["r"].moves) == 2
    assert s.throttles() == {f"broker 1 {RATE}": THEIRS}


def test_a_run_is_left_where_the_person_says_so(s: Scene) -> None:
    """What the move in flight needs stands, and is told with the commands that put it back; nothing more begins."""
    result, notes = played(s, s.store.lose, journal_lost="leave")
    assert result.status == "left"
    assert result.throttles_to_restore
    restore = result.restore_commands
    assert len(restore) == len(result.throttles_to_restore)
    assert any(f"--entity-name 1 --add-config {RATE}={THEIRS}" in command for command in restore)
    assert set(restore) <= commands(notes)
    assert TopicPartition(T, 1) not in s.cluster.reassignments()


@pytest.mark.parametrize("later_s", [3.0, 10.0])
def test_a_loss_that_the_heartbeat_finds_is_told_as_well(s: Scene, later_s: float) -> None:
    """Nothing is to be written then, and the settings are owed all the same."""

    def soon() -> None:
        s.world.clock.at(s.world.clock.monotonic_s() + later_s, s.store.lose)

    result, notes = played(s, soon, journal_lost="leave", rate=1 * MB)
    assert result.status == "left"
    assert result.throttles_to_restore
    assert len(result.restore_commands) == len(result.throttles_to_restore)
    assert set(result.restore_commands) <= commands(notes)


def test_a_remake_that_ends_half_way_is_tried_until_it_is_whole(s: Scene) -> None:
    """What stood before each throttle is in the journal again before anything else."""

    def lose() -> None:
        s.store.failing_remakes = 3
        s.store.lose()

    result, _ = played(s, lose)
    assert (result.status, result.throttles_to_restore, s.store.failing_remakes) == ("done", (), 0)
    assert load_runs(s.journal.read(), Now(0, 0.0))["r"].ended
    assert s.throttles() == {f"broker 1 {RATE}": THEIRS}


def test_what_is_asked_is_heard_though_its_answer_does_not_come_through(
    s: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit timed out and was settled later: the request is answered in the journal, and is not read again."""
    answer = s.journal.answer
    silent = [Unavailable("The cluster could not commit: timed out.")]

    def answer_late(request_id: str, text: str, *, refused: bool = False) -> None:
        answer(request_id, text, refused=refused)
        if silent:
            raise silent.pop()

    monkeypatch.setattr(s.journal, "answer", answer_late)
    ask = Request("q", "cancel", "ada", s.world.clock.now_ms(), {"run": "r"})
    result, _ = played(s, lambda: s.journal.request(ask), rate=1 * MB)
    assert result.status == "cancelled"
    assert [r.answer is None for r in s.journal.requests()] == [False]


def test_what_could_not_be_answered_is_answered_at_the_next_look(s: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heard twice is heard."""
    answer = s.journal.answer
    silent = [Unavailable("The cluster could not commit: timed out.")]

    def refuse_once(request_id: str, text: str, *, refused: bool = False) -> None:
        if silent:
            raise silent.pop()
        answer(request_id, text, refused=refused)

    monkeypatch.setattr(s.journal, "answer", refuse_once)
    ask = Request("q", "pause", "ada", s.world.clock.now_ms(), {"run": "r"})

    def pause() -> None:
        s.journal.request(ask)
        s.world.clock.at(s.world.clock.monotonic_s() + 600, lambda: s.driver.ask(Command.RESUME))

    result, _ = played(s, pause, rate=1 * MB)
    assert result.status == "done"
    assert [r.answer is None for r in s.journal.requests()] == [False]


def test_moves_are_followed_while_the_journal_takes_nothing(s: Scene) -> None:
    """The move ends and is seen to; once the journal is there again the run goes on to its end."""

    def away() -> None:
        s.store.available = False
        s.world.clock.at(s.world.clock.monotonic_s() + 120, back)

    def back() -> None:
        s.store.available = True

    result, notes = played(s, away)
    assert result.status == "done"
    assert any("kafka-configs.sh" in command for command in commands(notes))
    assert s.throttles() == {f"broker 1 {RATE}": THEIRS}


def test_a_user_who_leaves_is_told_every_setting_that_is_owed(s: Scene) -> None:
    """Also while the journal does not answer."""

    def away() -> None:
        s.store.available = False
        s.driver.leave()

    result, _ = played(s, away)
    assert result.status == "left"
    assert result.throttles_to_restore
    assert len(result.restore_commands) == len(result.throttles_to_restore)


def test_an_ordinary_leave_names_what_is_owed(s: Scene) -> None:
    """It stands in the journal: the next start removes it, and no command is needed."""
    result, _ = played(s, s.driver.leave)
    assert result.throttles_to_restore
    assert result.restore_commands == ()

"""The journal is deleted while a run goes on: the run ends as the person says, and nothing that they had set is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.executor.events import Happening, MoveChanged, Note, RunResult
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.records import load_runs
from ballast.executor.run import Now, Stage

THEIRS = "5000000"
RATE = "leader.replication.throttled.rate"


@dataclass
class AtFirstMove:
    """Does something once, when the first move is in flight."""

    act: Callable[[], None] | None
    notes: list[str]

    def hear(self, happening: Happening) -> None:
        """Keep notes; act once."""
        if isinstance(happening, Note):
            self.notes.append(happening.text)
        if self.act is not None and isinstance(happening, MoveChanged) and happening.after is Stage.MOVING:
            act, self.act = self.act, None
            act()


def played(
    s: Scene, act: Callable[[], None], *, journal_lost: Literal["finish", "leave"] = "finish"
) -> tuple[RunResult, list[str]]:
    """A throttled run of two moves, one after the other; what came of it and what was told."""
    ears = AtFirstMove(act, [])
    s.driver.listen(ears)
    s.world.brokers[1].configs[RATE] = THEIRS
    plan = s.plan(Move(T, 0, (1, 2), (3, 2)), Move(T, 1, (1, 2), (4, 2)))
    policy = ExecutionPolicy(throttle=3 * MB, moves_in_cluster=1, measure_s=0, journal_lost=journal_lost)
    return s.driver.execute(plan, policy, run_id="r"), ears.notes


@pytest.fixture
def s() -> Scene:
    """Two partitions on four brokers."""
    return scene({0: (1, 2), 1: (1, 2)})


def test_a_run_goes_on_and_the_journal_holds_the_whole_of_it(s: Scene) -> None:
    """Made again from memory: a process that starts now finds the run, and the person's rate is back."""
    result, notes = played(s, s.store.lose)
    assert result.status == "done"
    assert result.debts == ()
    assert any("deleted" in note for note in notes)
    runs = load_runs(s.journal.read(), Now(0, 0.0))
    assert runs["r"].ended
    assert len(runs["r"].moves) == 2
    assert s.throttles() == {f"broker 1 {RATE}": THEIRS}


def test_a_run_is_left_where_the_person_says_so(s: Scene) -> None:
    """What the move in flight needs stands, and is told with the commands that put it back; nothing more begins."""
    result, notes = played(s, s.store.lose, journal_lost="leave")
    assert result.status == "left"
    assert result.debts
    by_hand = result.by_hand
    assert len(by_hand) == len(result.debts)
    assert any(f"--entity-name 1 --add-config {RATE}={THEIRS}" in command for command in by_hand)
    assert set(by_hand) <= set(notes)
    assert TopicPartition(T, 1) not in s.cluster.reassignments()


def test_moves_are_followed_while_the_journal_takes_nothing(s: Scene) -> None:
    """The move ends and is seen to; once the journal is there again the run goes on to its end."""

    def away() -> None:
        s.store.available = False
        s.world.clock.at(s.world.clock.monotonic_s() + 120, back)

    def back() -> None:
        s.store.available = True

    result, notes = played(s, away)
    assert result.status == "done"
    assert any("kafka-configs.sh" in note for note in notes)
    assert s.throttles() == {f"broker 1 {RATE}": THEIRS}


def test_whoever_leaves_is_told_every_setting_that_is_owed(s: Scene) -> None:
    """Also while the journal does not answer."""

    def away() -> None:
        s.store.available = False
        s.driver.leave()

    result, _ = played(s, away)
    assert result.status == "left"
    assert result.debts
    assert len(result.by_hand) == len(result.debts)


def test_an_ordinary_leave_names_what_is_owed(s: Scene) -> None:
    """It stands in the journal: the next start takes it back, and no command is needed."""
    result, _ = played(s, s.driver.leave)
    assert result.debts
    assert result.by_hand == ()

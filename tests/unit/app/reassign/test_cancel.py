"""A cancel that comes when the move has just ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.app.reassign.cancel import CancelReport, answer, cancel_moves, find_arrived
from ballast.app.reassign.session import ReassignSession
from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.core.stock.files import ReassignmentEntry
from ballast.errors import Fenced
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import Performing, Progressed, RunEvent
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.notes import code_of
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Run
from ballast.executor.machine.transitions import EffectKind
from ballast.ports.cluster import Outcome, Reassignment
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.runs import Writer

T0, T1, GONE = TopicPartition(T, 0), TopicPartition(T, 1), TopicPartition("gone", 0)
ACTIVE = {T0: Reassignment((3, 1, 2), (3,), (1,))}


def test_a_move_that_is_in_flight_no_more_has_ended() -> None:
    """With the replicas that it has now; a deleted topic has none."""
    s = scene({0: (3, 2), 1: (1, 2)}, size_bytes=1e9)
    s.cluster.alter_reassignments({T1: (4, 2)})
    assert find_arrived(s.cluster, {T0, T1, GONE}) == {T0: (3, 2), GONE: ()}
    assert find_arrived(s.cluster, ()) == {}


@pytest.mark.parametrize(
    ("told", "code", "words"),
    [
        (CancelReport(ended={T0: (3, 2)}), 0, "None of the specified partition reassignments are active."),
        (CancelReport(cancelled={T0}), 0, "Successfully cancelled partition reassignment for: t-0"),
        (CancelReport(why={T0: "the broker said so"}), 1, "t-0: the broker said so"),
        (CancelReport(), 1, "t-0: it is still in progress"),
    ],
)
def test_what_was_not_cancelled_is_an_error_with_its_reason(told: CancelReport, code: int, words: str) -> None:
    """What had ended is none."""
    said: list[str] = []
    session = ReassignSession(OpenCluster(scene().cluster, "sim:1"), said.append, lambda _: None)
    assert answer(session, replace(told, active=ACTIVE)) == code
    assert any(words in text for text in said)


POLICY = ExecutionPolicy(throttle=5 * MB, measure_s=0)


MOVES = [Move(T, p, (1, 2), (3, 2), 100 * MB) for p in (0, 1)]


def cancel_one(s: Scene, *, begun: bool = False) -> Run:
    """``--cancel`` of one of the two partitions that run ``r`` has in flight; the run that cancels it."""
    if not begun:
        s.world.clock.after(10.0, s.driver.leave)
        assert s.driver.execute(s.plan(*MOVES), POLICY, run_id="r").status == "left"
    writer = Writer(OpenCluster(s.cluster, "sim:1"), s.journal, s.process("cancel"), s.world.clock)
    told = CancelReport({T0: s.cluster.reassignments()[T0]})
    cancel_moves(writer, (ReassignmentEntry(T, 0, (3, 2)),), told)
    assert told.cancelled == {T0}
    return next(run for run in runs(s).values() if run.id != "r")


def runs(s: Scene) -> dict[str, Run]:
    """Every run in the journal."""
    return load_runs(s.journal.read(), Now(0, 0.0))


def test_a_cancel_of_part_of_a_run_names_who_asked_for_it() -> None:
    """In the run that cancels, and in the one whose move it was: no other user did that."""
    s = scene({0: (1, 2), 1: (1, 2)})
    by = cancel_one(s).stopped_by
    assert by.endswith("(ballast reassign --cancel)")
    (left,) = s.driver.open_runs()
    assert s.process("follower").resume(left).status == "incomplete"
    ended = runs(s)["r"].moves
    assert [(m.stage.code, m.outcome) for m in ended.values()] == [("rolled-back", "rolled-back"), ("verified", "")]
    why = ended[T0].note
    assert why is not None
    assert (code_of(why), why.parameters["by"]) == ("cancelled-by", by)
    assert s.throttles() == {}


@dataclass
class LeavesAtSubmission:
    """A process that is told to leave when it sends its first move."""

    driver: Driver

    def on_event(self, event: RunEvent) -> None:
        """Leave after that."""
        if isinstance(event, Performing) and event.effect.kind is EffectKind.SUBMIT:
            self.driver.leave()


@dataclass
class CancelsAtFirstLook:
    """Another user, who cancels the first partition's reassignment once the run has seen that it goes on."""

    scene: Scene

    def on_event(self, event: RunEvent) -> None:
        """Cancel it then."""
        if isinstance(event, Progressed) and T0 in self.scene.cluster.reassignments():
            self.scene.cluster.alter_reassignments({T0: None})


def test_a_move_that_was_just_submitted_is_not_submitted_again() -> None:
    """The journal knows no more of it than that, and it was cancelled since."""
    s = scene({0: (1, 2), 1: (1, 2)})
    s.driver.listen(LeavesAtSubmission(s.driver))
    s.driver.execute(s.plan(*MOVES), POLICY, run_id="r")
    assert runs(s)["r"].moves[T0].stage.code == "submitted"
    cancel_one(s, begun=True)
    (left,) = s.driver.open_runs()
    s.process("follower").resume(left)
    ended = runs(s)["r"].moves
    assert [(m.stage.code, code_of(m.note)) for m in ended.values()] == [
        ("rolled-back", "cancelled-by"),
        ("verified", None),
    ]


def test_a_cancel_that_left_another_order_is_told_as_that() -> None:
    """Another user has put the old brokers in another order since."""
    s = scene({0: (1, 2), 1: (1, 2)})
    cancel_one(s)
    s.cluster.alter_reassignments({T0: (2, 1)})
    (left,) = s.driver.open_runs()
    s.process("follower").resume(left)
    ended = runs(s)["r"].moves[T0]
    assert (ended.outcome, code_of(ended.note)) == ("rejected", "other-order")


def dying_before_a_cancel(s: Scene) -> Callable[..., Mapping[TopicPartition, Outcome]]:
    """The request to reassign, of a process that dies before it sends a cancel."""
    alter = s.cluster.alter_reassignments

    def die(
        targets: Mapping[TopicPartition, tuple[int, ...] | None], **options: bool
    ) -> Mapping[TopicPartition, Outcome]:
        if None in targets.values():
            raise Fenced("Another process has taken this cluster's lock.")
        return alter(targets, **options)

    return die


def test_a_cancel_that_was_never_sent_is_not_taken_for_another_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process died before it sent it; the move went on, and another user has cancelled it since."""
    s = scene({0: (1, 2), 1: (1, 2)}, size_bytes=1000 * MB)
    with monkeypatch.context() as dying:
        dying.setattr(s.cluster, "alter_reassignments", dying_before_a_cancel(s))
        with pytest.raises(Fenced):
            cancel_one(s)

    follower = s.process("follower")
    follower.listen(CancelsAtFirstLook(s))
    follower.resume(follower.open_runs()[0])
    assert runs(s)["r"].moves[T0].outcome == "cancelled-externally"


def test_a_move_that_arrives_in_spite_of_its_cancel_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who wanted to cancel it is not told."""
    s = scene({0: (1, 2), 1: (1, 2)})
    monkeypatch.setattr(s.cluster, "alter_reassignments", dying_before_a_cancel(s))
    with pytest.raises(Fenced):
        cancel_one(s)
    left = s.process("follower").open_runs()[0]
    assert left.moves[T0].cancelled_by.endswith("(ballast reassign --cancel)")
    assert s.driver.resume(left).status == "done"
    assert runs(s)["r"].moves[T0].note is None

"""The way back: what it covers, and that it is not forgotten once a user has asked for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.app.stop import way_back
from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.executor.driver.events import Paced, Progressed, RunResult
from ballast.executor.journal.history import summarise
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.rollback import rollback_plan
from ballast.executor.machine.run import Now, new_run, with_moves
from ballast.executor.machine.stages import Failed, RolledBack, Stage, Verified
from ballast.executor.machine.step import Command

T0, T1 = TopicPartition(T, 0), TopicPartition(T, 1)
MOVES = (Move(T, 0, (1, 2), (3, 2), 50 * MB), Move(T, 1, (2, 1), (4, 1), 50 * MB))
ONE_BY_ONE = ExecutionPolicy(throttle=5 * MB, moves_in_cluster=1)


def asked_to_go_back(s: Scene) -> RunResult:
    """A run whose first move has arrived when a user asks for a rollback in the middle of the second."""
    s.world.clock.after(20, lambda: s.driver.ask(Command.ROLLBACK))
    return s.driver.execute(s.plan(*MOVES), ONE_BY_ONE, run_id="r")


def replicas(s: Scene) -> list[tuple[int, ...]]:
    """Where the partitions are, by the controller's own word."""
    return [tuple(s.world.partition(T, n).replicas) for n in (0, 1)]


def test_a_rollback_survives_a_death_right_after_the_cancel() -> None:
    """It stands in the journal as an open run from the moment in which the cancelled run ends: any later start carries it out."""
    s = scene({0: (1, 2), 1: (2, 1)}, size_bytes=50 * MB)
    result = asked_to_go_back(s)
    assert (result.status, result.verified, result.rolled_back) == ("cancelled", 1, 1)
    assert replicas(s) != [(1, 2), (2, 1)]
    driver = s.process()
    (back,) = driver.open_runs()
    assert back.undoes == "r"
    assert driver.resume(back).status == "done"
    assert replicas(s) == [(1, 2), (2, 1)]
    assert s.throttles() == {}
    assert s.process("third").open_runs() == []


def test_the_same_process_goes_back_once() -> None:
    """The process that lives on carries the same run out, and leaves none open."""
    s = scene({0: (1, 2), 1: (2, 1)}, size_bytes=50 * MB)
    result = s.driver.go_back(asked_to_go_back(s))
    assert (result.run_id, result.status) == ("r-back", "done")
    assert replicas(s) == [(1, 2), (2, 1)]
    assert s.driver.open_runs() == []


def test_going_back_a_second_time_announces_what_is_copied_then() -> None:
    """The partitions are where they were, so nothing: the announcement, the throttle, the progress and the journal's figures say so."""
    s = scene({0: (1, 2), 1: (2, 1)}, size_bytes=50 * MB)
    assert s.driver.execute(s.plan(*MOVES), ONE_BY_ONE, run_id="r").status == "done"
    (run,) = load_runs(s.journal.read(), Now(0, 0.0)).values()
    assert (
        way_back(run, s.cluster.snapshot())
        == "rollback r: 2 moves (95.4 MiB), 2 preferred leader elections (no data moved)"
    )
    again = s.process()
    assert again.execute(rollback_plan(run), run.policy, run_id="back", undoes="r").bytes_moved == 100 * MB
    assert way_back(run, s.cluster.snapshot()) == "rollback r: nothing has to be moved back"
    third = s.process("third")
    assert third.execute(rollback_plan(run), run.policy, run_id="twice", undoes="r").bytes_moved == 0
    (pace,) = (h.pace for h in s.ears.heard if isinstance(h, Paced))
    assert list(pace.lines()) == []
    assert {h.progress.bytes_total for h in s.ears.heard if isinstance(h, Progressed)} <= {0}
    assert summarise(load_runs(s.journal.read(), Now(0, 0.0))["twice"]).bytes_done == 0


def test_partitions_that_others_have_moved_since_are_not_announced_as_going_back() -> None:
    """The run that goes back leaves them alone, so their bytes are not copied either."""
    s = scene({0: (1, 2), 1: (2, 1)}, size_bytes=50 * MB)
    assert s.driver.execute(s.plan(*MOVES), ONE_BY_ONE, run_id="r").status == "done"
    (run,) = load_runs(s.journal.read(), Now(0, 0.0)).values()
    elsewhere = Move(T, 0, (3, 2), (4, 2), 50 * MB)
    assert s.process().execute(s.plan(elsewhere), ONE_BY_ONE, run_id="other").status == "done"
    assert way_back(run, s.cluster.snapshot()) == (
        "rollback r: 1 move (47.7 MiB), 1 preferred leader election (no data moved); left as it is: replicas changed "
        "on 1 partition of it (t-0 has 4,2)"
    )


def test_a_cancel_alone_owes_no_rollback() -> None:
    """What has arrived stays, as promised."""
    s = scene({0: (1, 2), 1: (2, 1)}, size_bytes=50 * MB)
    s.world.clock.after(20, lambda: s.driver.ask(Command.CANCEL))
    result = s.driver.go_back(s.driver.execute(s.plan(*MOVES), ONE_BY_ONE, run_id="r"))
    assert (result.run_id, result.status) == ("r", "cancelled")
    assert s.driver.open_runs() == []


@pytest.mark.parametrize(
    ("stage", "undone"),
    [
        (Verified(), True),
        (Failed("out-of-sync"), True),
        (Failed("log-dir"), True),
        (Verified("already-there"), False),
        (Failed("rejected"), False),
        (Failed("overridden"), False),
        (RolledBack("rolled-back"), False),
    ],
)
def test_everything_that_changed_replicas_is_undone(stage: Stage, *, undone: bool) -> None:
    """Also a move that arrived and did not end well; what the run did not change, or others have, is left alone."""
    run = new_run("r", Plan("test", "c", "f", MOVES[:1]), ExecutionPolicy(), Now(0, 0.0))
    run = with_moves(run, {T0: replace(run.moves[T0], stage=stage)})
    plan = rollback_plan(run)
    assert [(m.old, m.new) for m in plan.moves] == ([((3, 2), (1, 2))] if undone else [])
    assert plan.elections == ((T0,) if undone else ())

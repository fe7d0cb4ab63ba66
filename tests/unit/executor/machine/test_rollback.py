"""The way back: what it covers, and that it is not forgotten once a user has asked for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.app.stop import rollback_outline
from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan, Purpose, Reason
from ballast.executor.driver.events import Paced, Progressed, RunResult
from ballast.executor.journal.history import summarise
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.rollback import cancel_plan, refilled_brokers, rollback_plan, rollback_run
from ballast.executor.machine.run import Now, Phase, Run, new_run, with_moves
from ballast.executor.machine.stages import (
    Cancelling,
    Failed,
    Moved,
    Moving,
    Planned,
    RolledBack,
    Stage,
    Stalled,
    Submitted,
    Throttled,
    Unthrottled,
    Verified,
)
from ballast.executor.machine.step import Command
from ballast.ports.cluster import Reassignment

T0, T1 = TopicPartition(T, 0), TopicPartition(T, 1)
MOVES = (Move(T, 0, (1, 2), (3, 2), 50 * MB), Move(T, 1, (2, 1), (4, 1), 50 * MB))
ONE_BY_ONE = ExecutionPolicy(throttle=5 * MB, moves_at_once=1)


def asked_to_go_back(s: Scene) -> RunResult:
    """A run whose first move has arrived when a user asks for a rollback in the middle of the second."""
    s.world.clock.after(20, lambda: s.driver.ask(Command.ROLLBACK))
    return s.driver.execute(s.plan(*MOVES), ONE_BY_ONE, run_id="r")


def replicas(s: Scene) -> list[tuple[int, ...]]:
    """Where the partitions are, by the controller's own word."""
    return [tuple(s.world.partition(T, n).replicas) for n in (0, 1)]


def test_a_rollback_survives_a_death_right_after_the_cancel() -> None:
    """It stands in the journal as an open run from the moment in which the cancelled run ends: any later start executes it."""
    s = scene({0: (1, 2), 1: (2, 1)}, size_bytes=50 * MB)
    result = asked_to_go_back(s)
    assert (result.status, result.verified, result.rolled_back) == ("cancelled", 1, 1)
    assert replicas(s) != [(1, 2), (2, 1)]
    driver = s.process()
    (back,) = driver.open_runs()
    assert back.rollback_of == "r"
    assert driver.resume(back).status == "done"
    assert replicas(s) == [(1, 2), (2, 1)]
    assert s.throttles() == {}
    assert s.process("third").open_runs() == []


def test_the_same_process_goes_back_once() -> None:
    """The process that lives on carries the same run out, and leaves none open."""
    s = scene({0: (1, 2), 1: (2, 1)}, size_bytes=50 * MB)
    result = s.driver.roll_back_if_asked(asked_to_go_back(s))
    assert (result.run_id, result.status) == ("r-back", "done")
    assert replicas(s) == [(1, 2), (2, 1)]
    assert s.driver.open_runs() == []


def test_going_back_a_second_time_announces_what_is_copied_then() -> None:
    """The partitions are where they were, so nothing: the announcement, the throttle, the progress and the journal's figures say so."""
    s = scene({0: (1, 2), 1: (2, 1)}, size_bytes=50 * MB)
    assert s.driver.execute(s.plan(*MOVES), ONE_BY_ONE, run_id="r").status == "done"
    (run,) = load_runs(s.journal.read(), Now(0, 0.0)).values()
    assert (
        rollback_outline(run, s.cluster.snapshot())
        == "rollback r: 2 moves (95.4 MiB), 2 preferred leader elections (no data copied)"
    )
    again = s.process()
    assert again.execute(rollback_plan(run), run.policy, run_id="back", rollback_of="r").bytes_moved == 100 * MB
    assert rollback_outline(run, s.cluster.snapshot()) == "rollback r: nothing has to be moved back"
    third = s.process("third")
    assert third.execute(rollback_plan(run), run.policy, run_id="twice", rollback_of="r").bytes_moved == 0
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
    assert rollback_outline(run, s.cluster.snapshot()) == (
        "rollback r: 1 move (47.7 MiB), 1 preferred leader election (no data copied); left as it is: replicas changed "
        "on 1 partition of it (t-0 has 4,2)"
    )


def test_a_cancel_alone_owes_no_rollback() -> None:
    """What has arrived stays, as promised."""
    s = scene({0: (1, 2), 1: (2, 1)}, size_bytes=50 * MB)
    s.world.clock.after(20, lambda: s.driver.ask(Command.CANCEL))
    result = s.driver.roll_back_if_asked(s.driver.execute(s.plan(*MOVES), ONE_BY_ONE, run_id="r"))
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


def run_of(*stages: Stage, moves: tuple[Move, ...] = MOVES) -> Run:
    """A run whose moves are in these stages, each since a second later than the one before."""
    plan = Plan("test", "c", "f", moves, in_order=True, topic_ids={T: "ID"})
    run = new_run("r", plan, ONE_BY_ONE, Now(0, 0.0))
    found = enumerate(zip(run.moves.values(), stages, strict=True))
    return with_moves(run, {m.move.name: replace(m, stage=s, since_ms=i * 1000) for i, (m, s) in found})


def test_the_way_back_is_a_plan_of_the_same_cluster_and_topics() -> None:
    """It says whose run it undoes and gives up the preferred leaders that it brings back; a replica list change comes back without an election."""
    moves = (MOVES[0], Move(T, 1, (2, 1), (2, 4), 50 * MB))
    back = Reason("rollback", "undoes run r")
    assert rollback_plan(run_of(Verified(), Verified(), moves=moves)) == Plan(
        intent="rollback r",
        purpose=Purpose("rollback"),
        cluster_id="c",
        fingerprint="",
        moves=(
            Move(T, 1, (2, 4), (2, 1), 50 * MB, reason=back),
            Move(T, 0, (3, 2), (1, 2), 50 * MB, reason=back),
        ),
        elections=(T0,),
        status="meets-all-goals",
        in_order=True,
        topic_ids={T: "ID"},
    )
    nothing = rollback_plan(run_of(RolledBack("rolled-back"), Failed("rejected")))
    assert (nothing.moves, nothing.elections, nothing.status) == ((), (), "nothing-to-do")
    assert nothing.topic_ids == {}


@pytest.mark.parametrize(("new", "allowed"), [((3, 2, 4), True), ((3,), True), ((3, 2), False)])
def test_undoing_a_change_of_the_replication_factor_is_allowed_to_change_it(
    new: tuple[int, ...], *, allowed: bool
) -> None:
    """The controller would refuse the way back otherwise."""
    plan = rollback_plan(run_of(Verified(), moves=(Move(T, 0, (1, 2), new, 50 * MB),)))
    assert plan.allow_replication_factor_change is allowed


def test_log_dirs_alone_are_not_undone() -> None:
    """Where the replicas lay before is not known."""
    stays = Move(T, 0, (1, 2), (1, 2), 50 * MB, log_dirs=("/data/1", "any"))
    assert rollback_plan(run_of(Verified(), moves=(stays,))).moves == ()


@pytest.mark.parametrize(
    ("stage", "fills"),
    [
        (Planned(), False),
        (Throttled(), False),
        (Submitted(), True),
        (Moving(), True),
        (Stalled(), True),
        (Moved(), True),
        (Unthrottled(), True),
        (Verified(), True),
        (Verified("already-there"), False),
        (Failed("out-of-sync"), True),
        (Failed("overridden"), False),
        (Cancelling(), False),
        (RolledBack("rolled-back"), False),
    ],
)
def test_brokers_that_undoing_would_fill_are_those_that_replicas_have_left_or_may_leave(
    stage: Stage, *, fills: bool
) -> None:
    """A move that is being cancelled, or that never began, leaves none."""
    assert refilled_brokers(run_of(stage, moves=MOVES[:1])) == ({1} if fills else set())


def test_a_rollback_is_owed_once_in_the_moment_in_which_the_run_ends() -> None:
    """Not before, not again, not unasked, and not where nothing has arrived; it keeps the policy and names the run."""
    open_run = replace(run_of(Verified(), RolledBack()), rollback_when_cancelled=True, phase=Phase.CANCELLING)
    ended = replace(open_run, phase=Phase.ENDED)
    now = Now(9000, 9.0)
    owed = rollback_run(open_run, ended, now)
    assert owed == new_run("r-back", rollback_plan(ended), ONE_BY_ONE, now, rollback_of="r")
    assert rollback_run(open_run, open_run, now) is None
    assert rollback_run(ended, ended, now) is None
    assert rollback_run(open_run, replace(ended, rollback_when_cancelled=False), now) is None
    vain = replace(run_of(RolledBack(), RolledBack()), rollback_when_cancelled=True)
    assert rollback_run(vain, replace(vain, phase=Phase.ENDED), now) is None


def test_moves_in_flight_are_cancelled_back_to_what_is_known_of_before() -> None:
    """By the journal's list where it has one, whose order the controller has lost, else by the controller's."""
    union = {T0: Reassignment((3, 2, 1), (3,), (1,)), T1: Reassignment((4, 1, 2), (4,), (2,))}
    why = Reason("cancel", "a person asked to cancel it")
    assert cancel_plan(union, {T0: (1, 2)}, "c") == Plan(
        intent="cancel moves in progress",
        purpose=Purpose("cancel"),
        cluster_id="c",
        fingerprint="",
        moves=(Move(T, 0, (1, 2), (3, 2), reason=why), Move(T, 1, (1, 2), (4, 1), reason=why)),
    )

"""What the daemon shows while the cluster cannot be read, a broker is missed, or a run changes it: nothing that is not so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.daemon.conftest import Running, bounce, give_run_controller, holder, make_world

from ballast.core.cluster import UNKNOWN
from ballast.daemon.acting.policy import DaemonPolicy, Intervals, Mode
from ballast.daemon.acting.propose import act
from ballast.daemon.acting.requests import answer
from ballast.daemon.context.daemon_context import DaemonContext
from ballast.daemon.context.view import Role
from ballast.daemon.observing.observe import observe
from ballast.daemon.planning.leaders import check_leaders
from ballast.daemon.planning.plans import check_balance, check_repair
from ballast.daemon.process.lock import keep_lock
from ballast.errors import Unavailable
from ballast.ports.journal import Request
from ballast.sim.clock import SimClock
from ballast.sim.journal import JournalStore
from ballast.sim.world import SimWorld

APPROVE = DaemonPolicy(mode=Mode.APPROVE)


@pytest.fixture
def leader(context: DaemonContext, world: SimWorld) -> DaemonContext:
    """A daemon in approve mode that holds the lock, with a plan that waits for a person."""
    context.policy = APPROVE
    give_run_controller(context, JournalStore())
    context.set_role(Role.STARTING)
    keep_lock(context, holder())
    bounce(world, 1)
    observe(context)
    check_leaders(context)
    assert [p.waiting for p in context.board.view.plans] == [True]
    return context


def test_while_no_broker_answers_there_is_nothing_to_approve(
    leader: DaemonContext, world: SimWorld, clock: SimClock
) -> None:
    """The view says since when, keeps the old figures with their age, and offers and allows nothing, from the first failure on."""
    looks: list[int] = []
    leader.look_again = lambda: looks.append(1)
    figures = leader.board.view.figures
    for broker in (1, 2, 3):
        world.kill(broker)
    with pytest.raises(Unavailable):
        observe(leader)
    view = leader.board.view
    assert view.outage is not None
    assert view.outage.code == "unreachable"
    since_ms = view.outage.since_ms
    assert view.plans == ()
    assert view.figures is figures
    assert {s.code for s in view.permissions} == {"no-reading"}
    for check in (check_leaders, check_balance, check_repair):
        with pytest.raises(Unavailable):
            check(leader)
    clock.sleep(180)
    with pytest.raises(Unavailable):
        observe(leader)
    outage = leader.board.view.outage
    assert outage is not None
    assert outage.since_ms == since_ms
    for broker in (1, 2, 3):
        world.start(broker)
    clock.sleep(30)
    assert looks == []
    observe(leader)
    assert leader.board.view.outage is None
    assert looks == [1]


def test_an_outage_is_told_before_whose_the_lock_is(leader: DaemonContext, world: SimWorld) -> None:
    """A lease that lapses meanwhile makes it a standby: that another process holds the lock is no answer to why nothing starts."""
    for broker in (1, 2, 3):
        world.kill(broker)
    with pytest.raises(Unavailable):
        observe(leader)
    leader.set_role(Role.STANDBY)
    leader.publish_permissions()
    assert {s.code for s in leader.board.view.permissions} == {"no-reading"}


def test_a_daemon_that_starts_while_the_cluster_is_down_says_so(serve: Callable[..., Running]) -> None:
    """It is alive, knows no figures, and tells that the cluster is unreachable; it finds the cluster by itself."""
    world = make_world(SimClock())
    for broker in (1, 2, 3):
        world.kill(broker)
    daemon = serve(DaemonPolicy(intervals=Intervals(observe_s=0.2)), world=world)
    view = daemon.until(lambda v: v.outage is not None)
    assert view.figures is None
    assert daemon.get("/livez")[0] == 200
    for broker in (1, 2, 3):
        world.start(broker)
    assert daemon.until(lambda v: v.figures is not None).outage is None


def test_a_broker_that_is_missed_is_shown_with_the_end_of_its_grace(
    leader: DaemonContext, world: SimWorld, clock: SimClock
) -> None:
    """From the first reading that misses it, the same moment each time, until it returns."""
    leader.policy = replace(APPROVE, caution=replace(APPROVE.caution, dead_broker_grace_s=600))
    world.kill(3)
    clock.sleep(20)
    observe(leader)
    (absence,) = leader.board.view.absences
    assert absence.broker == 3
    assert 0 <= clock.now_ms() - absence.since_ms < 1000
    assert absence.repair_at_ms == absence.since_ms + 600_000
    clock.sleep(100)
    observe(leader)
    assert [a.broker for a in leader.board.view.absences] == [3]
    assert abs(leader.board.view.absences[0].since_ms - absence.since_ms) < 1000
    world.start(3)
    clock.sleep(30)
    observe(leader)
    assert not leader.board.view.absences


def test_a_failed_log_dir_and_a_broker_that_does_not_answer_are_shown(
    context: DaemonContext, world: SimWorld, clock: SimClock
) -> None:
    """While the cluster lists both brokers as alive, from the first reading of log dirs on, and no longer than it lasts."""

    def seen() -> list[tuple[int, bool, bool, tuple[str, ...]]]:
        observe(context)
        figures = context.board.view.figures
        assert figures is not None
        return [(b.id, b.alive, b.reachable, tuple(code for _, code in b.log_dir_errors)) for b in figures.brokers]

    world.brokers[2].dir_bytes = (1e12, 1e12)
    well = [(1, True, True, ()), (2, True, True, ()), (3, True, True, ())]
    assert seen() == well
    clock.sleep(context.policy.intervals.log_dirs_s)
    world.fail_dir(2, 1)
    world.freeze(3)
    assert seen() == [(1, True, True, ()), (2, True, True, ("KAFKA_STORAGE_ERROR",)), (3, True, False, ())]
    world.start(3)
    world.mend_dirs(2)
    clock.sleep(context.policy.intervals.log_dirs_s)
    assert seen() == well


def test_while_a_run_moves_no_plan_is_made_shown_or_approved(
    leader: DaemonContext, world: SimWorld, clock: SimClock
) -> None:
    """What would be planned from the half-moved cluster is not; after the end everything is read and planned anew."""
    bodies: list[Callable[[], None]] = []
    parts: Any = leader.run_controller
    parts._parts.spawn = bodies.append
    (plan,) = leader.board.view.plans
    said = answer(leader, Request(id="r", kind="approve", by="Ada", at_ms=clock.now_ms(), body={"plan": plan.id}))
    assert "started" in said
    assert leader.run_in_flight()
    for check in (check_leaders, check_balance, check_repair):
        check(leader)
        act(leader)
        assert leader.board.view.plans == ()
    refused = answer(leader, Request(id="r2", kind="approve", by="Ada", at_ms=clock.now_ms(), body={"plan": plan.id}))
    assert refused.startswith("Refused:")
    looks: list[int] = []
    leader.look_again = lambda: looks.append(1)
    bodies.pop()()
    act(leader)
    assert looks == [1]


def test_an_empty_cluster_needs_nothing(context: DaemonContext, world: SimWorld) -> None:
    """Without a topic every check ends well, and nothing is proposed."""
    world.topics.clear()
    observe(context)
    for check in (check_leaders, check_balance, check_repair):
        check(context)
    assert context.board.view.plans == ()
    assert context.board.view.balance.verdict == "balanced"


def test_a_plan_does_not_stand_on_sizes_that_were_guessed(
    context: DaemonContext, world: SimWorld, clock: SimClock
) -> None:
    """A new topic counts as large as others until brokers have told its size; then everything is planned anew at once."""
    looks: list[int] = []
    context.look_again = lambda: looks.append(1)
    observe(context)
    world.add_topic("late", {0: (1, 2)}, size_bytes=1.0)
    clock.sleep(context.policy.intervals.observe_s)
    observe(context)
    state = context.memory.state
    assert state is not None
    assert (state.partitions.size_bytes == UNKNOWN).any()
    assert looks == []
    clock.sleep(context.policy.intervals.log_dirs_s)
    observe(context)
    assert looks == [1]
    clock.sleep(context.policy.intervals.log_dirs_s)
    observe(context)
    assert looks == [1]

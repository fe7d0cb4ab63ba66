"""What the daemon shows while the cluster cannot be read, a broker is missed, or a run changes it: nothing that is not so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.daemon.conftest import Running, bounce, make_world, pass_time
from tests.daemon.rig import (
    Rig,
    a_service,
    act,
    answer,
    check_balance,
    check_leaders,
    check_repair,
    give_run_controller,
    holder,
    keep_lock,
    lead,
    observe,
    read_journal_view,
    show_run,
    start,
    watch,
)

from ballast.core.cluster import UNKNOWN, ClusterState, TopicPartition
from ballast.core.plan import Move, Plan, Reason
from ballast.core.planner import Intent
from ballast.daemon.acting.driving import Spawn
from ballast.daemon.acting.plan_views import plan_view
from ballast.daemon.acting.proposal import Proposal
from ballast.daemon.context.view import BalanceView, Board, PlanReason, Role, RunView, View
from ballast.daemon.planning.plans import PlanMaker
from ballast.daemon.policy import ActionKind, DaemonPolicy, Intervals, Mode
from ballast.daemon.web.api import status
from ballast.errors import Unavailable
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.journal import Request
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore
from ballast.sim.world import SimWorld

APPROVE = DaemonPolicy(mode=Mode.APPROVE)


@pytest.fixture
def bodies() -> list[Callable[[], None]]:
    """The runs that ``idle_leader`` has begun: a test carries them out when it wants to."""
    return []


@pytest.fixture
def idle_leader(context: Rig, world: SimWorld, bodies: list[Callable[[], None]]) -> Rig:
    """The same as ``leader``, whose runs begin and are not carried out yet."""
    return lead_with_plan(context, world, bodies.append)


@pytest.fixture
def leader(context: Rig, world: SimWorld) -> Rig:
    """A daemon in approve mode that holds the lock, with a plan that waits for a person."""
    return lead_with_plan(context, world, lambda body: body())


def lead_with_plan(context: Rig, world: SimWorld, spawn: Spawn) -> Rig:
    """Let it take the lock, and find what it plans for."""
    context.policy = APPROVE
    lead(context, JournalStore(), spawn)
    bounce(world, 1)
    observe(context)
    check_leaders(context)
    assert [p.pending_approval for p in context.board.view.plans] == [True]
    return context


def test_while_no_broker_answers_there_is_nothing_to_approve(leader: Rig, world: SimWorld, clock: SimClock) -> None:
    """The view says since when, keeps the old figures with their age, and offers and allows nothing, from the first failure on."""
    looks: list[int] = []
    leader.look_again = lambda: looks.append(1)
    figures, shown = leader.board.view.figures, watch(leader.board)
    for broker in (1, 2, 3):
        world.kill(broker)
    with pytest.raises(Unavailable):
        observe(leader)
    assert [view.plans for view in shown if view.outage is not None and view.plans] == []
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


def test_an_outage_is_told_before_whose_the_lock_is(leader: Rig, world: SimWorld) -> None:
    """A lease that lapses meanwhile makes it a standby: that another process holds the lock is no answer to why nothing starts."""
    for broker in (1, 2, 3):
        world.kill(broker)
    with pytest.raises(Unavailable):
        observe(leader)
    leader.board.set_role(Role.STANDBY)
    leader.parts.permissions.publish()
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
    leader: Rig, world: SimWorld, clock: SimClock
) -> None:
    """From the first reading that misses it, the same moment each time, until it returns."""
    leader.policy = replace(APPROVE, guards=replace(APPROVE.guards, down_broker_grace_s=600))
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
    context: Rig, world: SimWorld, clock: SimClock
) -> None:
    """While the cluster lists both brokers as alive, from the first reading of log dirs on, and no longer than it lasts."""

    def seen() -> list[tuple[int, bool, bool, tuple[str, ...]]]:
        observe(context)
        figures = context.board.view.figures
        assert figures is not None
        return [(b.id, b.alive, b.reachable, tuple(e.error for e in b.log_dir_errors)) for b in figures.brokers]

    world.brokers[2].dir_bytes = (1e12, 1e12)
    well = [(1, True, True, ()), (2, True, True, ()), (3, True, True, ())]
    assert seen() == well
    clock.sleep(context.policy.intervals.log_dirs_s)
    world.fail_dir(2, 1)
    world.freeze(3)
    assert seen() == [(1, True, True, ()), (2, True, True, ("KAFKA_STORAGE_ERROR",)), (3, True, False, ())]
    world.start(3)
    world.repair_dirs(2)
    clock.sleep(context.policy.intervals.log_dirs_s)
    assert seen() == well


def test_while_a_run_moves_no_plan_is_made_shown_or_approved(
    idle_leader: Rig, bodies: list[Callable[[], None]], clock: SimClock
) -> None:
    """What would be planned from the half-moved cluster is not; after the end everything is read and planned anew."""
    (plan,) = idle_leader.board.view.plans
    said = answer(idle_leader, Request(id="r", kind="approve", by="Ada", at_ms=clock.now_ms(), body={"plan": plan.id}))
    assert "started" in said
    assert idle_leader.parts.runs.in_flight()
    for check in (check_leaders, check_balance, check_repair):
        check(idle_leader)
        act(idle_leader)
        assert idle_leader.board.view.plans == ()
    refused = answer(
        idle_leader, Request(id="r2", kind="approve", by="Ada", at_ms=clock.now_ms(), body={"plan": plan.id})
    )
    assert refused.startswith("Refused:")
    looks: list[int] = []
    idle_leader.look_again = lambda: looks.append(1)
    bodies.pop()()
    act(idle_leader)
    assert looks == [1]


def test_an_empty_cluster_needs_nothing(context: Rig, world: SimWorld) -> None:
    """Without a topic every check ends well, and nothing is proposed."""
    world.topics.clear()
    observe(context)
    for check in (check_leaders, check_balance, check_repair):
        check(context)
    assert context.board.view.plans == ()
    assert context.board.view.balance.verdict == "balanced"


def test_a_plan_does_not_stand_on_sizes_that_were_guessed(context: Rig, world: SimWorld, clock: SimClock) -> None:
    """A new topic counts as large as others until brokers have told its size; then everything is planned anew at once."""
    looks: list[int] = []
    context.look_again = lambda: looks.append(1)
    observe(context)
    world.add_topic("late", {0: (1, 2)}, size_bytes=1.0)
    clock.sleep(context.policy.intervals.observe_s)
    observe(context)
    state = context.parts.reading.state
    assert state is not None
    assert (state.partitions.size_bytes == UNKNOWN).any()
    assert looks == []
    clock.sleep(context.policy.intervals.log_dirs_s)
    observe(context)
    assert looks == [1]
    clock.sleep(context.policy.intervals.log_dirs_s)
    observe(context)
    assert looks == [1]


def test_what_a_check_found_is_shown_with_the_reading_that_it_went_by(world: SimWorld, clock: SimClock) -> None:
    """Stale once a reading shows another cluster or none can be had; where brokers come or go, every check is made again at once."""
    board = Board(View(name="shop", role=Role.OBSERVING))
    service = a_service(SimCluster(world), clock, board, APPROVE)
    names = ("leaders", "repair", "balance")

    def seen() -> set[tuple[str, bool]]:
        checks = status(board.view, now_ms=clock.now_ms(), read_only="no token").checks
        changed = board.view.changed_at_ms
        assert changed is not None
        return {(checks[n].stale or "", (checks[n].reading_ms or 0) >= changed) for n in names}

    service.work.pass_once()
    assert seen() == {("", True)}
    clock.sleep(30)
    service.work.pass_once()
    assert seen() == {("", True)}, "an unchanged cluster makes no check old"
    bounce(world, 3)
    service.work.pass_once()
    assert ("earlier-reading", False) in seen(), "leaders moved between two readings"
    world.kill(3)
    clock.sleep(30)
    service.work.pass_once()
    assert seen() == {("", True)}, "a broker went: every check was made again"
    for broker in (1, 2):
        world.kill(broker)
    clock.sleep(30)
    service.work.pass_once()
    assert {stale for stale, _ in seen()} == {"outage"}


def test_a_broker_that_goes_hurries_the_checks_and_one_that_returns_does_not(
    context: Rig, world: SimWorld, clock: SimClock
) -> None:
    """The brokers of a rack return one by one: a repair that waited for the whole rack must not begin at the first of them."""
    looks: list[int] = []
    context.look_again = lambda: looks.append(1)
    observe(context)
    world.kill(3)
    clock.sleep(30)
    observe(context)
    assert looks == [1]
    world.start(3)
    pass_time(world, 60)
    observe(context)
    assert looks == [1]


def test_what_was_said_of_a_standby_is_said_anew_once_the_lock_is_held(context: Rig, world: SimWorld) -> None:
    """The checks are made again at the change of role."""
    looks: list[int] = []
    context.policy = APPROVE
    context.look_again = lambda: looks.append(1)
    give_run_controller(context, JournalStore())
    keep_lock(context, holder())
    keep_lock(context, holder())
    assert looks == [1]


def test_runs_that_ended_are_not_known_before_the_journal_was_read(context: Rig, world: SimWorld) -> None:
    """No run in the view is not yet none in the journal: not at the start, and not where there is no journal."""
    assert context.board.view.history_problem
    read_journal_view(context)
    assert context.board.view.history_problem
    give_run_controller(context, JournalStore())
    keep_lock(context, holder())
    read_journal_view(context)
    assert context.board.view.history_problem == ""


def test_what_was_said_before_a_run_goes_with_its_begin_and_an_ended_run_is_not_shown(
    idle_leader: Rig, bodies: list[Callable[[], None]]
) -> None:
    """No publication shows a run beside a plan or a verdict from before it, nor a run that has ended."""
    parts: Any = idle_leader.run_controller
    idle_leader.board.publish(balance=BalanceView(verdict="unbalanced", detail="Proposed plan."))
    seen = watch(idle_leader.board)
    (proposal,) = idle_leader.parts.proposals.list_proposals()
    start(idle_leader, proposal)
    assert idle_leader.board.view.run is not None
    assert all(not v.plans and v.balance == BalanceView() for v in seen if v.run is not None)
    act(idle_leader)
    running = parts.current()
    assert running is not None
    parts.current = lambda: replace(running, phase="ended", ended_at_ms=1, status="done", detail="")
    show_run(idle_leader)
    assert idle_leader.board.view.run is None
    check_balance(idle_leader)
    assert idle_leader.board.view.balance == BalanceView(), "it is still in progress until all is cleaned up"
    del parts.current
    bodies.pop()()
    show_run(idle_leader)
    act(idle_leader)
    assert {(v.plans, v.balance) for v in seen} == {((), BalanceView())}
    assert all(v.run is None or v.run.ended_at_ms is None for v in seen)


def test_a_check_that_a_run_overtook_says_nothing_of_the_balance(
    leader: Rig, world: SimWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it found was so before the run, however soon that ended: the headline waits for the next check.  A new topic discards nothing."""
    make = PlanMaker.make
    meanwhile: list[Callable[[], object]] = []

    def overtaken(self: PlanMaker, state: ClusterState, intent: Intent) -> Plan:
        made = make(self, state, intent)
        if meanwhile:
            meanwhile.pop()()
        return made

    monkeypatch.setattr(PlanMaker, "make", overtaken)
    (proposal,) = leader.parts.proposals.list_proposals()
    meanwhile.append(lambda: start(leader, proposal))
    check_balance(leader)
    assert leader.board.view.balance == BalanceView()
    act(leader)
    observe(leader)
    meanwhile.append(lambda: world.add_topic("later", {0: (1, 2, 3)}))
    check_balance(leader)
    assert leader.board.view.balance != BalanceView()


def test_a_run_that_ends_before_the_checks_look_brings_new_checks(leader: Rig) -> None:
    """Once the page has shown a run, what was said before it is gone, and is said anew after its end."""
    looks: list[int] = []
    leader.look_again = lambda: looks.append(1)
    parts: Any = leader.run_controller
    run = RunView(id="r", intent="balance", phase="running", started_at_ms=1)
    parts.current = lambda: run
    show_run(leader)
    assert leader.board.view.run == run
    assert leader.board.view.plans == ()
    del parts.current
    show_run(leader)
    act(leader)
    assert looks == [1]


def test_elections_that_a_plan_makes_necessary_are_no_reason_for_it(context: Rig) -> None:
    """Only those of partitions that it does not move tell of leaders elsewhere."""
    move = Move("orders", 0, (1, 2, 3), (2, 1, 3), reason=Reason("leader-balance"))
    own, other = TopicPartition("orders", 0), TopicPartition("orders", 1)
    for elections, reasons in (
        ((own,), (PlanReason("leader-balance", 1),)),
        ((own, other), (PlanReason("leader-balance", 1), PlanReason("not-preferred", 1))),
    ):
        plan = Plan(
            intent="leaders", cluster_id="c", fingerprint="f", moves=(move,), elections=elections,
            status="meets-all-goals", created_at_ms=0,
        )  # fmt: skip
        proposal = Proposal(id="p", kind=ActionKind.REPLICA_LIST_CHANGES, plan=plan)
        assert plan_view(proposal, pending_approval=True, policy=ExecutionPolicy(), pace=None).reasons == reasons

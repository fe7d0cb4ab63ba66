"""A broker that a person drains stays empty until a person ends the drain, whichever process acts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.daemon.conftest import bounce, pass_time
from tests.daemon.rig import (
    Rig,
    a_rig,
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
    withdraw,
)
from tests.daemon.test_asked_plans import ask, only_plan

from ballast.core.cluster import TopicPartition
from ballast.core.cluster.drain import Drain
from ballast.core.plan import Move, Plan
from ballast.daemon.acting.decisions import decisions_in
from ballast.daemon.acting.run_views import run_view
from ballast.daemon.context.view import Board, Role
from ballast.daemon.policy import ActionKind, DaemonPolicy, Mode
from ballast.executor.journal.drains import drain_record
from ballast.executor.journal.records import dump_run
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, new_run, with_moves
from ballast.executor.machine.stages import Verified
from ballast.ports.journal import Request
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore
from ballast.sim.model import SimBroker
from ballast.sim.world import SimWorld

AUTO = DaemonPolicy(mode=Mode.AUTO)


@pytest.fixture
def leader(context: Rig, world: SimWorld, store: JournalStore) -> Rig:
    """A daemon in auto mode that holds the lock, over four brokers of which the fourth is empty."""
    world.add_broker(SimBroker(id=4, rack="a"))
    context.policy = AUTO
    lead(context, store)
    observe(context)
    return context


def successor(world: SimWorld, clock: SimClock, store: JournalStore, policy: DaemonPolicy = AUTO) -> Rig:
    """A process that starts after another one."""
    context = a_rig(SimCluster(world), clock, Board(), policy)
    give_run_controller(context, store)
    context.policy = policy
    return context


def take_over(world: SimWorld, clock: SimClock, store: JournalStore, name: str) -> Rig:
    """One that waits until the lease of the holder, who says nothing more, has lapsed."""
    context = successor(world, clock, store)
    while context.board.view.role is not Role.ACTIVE:
        keep_lock(context, holder(name))
    return context


def renew(context: Rig, clock: SimClock) -> None:
    """Keep the lock from now on, as the lock loop does, for as long as it is the leader."""

    def turn() -> None:
        if context.board.view.role is Role.ACTIVE:
            keep_lock(context, holder("first"))
            clock.at(clock.monotonic_s() + 3, turn)

    turn()


def settle(context: Rig, checks: int = 4) -> None:
    """Let the daemon do by itself whatever it wants to, hour after hour."""
    for _ in range(checks):
        context.clock.sleep(3600)
        observe(context)
        check_leaders(context)
        check_repair(context)
        check_balance(context)
        act(context)
    observe(context)


def replicas_on(world: SimWorld, broker: int) -> int:
    """How many replicas it holds."""
    return sum(broker in p.replicas for p in world.partitions())


def drain(context: Rig, broker: int) -> None:
    """Ask, and approve what is shown."""
    assert ask(context, "plan", intent="drain", broker=str(broker))[1]
    assert ask(context, "approve", plan=only_plan(context).id)[1]


def test_a_drained_broker_stays_empty_until_the_drain_is_ended(leader: Rig, world: SimWorld) -> None:
    """Balance, rack repair and elections leave it alone, hour after hour; then it gets its share again."""
    drain(leader, 1)
    settle(leader)
    assert replicas_on(world, 1) == 0
    assert replicas_on(world, 4) == 12
    assert [(d.broker, d.by) for d in leader.board.view.drains] == [(1, "Ada")]
    figures = leader.board.view.figures
    assert figures is not None
    assert [b.id for b in figures.brokers if b.draining] == [1]
    assert not ask(leader, "end-drain", broker="2")[1]
    assert ask(leader, "end-drain", broker="1")[1]
    assert leader.board.view.drains == ()
    settle(leader)
    assert replicas_on(world, 1) == 6


def test_a_drain_outlasts_the_process_that_began_it(
    leader: Rig, world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """Also where it died before anything moved: the next one empties the broker; and its end is known to the one after."""
    leader.parts.reading.presence = replace(leader.parts.reading.presence, changed_at_s=clock.monotonic_s())
    drain(leader, 1)
    assert replicas_on(world, 1) == 12, "a broker came a moment ago: the plan waits"
    second = take_over(world, clock, store, "second")
    assert [d.broker for d in second.board.view.drains] == [1]
    settle(second)
    assert replicas_on(world, 1) == 0
    ask(second, "end-drain", broker="1")
    third = take_over(world, clock, store, "third")
    assert third.board.view.drains == ()


def test_an_empty_broker_is_drained_without_a_plan(leader: Rig, world: SimWorld) -> None:
    """There is nothing to approve, and nothing is put there."""
    assert ask(leader, "plan", intent="drain", broker="4")[1]
    assert leader.board.view.plans == ()
    settle(leader)
    assert replicas_on(world, 4) == 0
    assert not ask(leader, "plan", intent="drain", broker="9")[1]


def test_no_leader_is_elected_on_a_drained_broker(
    leader: Rig, world: SimWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by themselves nor on request, as long as it still holds their preferred leaders."""
    bounce(world, 1)
    observe(leader)
    leader.board.publish(drains=(Drain(broker=1, by="Ada", since_ms=0),))
    leader.parts.reading.presence = replace(leader.parts.reading.presence, changed_at_s=None)
    check_leaders(leader)
    assert leader.board.view.plans == ()
    ask(leader, "plan", intent="elect")
    assert leader.board.view.plans == ()


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.AUTO])
def test_every_other_process_knows_of_a_drain(
    leader: Rig, world: SimWorld, clock: SimClock, store: JournalStore, mode: Mode
) -> None:
    """A standby, and one that only observes: shown there, and no recommendation fills the broker."""
    drain(leader, 1)
    settle(leader)
    other = successor(world, clock, store, DaemonPolicy(mode=mode))
    renew(leader, clock)
    for _ in range(2):
        read_journal_view(other)
        keep_lock(other, holder("other"))
    assert other.board.view.role is (Role.OBSERVING if mode is Mode.OBSERVE else Role.STANDBY)
    assert [d.broker for d in other.board.view.drains] == [1]
    observe(other)
    check_balance(other)
    assert other.board.view.plans == ()


@pytest.fixture
def pair(world: SimWorld, clock: SimClock, store: JournalStore) -> tuple[Rig, Rig]:
    """A leader and a standby that propose to elect leaders, which waits since a broker came back a moment ago."""
    approve = DaemonPolicy(mode=Mode.APPROVE)
    first, second = successor(world, clock, store, approve), successor(world, clock, store, approve)
    keep_lock(first, holder("first"))
    renew(first, clock)
    keep_lock(second, holder("second"))
    world.kill(1)
    pass_time(world, 20)
    observe(first)
    world.start(1)
    pass_time(world, 60)
    for context in (first, second):
        observe(context)
        check_leaders(context)
    assert [s.board.view.role for s in (first, second)] == [Role.ACTIVE, Role.STANDBY]
    return first, second


def test_an_approval_shows_on_the_standby_and_outlasts_the_leader(pair: tuple[Rig, Rig], world: SimWorld) -> None:
    """It starts one run, whichever process executes it."""
    first, second = pair
    plan = only_plan(second)
    assert (plan.id, plan.approved_by) == (only_plan(first).id, "")
    assert ask(first, "approve", plan=plan.id)[1]
    keep_lock(second, holder("second"))
    assert (only_plan(second).approved_by, only_plan(second).pending_approval) == ("Ada", False)
    first.board.set_role(Role.STOPPING)
    keep_lock(second, holder("second"))
    assert second.board.view.role is Role.ACTIVE
    pass_time(world, 400)
    observe(second)
    assert "started, approved by Ada" in str(check_leaders(second))
    read_journal_view(second)
    assert second.parts.journal.decisions.approved == {}


def test_an_approval_of_a_plan_that_is_no_longer_wanted_starts_nothing_later(
    pair: tuple[Rig, Rig],
) -> None:
    """Preferred leaders were elected without us; the same imbalance weeks later asks again."""
    first, _ = pair
    assert ask(first, "approve", plan=only_plan(first).id)[1]
    assert first.journal is not None
    withdraw(first, ActionKind.ELECTIONS)
    read_journal_view(first)
    assert first.parts.journal.decisions.approved == {}
    check_leaders(first)
    assert only_plan(first).pending_approval


def test_a_rejection_and_a_pause_show_on_the_standby(pair: tuple[Rig, Rig]) -> None:
    """Within one look at the journal, without waiting for the next check."""
    first, second = pair
    assert ask(first, "reject", plan=only_plan(second).id)[1]
    ask(first, "pause", reason="release")
    assert second.board.view.plans
    keep_lock(second, holder("second"))
    assert second.board.view.plans == ()
    assert second.board.view.pause is not None


def test_undoing_a_run_does_not_fill_a_drained_broker(leader: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancel keeps what has arrived; to go back, the drain is ended first."""
    now, name = Now(leader.clock.now_ms(), leader.clock.monotonic_s()), TopicPartition("t", 0)
    plan = Plan("test", "c", "", (Move(name.topic, name.partition, (4, 2), (1, 2), 1),))
    run = new_run("r", plan, ExecutionPolicy(), now)
    run = with_moves(run, {name: replace(run.moves[name], stage=Verified())})
    assert leader.journal is not None
    leader.journal.append([*dump_run(run), drain_record(4, Drain(broker=4, by="Ada", since_ms=1))])
    leader.board.publish(drains=decisions_in(leader.journal.read()).drains)
    asked: list[bool] = []

    def cancel(_: str, *, rollback: bool, by: str) -> bool:
        asked.append(rollback)
        return bool(by)

    monkeypatch.setattr(leader.run_controller, "current", lambda: run_view(run))
    monkeypatch.setattr(leader.run_controller, "cancel", cancel)
    back = Request("r", "rollback", "Ada", now.ms, {"run": "r"})
    assert "drains end 4" in answer(leader, back)
    assert not leader.board.view.answers[-1].ok
    answer(leader, replace(back, kind="cancel"))
    assert asked == [False]
    answer(leader, Request("s", "end-drain", "Ada", now.ms, {"broker": "4"}))
    answer(leader, back)
    assert asked == [False, True]

"""An open run that no process executes is found by the daemon that acts, however it came to be left."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict

import pytest
from tests.daemon.conftest import make_world
from tests.daemon.rig import (
    Rig,
    a_rig,
    give_run_controller,
    holder,
    keep_lock,
    load_journal,
    observe,
    read_journal_view,
    show_run,
    start,
    watch,
)

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.plan import Move, Plan
from ballast.daemon.acting.action_history import NO_ACTIONS
from ballast.daemon.acting.decisions import ANSWERS_KEY, ASKED_KEY, RESERVED_KEY
from ballast.daemon.acting.proposal import Proposal
from ballast.daemon.acting.runs import acts_key
from ballast.daemon.context.health import healthy
from ballast.daemon.context.view import Board, Role, RunView, View
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.policy import ActionKind, ActionPolicy, Actions, DaemonPolicy, Mode
from ballast.executor.driver.journal_replication import KEY as REPLICATION_KEY
from ballast.executor.journal.history import KEPT_IN_PLACE_KEY
from ballast.executor.journal.ledger import BY_HAND, RUNS
from ballast.executor.journal.pause import PAUSE_KEY
from ballast.executor.journal.records import KINDS, dump_run
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, new_run
from ballast.ports.journal import RESTART_KEY, Record, UnusableJournal
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore, MemoryJournal
from ballast.sim.model import SimBroker
from ballast.sim.world import SimWorld


@pytest.mark.parametrize("idle", [True, False])
def test_a_leader_with_idle_hands_takes_an_open_run_up(
    context: Rig, monkeypatch: pytest.MonkeyPatch, *, idle: bool
) -> None:
    """And leaves it alone while it gives the lock to a person."""
    give_run_controller(context, JournalStore())
    context.policy = DaemonPolicy(mode=Mode.AUTO)
    keep_lock(context, holder())
    assert context.run_controller is not None
    assert context.journal is not None
    plan = Plan("test", "c", "", (), elections=(TopicPartition("t", 0),))
    context.journal.append(dump_run(new_run("left", plan, ExecutionPolicy(), Now(context.clock.now_ms(), 0.0))))
    taken: list[str] = []

    def adopt() -> str:
        taken.append("left")
        return "left"

    monkeypatch.setattr(context.run_controller, "adopt", adopt)
    context.access.release_for = "" if idle else "Ada"
    read_journal_view(context)
    assert taken == (["left"] if idle else [])


MOVES_OBSERVED = DaemonPolicy(actions=Actions(repair=ActionPolicy(mode=Mode.AUTO)))
"""Repairs alone are executed; every other kind is in observe mode."""
MOVED = (0, 4)
"""Of four brokers, these partitions are on all but the fourth."""


@pytest.mark.parametrize("kind", [None, ActionKind.REPAIR, ActionKind.MOVES])
def test_a_run_that_is_taken_up_heeds_the_mode_of_its_own_kind(kind: ActionKind | None) -> None:
    """A repair goes on, and so does a run whose kind no record tells; a balance waits until its mode allows it, and says why."""
    clock, store = SimClock(), JournalStore()
    world = make_world(clock, brokers=4)
    leave_a_run(SimCluster(world), MemoryJournal(store, clock), kind)
    context = a_scene(world)
    give_run_controller(context, store)
    context.policy = MOVES_OBSERVED
    seen: list[RunView] = []

    def arrived() -> bool:
        return all(4 in p.replicas for p in world.partitions() if p.name.partition in MOVED)

    def allow() -> None:
        assert not arrived()
        show_run(context)
        assert context.board.view.run is not None
        seen.append(context.board.view.run)
        context.policy = DaemonPolicy(mode=Mode.AUTO)
        context.parts.runs.hold()

    if kind is ActionKind.MOVES:
        clock.at(clock.monotonic_s() + 600, allow)
    keep_lock(context, holder())
    assert arrived()
    assert ["the mode for moves is observe" in run.detail for run in seen] == [True] * (kind is ActionKind.MOVES)


def test_a_leader_shows_the_run_that_it_adopted_from_its_first_moment() -> None:
    """Its page would say for a while that nothing is executed, while moves are in progress."""
    clock, store = SimClock(), JournalStore()
    world = make_world(clock, brokers=4)
    leave_a_run(SimCluster(world), MemoryJournal(store, clock), None)
    context = a_scene(world)
    give_run_controller(context, store, spawn=lambda _: None)
    context.policy = DaemonPolicy(mode=Mode.AUTO)
    shown = watch(context.board)
    keep_lock(context, holder())
    first = next(view for view in shown if view.role is Role.ACTIVE)
    assert first.lock.held
    assert first.run is not None
    assert first.run.id == "left"


def test_the_kind_of_a_run_is_kept_from_its_start(context: Rig, world: SimWorld) -> None:
    """With the counts of its kind, so that the process that takes the run up knows it."""
    world.add_broker(SimBroker(id=4, rack="a"))
    store = JournalStore()
    give_run_controller(context, store)
    context.policy = DaemonPolicy(mode=Mode.AUTO)
    keep_lock(context, holder())
    start(context, Proposal(id="p", kind=ActionKind.REPAIR, plan=two_moves(context.cluster.snapshot())))
    later = a_scene(world)
    give_run_controller(later, store)
    load_journal(later, MemoryJournal(store, context.clock))
    assert later.parts.runs.kind_of("run-1") is ActionKind.REPAIR
    assert later.parts.runs.kind_of("run-2") is None


def a_scene(world: SimWorld) -> Rig:
    """A daemon that has just begun."""
    board = Board(View(name="shop", instance="pod-0", started_at_ms=world.clock.now_ms(), role=Role.OBSERVING))
    return a_rig(SimCluster(world), world.clock, board, DaemonPolicy())


DAMAGED = {"day": "2026-11-21", "by": "Ada"}
"""No kind of record is whole with these alone."""
OTHER_VERSION = {"version": 2}
RATE = "broker/1/leader.replication.throttled.rate"
REFUSED = (
    *((key, DAMAGED) for key in (acts_key(ActionKind.MOVES), "daemon/rejected/moves", "daemon/approved/moves")),
    *((key, DAMAGED) for key in (PAUSE_KEY, "drain/4", "drain/b", RESERVED_KEY, RESTART_KEY)),
    *((key, value) for key in ("run/r", f"{RUNS}/{RATE}") for value in (OTHER_VERSION, {"version": 1}, DAMAGED)),
    *((key, value) for key in ("move/r/t-0", "election/r/t-0") for value in (OTHER_VERSION, {"version": 1}, DAMAGED)),
)
"""What a daemon acts upon: each kind of record, damaged and, where it is versioned, of another version."""
SKIPPED = (
    *(("run/r", {"phase": "ended", **value}) for value in (OTHER_VERSION, {"version": 1}, DAMAGED)),
    *(("ended/r", value) for value in (OTHER_VERSION, {"version": 1}, DAMAGED)),
    *((f"{BY_HAND}/{RATE}", value) for value in (OTHER_VERSION, DAMAGED)),
    *((REPLICATION_KEY, value) for value in (OTHER_VERSION, DAMAGED)),
    *((KEPT_IN_PLACE_KEY + "1", value) for value in (OTHER_VERSION, DAMAGED)),
    *((key, DAMAGED) for key in (ASKED_KEY, ANSWERS_KEY)),
)
"""What only shows something, or belongs to a command: it keeps no daemon from acting."""


@pytest.mark.parametrize(("key", "value"), REFUSED)
def test_no_daemon_acts_upon_a_journal_with_a_damaged_record(context: Rig, key: str, value: dict[str, object]) -> None:
    """It is named, the lock is free for a process that can read it, and counts do not begin anew."""
    other = with_record(context, key, value)
    shown = watch(context.board)
    for _ in range(2):
        with pytest.raises(UnusableJournal, match=key) as refusal:
            keep_lock(context, holder())
        with suppress(UnusableJournal):
            read_journal_view(context)
    assert Role.ACTIVE not in {view.role for view in shown}
    lock = context.board.view.lock
    assert (lock.held, lock.journal_readable, lock.journal_problem) == (False, False, str(refusal.value))
    assert Metrics(context.board).registry.get_sample_value("ballast_journal_readable") == 0.0
    assert key in healthy(context.board.view, now_ms=context.clock.now_ms(), observe_s=1.0).sentence
    context.parts.permissions.publish()
    assert {p.code for p in context.board.view.permissions} == {"standby"}
    assert all(key in p.detail for p in context.board.view.permissions)
    other.acquire(holder("person"))
    other.append([Record(key, None)])
    other.release()
    keep_lock(context, holder())
    assert (context.board.view.role, context.board.view.lock.journal_problem) == (Role.ACTIVE, "")
    assert context.board.view.lock.journal_readable


@pytest.mark.parametrize(("key", "value"), SKIPPED)
def test_what_no_daemon_acts_upon_keeps_none_from_acting(context: Rig, key: str, value: dict[str, object]) -> None:
    """Damaged or of another version, it is for those who show it or act upon it."""
    with_record(context, key, value)
    keep_lock(context, holder())
    read_journal_view(context)
    assert context.board.view.role is Role.ACTIVE
    assert context.board.view.lock.journal_readable


def test_every_kind_of_record_is_judged_here() -> None:
    """A new kind of key belongs in one of the lists."""
    known = {key.partition("/")[0] for key, _ in (*REFUSED, *SKIPPED)}
    assert known > KINDS
    assert known - KINDS == {
        RUNS,
        BY_HAND,
        PAUSE_KEY,
        RESERVED_KEY,
        RESTART_KEY,
        "drain",
        "daemon",
        "journal-replication",
        "hand",
    }


def with_record(context: Rig, key: str, value: dict[str, object]) -> MemoryJournal:
    """A daemon in auto mode whose journal holds this record; the handle of another process on it."""
    store = JournalStore()
    give_run_controller(context, store)
    context.policy = DaemonPolicy(mode=Mode.AUTO)
    observe(context)
    other = MemoryJournal(store, context.clock)
    other.acquire(holder("earlier"))
    other.append([Record(key, value)])
    other.release()
    return other


def two_moves(state: ClusterState) -> Plan:
    """Broker 4 in the place of the first replica of two partitions."""
    old = {p: state.target(state.index[TopicPartition("orders", p)]) for p in MOVED}
    moves = tuple(Move("orders", p, o, (4, *o[1:]), size_bytes=10**8) for p, o in old.items())
    return Plan("test", state.cluster_id, "", moves)


def leave_a_run(cluster: SimCluster, journal: MemoryJournal, kind: ActionKind | None) -> None:
    """A process began a run of this kind and died before its first move."""
    now = Now(cluster.world.clock.now_ms(), 0.0)
    policy = ExecutionPolicy(throttle="none", measure_s=0)
    journal.acquire(holder("earlier"))
    journal.append(dump_run(new_run("left", two_moves(cluster.snapshot()), policy, now)))
    if kind is not None:
        journal.append([Record(acts_key(kind), asdict(NO_ACTIONS.add_start(now.ms, "left")))])
    journal.release()

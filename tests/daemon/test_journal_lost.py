"""The journal is deleted under an idle daemon: it says so at once, and the lock's holder makes it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.daemon.conftest import make_world
from tests.daemon.rig import Rig, answer, give_run_controller, holder, keep_lock, observe, read_journal_view

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.daemon.context.view import Role
from ballast.daemon.policy import DaemonPolicy, Mode
from ballast.errors import BallastError, JournalLost, Refused, Unavailable
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now
from ballast.ports.event_sink import ClusterEvent
from ballast.ports.journal import JournalRestart, Record, Request, find_restart, restart_record
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore, MemoryJournal


@pytest.fixture
def told(context: Rig, store: JournalStore) -> list[str]:
    """A daemon that may write, and the reasons of the news that it tells."""
    reasons: list[str] = []

    def event_sink(news: ClusterEvent) -> None:
        reasons.append(news.reason)

    context.event_sink = event_sink
    give_run_controller(context, store)
    context.policy = DaemonPolicy(mode=Mode.AUTO)
    return reasons


def test_the_holder_of_the_lock_makes_it_again(context: Rig, store: JournalStore, told: list[str]) -> None:
    """With what it knew, and the lock still its own."""
    keep_lock(context, holder())
    assert context.journal is not None
    context.journal.append([Record("kept", {"a": 1})])
    store.lose()
    context.clock.sleep(10)
    keep_lock(context, holder())
    assert [r for r in told if r.startswith("Journal")] == ["JournalLost", "JournalRecreated"]
    assert context.board.view.role is Role.ACTIVE
    assert context.board.view.lock.journal_readable
    assert [r.value for r in context.journal.read() if r.key == "kept"] == [{"a": 1}]
    read_journal_view(context)
    assert context.board.view.lock.journal_readable


def test_nothing_starts_from_a_journal_that_was_recreated_empty(
    context: Rig, store: JournalStore, told: list[str]
) -> None:
    """The process that takes the lock pauses, and so does the next one; a person's resume ends it for good."""
    journal = MemoryJournal(store, context.clock)
    journal.acquire(holder("before"))
    journal.append([restart_record(JournalRestart(5, "alice"))])
    journal.release()
    keep_lock(context, holder())
    pause = context.board.view.pause
    assert pause is not None
    assert (pause.by, pause.since_ms) == ("ballast", 5)
    assert told.count("JournalLost") == 1
    answer(context, Request("r", "resume", "Ada", context.clock.now_ms(), {}))
    assert context.board.view.pause is None
    assert context.journal is not None
    assert find_restart(context.journal.read()) is None
    context.journal.release()
    context.board.set_role(Role.STANDBY)
    keep_lock(context, holder("after"))
    assert context.board.view.role is Role.ACTIVE
    assert context.board.view.pause is None
    assert told.count("JournalLost") == 1


@pytest.mark.parametrize("silent_first", [False, True])
def test_a_remake_is_brought_to_its_end(
    context: Rig, store: JournalStore, told: list[str], *, silent_first: bool
) -> None:
    """Where it failed half-way, and where the journal did not answer before it was deleted: the lock is still ours."""
    keep_lock(context, holder())
    assert context.journal is not None
    context.journal.append([Record("kept", {"a": 1})])
    context.clock.sleep(10)
    if silent_first:
        store.available = False
        with pytest.raises(Unavailable):
            keep_lock(context, holder())
        store.available = True
    store.lose()
    store.failing_remakes = 2
    for _ in range(2):
        context.clock.sleep(10)
        with pytest.raises(Unavailable):
            keep_lock(context, holder())
        assert context.board.view.role is Role.STANDBY
    keep_lock(context, holder())
    assert context.board.view.role is Role.ACTIVE
    assert context.board.view.lock.journal_readable
    assert [r.value for r in context.journal.read() if r.key == "kept"] == [{"a": 1}]


def test_a_run_is_resumed_whatever_it_was_begun_with(
    context: Rig, store: JournalStore, told: list[str], clock: SimClock
) -> None:
    """The lock loop makes the journal again, and the run's own thread waits for that: ``leave`` is a command's."""
    bodies: list[Callable[[], None]] = []
    context.cluster = SimCluster(make_world(clock, brokers=4))
    policy = ExecutionPolicy(throttle=10**6, measure_s=0, moves_at_once=1, journal_lost="leave")
    give_run_controller(context, store, policy, spawn=bodies.append)
    context.policy = replace(context.policy, mode=Mode.AUTO)

    def turn() -> None:
        keep_lock(context, holder())
        if clock.monotonic_s() < 3600:
            clock.at(clock.monotonic_s() + 5, turn)

    turn()
    assert context.run_controller is not None
    assert context.journal is not None
    state = context.cluster.snapshot()
    names = [TopicPartition("orders", p) for p in (0, 4)]
    before = [state.target(state.index[name]) for name in names]
    moves = [Move(n.topic, n.partition, old, (*old[:2], 4)) for n, old in zip(names, before, strict=True)]
    context.run_controller.start(Plan("test", state.cluster_id, "", tuple(moves)))
    clock.at(clock.monotonic_s() + 30, store.lose)
    while bodies:
        bodies.pop(0)()
        read_journal_view(context)
    assert [r for r in told if r.startswith("Journal")] == ["JournalLost", "JournalRecreated"]
    runs = load_runs(context.journal.read(), Now(clock.now_ms(), clock.monotonic_s()))
    assert [run.ended for run in runs.values()] == [True]


def test_a_standby_says_that_it_is_gone(context: Rig, store: JournalStore, told: list[str], clock: SimClock) -> None:
    """It has nothing to make it again from, and reads what stands there from then on."""
    other = MemoryJournal(store, clock)
    other.acquire(holder("other"))
    keep_lock(context, holder())
    read_journal_view(context)
    store.lose()
    with pytest.raises(JournalLost):
        read_journal_view(context)
    assert context.board.view.lock.journal_readable is False
    assert "JournalLost" in told
    other.remake()
    read_journal_view(context)
    assert context.board.view.lock.journal_readable


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    ("failure", "readable"),
    [(Refused("A run is being executed already."), True), (Unavailable("No answer."), False)],
)
def test_only_the_journals_own_failures_say_that_it_cannot_be_read(
    context: Rig, monkeypatch: pytest.MonkeyPatch, failure: BallastError, *, readable: bool
) -> None:
    """What a run refuses says nothing of the journal, and an alert goes by this."""
    assert context.run_controller is not None
    keep_lock(context, holder())
    context.board.set_role(Role.STANDBY)

    def adopt() -> str | None:
        raise failure

    monkeypatch.setattr(context.run_controller, "adopt", adopt)
    with pytest.raises(type(failure)):
        keep_lock(context, holder())
    assert context.board.view.lock.journal_readable is readable


def test_no_other_process_is_blamed_after_an_outage(context: Rig, store: JournalStore, told: list[str]) -> None:
    """The lock is free, or our own lease has still to expire."""
    keep_lock(context, holder())
    store.available = False
    with pytest.raises(Unavailable):
        keep_lock(context, holder())
    observe(context)
    assert {(p.code, p.cause) for p in context.board.view.permissions} == {("standby", "journal")}

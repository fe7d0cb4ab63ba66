"""A change of mode while the daemon runs, check by check, on a simulated cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.daemon.rig import (
    Rig,
    answer_requests,
    holder,
    keep_lock,
    observe,
    read_journal_view,
    show_run,
    submit,
    tools,
)

from ballast.core.cluster import UNKNOWN
from ballast.core.plan import Move, Plan
from ballast.daemon.context.view import Role
from ballast.daemon.policy import ActionKind, ActionPolicy, Actions, DaemonPolicy, Mode
from ballast.errors import AuthorizationFailed, Refused
from ballast.executor.journal.records import dump_run
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Phase, Status, new_run
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC, Record, Request
from ballast.sim.clock import SimClock
from ballast.sim.journal import JournalStore, MemoryJournal
from ballast.sim.model import SimBroker
from ballast.sim.world import SimWorld

AUTO = DaemonPolicy(mode=Mode.AUTO)


@pytest.fixture
def observer(context: Rig, store: JournalStore) -> Rig:
    """A daemon that observes, and gets what it needs to write when the mode first asks for it."""
    context.take_tools = lambda: tools(context, store)
    context.reading_journal = MemoryJournal(store, context.clock)
    keep_lock(context, holder())
    observe(context)
    return context


def test_an_observer_takes_the_lock_when_the_mode_asks_for_it(observer: Rig, store: JournalStore) -> None:
    """And gives it back when the mode is observe again, with nothing left in the journal but what was there."""
    assert (observer.board.view.role, observer.journal) == (Role.OBSERVING, None)
    started_ms = observer.clock.now_ms()
    observer.clock.sleep(3600)
    observer.policy = AUTO
    keep_lock(observer, holder())
    assert observer.board.view.role is Role.ACTIVE
    since_ms = observer.board.view.lock.since_ms
    assert since_ms is not None
    assert since_ms >= started_ms + 3_600_000
    observer.policy = replace(observer.policy, mode=Mode.OBSERVE)
    keep_lock(observer, holder())
    other = MemoryJournal(store, observer.clock)
    assert (observer.board.view.role, other.holder()) == (Role.OBSERVING, None)
    assert observer.board.view.lock.journal_readable is None
    before = dict(store.requests), list(other.read()), store.epoch
    keep_lock(observer, holder())
    answer_requests(observer)
    with pytest.raises(Refused):
        submit(observer, Request("r", "approve", "Ada", 0, {"plan": "moves-1"}))
    assert (dict(store.requests), list(other.read()), store.epoch) == before


def test_the_first_plan_knows_the_sizes_of_the_topics_that_ballast_has_just_made(
    observer: Rig, world: SimWorld
) -> None:
    """They are made with the lock, between two readings of log dirs; a topic of others is read with the next of those."""
    world.add_broker(SimBroker(id=4, rack="a"))
    world.add_topic(JOURNAL_TOPIC, {0: (1, 2, 3)}, size_bytes=0)
    world.add_topic(REQUESTS_TOPIC, {0: (2, 3, 1)}, size_bytes=0)
    observer.policy = replace(AUTO, mode=Mode.APPROVE)
    keep_lock(observer, holder())
    first = observer.parts.reading.full
    observer.clock.sleep(1)
    observe(observer)
    state = observer.parts.reading.state
    assert state is not None
    assert not (state.partitions.size_bytes == UNKNOWN).any()
    second = observer.parts.reading.full
    assert second is not first
    world.add_topic("of-others", {0: (1, 2, 3)})
    observer.clock.sleep(1)
    observe(observer)
    assert observer.parts.reading.full is second


def test_an_observer_tells_what_the_journal_says(observer: Rig, store: JournalStore, clock: SimClock) -> None:
    """Past runs, the open one and what is owed; without a right on the journal it says that it does not know, and goes on."""
    other = MemoryJournal(store, clock)
    other.acquire(holder("other"))
    now = Now(clock.now_ms(), clock.monotonic_s())
    for run_id, phase in (("old", Phase.ENDED), ("left", Phase.RUNNING)):
        plan = Plan("balance", "c", "f", (Move("orders", 0, (1, 2, 3), (4, 2, 3)),))
        run = new_run(run_id, plan, ExecutionPolicy(), now)
        ended = replace(run, phase=phase, status=Status.DONE, ended_ms=now.ms) if phase is Phase.ENDED else run
        other.append(dump_run(ended))
    observer.reading_journal = MemoryJournal(store, clock)
    before = dict(store.requests), list(other.read()), store.epoch
    read_journal_view(observer)
    show_run(observer)
    view = observer.board.view
    assert [r.id for r in view.history] == ["old"]
    assert view.run_elsewhere is not None
    assert view.run_elsewhere.id == "left"
    assert (dict(store.requests), list(other.read()), store.epoch) == before
    observer.reading_journal = NotOurs(store, clock)
    read_journal_view(observer)
    assert observer.board.view.history_problem
    assert observer.board.view.lock.journal_readable is None
    observer.policy = AUTO
    with pytest.raises(AuthorizationFailed):
        read_journal_view(observer)


class NotOurs(MemoryJournal):
    """A journal that we may not read."""

    def read(self) -> Sequence[Record]:
        """Refused."""
        raise AuthorizationFailed("Not authorized to read __ballast_journal.")


def test_a_standby_that_is_to_observe_waits_for_the_lock_no_more(
    observer: Rig, store: JournalStore, clock: SimClock
) -> None:
    """Nor does it take one that becomes free at that moment."""
    other = MemoryJournal(store, clock)
    other.acquire(holder("other"))
    observer.policy = AUTO
    keep_lock(observer, holder())
    assert observer.board.view.role is Role.STANDBY
    assert observer.journal is not None
    epoch = store.epoch
    observer.policy = DaemonPolicy()
    keep_lock(observer, holder())
    assert (observer.board.view.role, store.epoch) == (Role.OBSERVING, epoch)


def test_a_run_whose_kind_is_to_observe_begins_no_further_move(observer: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another kind still acts, so that the lock is kept."""
    observer.policy = AUTO
    keep_lock(observer, holder())
    assert observer.run_controller is not None
    held: list[bool] = []
    monkeypatch.setattr(observer.run_controller, "pause", lambda *, paused, **_: held.append(paused))
    observer.parts.runs.running = ActionKind.MOVES
    for mode in (Mode.OBSERVE, Mode.AUTO):
        observer.policy = replace(AUTO, actions=Actions(moves=ActionPolicy(mode=mode)))
        observer.parts.runs.hold()
    assert held == [True, False]

"""The counts behind the caps: what has begun is in the journal, however the write of its count ends."""

from __future__ import annotations

import pytest
from tests.daemon.rig import Rig, a_rig, give_run_controller, holder, keep_lock, start

from ballast.core.catalogue import Message
from ballast.core.cluster import TopicPartition
from ballast.core.plan import Plan
from ballast.daemon.acting.action_history import NO_ACTIONS, ActionHistory
from ballast.daemon.acting.decisions import Approval, approval_record
from ballast.daemon.acting.proposal import Proposal
from ballast.daemon.acting.runs import acts_in
from ballast.daemon.context.access import Access
from ballast.daemon.context.view import Board, Role, View
from ballast.daemon.policy import ActionKind, DaemonPolicy, Mode
from ballast.errors import Unavailable
from ballast.ports.journal import Record
from ballast.sim.clock import SimClock
from ballast.sim.journal import JournalStore, MemoryJournal

KIND = ActionKind.ELECTIONS


@pytest.fixture
def store() -> JournalStore:
    """The cluster's journal."""
    return JournalStore()


@pytest.fixture
def leader(context: Rig, store: JournalStore) -> Rig:
    """A daemon that holds the lock and whose runs stand still."""
    context.policy = DaemonPolicy(mode=Mode.AUTO)
    give_run_controller(context, store, spawn=lambda _: None)
    keep_lock(context, holder())
    return context


def fail_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the daemon's own loops write reaches the journal."""

    def write(_self: Access, _record: Record) -> bool:
        raise Unavailable("No answer.")

    monkeypatch.setattr(Access, "write", write)


def begin(rig: Rig) -> Message:
    """A run of one election begins."""
    return start(rig, Proposal(id="p", kind=KIND, plan=Plan("test", "c", "", (), elections=(TopicPartition("t", 0),))))


def counted(store: JournalStore, clock: SimClock) -> ActionHistory:
    """What a daemon that starts now would count."""
    return acts_in(MemoryJournal(store, clock).read()).get(KIND, NO_ACTIONS)


def test_a_start_that_was_not_written_is_written_with_the_next_beat(
    leader: Rig, store: JournalStore, clock: SimClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart grants no more than the cap of the day, and the run is told of as any other."""
    with monkeypatch.context() as failing:
        fail_writes(failing)
        assert begin(leader).code == "run-started"
        assert counted(store, clock).starts == 0
    keep_lock(leader, holder())
    assert (counted(store, clock).starts, counted(store, clock).run) == (1, "run-1")
    keep_lock(leader, holder())
    assert counted(store, clock).starts == 1


@pytest.mark.parametrize("written", [True, False])
def test_a_start_that_was_not_written_outlives_the_loss_of_the_lock(
    leader: Rig, store: JournalStore, clock: SimClock, monkeypatch: pytest.MonkeyPatch, *, written: bool
) -> None:
    """What another process counted meanwhile counts as well, and a write that arrived after all counts once."""
    with monkeypatch.context() as failing:
        fail_writes(failing)
        begin(leader)
    leader.board.set_role(Role.STANDBY)
    assert leader.journal is not None
    leader.journal.release()
    other = a_rig(leader.cluster, clock, Board(View(role=Role.OBSERVING)), leader.policy)
    give_run_controller(other, store)
    keep_lock(other, holder("other"))
    other.parts.runs.note_start(KIND, "run-1" if written else "elsewhere", clock.now_ms())
    assert other.journal is not None
    other.journal.release()
    keep_lock(leader, holder())
    assert leader.parts.runs.acts[KIND].starts == (1 if written else 2)
    keep_lock(leader, holder())
    assert counted(store, clock).starts == (1 if written else 2)


def test_an_end_that_was_not_written_is_written_with_the_next_beat(
    leader: Rig, store: JournalStore, clock: SimClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cool-down holds after a restart."""
    with monkeypatch.context() as failing:
        fail_writes(failing)
        leader.parts.runs.note_end(KIND, clock.now_ms())
    ended_ms = clock.now_ms()
    keep_lock(leader, holder())
    assert counted(store, clock).last_end_ms == ended_ms


def test_a_run_does_not_begin_while_its_approval_cannot_be_forgotten(
    leader: Rig, store: JournalStore, clock: SimClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An approval that stays in the journal would start the same plan again once the run was undone."""
    approvals = leader.parts.proposals.approved
    approvals[KIND] = Approval(plan="p", by="Ada")
    assert leader.journal is not None
    leader.journal.append([approval_record(KIND, approvals[KIND])])
    with monkeypatch.context() as failing:
        fail_writes(failing)
        with pytest.raises(Unavailable):
            begin(leader)
        assert leader.access.current() is None
    assert begin(leader).code == "run-started"
    assert not any(r.value for r in MemoryJournal(store, clock).read() if r.key == approval_record(KIND, None).key)

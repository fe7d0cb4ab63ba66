"""Two loops of the daemon at once: neither loses what the other has decided, and no run begins that a person was told will not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.daemon.conftest import bounce
from tests.daemon.rig import (
    Rig,
    act,
    answer,
    answer_requests,
    check_leaders,
    codes,
    holder,
    keep_lock,
    lead,
    make_wanted,
    observe,
    submit,
)
from tests.waiting import PATIENCE_S

from ballast.core.cluster import ClusterState
from ballast.core.plan.fingerprint import fingerprint
from ballast.daemon.acting import plan_views, propose
from ballast.daemon.acting.decisions import decisions_in
from ballast.daemon.acting.runs import Runs
from ballast.daemon.context.access import Access
from ballast.daemon.context.view import Board, Role
from ballast.daemon.policy import DaemonPolicy, LivePolicy, Mode
from ballast.errors import Fenced
from ballast.executor.journal.pause import Pause
from ballast.ports.journal import Request
from ballast.sim.clock import SimClock
from ballast.sim.journal import JournalStore, MemoryJournal
from ballast.sim.model import SimBroker
from ballast.sim.world import SimWorld

PAUSE = Pause(by="Ada", since_ms=0, reason="")


class Noted:
    """The lock around decisions; it notes who comes to it."""

    def __init__(self) -> None:
        self.lock, self.came = threading.RLock(), threading.Event()

    def __enter__(self) -> None:
        if threading.current_thread().name == "other":
            self.came.set()
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


class Other:
    """Another loop: what it does begins in the midst of what this one does, and goes on until it ends or has to wait."""

    def __init__(self, context: Rig) -> None:
        self.noted = context.parts.proposals.deciding = Noted()  # type: ignore[assignment]
        self.thread: threading.Thread | None = None

    def does(self, body: Callable[[], object]) -> None:
        """Begin it, once."""
        if self.thread is not None or threading.current_thread().name == "other":
            return

        def run() -> None:
            try:
                body()
            finally:
                self.noted.came.set()

        self.thread = threading.Thread(target=run, name="other", daemon=True)
        self.thread.start()
        assert self.noted.came.wait(PATIENCE_S)

    def ends(self) -> None:
        """Wait for its end."""
        assert self.thread is not None
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


@pytest.fixture
def leader(context: Rig, world: SimWorld, store: JournalStore) -> Rig:
    """A daemon that holds the lock, of a cluster whose leaders are not where they are preferred."""
    world.add_broker(SimBroker(id=4, rack="a"))
    bounce(world, 1)
    context.policy = DaemonPolicy(mode=Mode.APPROVE)
    lead(context, store)
    observe(context)
    context.parts.reading.presence = replace(context.parts.reading.presence, changed_at_s=None)
    return context


def request(context: Rig, kind: str, by: str = "Ada", **body: str) -> Request:
    """What a person asks for."""
    return Request(id=f"{kind}-{by}", kind=kind, by=by, at_ms=context.clock.now_ms(), body=body)


def in_the_midst(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """While the work loop compares a plan with the newest reading, which takes a while in a large cluster."""

    def compare(state: ClusterState) -> str:
        do()
        return fingerprint(state)

    monkeypatch.setattr(propose, "fingerprint", compare)


def test_a_plan_that_was_rejected_does_not_start(leader: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's answer is true, whichever loop comes first: rejected and not started, or started and not there to reject."""
    check_leaders(leader)
    (plan,) = leader.board.view.plans
    leader.policy = replace(leader.policy, mode=Mode.AUTO)
    other, told = Other(leader), list[str]()
    reject = request(leader, "reject", plan=plan.id)
    in_the_midst(monkeypatch, lambda: other.does(lambda: told.append(answer(leader, reject))))
    said = str(act(leader))
    other.ends()
    assert ("started" in said) != (told == [f"Ada rejected {plan.id}."]), (said, told)


def test_an_approval_starts_the_plan_that_it_names(leader: Rig, world: SimWorld) -> None:
    """And not the one that another person asked for, which comes in its place while the drain is written down."""
    answer(leader, request(leader, "plan", intent="drain", broker="2"))
    make_wanted(leader)
    (drain,) = leader.board.view.plans
    answer(leader, request(leader, "plan", by="Bob", intent="elect"))
    other, journal = Other(leader), leader.journal
    assert journal is not None
    append = journal.append

    def slow(records: Any) -> None:
        other.does(lambda: make_wanted(leader))
        append(records)

    journal.append = slow  # type: ignore[method-assign]
    said = answer(leader, request(leader, "approve", plan=drain.id))
    other.ends()
    assert "started" in said
    assert not any(2 in p.replicas for p in world.partitions())


def test_what_is_shown_last_is_what_there_is(leader: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that one loop drops while another one draws all of them is not put back onto the page."""
    check_leaders(leader)
    (plan,) = leader.board.view.plans
    other, draw = Other(leader), plan_views.plan_view
    reject = request(leader, "reject", plan=plan.id)

    def plan_view(*given: Any, **more: Any) -> Any:
        other.does(lambda: answer(leader, reject))
        return draw(*given, **more)

    monkeypatch.setattr("ballast.daemon.acting.propose.plan_view", plan_view)
    leader.parts.proposals.publish()
    other.ends()
    assert leader.board.view.plans == ()


def test_no_run_begins_once_the_lock_was_given_up(leader: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock loop shows the role before it leaves the run in progress; no process would leave a later one."""
    leader.policy = replace(leader.policy, mode=Mode.AUTO)
    in_the_midst(monkeypatch, lambda: leader.board.set_role(Role.STANDBY))
    assert "lock-gone" in codes(check_leaders(leader))
    assert leader.journal is not None
    assert not [r for r in leader.journal.read() if r.key.startswith("run")]


def test_the_newest_request_counts_also_where_the_one_before_has_to_be_planned_anew(
    leader: Rig, world: SimWorld
) -> None:
    """Who asks while another's plan turns out to be outdated gets an answer."""
    answer(leader, request(leader, "plan", intent="elect"))
    make_wanted(leader)
    world.add_topic("more", {0: (1, 2, 3)}, size_bytes=1e6)
    observe(leader)
    answer(leader, request(leader, "plan", by="Bob", intent="balance"))
    assert "plan-outdated" in codes(act(leader))
    make_wanted(leader)
    assert leader.board.view.answers[-1].request == "plan-Bob"


def test_a_pause_holds_the_run_that_begins_beside_it() -> None:
    """The loop that begins the run has seen no pause, and tells the run so only after the pause has been told."""
    board, told = Board(), list[bool]()

    class Policy(LivePolicy):
        """While it is asked, a person pauses."""

        def __getattribute__(self, name: str) -> Any:
            if name == "now" and board.view.pause is None:
                board.publish(pause=PAUSE)
                told.append(True)
            return super().__getattribute__(name)

    class Controller:
        """Notes the switch."""

        def pause(self, *, paused: bool, by: str = "") -> None:
            told.append(paused)

    access = Access(board, run_controller=Controller())  # type: ignore[arg-type]
    Runs(board, Policy(DaemonPolicy(mode=Mode.AUTO)), access).hold()
    assert told[-1]


def test_a_decision_that_was_not_written_is_left_to_the_next_holder(
    leader: Rig, store: JournalStore, clock: SimClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is being given up, and can still be written with: the person's pause must not be answered and forgotten."""
    submit(leader, request(leader, "pause"))
    monkeypatch.setattr("ballast.daemon.process.requests.pause_record", lambda _: leader.board.set_role(Role.STANDBY))
    answer_requests(leader)
    monkeypatch.undo()
    (asked,) = MemoryJournal(store, clock).requests()
    assert asked.answer is None
    leader.board.set_role(Role.ACTIVE)
    answer_requests(leader)
    assert decisions_in(MemoryJournal(store, clock).read()).pause is not None


def test_who_is_told_to_stop_while_it_takes_the_lock_does_not_keep_it(
    leader: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its successor need not wait for the end of the lease."""
    journal, run_controller = leader.journal, leader.run_controller
    assert journal is not None
    journal.release()
    leader.board.set_role(Role.STANDBY)
    monkeypatch.setattr(run_controller, "adopt", lambda: leader.board.set_role(Role.STOPPING))
    keep_lock(leader, holder())
    assert leader.board.view.role is Role.STOPPING
    assert journal.holder() is None


def test_a_lock_that_is_lost_is_given_up_for_no_one_when_it_comes_back(
    leader: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person asked for it at the very moment at which another process took it."""
    journal = leader.journal
    assert journal is not None

    def renew(_: str) -> None:
        leader.access.release_for = "Ada"
        raise Fenced("Another process has taken this cluster's lock.")

    monkeypatch.setattr(journal, "renew", renew)
    assert "lost" in codes(keep_lock(leader, holder()))
    monkeypatch.undo()
    keep_lock(leader, holder())
    assert leader.board.view.role is Role.ACTIVE
    assert "held" in codes(keep_lock(leader, holder()))

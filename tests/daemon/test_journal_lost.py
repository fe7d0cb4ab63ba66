"""The journal is deleted under an idle daemon: it says so at once, and whoever holds the lock makes it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.daemon.conftest import give_hands, holder, make_world

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.daemon.acting.journal_view import read_books
from ballast.daemon.acting.policy import DaemonPolicy, Mode
from ballast.daemon.acting.requests import answer
from ballast.daemon.context.scene import Scene
from ballast.daemon.context.view import Role
from ballast.daemon.process.lock import keep_lock
from ballast.errors import BallastError, JournalLost, Refused, Unavailable
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now
from ballast.ports.journal import Begun, Record, Request, begun_in, begun_record
from ballast.ports.news import News
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore, MemoryJournal


@pytest.fixture
def store() -> JournalStore:
    """What outlives every process."""
    return JournalStore()


@pytest.fixture
def told(scene: Scene, store: JournalStore) -> list[str]:
    """A daemon that may write, and the reasons of the news that it tells."""
    reasons: list[str] = []

    def herald(news: News) -> None:
        reasons.append(news.reason)

    scene.herald = herald
    give_hands(scene, store)
    scene.policy = DaemonPolicy(mode=Mode.AUTO)
    return reasons


def test_the_holder_of_the_lock_makes_it_again(scene: Scene, store: JournalStore, told: list[str]) -> None:
    """With what it knew, and the lock still its own."""
    keep_lock(scene, holder())
    assert scene.journal is not None
    scene.journal.append([Record("kept", {"a": 1})])
    store.lose()
    scene.clock.sleep(10)
    keep_lock(scene, holder())
    assert [r for r in told if r.startswith("Journal")] == ["JournalLost", "JournalRemade"]
    assert scene.board.view.role is Role.LEADER
    assert scene.board.view.lock.journal_readable
    assert [r.value for r in scene.journal.read() if r.key == "kept"] == [{"a": 1}]
    read_books(scene)
    assert scene.board.view.lock.journal_readable


def test_nothing_starts_from_a_journal_that_was_begun_again(scene: Scene, store: JournalStore, told: list[str]) -> None:
    """Whoever takes the lock pauses, and so does the next one; a person's resume ends it for good."""
    journal = MemoryJournal(store, scene.clock)
    journal.acquire(holder("before"))
    journal.append([begun_record(Begun(5, "somebody"))])
    journal.release()
    keep_lock(scene, holder())
    pause = scene.board.view.pause
    assert pause is not None
    assert (pause.by, pause.since_ms) == ("ballast", 5)
    assert told.count("JournalLost") == 1
    answer(scene, Request("r", "resume", "Ada", scene.clock.now_ms(), {}))
    assert scene.board.view.pause is None
    assert scene.journal is not None
    assert begun_in(scene.journal.read()) is None
    scene.journal.release()
    scene.set_role(Role.STANDBY)
    keep_lock(scene, holder("after"))
    assert scene.board.view.role is Role.LEADER
    assert scene.board.view.pause is None
    assert told.count("JournalLost") == 1


@pytest.mark.parametrize("silent_first", [False, True])
def test_a_remake_is_brought_to_its_end(
    scene: Scene, store: JournalStore, told: list[str], *, silent_first: bool
) -> None:
    """Where it failed half-way, and where the journal did not answer before it was deleted: the lock is still ours."""
    keep_lock(scene, holder())
    assert scene.journal is not None
    scene.journal.append([Record("kept", {"a": 1})])
    scene.clock.sleep(10)
    if silent_first:
        store.available = False
        with pytest.raises(Unavailable):
            keep_lock(scene, holder())
        store.available = True
    store.lose()
    store.failing_remakes = 2
    for _ in range(2):
        scene.clock.sleep(10)
        with pytest.raises(Unavailable):
            keep_lock(scene, holder())
        assert scene.board.view.role is Role.STANDBY
    keep_lock(scene, holder())
    assert scene.board.view.role is Role.LEADER
    assert scene.board.view.lock.journal_readable
    assert [r.value for r in scene.journal.read() if r.key == "kept"] == [{"a": 1}]


def test_a_run_is_taken_up_again_whatever_it_was_begun_with(
    scene: Scene, store: JournalStore, told: list[str], clock: SimClock
) -> None:
    """The lock loop makes the journal again, and the run's own thread waits for that: ``leave`` is a command's."""
    bodies: list[Callable[[], None]] = []
    scene.cluster = SimCluster(make_world(clock, brokers=4))
    policy = ExecutionPolicy(throttle=10**6, measure_s=0, moves_in_cluster=1, journal_lost="leave")
    give_hands(scene, store, policy, spawn=bodies.append)
    scene.policy = replace(scene.policy, mode=Mode.AUTO)

    def tick() -> None:
        keep_lock(scene, holder())
        if clock.monotonic_s() < 3600:
            clock.at(clock.monotonic_s() + 5, tick)

    tick()
    assert scene.hands is not None
    assert scene.journal is not None
    state = scene.cluster.snapshot()
    names = [TopicPartition("orders", p) for p in (0, 4)]
    before = [state.target(state.index[name]) for name in names]
    moves = [Move(n.topic, n.partition, old, (*old[:2], 4)) for n, old in zip(names, before, strict=True)]
    scene.hands.start(Plan("test", state.cluster_id, "", tuple(moves)))
    clock.at(clock.monotonic_s() + 30, store.lose)
    while bodies:
        bodies.pop(0)()
        read_books(scene)
    assert [r for r in told if r.startswith("Journal")] == ["JournalLost", "JournalRemade"]
    runs = load_runs(scene.journal.read(), Now(clock.now_ms(), clock.monotonic_s()))
    assert [run.ended for run in runs.values()] == [True]


def test_a_standby_says_that_it_is_gone(scene: Scene, store: JournalStore, told: list[str], clock: SimClock) -> None:
    """It has nothing to make it again from, and reads what stands there from then on."""
    other = MemoryJournal(store, clock)
    other.acquire(holder("other"))
    keep_lock(scene, holder())
    read_books(scene)
    store.lose()
    with pytest.raises(JournalLost):
        read_books(scene)
    assert scene.board.view.lock.journal_readable is False
    assert "JournalLost" in told
    other.remake()
    read_books(scene)
    assert scene.board.view.lock.journal_readable


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    ("failure", "readable"),
    [(Refused("A run is being carried out already."), True), (Unavailable("No answer."), False)],
)
def test_only_the_journals_own_failures_say_that_it_cannot_be_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, failure: BallastError, *, readable: bool
) -> None:
    """What a run refuses says nothing of the journal, and an alert goes by this."""
    assert scene.hands is not None
    keep_lock(scene, holder())
    scene.set_role(Role.STANDBY)

    def adopt() -> str | None:
        raise failure

    monkeypatch.setattr(scene.hands, "adopt", adopt)
    with pytest.raises(type(failure)):
        keep_lock(scene, holder())
    assert scene.board.view.lock.journal_readable is readable

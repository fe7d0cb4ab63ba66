"""The journal is deleted under an idle daemon: it says so at once, and whoever holds the lock makes it again."""

from __future__ import annotations

import pytest
from tests.daemon.conftest import give_hands, holder

from ballast.daemon.books import read_books
from ballast.daemon.lock import keep_lock
from ballast.daemon.policy import DaemonPolicy, Mode
from ballast.daemon.scene import Scene
from ballast.daemon.view import Role
from ballast.errors import JournalLost
from ballast.ports.journal import Record
from ballast.ports.news import News
from ballast.sim.clock import SimClock
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

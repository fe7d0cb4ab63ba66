"""The lock passes from the process that follows earlier moves to the command that a person has just given."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ballast.adapters.journal.file import FileJournal
from ballast.app.reassign.session import ReassignSession
from ballast.app.reassign.verify import remove_throttles
from ballast.errors import Fenced, LockHeld
from ballast.ports.journal import Holder
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.runs import open_writer

OPENED = cast("OpenCluster", SimpleNamespace(cluster=None, bootstrap_server="a:1"))
SESSION = ReassignSession(OPENED, lambda _: None, lambda _: None)
WITHIN_S = 30.0


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal in a file, and tries that do not take long."""
    file = tmp_path / "journal"

    def journal_of(*_: Any, **__: Any) -> FileJournal:
        return FileJournal(file)

    for place in ("wiring.runs", "wiring.journal", "app.reassign.session"):
        monkeypatch.setattr(f"ballast.{place}.journal_of", journal_of)
    monkeypatch.setattr("ballast.app.reassign.session.WAIT_S", 1.0)
    return file


@contextmanager
def another_process(
    path: Path, description: str, *, is_follower: bool = False, answers: bool = True
) -> Iterator[FileJournal]:
    """A process that holds the lock, and releases it when it is asked."""
    journal = FileJournal(path)
    journal.acquire(Holder("k", description, lease_s=600, is_follower=is_follower))
    done = threading.Event()

    def serve() -> None:
        while not done.wait(0.05):
            for request in journal.requests():
                if request.kind == "take-over" and request.answer is None:
                    if answers:
                        journal.answer(request.id, "the lock is released")
                    journal.release()
                    return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield journal
    finally:
        done.set()
        thread.join(WITHIN_S)


@pytest.mark.parametrize("answers", [True, False])
def test_a_follower_releases_the_lock_and_no_request_stays_unanswered(path: Path, answers: bool) -> None:  # noqa: FBT001
    """A request that the follower had no time to answer would end the next follower: the new holder answers it."""
    with (
        another_process(path, "ana@pod", is_follower=True, answers=answers),
        SESSION.writer("--cancel") as own,
    ):
        assert [r.kind for r in own.journal.requests()] == ["take-over"]
        assert [r.answer is None for r in own.journal.requests()] == [False]


def test_a_follower_that_was_only_starting_is_asked_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first look no process held the lock, and a moment later the follower had it."""
    looks = [0]

    class Late(FileJournal):
        def holder(self) -> Holder | None:
            looks[0] += 1
            return super().holder() if looks[0] > 1 else None

    for place in ("wiring.runs", "wiring.journal", "app.reassign.session"):
        monkeypatch.setattr(f"ballast.{place}.journal_of", lambda *_, **__: Late(path))
    with another_process(path, "ana@pod", is_follower=True), SESSION.writer("--execute") as own:
        assert looks[0] > 1
        own.journal.check()


def lock_taken(*_: Any) -> Any:
    """What a process hears whose lock another has taken."""
    raise Fenced("Another process has taken this cluster's lock.")


@pytest.mark.parametrize("everybodys", [True, False])
def test_a_follower_that_takes_the_lock_on_the_way_removes_the_throttles(
    path: Path,
    everybodys: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both saw the lock free: the command that lost it has done what was asked, except with what others have set."""
    for what in ("clear_stale", "stale_on"):
        monkeypatch.setattr(f"ballast.app.reassign.verify.{what}", lock_taken)
    state = SimpleNamespace(brokers=())
    opened = SimpleNamespace(cluster=SimpleNamespace(snapshot=lambda **_: state), bootstrap_server="a:1")
    said: list[str] = []
    session = ReassignSession(cast("OpenCluster", opened), lambda _: None, said.append)
    remove_throttles(session, (), everybodys=everybodys)
    assert (
        "Another process has taken this cluster's lock. The process that holds the lock removes Ballast's throttles."
        in said
    )
    assert any("Throttles that others have set may still stand" in line for line in said) == everybodys
    assert path.exists()


def test_a_holder_that_is_no_follower_is_not_asked(path: Path) -> None:
    """A daemon, or a person's apply, keeps the lock, and is named; also where its name is like that of a follower."""
    began = time.monotonic()
    with (
        another_process(path, "ballast runs resume on pod-1") as journal,
        pytest.raises(LockHeld) as held,
        SESSION.writer("--cancel"),
    ):
        pass
    assert (held.value.holder, held.value.is_follower) == ("ballast runs resume on pod-1", False)
    assert journal.requests() == []
    assert time.monotonic() - began < WITHIN_S


@pytest.mark.parametrize("answers", [True, False])
def test_who_says_take_over_gets_the_lock_from_anybody(path: Path, answers: bool) -> None:  # noqa: FBT001
    """From a daemon as well, which is asked once; what it did not answer is answered by the next holder of the lock."""
    with (
        another_process(path, "ballast daemon on pod-1", answers=answers),
        open_writer(OPENED, command="ballast rollback", lock_wait_s=WITHIN_S, take_over=True) as own,
    ):
        (request,) = own.journal.requests()
        assert request.kind == "take-over"
        assert "ballast rollback" in request.by
        assert request.answer is not None


def test_a_free_lock_is_taken_without_a_request(path: Path) -> None:
    """There is no process to read it, and the next holder would release the lock without a reason."""
    with open_writer(OPENED, command="ballast rollback", take_over=True) as own:
        assert own.journal.requests() == []


def test_without_take_over_the_holder_keeps_the_lock_and_the_way_is_named(path: Path) -> None:
    """The sentence says who, the hint what to give."""
    with (
        another_process(path, "ballast daemon on pod-1") as journal,
        pytest.raises(LockHeld) as held,
        open_writer(OPENED, command="ballast rollback", lock_wait_s=0.1),
    ):
        pass
    assert held.value.holder == "ballast daemon on pod-1"
    assert "--take-over" in str(held.value.hint)
    assert journal.requests() == []

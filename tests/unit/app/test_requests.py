"""A request to the process that holds the lock: its answer is told, and what it refuses is an error, not a success."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ballast.app import requests
from ballast.app.requests import ask_holder
from ballast.errors import Refused
from ballast.ports.journal import Holder, Request
from ballast.sim.clock import SimClock
from ballast.sim.journal import JournalStore, MemoryJournal

DAEMON = Holder(id="d", description="the daemon", lease_s=15.0)


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> MemoryJournal:
    """It holds the lock, and time that is waited passes at once."""
    journal = MemoryJournal(JournalStore(), SimClock())
    journal.acquire(DAEMON)
    monkeypatch.setattr(requests, "LOOK_S", 0.0)
    monkeypatch.setattr(requests, "ANSWER_WITHIN_S", 0.05)
    return journal


def answering(monkeypatch: pytest.MonkeyPatch, daemon: MemoryJournal, answer: str, *, refused: bool) -> None:
    """The daemon answers as soon as it is asked."""
    send: Callable[[Request], None] = daemon.request

    def request(asked: Request) -> None:
        send(asked)
        daemon.answer(asked.id, answer, refused=refused)

    monkeypatch.setattr(daemon, "request", request)


def test_what_the_holder_answers_is_told(daemon: MemoryJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller prints it."""
    answering(monkeypatch, daemon, "Ada cancelled run r.", refused=False)
    said: list[str] = []
    assert ask_holder(daemon, "cancel", {"run": "r"}, "cancel run r", said.append) == "Ada cancelled run r."
    assert said == ["Requested from the daemon: cancel run r."]


def test_a_refusal_is_an_error(daemon: MemoryJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that goes on after ``ballast cancel`` must not take a run for cancelled that goes on."""
    answering(monkeypatch, daemon, "Run r is not being executed.", refused=True)
    with pytest.raises(Refused, match=r"^the daemon refuses to cancel run r: Run r is not being executed\.$"):
        ask_holder(daemon, "cancel", {"run": "r"}, "cancel run r", print)


def test_without_an_answer_the_caller_goes_on_alone(daemon: MemoryJournal) -> None:
    """No holder is not asked; one that says nothing is named."""
    said: list[str] = []
    assert ask_holder(daemon, "cancel", {"run": "r"}, "cancel run r", said.append) is None
    assert said[-1] == "No answer."
    daemon.release()
    said.clear()
    assert ask_holder(daemon, "cancel", {"run": "r"}, "cancel run r", said.append) is None
    assert said == []

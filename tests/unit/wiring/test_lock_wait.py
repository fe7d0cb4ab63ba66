"""What a command says before it waits for another process's lock, and where it cannot give its own back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ballast.adapters.journal.file import FileJournal
from ballast.errors import Fenced, LockHeld, Unavailable
from ballast.wiring import runs
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.journal import this_process
from ballast.wiring.runs import open_writer


def test_a_command_says_whose_lock_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the wait, which may take as long as a lease; where it does not wait there is nothing to say."""

    def journal_of(*_: Any, **__: Any) -> FileJournal:
        return FileJournal(tmp_path / "journal")

    monkeypatch.setattr("ballast.wiring.runs.journal_of", journal_of)
    said: list[str] = []
    other = this_process("ballast daemon")
    journal_of().acquire(other)
    opened = OpenCluster.__new__(OpenCluster)
    for wait_s in (0.0, 0.1):
        with (
            pytest.raises(LockHeld),
            open_writer(opened, command="ballast apply", lock_wait_s=wait_s, on_line=said.append),
        ):
            pass
    assert said == [f"Waiting up to 0.1 s for the lock of this cluster, which {other.description} holds."]


def failing() -> None:
    """The brokers are away."""
    raise Unavailable("No broker answers.")


def fenced() -> None:
    """The lock is another process's."""
    raise Fenced("Another process holds the lock.")


def hanging() -> None:
    """No answer, for as long as the test lasts."""
    threading.Event().wait()


@pytest.mark.parametrize(
    ("release", "why"),
    [
        (failing, "No broker answers."),
        (hanging, "the journal did not answer in time."),
        (fenced, None),
        (lambda: None, None),
    ],
)
def test_a_lock_that_is_not_released_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    release: Callable[[], None],
    why: str | None,
) -> None:
    """The next command waits for the lease; a person who is not told takes it for a process that still acts."""
    journal = FileJournal(tmp_path / "journal")
    monkeypatch.setattr(journal, "release", release)
    monkeypatch.setattr(runs, "journal_of", lambda *_, **__: journal)
    monkeypatch.setattr(runs, "LEAVES_WITHIN_S", 60.0 if release is not hanging else 0.01)
    opened = OpenCluster("cluster", "127.0.0.1:1")  # type: ignore[arg-type] # it is not used
    with open_writer(opened, command="ballast apply"):
        pass
    said = [] if why is None else [f"The lock of this cluster was not released and lapses after 15 s: {why}"]
    assert [r.getMessage() for r in caplog.records] == said

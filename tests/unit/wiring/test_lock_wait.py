"""What a command says before it waits for another process's lock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ballast.adapters.journal.file import FileJournal
from ballast.errors import LockHeld
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.journal import this_process
from ballast.wiring.runs import writer


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
        with pytest.raises(LockHeld), writer(opened, command="ballast apply", lock_wait_s=wait_s, say=said.append):
            pass
    assert said == [f"Waiting up to 0.1 s for the lock of this cluster, which {other.description} holds."]

"""Whether anything is left to be done is seen by reading alone: no lock, and no journal where there was none."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ballast.adapters.journal.file import FileJournal
from ballast.app.journal_reading import is_settled
from ballast.core.plan import Move, Plan
from ballast.core.throttles import LEADER_REPLICAS, LedgerEntry, Setting
from ballast.errors import Unavailable
from ballast.executor.journal.ledger import dump_held
from ballast.executor.journal.records import dump_run
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Phase, new_run
from ballast.ports.journal import Holder, Record
from ballast.wiring.cluster import OpenCluster, open_cluster

OPENED = cast("OpenCluster", SimpleNamespace(check_answers=lambda: None))
RUN = new_run("r", Plan("test", "c", "f", (Move("t", 0, (1,), (2,)),)), ExecutionPolicy(), Now(0, 0.0))
OPEN = dump_run(RUN)
ENDED = dump_run(replace(RUN, phase=Phase.ENDED, ended_ms=5))
OWED = dump_held(Setting("topic", "t", LEADER_REPLICAS), LedgerEntry(None, frozenset({"0:1"})))


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal in a file that no process has made."""
    file = tmp_path / "journal"

    def journal_of(*_: Any, **__: Any) -> FileJournal:
        return FileJournal(file)

    monkeypatch.setattr("ballast.wiring.journal.journal_of", journal_of)
    return file


def test_without_a_journal_there_is_nothing_to_do_and_still_no_journal(path: Path) -> None:
    """What ``runs resume`` and ``throttles --clean`` ask first leaves no trace."""
    assert is_settled(OPENED)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("records", "settled"),
    [
        (ENDED, True),
        (OPEN, False),
        ([OWED], False),
        ([*ENDED, OWED], False),
        ([*OPEN, *ENDED], True),
        (OPEN[:1], False),
    ],
)
def test_an_open_run_or_a_throttle_that_is_owed_is_work(path: Path, records: list[Record], *, settled: bool) -> None:
    """Either is enough, also a run that cannot be read; the newest record of a run counts; another's lock hinders no look."""
    holder = FileJournal(path)
    holder.acquire(Holder(id="x", description="alice", lease_s=15.0), wait_s=0.0)
    holder.append(records)
    assert is_settled(OPENED) is settled


def test_a_cluster_that_is_not_there_is_told_at_once() -> None:
    """In the words of ``ballast status``, and not after the client library's long patience."""
    began_s = time.monotonic()
    with (
        open_cluster(bootstrap_server="127.0.0.1:1") as opened,
        pytest.raises(Unavailable, match="Connection refused at"),
    ):
        is_settled(opened)
    assert time.monotonic() - began_s < 20

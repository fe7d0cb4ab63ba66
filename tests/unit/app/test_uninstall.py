"""``ballast uninstall``: what keeps the journal from being deleted; nothing is deleted before the user agrees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest
from tests.unit.app.test_settled import ENDED, OPEN, OWED

from ballast.adapters.journal.file import FileJournal
from ballast.app.uninstall import contents_of, delete_topics, footprint
from ballast.cli.cluster_options import ClusterOptions
from ballast.cli.commands.uninstall import uninstall as command
from ballast.core.cluster import TopicPartition
from ballast.core.throttles import LEADER_RATE, LedgerEntry, Setting
from ballast.errors import LockHeld, Refused, UsageError
from ballast.executor.journal.ledger import BY_HAND, dump_held
from ballast.ports.cluster import PartitionState
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC, Holder, Record
from ballast.wiring.cluster import OpenCluster

HAND = dump_held(Setting("broker", "1", LEADER_RATE), LedgerEntry("9", frozenset({"5"})), BY_HAND)
NEEDED = [OPEN, [OWED], [HAND], [*ENDED, OWED]]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal in a file stands for the topics."""
    file = tmp_path / "journal"

    def journal_of(*_: Any, **__: Any) -> FileJournal:
        return FileJournal(file)

    for place in ("wiring.runs", "wiring.journal", "app.uninstall"):
        monkeypatch.setattr(f"ballast.{place}.journal_of", journal_of)
    return file


@pytest.fixture
def opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenCluster:
    """A cluster that has both topics as long as the journal is there, and that the command opens."""

    def partitions(names: list[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        return {n: PartitionState(1, (1, 2), (1, 2)) for n in names} if path.exists() else {}

    found = cast(
        "OpenCluster",
        SimpleNamespace(check_answers=lambda: None, cluster=SimpleNamespace(partitions=partitions), journal_file=None),
    )

    @contextmanager
    def stay_open(_: ClusterOptions) -> Iterator[OpenCluster]:
        yield found

    monkeypatch.setattr(ClusterOptions, "open", stay_open)
    return found


def write(path: Path, records: list[Record], *, lease_s: float = 15.0, leave: bool = True) -> None:
    """What another process has written; it leaves with its lock given back, or without a word."""
    journal = FileJournal(path)
    journal.acquire(Holder(id="x", description="alice", lease_s=lease_s))
    journal.append(records)
    if leave:
        journal.release()
    journal.close()


def invoke(*words: str) -> None:
    """The command, as the command line calls it."""
    command.main(list(words), standalone_mode=False)


def test_a_journal_tells_who_still_needs_it() -> None:
    """Open runs, throttles of runs, throttles set by hand; an ended run needs nothing."""
    found = contents_of([*OPEN, OWED, HAND])
    assert (found.open_runs, found.ended_runs) == (("r",), ())
    assert [s.name for s in found.owed] == ["t"]
    assert [s.name for s in found.set_by_hand] == ["1"]
    assert contents_of(ENDED) == replace(contents_of([]), ended_runs=("r",))


@pytest.mark.parametrize("records", NEEDED)
def test_it_is_refused_while_the_journal_is_needed(path: Path, opened: OpenCluster, records: list[Record]) -> None:
    """Before a question is asked, and once more under the lock, which is free again afterwards."""
    write(path, records)
    before = FileJournal(path).read()
    with pytest.raises(Refused):
        invoke("--yes")
    with pytest.raises(Refused):
        delete_topics(opened, lock_wait_s=0)
    assert FileJournal(path).read() == before
    assert FileJournal(path).holder() is None


def test_it_is_refused_while_another_process_holds_the_lock(path: Path, opened: OpenCluster) -> None:
    """A lease that has lapsed does not count."""
    write(path, ENDED, lease_s=30, leave=False)
    with pytest.raises(LockHeld) as held:
        invoke("--yes", "--lock-wait", "0")
    assert (held.value.holder, held.value.is_follower) == ("alice", False)
    assert path.exists()
    path.unlink()
    write(path, ENDED, lease_s=0.3, leave=False)
    delete_topics(opened, lock_wait_s=20)
    assert not path.exists()


def test_nothing_is_deleted_unless_the_user_agrees(
    path: Path, opened: OpenCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal only ``--yes`` is an answer; what would go is told first."""
    write(path, ENDED)
    with pytest.raises(UsageError):
        invoke()
    assert path.exists()
    assert JOURNAL_TOPIC in capsys.readouterr().err
    assert footprint(opened).topics == dict.fromkeys((JOURNAL_TOPIC, REQUESTS_TOPIC), (1, 2))


def test_it_says_what_it_deleted_and_the_second_time_that_nothing_was_there(
    path: Path, opened: OpenCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """In JSON as well; a cluster without a journal gets none by being asked."""
    assert opened
    write(path, ENDED)
    for removed in ([JOURNAL_TOPIC, REQUESTS_TOPIC], []):
        invoke("--yes", "--output", "json")
        assert json.loads(capsys.readouterr().out) == {
            "apiVersion": "ballast/v1",
            "kind": "TopicsDeleted",
            "topics": removed,
        }
        assert not path.exists()


def test_it_has_no_journal_in_a_file() -> None:
    """Who keeps the journal in a file deletes the file."""
    with pytest.raises(click.NoSuchOption):
        invoke("--journal", "file:x")


def test_it_refuses_settings_that_keep_the_journal_in_a_file(opened: OpenCluster) -> None:
    """What it looked at would not be what it deletes."""
    opened.journal_file = Path("/var/lib/ballast/journal")  # type: ignore[misc]
    with pytest.raises(UsageError, match="/var/lib/ballast/journal"):
        invoke("--yes")

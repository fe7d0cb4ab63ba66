"""What is refused before any connection is tried, and where the journal is that a command uses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ballast.adapters.journal.file import FileJournal
from ballast.adapters.journal.topic import TopicJournal
from ballast.errors import LockHeld, UsageError
from ballast.wiring.cluster import LONGEST_TIMEOUT_S, open_cluster
from ballast.wiring.journal import journal_of, this_process


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, math.nan, math.inf, LONGEST_TIMEOUT_S + 1.0])
def test_a_timeout_that_bounds_nothing_is_a_wrong_flag(timeout_s: float) -> None:
    """And not a cluster that cannot be reached: trying again would not help."""
    with pytest.raises(UsageError, match="--timeout"):
        open_cluster(bootstrap_server="127.0.0.1:1", timeout_s=timeout_s)


def with_journal_in_a_file(at: Path) -> tuple[Path, Path]:
    """Settings that keep the journal in a file; the file."""
    journal = at / "journal"
    settings = at / "ballast.yaml"
    settings.write_text(f"cluster:\n  bootstrap_server: 127.0.0.1:1\njournal:\n  file: {journal}\n")
    return settings, journal


@pytest.mark.parametrize("server", [None, "127.0.0.1:1"])
def test_a_command_meets_the_daemon_of_the_same_settings_at_the_same_lock(tmp_path: Path, server: str | None) -> None:
    """Their journal is in a file; what a person says of it on the command line goes before."""
    settings, journal = with_journal_in_a_file(tmp_path)
    daemon = FileJournal(journal).acquire(this_process("ballast daemon"))
    with open_cluster(bootstrap_server=server, config=settings) as opened:
        log = journal_of(opened)
        with pytest.raises(LockHeld) as held:
            log.acquire(this_process("ballast apply"))
        assert held.value.holder == daemon.description
        assert journal_of(opened, f"file:{tmp_path / 'other'}").holder() is None


def test_the_journal_of_the_settings_is_not_that_of_another_cluster(tmp_path: Path) -> None:
    """A run in it would be resumed on the wrong brokers; without settings the journal is the cluster's own."""
    settings, _ = with_journal_in_a_file(tmp_path)
    with pytest.raises(UsageError, match="--bootstrap-server names other brokers") as told:
        open_cluster(bootstrap_server="127.0.0.1:2", config=settings)
    assert "--config" in str(told.value.hint)
    with open_cluster(bootstrap_server="127.0.0.1:2") as opened:
        assert isinstance(journal_of(opened), TopicJournal)

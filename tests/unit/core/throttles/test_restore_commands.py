"""What a person is told to run puts back exactly what stood before."""

from __future__ import annotations

import shlex

import pytest

from ballast.core.throttles import LedgerEntry, Setting
from ballast.core.throttles.restore_commands import restore_commands

LIST = "leader.replication.throttled.replicas"
RATE = "leader.replication.throttled.rate"


def test_each_owed_setting_has_its_command() -> None:
    """With the value from before, or deleted where there was none."""
    ledger = {
        Setting("broker", "1", RATE): LedgerEntry("5000", frozenset({"100"})),
        Setting("broker", "2", RATE): LedgerEntry(None, frozenset({"100"})),
        Setting("broker", "", RATE): LedgerEntry(None, frozenset({"100"})),
        Setting("broker", "3", RATE): LedgerEntry("7", frozenset()),
    }
    tool = "kafka-configs.sh --bootstrap-server a:1 --alter"
    assert restore_commands(ledger, "a:1") == [
        f"{tool} --entity-type brokers --entity-default --delete-config {RATE}",
        f"{tool} --entity-type brokers --entity-name 1 --add-config {RATE}=5000",
        f"{tool} --entity-type brokers --entity-name 2 --delete-config {RATE}",
    ]


@pytest.mark.parametrize(
    ("prior", "kept"),
    [
        (None, "every other one;"),
        ("", "every other one;"),
        ("0:1,1:2", "every other one, and these from before: 0:1,1:2;"),
    ],
)
def test_a_list_is_never_set_or_deleted_unread(prior: str | None, kept: str) -> None:
    """The command shows what stands there by now; the entries that are ours, and what is to be kept, are told beside it."""
    (line,) = restore_commands({Setting("topic", "t", LIST): LedgerEntry(prior, frozenset({"10:3", "2:3"}))}, "a:1")
    shown = [
        "kafka-configs.sh",
        "--bootstrap-server",
        "a:1",
        "--describe",
        "--entity-type",
        "topics",
        "--entity-name",
        "t",
    ]
    assert shlex.split(line, comments=True) == shown
    assert f"{LIST}" in line
    assert "2:3,10:3" in line
    assert kept in line

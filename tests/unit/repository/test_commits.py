"""What ``make check`` asks of a commit's subject."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.commit_subjects import main, newest, wrong


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        ("Give every JSON document a schema", None),
        ("Need no lock to read", None),
        ("Pass the time-out on", None),
        ("Added a lock", "is not in the imperative"),
        ("Adds a lock", "is not in the imperative"),
        ("Adding a lock", "is not in the imperative"),
        ("Add a lock.", "ends in a full stop"),
        ("add a lock", "does not begin with a capitalised verb"),
        ("fix: add a lock", "does not begin with a capitalised verb"),
        ("Add " + "a" * 69, "is longer than 72 characters"),
    ],
)
def test_what_is_wrong_with_a_subject_is_named(subject: str, why: str | None) -> None:
    """Forms of a verb, full stops, length."""
    assert wrong(subject) == why


def test_the_hook_judges_the_message_that_is_to_be_committed(tmp_path: Path) -> None:
    """Its first line alone."""
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("Add a lock\n\nIt was needed.\n")
    assert main([str(message)]) == 0
    message.write_text("Added a lock\n")
    assert main([str(message)]) == 1


def test_an_archive_has_no_history_to_judge(tmp_path: Path) -> None:
    """A source tree without ``.git`` passes."""
    assert newest(tmp_path) == []

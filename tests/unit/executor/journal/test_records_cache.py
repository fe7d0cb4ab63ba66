"""The journal is read every half minute: what was not written since is neither decoded nor parsed again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from ballast.core.plan import Move, Plan
from ballast.executor.journal.records import Parsed, changes, dump_run, load_open_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Run, new_run, with_moves
from ballast.executor.machine.stages import Submitted
from ballast.ports.journal import Record
from ballast.ports.journal_codec import JournalView, encode_record

NOW = Now(1, 1.0)
T = TypeVar("T")


@pytest.fixture
def run() -> Run:
    """Ten moves that have not begun."""
    moves = tuple(Move("t", i, (1,), (2,), 5) for i in range(10))
    return new_run("r", Plan("test", "c", "", moves), ExecutionPolicy(), NOW)


def written(view: JournalView, *records: Record) -> None:
    """As the journal writes them."""
    for record in records:
        for key, data in encode_record(record, pieces_before=view.pieces(record.key), piece_bytes=400):
            view.apply(key, data)


class Counted(Parsed):
    """Keeps which records were parsed."""

    def __init__(self) -> None:
        super().__init__()
        self.parsed: list[str] = []

    def read(self, record: Record, read: Callable[[Record], T]) -> T:
        """As ever."""

        def counting(read_now: Record) -> T:
            self.parsed.append(record.key)
            return read(read_now)

        return super().read(record, counting)


def test_only_what_was_written_is_decoded_and_parsed(run: Run) -> None:
    """One move of ten changes its stage: one record is decoded, the others are the very ones of before, and one is made a move of."""
    view, parsed = JournalView(), Counted()
    written(view, *dump_run(run))
    decoded = view.records()
    assert load_open_runs(decoded, NOW, parsed) == [run]
    parsed.parsed.clear()
    name = next(iter(run.moves))
    later = with_moves(run, {name: replace(run.moves[name], stage=Submitted())})
    written(view, *changes(run, later))
    assert load_open_runs(view.records(), NOW, parsed) == [later]
    again = [new.key for new in view.records() if not any(new is old for old in decoded)]
    assert again == [f"move/r/{name}"]
    assert parsed.parsed == [f"move/r/{name}"]


def test_a_record_in_pieces_is_decoded_again_when_it_changes() -> None:
    """Also when it becomes short, or goes."""
    view = JournalView()
    for value in ({"a": "x" * 1000}, {"a": "y" * 2000}, {"a": "z"}):
        written(view, Record("k", value))
        assert view.records() == view.records() == (Record("k", value),)
    written(view, Record("k", None))
    assert view.records() == ()


def test_bytes_that_are_no_text_are_written_as_what_can_be_read() -> None:
    """A user's name may hold some: the record that names it would keep every process from reading the journal."""
    view = JournalView()
    written(view, Record("k", {"by": "\udcff \U0001f600 \\ud800 é"}))
    assert view.records() == (Record("k", {"by": "? \U0001f600 \\ud800 é"}),)

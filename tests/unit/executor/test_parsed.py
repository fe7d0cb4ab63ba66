"""The journal is read every half minute: what was not written since is neither decoded nor parsed again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ballast.core.plan import Move, Plan
from ballast.executor.journal import records as run_records
from ballast.executor.journal.records import Parsed, changes, dump_run, load_open_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Run, new_run, with_moves
from ballast.executor.machine.stages import Submitted
from ballast.ports import journal_codec
from ballast.ports.journal import Record
from ballast.ports.journal_codec import JournalView, encode_record

NOW = Now(1, 1.0)


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


def test_only_what_was_written_is_decoded_and_parsed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One move of ten changes its stage: one record is decoded, and one is made a move of."""
    view, parsed = JournalView(), Parsed()
    written(view, *dump_run(run))
    assert load_open_runs(view.records(), NOW, parsed) == [run]
    decoded: list[str] = []
    read: list[str] = []

    def decode(key: str, data: bytes) -> dict[str, Any]:
        decoded.append(key)
        found: dict[str, Any] = json.loads(data)
        return found

    monkeypatch.setattr(journal_codec, "_decode", decode)
    of_record = run_records._read

    def counting(record: Record, how: Any) -> Any:
        read.append(record.key)
        return of_record(record, how)

    monkeypatch.setattr(run_records, "_read", counting)
    name = next(iter(run.moves))
    later = with_moves(run, {name: replace(run.moves[name], stage=Submitted())})
    written(view, *changes(run, later))
    assert load_open_runs(view.records(), NOW, parsed) == [later]
    assert set(decoded) == {f"record/move/r/{name}"}
    # The header says how many there are, and is read each time.
    assert sorted(read) == [f"move/r/{name}", "run/r"]


def test_a_record_in_pieces_is_decoded_again_when_it_changes() -> None:
    """Also when it becomes short, or goes."""
    view = JournalView()
    for value in ({"a": "x" * 1000}, {"a": "y" * 2000}, {"a": "z"}):
        written(view, Record("k", value))
        assert view.records() == view.records() == (Record("k", value),)
    written(view, Record("k", None))
    assert view.records() == ()

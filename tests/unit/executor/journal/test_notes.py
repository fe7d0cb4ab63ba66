"""Notes of a run: made as codes with figures, said in one place, and printed as documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.messages import figures_of

from ballast import wiring
from ballast.cli.documents import runs as documents
from ballast.cli.run_documents import document_of
from ballast.executor import driver, journal
from ballast.executor.driver import events
from ballast.executor.journal.notes import RunNote
from ballast.executor.machine.notes import note
from ballast.ports.cluster import Outcome

REFUSED = Outcome(ok=False, code="POLICY_VIOLATION", message="No.")


@pytest.mark.parametrize("code", RunNote.sentences)
def test_every_note_has_a_sentence_that_takes_its_values(code: str) -> None:
    """Nothing of the template is left."""
    samples: dict[str, object] = {"outcome": REFUSED, "replicas": (1, 2)}
    said = str(RunNote(code, {name: samples.get(name, 7) for name in figures_of(RunNote, code)}))
    assert said
    assert not re.search(r"[{}]|None|<|\.\.", said)


def test_every_note_is_made_somewhere() -> None:
    """No sentence is kept that nothing leads to."""
    folders = [Path(room.__path__[0]) for room in (driver, journal, wiring)]
    sources = "\n".join(p.read_text() for folder in folders for p in folder.rglob("*.py"))
    assert set(re.findall(r'RunNote\(\s*"([a-z-]+)"', sources)) == set(RunNote.sentences)


def test_a_note_without_a_sentence_is_a_bug() -> None:
    """It is found where it is made, not where it is shown."""
    with pytest.raises(ValueError, match="because is not a code of RunNote"):
        RunNote("because")


def test_a_note_is_printed_with_its_code_and_figures() -> None:
    """An answer of the cluster as an object of its fields."""
    told = RunNote("journal-not-replicated", {"topic": "t", "outcome": REFUSED})
    printed = document_of(told)
    assert isinstance(printed, documents.RunNote)
    assert (printed.code, printed.detail) == (told.code, str(told))
    assert printed.parameters["topic"] == "t"
    assert printed.parameters["outcome"]["code"] == "POLICY_VIOLATION"


def test_an_ending_is_printed_with_its_code_and_figures() -> None:
    """Of one that has nothing to say they are null."""
    gone = note("deleted", partition="t-0")
    endings = (events.Ending("t-0", "deleted", gone), events.Ending("t-1", "cancelled", None))
    printed = document_of(events.RunEnded(events.RunResult("r", "incomplete", endings=endings)))
    assert isinstance(printed, documents.RunEnded)
    assert [(e.code, e.parameters, e.detail) for e in printed.endings] == [
        ("deleted", {"partition": "t-0"}, str(gone)),
        (None, None, ""),
    ]

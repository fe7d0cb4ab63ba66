"""What the lock check says, by its codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.messages import code_and_cause, figures_of

from ballast.core.catalogue import Key, codes_of
from ballast.daemon.process import lock
from ballast.daemon.process.lock import LockNote


@pytest.mark.parametrize("key", LockNote.sentences)
def test_every_note_has_a_sentence_that_takes_its_values(key: Key) -> None:
    """Nothing of the template is left."""
    code, cause = code_and_cause(key)
    said = str(LockNote(code, dict.fromkeys(figures_of(LockNote, key), "pod-1."), cause))
    assert said
    assert not re.search(r"[{}]|None|<", said)


def test_every_note_is_made_somewhere() -> None:
    """No sentence is kept that nothing leads to."""
    made = set(re.findall(r'LockNote\(\s*"([a-z-]+)"', Path(lock.__file__).read_text()))
    assert made == set(codes_of(LockNote.sentences))


def test_a_run_that_goes_on_is_named() -> None:
    """And is data."""
    taken = LockNote("taken", {"run": "r"}, "with-run")
    assert (str(taken), taken.parameters) == (
        "Took the lock and goes on with run r, which an earlier process did not finish.",
        {"run": "r"},
    )

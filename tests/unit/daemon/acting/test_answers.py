"""The daemon's own answers to requests, by their codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ballast import daemon
from ballast.core.catalogue import codes_of
from ballast.daemon.acting.answers import SENTENCES, answer, refusal


def test_a_refusal_says_what_to_do() -> None:
    """As its message and its hint."""
    refused = refusal("not-draining", broker=3, drained=[1, 2])
    assert (refused.message, refused.hint) == ("Broker 3 is not draining on request.", "Draining: brokers 1, 2.")
    assert refusal("not-draining", broker=3, drained=[]).hint == "No broker is draining on request."
    assert refusal("observes").hint is None


def test_a_reason_is_told_where_one_was_given() -> None:
    """Without one the sentence ends."""
    assert answer("rejected", by="Ada", plan="moves-1", reason="") == "Ada rejected moves-1."
    assert answer("rejected", by="Ada", plan="moves-1", reason="not now") == "Ada rejected moves-1: not now."


def test_a_code_without_a_sentence_is_found_where_it_is_made() -> None:
    """Not when the page shows it."""
    with pytest.raises(ValueError, match="nonsense is not a code of DaemonAnswer"):
        answer("nonsense")


def test_every_answer_is_made_somewhere() -> None:
    """A sentence that no part of the daemon gives is dead."""
    assert daemon.__file__ is not None
    sources = "".join(p.read_text() for p in Path(daemon.__file__).parent.rglob("*.py") if p.name != "answers.py")
    assert [code for code in codes_of(SENTENCES) if f'"{code}"' not in sources] == []

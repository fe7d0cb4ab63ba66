"""What a holder of the lock answers: one sentence for each code, in a daemon's words and a command's alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.messages import code_and_cause, figures_of

import ballast
from ballast.core.catalogue import Key
from ballast.executor.journal.answers import RequestAnswer, answer_done, answer_expired
from ballast.executor.machine.step import Command
from ballast.ports.journal import Request

SOURCES = Path(ballast.__path__[0])


@pytest.mark.parametrize("key", RequestAnswer.sentences)
def test_every_answer_has_a_sentence_that_takes_its_values(key: Key) -> None:
    """Nothing of the template is left."""
    code, cause = code_and_cause(key)
    said = str(RequestAnswer(code, dict.fromkeys(figures_of(RequestAnswer, key), 300.0), cause))
    assert said
    assert not re.search(r"[{}]|None|<|\.\.", said)


def test_every_answer_is_made_somewhere() -> None:
    """No sentence is kept that nothing leads to."""
    rooms = ("executor", "daemon", "wiring", "cli")
    sources = "\n".join(p.read_text() for room in rooms for p in (SOURCES / room).rglob("*.py"))
    made: set[Key] = {("requested", command) for command in ("cancel", "rollback")}
    made |= set(re.findall(r"RequestAnswer\(\s*[\"']([a-z-]+)[\"']", sources))
    assert (made - {"requested", "done"}) | {("done", command.value) for command in Command} == set(
        RequestAnswer.sentences
    )


@pytest.mark.parametrize("command", Command)
def test_what_is_asked_of_a_run_has_an_answer(command: Command) -> None:
    """It names who asked and the run."""
    said = str(answer_done(Request("q", command.value, "Ada", 1, {}), "r"))
    assert said.startswith("Ada ")
    assert "run r" in said


def test_an_expired_request_is_named_with_its_limit() -> None:
    """Its sender may give it again."""
    said = str(answer_expired(Request("q", "pause", "Ada", 1, {})))
    assert said.startswith("Request expired: Ada asked to pause more than 5 min ago.")

"""The daemon's own answers to requests, by their codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ballast import daemon
from ballast.core.catalogue import codes_of
from ballast.daemon.acting.answers import DaemonAnswer, answer, refusal
from ballast.daemon.acting.permission import Situation, permission
from ballast.daemon.context.view import Role
from ballast.daemon.observing.reading import Held
from ballast.daemon.planning.bounds import Objection
from ballast.daemon.policy import ActionKind, DaemonPolicy

NOON_MS = 1_795_262_400_000  # 2026-11-21 12:00 UTC


def test_a_refusal_says_what_to_do() -> None:
    """As its message and its hint."""
    refused = refusal("not-draining", broker=3, drained=[1, 2])
    assert (refused.message, refused.hint) == ("Broker 3 is not draining on request.", "Draining: brokers 1, 2.")
    assert refusal("not-draining", broker=3, drained=[]).hint == "No broker is draining on request."
    assert refusal("observes").hint is None


def test_a_reason_is_told_where_one_was_given() -> None:
    """Without one the sentence ends."""
    assert str(answer("rejected", by="Ada", plan="moves-1", reason="")) == "Ada rejected moves-1."
    assert str(answer("rejected", by="Ada", plan="moves-1", reason="not now")) == "Ada rejected moves-1: not now."


def test_a_code_without_a_sentence_is_found_where_it_is_made() -> None:
    """Not when the page shows it."""
    with pytest.raises(ValueError, match="nonsense is not a code of DaemonAnswer"):
        answer("nonsense")


RACK = (Held((3,), NOON_MS, 1), Held((4, 5), NOON_MS + 60_000, 2))
PLAN = {"plan": "moves-1", "outline": "3 moves"}
REFUSED = permission(ActionKind.MOVES, DaemonPolicy(), Situation(now_ms=0, role=Role.ACTIVE, reading_age_s=1))


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            answer("proposed", outline="3 moves", guard=REFUSED),
            "Proposed plan: 3 moves. The mode for moves is observe: nothing is ever written.",
        ),
        (
            answer("guarded", plan="moves-1", guard=REFUSED),
            "moves-1 has to wait: The mode for moves is observe: nothing is ever written.",
        ),
        (
            answer("approval-pending", objections=(), **PLAN),
            "Waiting for approval of moves-1: 3 moves.",
        ),
        (
            answer("approval-pending", objections=(Objection("whole-rack", {"racks": ("c",)}),), **PLAN),
            "Waiting for approval of moves-1, since no broker of rack c is up (repair.whole_racks is false), and it may return: 3 moves.",
        ),
        (answer("approvals-pending", plans=("a", "b")), "Waiting for approval: a, b."),
        (
            answer("held", held=RACK),
            (
                "Broker 3 waits until 2026-11-21 12:00:00 UTC: broker 1 of its rack came up, and the rest usually follows. "
                "Brokers 4, 5 wait until 2026-11-21 12:01:00 UTC: broker 2 of their rack came up, and the rest usually follows."
            ),
        ),
        (
            answer("left-to-person", asked="requested-moves-2", by="Ada", **PLAN),
            "moves-1 waits for requested-moves-2, which Ada requested: 3 moves.",
        ),
        (answer("run-started", run="r", by=None, outline="3 moves"), "Run r started: 3 moves."),
        (answer("run-started", run="r", by="Ada", outline="3 moves"), "Run r started, approved by Ada: 3 moves."),
        (
            answer("withdrawn", "run-began", run="r", **PLAN),
            "moves-1 was withdrawn, since run r began (3 moves). Ask again afterwards.",
        ),
    ],
)
def test_what_came_of_a_plan_is_told_with_its_figures(made: DaemonAnswer, sentence: str) -> None:
    """Guards and objections in their own words."""
    assert str(made) == sentence


def test_what_is_nested_reaches_programs_with_its_code() -> None:
    """A guard and an objection keep theirs."""
    assert answer("proposed", outline="3 moves", guard=REFUSED).parameters["guard"]["code"] == "observe-only"
    objections = (Objection("whole-rack", {"racks": ("c",)}),)
    (shown,) = answer("approval-pending", objections=objections, **PLAN).parameters["objections"]
    assert (shown["code"], shown["parameters"]) == ("whole-rack", {"racks": ["c"]})


def test_every_answer_is_made_somewhere() -> None:
    """A sentence that no part of the daemon gives is dead."""
    assert daemon.__file__ is not None
    sources = "".join(p.read_text() for p in Path(daemon.__file__).parent.rglob("*.py") if p.name != "answers.py")
    assert [code for code in codes_of(DaemonAnswer.sentences) if f'"{code}"' not in sources] == []

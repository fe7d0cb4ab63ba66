"""What the checks that make plans say, by their codes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ballast.core.catalogue import codes_of
from ballast.core.plan import Obstacle
from ballast.core.plan.log_dirs import LogDirWarning
from ballast.daemon import planning
from ballast.daemon.planning.notes import PlanningNote, note

OBSTACLE = Obstacle("band", "disk", "2 of 5 brokers stay outside")

SAID: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("leaders-not-judged", "", {"run": "r"}, "Leaders are not judged while run r is in progress."),
    (
        "leaders-balanced",
        "",
        {"worst": 0.05},
        "Preferred leaders OK: the worst broker does not lead 5.0 % of the partitions whose preferred leader it is.",
    ),
    (
        "leader-imbalance",
        "",
        {"percentage": 10.0, "of_cluster": False, "brokers": {1: 1.0}},
        "Leader imbalance over 10 % at broker 1 (100.0 %).",
    ),
    (
        "leader-imbalance",
        "",
        {"percentage": 12.5, "of_cluster": True, "brokers": {1: 1.0, 2: 0.2}},
        "Leader imbalance over 12.5 % (the cluster's own setting) at brokers 1 (100.0 %), 2 (20.0 %).",
    ),
    ("left-to-controller", "", {}, "Left to the controller, which runs elections itself."),
    ("controller-first", "", {"wait_s": 300.0}, "Waiting up to 5 min for the controller's own elections."),
    (
        "none-electable",
        "",
        {},
        "None can be elected now: their preferred leaders are down, out of sync, moving or draining.",
    ),
    ("repair-first", "", {"brokers": [1]}, "No balancing while broker 1 is down: repair comes first."),
    ("repair-first", "", {"brokers": [1, 2]}, "No balancing while brokers 1, 2 are down: repair comes first."),
    (
        "no-plan-found",
        "",
        {"obstacle": OBSTACLE},
        "Out of range, and no better plan was found: 2 of 5 brokers stay outside.",
    ),
    ("balanced", "", {}, "Every resource is within its range."),
    (
        "log-dir-error",
        "",
        {"warning": LogDirWarning("more", {"count": 2})},
        "2 more log dirs reported errors. ballast status --all names them.",
    ),
    ("emptied", "", {"brokers": [1]}, "Broker 1 is empty and may be stopped."),
    ("emptied", "", {"brokers": [1, 2]}, "Brokers 1, 2 are empty and may be stopped."),
    (
        "removing-throttles",
        "",
        {"settings": ("a", "b"), "more": 7},
        "Removing throttles of an earlier run: a, b. And 7 more.",
    ),
    (
        "down-too-long",
        "",
        {"brokers": [1], "grace_s": 1800},
        "Broker 1 has been down for longer than 30 min.",
    ),
    (
        "down-too-long",
        "",
        {"brokers": [1, 6], "grace_s": 1800},
        "Brokers 1, 6 have been down for longer than 30 min.",
    ),
    (
        "down",
        "",
        {"broker": 1, "left_s": 60},
        "Broker 1 is down; it has 60 s to return before a plan to rebuild its replicas elsewhere is proposed.",
    ),
    (
        "down",
        "auto",
        {"broker": 1, "left_s": 60},
        "Broker 1 is down; it has 60 s to return before its replicas are rebuilt elsewhere.",
    ),
    ("offline", "", {"brokers": [3]}, "Replicas of broker 3 are offline since a log dir failed."),
    (
        "disk-grace",
        "",
        {"left_s": 60},
        "A plan to rebuild them elsewhere is proposed unless the disk is replaced within 60 s.",
    ),
    ("disk-grace", "auto", {"left_s": 60}, "They are rebuilt elsewhere unless the disk is replaced within 60 s."),
    ("obstacle", "", {"obstacle": OBSTACLE}, "disk: 2 of 5 brokers stay outside."),
    ("not-rebuilt", "", {"obstacle": OBSTACLE}, "Not rebuilt: disk: 2 of 5 brokers stay outside."),
    ("nothing-to-rebuild", "", {}, "There is nothing to rebuild."),
    ("not-rack-aware", "", {}, "Replica placement is not rack-aware."),
    ("not-as-kafka-places", "", {}, "Topics do not follow Kafka's placement."),
    (
        "placement-kept",
        "",
        {"refusals": ("Topic t cannot.",) * 2, "more": 1},
        "Topics that are to follow Kafka's placement stay as they are: Topic t cannot. Topic t cannot. And 1 more.",
    ),
    (
        "nothing-to-repair",
        "",
        {},
        "Nothing needs repair: every broker is alive and replica placement is rack-aware.",
    ),
    ("none-requested", "", {}, "No plan was requested."),
)


@pytest.mark.parametrize(("code", "cause", "values", "sentence"), SAID)
def test_each_note_says_what_was_found(code: str, cause: str, values: dict[str, Any], sentence: str) -> None:
    """With its figures."""
    assert str(note(code, cause, **values)) == sentence


def test_every_note_is_said_here_and_made_somewhere() -> None:
    """No sentence is kept that no check leads to."""
    assert {c for c, *_ in SAID} == set(codes_of(PlanningNote.sentences))
    assert {(c, cause) for c, cause, *_ in SAID if cause} == {k for k in PlanningNote.sentences if isinstance(k, tuple)}
    sources = "".join(p.read_text() for p in Path(planning.__path__[0]).glob("*.py") if p.name != "notes.py")
    assert set(re.findall(r'\bnote\(\s*"([a-z-]+)"', sources)) == set(codes_of(PlanningNote.sentences))


def test_figures_reach_programs_as_data() -> None:
    """An obstacle with its own code, brokers by their ids."""
    parameters = note("no-plan-found", obstacle=OBSTACLE).parameters
    assert parameters["obstacle"]["code"] == "band"
    assert note("leader-imbalance", percentage=1.0, of_cluster=False, brokers={1: 0.5}).parameters["brokers"] == {
        "1": 0.5
    }

"""Obstacles: decided upon by their codes and figures, and said in one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.messages import code_and_cause

from ballast.core import planner
from ballast.core.catalogue import Key, codes_of
from ballast.core.plan.model import Value
from ballast.core.planner.report.sentences import TEMPLATES, obstacle

FEW = "fewer replicas than min.insync.replicas, and writes with acks=all are rejected while one is added (NOT_ENOUGH_REPLICAS)"
COUNT: dict[str, Value] = {"count": 5}
FIGURES: dict[str, Value] = {"limit": 350, "limits": "bytes"}
CROWD: dict[str, Value] = {"broker": 3, "replicas": 5, "allowed": 2, "topic": "t"}
RANGE: dict[str, Value] = {"resource": "disk", "brokers": (1, 4), "of": 5, "band": 0.08, "furthest": 4, "away": -0.123}
AWAY = "2 of 5 brokers stay outside ±8 % (1, 4); the furthest, broker 4, is 12.3 % under its share: "
WIDER = "Allow a wider band for disk"
RULES = "Allow more in balance.topic_rules, or give the topic fewer replicas."
STAYS = "broker 3 stays its leader: it has no other replica that may lead"
UNLIKE = "some broker stays about 20.0 % of its share outside"

SAID: tuple[tuple[Key, dict[str, Value], str, str], ...] = (
    (
        "no-broker",
        {},
        "no broker with a free rack and enough disk was found for it",
        "Add a broker in another rack, add disk, or raise the disk limit.",
    ),
    (
        ("no-broker", "limit"),
        FIGURES,
        "a replica must move, but the limit of 350 bytes is spent",
        "Allow more bytes or moves.",
    ),
    (
        ("no-broker", "selection"),
        {},
        "its replicas that share a rack sit on brokers that the selection excludes",
        "Include those brokers.",
    ),
    (
        ("no-broker", "too-few"),
        {"replicas": 3, "brokers": 1},
        "it needs 3 replicas, and only 1 broker may hold one",
        "Add brokers, or uncordon some.",
    ),
    (
        ("no-broker", "too-few-by-rule"),
        {"replicas": 3, "brokers": 2},
        "it needs 3 replicas, and only 2 brokers may hold one",
        "Add brokers, uncordon some, or let the rule for its topic allow more.",
    ),
    (
        ("no-broker", "leader"),
        {},
        "its leader must move, and no broker that takes replicas may lead it",
        "Let another broker lead it: demote fewer, or allow more in the rules for its topic.",
    ),
    (
        ("no-broker", "max-per-broker"),
        {"allowed": 2},
        "no broker was found with a free rack, enough disk and fewer than 2 replicas of its topic, as many as its rules allow",
        "Let the rules for its topic allow more, add a broker in another rack, or add disk.",
    ),
    (
        "replicas-below-min-isr",
        {},
        f"a replica must move, but it has {FEW}",
        "Lower min.insync.replicas, or raise the replication factor in a planned window (ballast plan change-rf).",
    ),
    (
        "selection",
        {"replicas": 3, "brokers": (3, 2)},
        "it keeps its 3 replicas: 2 of them are on brokers that the selection excludes (3, 2)",
        "Include those brokers, or ask for more replicas.",
    ),
    (
        "log-dir",
        {"broker": 3, "bytes": 60},
        "broker 3 has free space for its 60 bytes, but no single log dir of it has",
        "Free space on one disk of broker 3, or leave it out with --exclude-brokers.",
    ),
    ("sole-leader", {"broker": 3}, STAYS, "Raise its replication factor first."),
    (
        ("sole-leader", "rule"),
        {"broker": 3},
        STAYS,
        "Let the rule for its topic allow more leaders, or use ballast plan balance, which may move data.",
    ),
    (("sole-leader", "rule-in-balance"), {"broker": 3}, STAYS, "Let the rule for its topic allow more leaders."),
    (
        ("sole-leader", "barred-others"),
        {"broker": 3},
        STAYS,
        "Raise its replication factor first, or let the rules for its topic allow more leaders.",
    ),
    (
        ("sole-leader", "remaining-replica"),
        {"broker": 3},
        "broker 3 becomes its leader, though it should not lead it: no replica that stays may",
        "Keep more replicas, or change what may lead.",
    ),
    (
        ("topic-rule", "replicas"),
        {"brokers": (), "replicas": 2},
        "its rules allow none of the brokers that there are and its partitions have 2 replicas",
        RULES,
    ),
    (
        ("topic-rule", "max-per-broker"),
        {"brokers": tuple(range(1, 11)), "replicas": 24, "allowed": 2},
        "its rules allow only brokers 1, 2, 3, 4, 5, 6, 7, 8 and 2 more with 2 replicas each, and it has 24 replicas",
        RULES,
    ),
    (
        ("topic-rule", "no-leader"),
        {"brokers": ()},
        "its rules let none of the brokers that there are lead it: others lead it",
        "Allow more in balance.topic_rules.",
    ),
    (
        ("topic-rule", "leader-down"),
        {"brokers": (1,)},
        "its rules let only broker 1 lead it, and it is not alive: others lead it",
        "Start it, or allow more in balance.topic_rules.",
    ),
    (
        ("topic-rule", "leaders-down"),
        {"brokers": (1, 2)},
        "its rules let only brokers 1, 2 lead it, and none of them is alive: others lead it",
        "Start one of them, or allow more in balance.topic_rules.",
    ),
    (
        ("topic-rule", "crowded"),
        CROWD,
        (
            "broker 3 keeps 5 of its replicas, and its rules allow 2: no other broker with a free rack and enough "
            "disk was found"
        ),
        "Allow more, or add brokers.",
    ),
    (
        ("topic-rule", "crowded-limit"),
        CROWD | FIGURES,
        "broker 3 keeps 5 of its replicas, and its rules allow 2: the limit of 350 bytes is spent",
        "Allow more, or add brokers.",
    ),
    *(((code, "more"), COUNT, "for the same reasons", "") for code in ("no-broker", "topic-rule")),
    *(
        ((code, "more"), COUNT, "for the same reason", "")
        for code in ("replicas-below-min-isr", "selection", "sole-leader", "log-dir")
    ),
    (
        "band",
        RANGE | {"away": 0.5},
        (
            "2 of 5 brokers stay outside ±8 % (1, 4); the furthest, broker 4, is 50.0 % over its share: "
            "no plan was found within racks, replica counts and the other ranges"
        ),
        f"{WIDER}.",
    ),
    (
        ("band", "topic-rules"),
        RANGE | {"away": None, "brokers": tuple(range(9))},
        (
            "9 of 5 brokers stay outside ±8 % (0, 1, 2, 3, 4, 5, 6, 7, …); the furthest, broker 4, should have none: "
            "no plan was found within racks, replica counts, the topics' own rules and the other ranges"
        ),
        f"{WIDER}, or more brokers in balance.topic_rules.",
    ),
    (
        ("band", "next-plan"),
        RANGE,
        f"{AWAY}disks have no space for it until this plan has run",
        "Run ballast plan balance again when this plan is done.",
    ),
    (
        ("band", "limit"),
        RANGE | FIGURES,
        f"{AWAY}the limit of 350 bytes is spent",
        "Allow more bytes, or plan again when this plan is done.",
    ),
    (
        ("band", "replica-list-changes"),
        RANGE,
        f"{AWAY}no plan that only changes the order of replica lists was found",
        "Use ballast plan balance, which may move data.",
    ),
    (
        ("band", "one-replica"),
        RANGE | {"partition": "t-0", "topic": "t", "share": 1.5},
        f"{AWAY}one replica of t-0 alone is 150 % of a broker's share",
        "Give topic t more partitions, or a wider band for disk.",
    ),
    (
        ("band", "selection"),
        RANGE,
        f"{AWAY}no plan was found within the selection",
        "Select more topics or brokers.",
    ),
    (
        ("band", "held"),
        RANGE,
        f"{AWAY}some partitions are pinned, moving, being deleted or have fewer replicas than min.insync.replicas",
        "Plan again when they are free.",
    ),
    (
        ("band", "disk"),
        RANGE,
        f"{AWAY}no plan was found for which disks have space while it runs",
        "Add disk or brokers, or raise the disk limit.",
    ),
    (
        ("band", "unlike"),
        RANGE | {"outside": 0.2},
        f"{AWAY}no plan was found for brokers of such different capacity: by an estimate {UNLIKE}",
        f"{WIDER}, or brokers of more similar capacity.",
    ),
    (
        ("band", "unlike-proven"),
        RANGE | {"outside": 0.2, "missed": 0.01},
        f"{AWAY}brokers differ too much in capacity: by an estimate {UNLIKE}; it is proven that all ranges together are missed by 1.0 % of an average share",
        f"{WIDER}, or brokers of more similar capacity.",
    ),
    (
        "disk-space",
        {"ranges": 2},
        "replicas that have not left yet take disk space while this plan runs; the next plan can meet 2 ranges more",
        "Run ballast plan balance again when this plan is done.",
    ),
    (
        ("uneven-racks", "own-rack"),
        {"broker": 3, "share": 0.6},
        "it holds at most one replica of each partition, so broker 3 can carry 60 % of its share by capacity",
        "Give the others more capacity, or add brokers.",
    ),
    (
        ("uneven-racks", "every-rack"),
        {"broker": 3, "share": 1.6},
        "each partition needs a rack for every replica, so broker 3 must carry 160 % of an even share",
        "Give every rack the same capacity, or use more racks than replicas.",
    ),
    (
        ("uneven-racks", "fewer-racks"),
        {"broker": 3, "share": 1.6},
        "no partition may go to fewer racks, so broker 3 must carry 160 % of an even share",
        "Give every rack the same capacity, or use more racks than replicas.",
    ),
)


@pytest.mark.parametrize(("key", "values", "detail", "remedy"), SAID)
def test_each_obstacle_says_what_stands_still_and_what_would_help(
    key: Key, values: dict[str, Value], detail: str, remedy: str
) -> None:
    """With its figures, and as part of a longer sentence: nothing of a template is left."""
    code, cause = code_and_cause(key)
    made = obstacle(code, "t-0", cause, **values)
    assert (made.detail, made.remedy) == (detail, remedy)


def test_every_obstacle_is_said_here_and_made_somewhere() -> None:
    """No sentence is kept that no decision leads to."""
    assert [key for key, *_ in SAID if key not in TEMPLATES] == []
    assert set(TEMPLATES) == {key for key, *_ in SAID}
    sources = [p.read_text() for p in Path(planner.__path__[0]).rglob("*.py") if p.name != "sentences.py"]
    made = set(re.findall(r'"([a-z-]+)"', "\n".join(sources)))
    assert {part for key in TEMPLATES for part in ([key] if isinstance(key, str) else key)} - {"more"} <= made


PROVEN = {
    ("no-broker", "too-few"),
    ("no-broker", "too-few-by-rule"),
    ("no-broker", "leader"),
    ("band", "unlike-proven"),
    ("band", "one-replica"),
}
"""Sentences of what was counted or proven, and may say that there is nothing."""


@pytest.mark.parametrize(
    "key",
    [k for k in TEMPLATES if codes_of([k])[0] in {"no-broker", "band"} or (k[0] == "topic-rule" and "crowded" in k[1])],
)
def test_what_is_not_proven_is_said_not_to_be_found(key: Key) -> None:
    """The search tries much and not everything: that it found nothing is no proof that there is nothing."""
    said = TEMPLATES[key].detail.partition("{away:away}: ")[2] or TEMPLATES[key].detail
    claims = re.search(r"\bno (?:other )?(?:broker|plan)\b", said) or re.search(
        r"too (?:unlike|full)|do not reach", said
    )
    assert key in PROVEN or not claims or "found" in said


def test_an_obstacle_without_a_sentence_is_a_bug() -> None:
    """It is found where it is made, not where it is shown."""
    with pytest.raises(KeyError):
        obstacle("because", "t-0")

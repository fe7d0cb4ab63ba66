"""What each obstacle of a plan says, and what would remove it; and why a rule rejects a broker for a partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ballast.core.catalogue import Catalogue, Key, Template, key_of
from ballast.core.plan import Obstacle
from ballast.core.plan.model import Value
from ballast.core.wording import human_brokers, human_many, human_percent

NAMED: Final = 8
"""Brokers that a sentence names."""
FEW_REPLICAS: Final = "fewer replicas than min.insync.replicas, and writes with acks=all are rejected while one is added (NOT_ENOUGH_REPLICAS)"
MORE_REPLICAS: Final = (
    "Lower min.insync.replicas, or raise the replication factor in a planned window (ballast plan change-rf)."
)
SPENT: Final = "the limit of {limit} {limits} is spent"
PLAN_AGAIN: Final = "Run ballast plan balance again when this plan is done."
RULES: Final = "Allow more in balance.topic_rules, or give the topic fewer replicas."
CROWDED: Final = "broker {broker} keeps {replicas} of its replicas, and its rules allow {allowed}: "
BAND: Final = "{brokers:count} of {of} brokers stay outside ±{band:whole} ({brokers:some}); the furthest, broker {furthest}, {away:distance}: "
WIDER: Final = "Allow a wider band for {resource}"
UNLIKE: Final = "some broker stays about {outside:percent} of its share outside"

TEMPLATES: Final[Mapping[Key, Template]] = {
    # A replica that must move finds no broker.
    "no-broker": Template(
        "no broker with a free rack and enough disk was found for it",
        "Add a broker in another rack, add disk, or raise the disk limit.",
    ),
    ("no-broker", "limit"): Template(f"a replica must move, but {SPENT}", "Allow more bytes or moves."),
    ("no-broker", "selection"): Template(
        "its replicas that share a rack sit on brokers that the selection excludes", "Include those brokers."
    ),
    ("no-broker", "too-few"): Template(
        "it needs {replicas:replicas}, and only {brokers:brokers} may hold one", "Add brokers, or uncordon some."
    ),
    ("no-broker", "too-few-by-rule"): Template(
        "it needs {replicas:replicas}, and only {brokers:brokers} may hold one",
        "Add brokers, uncordon some, or let the rule for its topic allow more.",
    ),
    ("no-broker", "leader"): Template(
        "its leader must move, and no broker that takes replicas may lead it",
        "Let another broker lead it: demote fewer, or allow more in the rules for its topic.",
    ),
    ("no-broker", "max-per-broker"): Template(
        "no broker was found with a free rack, enough disk and fewer than {allowed} replicas of its topic, as many as its rules allow",
        "Let the rules for its topic allow more, add a broker in another rack, or add disk.",
    ),
    "replicas-below-min-isr": Template(f"a replica must move, but it has {FEW_REPLICAS}", MORE_REPLICAS),
    "selection": Template(
        "it keeps its {replicas:replicas}: {brokers:count} of them are on brokers that the selection excludes ({brokers:ids})",
        "Include those brokers, or ask for more replicas.",
    ),
    "log-dir": Template(
        "broker {broker} has free space for its {bytes} bytes, but no single log dir of it has",
        "Free space on one disk of broker {broker}, or leave it out with --exclude-brokers.",
    ),
    # Leaders.
    "sole-leader": Template(
        "broker {broker} stays its leader: it has no other replica that may lead",
        "Raise its replication factor first.",
    ),
    ("sole-leader", "rule"): Template(
        "broker {broker} stays its leader: it has no other replica that may lead",
        "Let the rule for its topic allow more leaders, or use ballast plan balance, which may move data.",
    ),
    ("sole-leader", "rule-in-balance"): Template(
        "broker {broker} stays its leader: it has no other replica that may lead",
        "Let the rule for its topic allow more leaders.",
    ),
    ("sole-leader", "barred-others"): Template(
        "broker {broker} stays its leader: it has no other replica that may lead",
        "Raise its replication factor first, or let the rules for its topic allow more leaders.",
    ),
    ("sole-leader", "remaining-replica"): Template(
        "broker {broker} becomes its leader, though it should not lead it: no replica that stays may",
        "Keep more replicas, or change what may lead.",
    ),
    # A topic's own rules.
    ("topic-rule", "replicas"): Template(
        "its rules allow {brokers:only} and its partitions have {replicas} replicas", RULES
    ),
    ("topic-rule", "max-per-broker"): Template(
        "its rules allow {brokers:only} with {allowed} replicas each, and it has {replicas} replicas", RULES
    ),
    ("topic-rule", "no-leader"): Template(
        "its rules let {brokers:only} lead it: others lead it", "Allow more in balance.topic_rules."
    ),
    ("topic-rule", "leader-down"): Template(
        "its rules let {brokers:only} lead it, and it is not alive: others lead it",
        "Start it, or allow more in balance.topic_rules.",
    ),
    ("topic-rule", "leaders-down"): Template(
        "its rules let {brokers:only} lead it, and none of them is alive: others lead it",
        "Start one of them, or allow more in balance.topic_rules.",
    ),
    ("topic-rule", "crowded"): Template(
        f"{CROWDED}no other broker with a free rack and enough disk was found",
        "Allow more, or add brokers.",
    ),
    ("topic-rule", "crowded-limit"): Template(f"{CROWDED}{SPENT}", "Allow more, or add brokers."),
    # What was counted and not named.
    **{
        (code, "more"): Template("for the same reason")
        for code in ("replicas-below-min-isr", "selection", "sole-leader", "log-dir")
    },
    **{(code, "more"): Template("for the same reasons") for code in ("no-broker", "topic-rule")},
    # Ranges.
    "band": Template(f"{BAND}no plan was found within racks, replica counts and the other ranges", f"{WIDER}."),
    ("band", "topic-rules"): Template(
        f"{BAND}no plan was found within racks, replica counts, the topics' own rules and the other ranges",
        f"{WIDER}, or more brokers in balance.topic_rules.",
    ),
    ("band", "next-plan"): Template(f"{BAND}disks have no space for it until this plan has run", PLAN_AGAIN),
    ("band", "limit"): Template(f"{BAND}{SPENT}", "Allow more bytes, or plan again when this plan is done."),
    ("band", "replica-list-changes"): Template(
        f"{BAND}no plan that only changes the order of replica lists was found",
        "Use ballast plan balance, which may move data.",
    ),
    ("band", "one-replica"): Template(
        f"{BAND}one replica of {{partition}} alone is {{share:whole}} of a broker's share",
        "Give topic {topic} more partitions, or a wider band for {resource}.",
    ),
    ("band", "selection"): Template(f"{BAND}no plan was found within the selection", "Select more topics or brokers."),
    ("band", "held"): Template(
        f"{BAND}some partitions are pinned, moving, being deleted or have fewer replicas than min.insync.replicas",
        "Plan again when they are free.",
    ),
    ("band", "disk"): Template(
        f"{BAND}no plan was found for which disks have space while it runs",
        "Add disk or brokers, or raise the disk limit.",
    ),
    ("band", "unlike"): Template(
        f"{BAND}no plan was found for brokers of such different capacity: by an estimate {UNLIKE}",
        f"{WIDER}, or brokers of more similar capacity.",
    ),
    ("band", "unlike-proven"): Template(
        f"{BAND}brokers differ too much in capacity: by an estimate {UNLIKE}; it is proven that all ranges together are missed by "
        "{missed:percent} of an average share",
        f"{WIDER}, or brokers of more similar capacity.",
    ),
    "disk-space": Template(
        "replicas that have not left yet take disk space while this plan runs; the next plan can meet {ranges:ranges} more",
        PLAN_AGAIN,
    ),
    ("uneven-racks", "own-rack"): Template(
        "it holds at most one replica of each partition, so broker {broker} can carry {share:whole} of its share by capacity",
        "Give the others more capacity, or add brokers.",
    ),
    ("uneven-racks", "every-rack"): Template(
        "each partition needs a rack for every replica, so broker {broker} must carry {share:whole} of an even share",
        "Give every rack the same capacity, or use more racks than replicas.",
    ),
    ("uneven-racks", "fewer-racks"): Template(
        "no partition may go to fewer racks, so broker {broker} must carry {share:whole} of an even share",
        "Give every rack the same capacity, or use more racks than replicas.",
    ),
}
"""Every obstacle."""

REJECTIONS: Final[Mapping[Key, str]] = {
    ("partition-open", "moving"): "it is being moved already",
    ("partition-open", "deleting"): "its topic is being deleted",
    ("partition-open", "replicas-below-min-isr"): f"it has {FEW_REPLICAS}",
    ("partition-open", "selection"): "its topic is excluded or pinned",
    "broker-open": "broker {broker} takes no replica in this plan",
    ("broker-open", "down"): "broker {broker} is down",
    ("broker-open", "selection"): "broker {broker} is excluded by the selection",
    ("broker-open", "cordoned"): "broker {broker} is cordoned",
    ("broker-open", "draining"): "broker {broker} is draining",
    ("broker-open", "decommissioned"): "broker {broker} is being decommissioned",
    ("broker-open", "evacuated"): "broker {broker} is being evacuated",
    ("broker-open", "not-filled"): "broker {broker} is not one of the brokers being filled",
    "already-replica": "broker {broker} has a replica of it",
    "topic-rule": "the rule for topics {topics!r} keeps it off broker {broker}",
    "topic-spread": "broker {broker} holds {held} replicas of {topic}, as many as its rule allows",
    "rack-free": "rack {rack} has {replicas} of its replicas, and none of them moves",
    "racks-kept": "it would be in {racks} instead of {fewest} racks",
    "disk-space": "the disk of broker {broker} would be {full:whole} full",
}
"""Why a rule rejects; without a capital and a full stop."""


def obstacle(code: str, subject: object, cause: str = "", **values: Value) -> Obstacle:
    """An obstacle with its sentences, which ``TEMPLATES`` has."""
    said = TEMPLATES[key_of(code, cause)]
    detail, remedy = (CATALOGUE.render(template, values) for template in said)
    return Obstacle(code, str(subject), detail, remedy, cause, values)


def more(code: str, total: int, most: int, of: str = "partitions") -> tuple[Obstacle, ...]:
    """What is not named one by one, counted."""
    rest = total - most
    return (obstacle(code, f"{rest} more {of}", "more", count=rest),) if rest > 0 else ()


def _only(ids: tuple[int, ...]) -> str:
    if not ids:
        return "none of the brokers that there are"
    return f"only {human_brokers(ids, NAMED)}"


def _distance(away: float | None) -> str:
    if away is None:
        return "should have none"
    return f"is {human_percent(abs(away))} {'over' if away > 0 else 'under'} its share"


CATALOGUE: Final = Catalogue(
    {
        "brokers": lambda count: human_many(count, "broker"),
        "ranges": lambda count: human_many(count, "range"),
        "count": lambda ids: str(len(ids)),
        "ids": lambda ids: ", ".join(map(str, ids)),
        "some": lambda ids: ", ".join(map(str, ids[:NAMED])) + (", …" if len(ids) > NAMED else ""),
        "only": _only,
        "distance": _distance,
        "whole": lambda share: human_percent(share, 0),
    }
)

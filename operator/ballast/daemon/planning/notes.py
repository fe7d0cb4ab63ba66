"""What the checks that make plans say: codes with figures, and their sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from ballast.core.catalogue import Catalogue, Message, Table
from ballast.core.wording import human_brokers, human_percent

NAMED: Final = 4
"""Throttles and topics that a sentence names."""


def _ratios(ratios: Mapping[int, float]) -> str:
    named = ", ".join(f"{broker} ({human_percent(ratio)})" for broker, ratio in ratios.items())
    return f"broker{'' if len(ratios) == 1 else 's'} {named}"


class PlanningNote(Message):
    """What a check has found."""

    __slots__ = ()
    sentences: ClassVar[Table] = {
        # Leaders.
        "leaders-not-judged": "Leaders are not judged while run {run} is in progress.",
        "leaders-balanced": "Preferred leaders OK: the worst broker does not lead {worst:percent} of the partitions whose preferred leader it is.",
        "leader-imbalance": "Leader imbalance over {percentage:g} %{of_cluster:whose} at {brokers:ratios}.",
        "left-to-controller": "Left to the controller, which runs elections itself.",
        "controller-first": "Waiting up to {wait_s:time} for the controller's own elections.",
        "none-electable": "None can be elected now: their preferred leaders are down, out of sync, moving or draining.",
        # Load.
        "repair-first": "No balancing while {brokers:are} down: repair comes first.",
        "no-plan-found": "Out of range, and no better plan was found: {obstacle.detail}.",
        "balanced": "Every resource is within its range.",
        "log-dir-error": "{warning.detail} {warning.remedy}",
        "emptied": "{brokers:Are} empty and may be stopped.",
        # Repair.
        "removing-throttles": "Removing throttles of an earlier run: {settings:names}.{more:more}",
        "down-too-long": "{brokers:Have} been down for longer than {grace_s:time}.",
        "down": "Broker {broker} is down; it has {left_s:time} to return before a plan to rebuild its replicas elsewhere is proposed.",
        ("down", "auto"): (
            "Broker {broker} is down; it has {left_s:time} to return before its replicas are rebuilt elsewhere."
        ),
        "offline": "Replicas of {brokers:brokers} are offline since a log dir failed.",
        "disk-grace": "A plan to rebuild them elsewhere is proposed unless the disk is replaced within {left_s:time}.",
        ("disk-grace", "auto"): "They are rebuilt elsewhere unless the disk is replaced within {left_s:time}.",
        "obstacle": "{obstacle.subject}: {obstacle.detail}.",
        "not-rebuilt": "Not rebuilt: {obstacle.subject}: {obstacle.detail}.",
        "nothing-to-rebuild": "There is nothing to rebuild.",
        "not-rack-aware": "Replica placement is not rack-aware.",
        "not-as-kafka-places": "Topics do not follow Kafka's placement.",
        "placement-kept": "Topics that are to follow Kafka's placement stay as they are: {refusals:refusals}{more:more}",
        "nothing-to-repair": "Nothing needs repair: every broker is alive and replica placement is rack-aware.",
        # Plans that a person asks for.
        "none-requested": "No plan was requested.",
    }
    catalogue = Catalogue(
        {
            "are": lambda ids: f"{human_brokers(ids)} {'is' if len(ids) == 1 else 'are'}",
            "Are": lambda ids: f"{human_brokers(ids, start=True)} {'is' if len(ids) == 1 else 'are'}",
            "Have": lambda ids: f"{human_brokers(ids, start=True)} {'has' if len(ids) == 1 else 'have'}",
            "whose": lambda of_cluster: " (the cluster's own setting)" if of_cluster else "",
            "ratios": _ratios,
            "refusals": " ".join,
            "more": lambda more: f" And {more} more." if more else "",
        }
    )


def note(code: str, cause: str = "", /, **values: Any) -> PlanningNote:
    """A note of this code."""
    return PlanningNote(code, values, cause)

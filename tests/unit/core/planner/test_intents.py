"""What is asked of the planner, as data and in the words of the command."""

from __future__ import annotations

import pytest

from ballast.core.plan import Purpose
from ballast.core.planner.intents import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Place,
    Racks,
    ReplaceBroker,
    Selection,
)


@pytest.mark.parametrize(
    ("intent", "words", "purpose"),
    [
        (Balance(), "balance", Purpose("balance")),
        (Leaders(), "leaders", Purpose("leaders")),
        (Racks(), "racks", Purpose("racks")),
        (Demote(frozenset({4, 3})), "demote 3 4", Purpose("demote", (3, 4))),
        (Decommission(frozenset({3})), "decommission 3", Purpose("decommission", (3,))),
        (Expand(frozenset({7, 8})), "expand 7 8", Purpose("expand", (7, 8))),
        (Evacuate(frozenset({3})), "evacuate 3", Purpose("evacuate", (3,))),
        (Evacuate(racks=frozenset({"b", "a"})), "evacuate rack a rack b", Purpose("evacuate", racks=("a", "b"))),
        (
            Evacuate(frozenset({3}), offline_only=True),
            "evacuate 3 --offline-only",
            Purpose("evacuate-offline", (3,)),
        ),
        (ReplaceBroker(9, 3), "replace 9 3", Purpose("replace", (9, 3))),
        (ChangeReplicationFactor(3), "change-rf .* --replication-factor 3", Purpose("change-rf")),
        (Place(selection=Selection(topics="t"), start=3), "place t classic start 3", Purpose("place")),
    ],
)
def test_an_intent_is_told_as_data_and_in_words(intent: Intent, words: str, purpose: Purpose) -> None:
    """What decides goes by the data; brokers are in order, but for ``replace``, which has an old and a new one."""
    assert (intent.words, intent.purpose) == (words, purpose)

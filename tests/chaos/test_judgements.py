"""What the judges of a chaos run accept, and what they do not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.chaos.health import Health
from tests.chaos.lease import Tenures
from tests.chaos.transfers import Outcomes

GOOD = {0: [1, 2, 5], 1: [1, 2, 5]}


def test_transactions_that_are_whole_are_right() -> None:
    """Committed ones everywhere, aborted ones nowhere, one of unknown end wholly there or not at all."""
    assert Outcomes(committed={1, 2}, aborted={3}, unknown={4, 5}).faults(GOOD) == []


@pytest.mark.parametrize(
    ("outcomes", "read", "faults"),
    [
        (Outcomes(committed={1, 2, 5, 6}), GOOD, 2),
        (Outcomes(committed={1, 2}, aborted={5}), GOOD, 2),
        (Outcomes(committed={1, 2}), GOOD, 2),
        (Outcomes(committed={1, 2}, unknown={5}), {0: [1, 2, 5], 1: [1, 2]}, 1),
        (Outcomes(committed={1, 2}), {0: [2, 1], 1: [1, 2]}, 1),
        (Outcomes(committed={1, 2}), {0: [1, 2, 2], 1: [1, 2]}, 1),
    ],
    ids=["lost", "aborted-read", "never-written", "torn", "reordered", "twice"],
)
def test_transactions_that_are_not_whole_are_found(outcomes: Outcomes, read: dict[int, list[int]], faults: int) -> None:
    """Each way of being wrong by itself, in each partition where it shows."""
    assert len(outcomes.faults(read)) == faults


def lease(holder: str, beat: int) -> dict[str, Any]:
    """A lease record of six seconds."""
    return {"id": holder, "beat": beat, "lease_s": 6.0}


def test_a_lease_may_pass_on_when_it_has_lapsed_or_was_given_up() -> None:
    """And a holder may beat as often as it likes."""
    tenures = Tenures()
    told = [tenures.take(lease("a", 1), 0), tenures.take(lease("a", 2), 1), tenures.take(lease("b", 1), 8)]
    told += [tenures.take(None, 9), tenures.take(lease("a", 1), 9.1)]
    assert told == [None] * 5
    assert tenures.changes == 1


def test_a_lease_that_passes_on_too_early_is_found() -> None:
    """So is a renewal by a process that has lost the lock in between."""
    tenures = Tenures()
    assert tenures.take(lease("a", 1), 0) is None
    assert tenures.take(lease("b", 1), 3) is not None
    assert tenures.take(lease("a", 2), 3.1) is not None


def test_a_beat_that_goes_back_is_found() -> None:
    """Two processes with one name would do that."""
    tenures = Tenures()
    tenures.take(lease("a", 5), 0)
    assert tenures.take(lease("a", 4), 1) is not None


def test_a_broker_is_well_only_after_a_while_without_harm() -> None:
    """And no broker is while the metadata cannot change."""
    health = Health((1, 2))
    assert health.well(0) == {1, 2}
    assert health.well(60) == set()
    health.fails(1)
    assert health.well(0) == {2}
    health.returns(1)
    assert health.well(0) == {1, 2}
    health.controller_fails()
    assert health.well(0) == set()

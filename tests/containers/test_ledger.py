"""The judgement on a topic's records finds each kind of loss."""

from __future__ import annotations

import pytest
from tests.containers.ledger import Ledger, judge


def read(*numbers: int, acked: dict[int, int], unanswered: set[int] | None = None) -> Ledger:
    """A ledger whose log reads like this."""
    ledger = Ledger(acked=acked, open=unanswered or set())
    for offset, number in enumerate(numbers):
        ledger.see(offset, number)
    return ledger


@pytest.mark.parametrize(
    "log", [read(0, 1, 2, acked={0: 0, 1: 1, 2: 2}), read(0, 2, acked={0: 0, 2: 1}, unanswered={1}), read(acked={})]
)
def test_a_log_that_holds_what_was_acknowledged_is_right(log: Ledger) -> None:
    """A record without an answer may be missing."""
    assert log.is_read
    assert log.faults() == []


@pytest.mark.parametrize(
    ("log", "fault"),
    [
        pytest.param(read(0, 2, acked={0: 0, 1: 1, 2: 2}), "it is nowhere", id="lost"),
        pytest.param(read(0, 1, 1, acked={0: 0, 1: 1}), "1 is at offsets 1 and 2", id="doubled"),
        pytest.param(read(1, 0, acked={0: 1, 1: 0}), "was acknowledged after", id="swapped"),
        pytest.param(read(0, 7, acked={0: 0}), "7 at offset 1 was never written", id="foreign"),
        pytest.param(read(0, 2, acked={0: 0, 1: 1}, unanswered={2}), "which holds 2", id="replaced"),
    ],
)
def test_what_breaks_the_promise_is_told(log: Ledger, fault: str) -> None:
    """Each kind of loss has its sentence."""
    with pytest.raises(AssertionError, match=fault):
        judge({0: log})


def test_a_log_that_changes_after_it_was_read_is_told() -> None:
    """A second reading must find the same records at the same places, and no gap."""
    log = read(0, 1, acked={0: 0, 1: 1})
    log.see(1, 5)
    log.see(4, 2)
    assert log.faults()[:2] == ["offset 1 held 1 and now holds 5", "offset 2 is followed by 4"]


def test_a_record_acknowledged_without_a_place_must_be_somewhere() -> None:
    """An idempotent producer that repeated a send is told that the record is there, and not where."""
    log = read(0, acked={0: 0}, unanswered={1})
    log.acknowledge(1, None)
    assert not log.is_read
    assert log.faults() == ["1 was acknowledged and is nowhere"]
    log.see(1, 1)
    assert log.is_read
    assert log.faults() == []

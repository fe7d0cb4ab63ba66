"""The counts behind caps and cool-downs: what late news adds to them, and what the journal keeps of them."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from ballast.daemon.acting.action_history import NO_ACTIONS, ActionHistory
from ballast.ports.journal import Corrupt, Record, read_record

NOON_MS = 1_795_262_400_000  # 2026-11-21 12:00 UTC


def test_a_late_start_stays_behind_those_that_others_have_counted_since() -> None:
    """The newest run stays the newest, starts of the same day are added, and those of a day before are over."""
    day_ms = 86_400_000
    theirs = NO_ACTIONS.add_start(NOON_MS, "b").add_start(NOON_MS, "c")
    assert theirs.add_late_start(NOON_MS - day_ms, "a", after="") == theirs
    same_day = theirs.add_late_start(NOON_MS - 1, "a", after="")
    assert (same_day.starts, same_day.run) == (3, "c")
    assert theirs.add_late_start(NOON_MS + 1, "c", after="b") == theirs
    assert theirs.add_late_start(NOON_MS + 1, "d", after="c") == theirs.add_start(NOON_MS + 1, "d")
    assert NO_ACTIONS.add_end(NOON_MS).add_late_end(NOON_MS - 5).last_end_ms == NOON_MS


def test_counts_survive_the_journal() -> None:
    """What is written is what is read."""
    acts = NO_ACTIONS.add_start(NOON_MS, "a").add_end(NOON_MS + 5)
    for kept in (acts, NO_ACTIONS):
        assert read_record(Record("daemon/acts/moves", asdict(kept)), ActionHistory) == kept


@pytest.mark.parametrize("missing", ["day", "starts", "last_end_ms", "run"])
def test_counts_that_are_not_whole_are_refused_and_named(missing: str) -> None:
    """A missing count is not 0: the caps of the day would begin anew."""
    value = asdict(NO_ACTIONS.add_start(NOON_MS, "a").add_end(NOON_MS + 5))
    with pytest.raises(Corrupt, match=f"daemon/acts/moves: {missing}:"):
        read_record(Record("daemon/acts/moves", {k: v for k, v in value.items() if k != missing}), ActionHistory)

"""What only shows over time."""

from __future__ import annotations

import numpy as np

from ballast.core.leadership import LeaderImbalance, tally
from ballast.daemon.observing.patience import Hysteresis, Presence


def leaders(not_led: int, of: int = 100, threshold: float = 10) -> LeaderImbalance:
    """Broker 1 should lead ``of`` partitions and misses some."""
    first = np.ones(of, np.int32)
    leader = np.where(np.arange(of) < not_led, 2, 1).astype(np.int32)
    return tally(first, leader, [1, 2], threshold_percent=threshold)


def test_hysteresis_enters_above_and_leaves_at_the_lower_level() -> None:
    """Over 10 % it counts; between the levels it keeps what it was; at 5 % it is well."""
    memory = Hysteresis()
    for not_led, expected in ((8, False), (10, False), (11, True), (8, True), (6, True), (5, False), (8, False)):
        memory = memory.see(leaders(not_led), 5, 0)
        assert (1 in memory.since_s) is expected, not_led


def test_hysteresis_remembers_since_when() -> None:
    """Time counts from entering, not from the last look."""
    memory = Hysteresis().see(leaders(50), 5, 100).see(leaders(40), 5, 200)
    assert memory.lasting(150, 249) == frozenset()
    assert memory.lasting(150, 250) == {1}


def test_presence_counts_absence_from_when_it_was_first_seen() -> None:
    """A broker that flaps starts its grace anew each time."""
    seen = Presence().see([1, 2, 3], [], 0).see([1, 2], [3], 10).see([1, 2], [3], 50)
    assert seen.dead(40, 50) == {3}
    assert seen.dead(41, 50) == frozenset()
    back = seen.see([1, 2, 3], [], 60).see([1, 2], [3], 70)
    assert back.dead(20, 80) == frozenset()


def test_quiet_time_starts_at_every_change_but_not_at_the_first_reading() -> None:
    """A daemon that starts on a quiet cluster need not wait."""
    first = Presence().see([1, 2], [], 1000)
    assert first.unquiet(300, 1000) == 0
    changed = first.see([1], [2], 1100)
    assert changed.unquiet(300, 1150) == 250
    assert changed.see([1], [2], 1350).unquiet(300, 1400) == 0

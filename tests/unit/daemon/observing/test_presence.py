"""What only shows over time."""

from __future__ import annotations

import numpy as np

from ballast.core.leadership import LeaderImbalance, tally
from ballast.daemon.observing.presence import Hysteresis, Presence


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
        assert (1 in memory.imbalanced.since_s) is expected, not_led


def test_hysteresis_remembers_since_when() -> None:
    """Time counts from entering, not from the last look."""
    memory = Hysteresis().see(leaders(50), 5, 100).see(leaders(40), 5, 200)
    assert memory.imbalanced.lasting(150, 249) == frozenset()
    assert memory.imbalanced.lasting(150, 250) == {1}


def test_presence_counts_absence_from_when_it_was_first_seen() -> None:
    """A broker that flaps starts its grace anew each time."""
    seen = Presence().see([1, 2, 3], [], 0, {}).see([1, 2], [3], 10, {}).see([1, 2], [3], 50, {})
    assert seen.down.lasting(40, 50) == {3}
    assert seen.down.lasting(41, 50) == frozenset()
    back = seen.see([1, 2, 3], [], 60, {}).see([1, 2], [3], 70, {})
    assert back.down.lasting(20, 80) == frozenset()


def test_quiet_time_starts_at_every_change_but_not_at_the_first_reading() -> None:
    """A daemon that starts on a quiet cluster need not wait."""
    first = Presence().see([1, 2], [], 1000, {})
    assert first.seconds_until_quiet(300, 1000) == 0
    changed = first.see([1], [2], 1100, {})
    assert changed.seconds_until_quiet(300, 1150) == 250
    assert changed.see([1], [2], 1350, {}).seconds_until_quiet(300, 1400) == 0


RACKS = {1: "a", 2: "b", 3: "b", 4: "b"}
"""Brokers 2, 3 and 4 share a rack."""


def rack_b_down() -> Presence:
    """All of rack b is missed from second 10 on."""
    return Presence().see([1, 2, 3, 4], [], 0, RACKS).see([1], [2, 3, 4], 10, RACKS)


def test_a_return_holds_back_the_rest_of_its_rack_and_no_other() -> None:
    """For the quiet time; those that are up, and those of other racks, are not held."""
    back = rack_b_down().see([1, 2], [3, 4], 100, RACKS)
    assert back.held_brokers(50, 149) == {3: (2, 150), 4: (2, 150)}
    assert back.held_brokers(50, 150) == {}
    assert back.held_brokers(0, 100) == {}
    alone = Presence().see([2, 3, 4], [1], 0, RACKS).see([2, 3], [1, 4], 10, RACKS).see([2, 3, 4], [1], 20, RACKS)
    assert alone.held_brokers(50, 30) == {}


def test_each_return_of_another_broker_holds_on() -> None:
    """A rack that comes back broker by broker, and slowly."""
    seen = rack_b_down().see([1, 2], [3, 4], 100, RACKS).see([1, 2, 3], [4], 140, RACKS)
    assert seen.held_brokers(50, 160) == {4: (3, 190)}
    assert seen.see([1, 2, 3, 4], [], 170, RACKS).held_brokers(50, 170) == {}


def test_a_broker_that_flaps_holds_its_rack_back_once() -> None:
    """Its first return counts, and then the rest waits no longer, until it has been up itself."""
    seen = rack_b_down().see([1, 2], [3, 4], 100, RACKS)
    for now_s in range(110, 400, 20):
        seen = seen.see([1], [2, 3, 4], now_s, RACKS).see([1, 2], [3, 4], now_s + 10, RACKS)
        assert (4 in seen.held_brokers(50, now_s + 10)) is (now_s + 10 < 150)
    again = seen.see([1, 2, 3, 4], [], 500, RACKS).see([1], [2, 3, 4], 600, RACKS).see([1, 2], [3, 4], 700, RACKS)
    assert again.held_brokers(50, 720) == {3: (2, 750), 4: (2, 750)}


def test_without_racks_no_return_holds_anything_back() -> None:
    """Which brokers return together is known from racks alone."""
    assert (
        Presence().see([1, 2, 3], [], 0, {}).see([1], [2, 3], 10, {}).see([1, 2], [3], 20, {}).held_brokers(50, 21)
        == {}
    )

"""Striped placement: what holds of every one, and some that Kafka's own class gives for the same seeds."""

from __future__ import annotations

import pytest

from ballast.core.placement import BrokerMetadata, InvalidPartitions, InvalidReplicationFactor
from ballast.core.placement.classic import IncompleteRacks
from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.kraft import place_kraft

PLAIN = [(2, 3, 0), (3, 0, 1), (0, 1, 2), (1, 2, 3), (1, 0, 2), (0, 2, 3), (2, 3, 1), (3, 1, 0), (2, 1, 0)]
RACKED = [
    (1, 3, 5),
    (4, 5, 6),
    (5, 6, 2),
    (6, 0, 3),
    (1, 4, 5),
    (3, 5, 6),
    (5, 6, 2),
    (6, 4, 1),
    (3, 0, 5),
    (2, 5, 6),
    (5, 6, 4),
    (6, 3, 1),
    (4, 0, 5),
    (2, 5, 6),
    (5, 1, 6),
    (0, 6, 4),
]
FENCED = [(1, 4, 2), (1, 3, 4), (2, 4, 1), (3, 4, 1), (1, 4, 2), (1, 3, 4), (1, 4, 3), (2, 4, 1)]


def plain(n: int) -> list[BrokerMetadata]:
    """Brokers 0 to n - 1 without racks."""
    return [BrokerMetadata(i) for i in range(n)]


def racked(names: str) -> list[BrokerMetadata]:
    """Broker i in the rack of the i-th character; ``-`` is none."""
    return [BrokerMetadata(i, None if name == "-" else name) for i, name in enumerate(names)]


def test_partitions_without_racks_take_brokers_in_turn() -> None:
    """Each begins one further on; when every broker has begun, all are shuffled."""
    assert list(place_kraft(plain(4), 9, 3, JavaRandom(3)).values()) == PLAIN


def test_racks_take_turns_and_brokers_within_them() -> None:
    """Brokers without a rack are one rack more; larger racks hold no more than the others."""
    assert list(place_kraft(racked("aaabbc-"), 16, 3, JavaRandom(5)).values()) == RACKED


def test_fenced_brokers_come_last_and_lead_nothing() -> None:
    """They hold replicas only where the others of their rack do already."""
    fenced = frozenset({0, 4})
    found = list(place_kraft(racked("aabbc"), 8, 3, JavaRandom(1), fenced=fenced).values())
    assert found == FENCED
    assert not {replicas[0] for replicas in found} & fenced


def test_a_seed_names_a_placement_and_numbers_only_number_it() -> None:
    """Later partitions of a topic are placed as the first ones are."""
    first = place_kraft(plain(5), 7, 2, JavaRandom(9))
    later = place_kraft(plain(5), 7, 2, JavaRandom(9), start_partition=3)
    assert list(later) == list(range(3, 10))
    assert list(later.values()) == list(first.values())
    assert len({tuple(place_kraft(plain(5), 7, 2, JavaRandom(seed)).values()) for seed in range(20)}) > 10


@pytest.mark.parametrize("names", ["------", "aabbcc", "abc", "aaabbb"])
def test_no_broker_is_listed_twice_and_racks_are_apart(names: str) -> None:
    """Through several rounds; single replicas lie on every broker before they lie on one twice."""
    brokers = racked(names)
    racks = {b.id: b.rack for b in brokers}
    for factor in (1, 2, 3):
        found = list(place_kraft(brokers, 4 * len(brokers), factor, JavaRandom(factor)).values())
        assert all(len(set(replicas)) == factor for replicas in found)
        assert all(len({racks[b] for b in replicas}) == min(factor, len(set(names))) for replicas in found)
    single = place_kraft(brokers, len(brokers), 1, JavaRandom(1)).values()
    assert sorted(single) == [(b.id,) for b in brokers]


def test_as_many_replicas_as_brokers_lie_on_every_broker() -> None:
    """A rack that has no broker left is passed over."""
    for names in ("aaab", "aab-", "----"):
        found = place_kraft(racked(names), 12, 4, JavaRandom(2)).values()
        assert all(sorted(replicas) == [0, 1, 2, 3] for replicas in found)


def test_racks_count_as_asked_or_as_the_controller_counts_them() -> None:
    """Where only some brokers have one, the stock tool refuses, and the controller places."""
    mixed = racked("aab-")
    with pytest.raises(IncompleteRacks):
        place_kraft(mixed, 3, 2, JavaRandom(1), rack_aware="enforced")
    bare = place_kraft(plain(4), 6, 2, JavaRandom(1))
    assert place_kraft(mixed, 6, 2, JavaRandom(1), rack_aware="safe") == bare
    assert place_kraft(mixed, 6, 2, JavaRandom(1), rack_aware="disabled") == bare
    assert place_kraft(mixed, 6, 2, JavaRandom(1)) != bare
    whole = racked("aabb")
    by_default = place_kraft(whole, 6, 2, JavaRandom(1))
    assert place_kraft(whole, 6, 2, JavaRandom(1), rack_aware="enforced") == by_default


def test_the_impossible_is_refused() -> None:
    """As by the other placement; and where every broker is fenced none can lead."""
    with pytest.raises(InvalidPartitions):
        place_kraft(plain(3), 0, 1, JavaRandom(1))
    with pytest.raises(InvalidReplicationFactor, match="available brokers, 3"):
        place_kraft(plain(3), 1, 4, JavaRandom(1))
    with pytest.raises(InvalidReplicationFactor, match=r"fenced at present\. Start a broker"):
        place_kraft(plain(2), 1, 1, JavaRandom(1), fenced=frozenset({0, 1}))


def test_one_broker_takes_everything() -> None:
    """There is nothing to shuffle, and no draw for it."""
    rng, twin = JavaRandom(4), JavaRandom(4)
    assert set(place_kraft(plain(1), 5, 1, rng).values()) == {(0,)}
    assert place_kraft(plain(1), 1, 1, twin) == {0: (0,)}
    assert rng.next_int(1000) == twin.next_int(1000)

"""Which placement a cluster would use, and that racks count in both as they are asked to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from ballast.core.cluster import ClusterState, build
from ballast.core.placement import BrokerMetadata, IncompleteRacks
from ballast.core.placement.classic import Assignment, RackMode
from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.placer import (
    ALGORITHMS,
    Algorithm,
    controllers_algorithm,
    expand,
    place,
    tool_shows_log_dirs,
    tools_algorithm,
)

RACKED = [BrokerMetadata(i, "aaabbb"[i]) for i in range(6)]
BARE = [BrokerMetadata(i) for i in range(6)]
MIXED = [BrokerMetadata(i, "aabb"[i] if i < 4 else None) for i in range(6)]


COUNTING: Final[tuple[RackMode, ...]] = ("enforced", "safe")
Make = Callable[[Algorithm, list[BrokerMetadata], RackMode], Assignment]


def placed(algorithm: Algorithm, brokers: list[BrokerMetadata], mode: RackMode) -> Assignment:
    """Twelve partitions of two replicas, always from the same draws."""
    return place(algorithm, brokers, 12, 2, JavaRandom(1), rack_aware=mode)


def grown(algorithm: Algorithm, brokers: list[BrokerMetadata], mode: RackMode) -> Assignment:
    """Ten partitions more than two of two replicas, always from the same draws."""
    return expand(algorithm, brokers, {0: (0, 3), 1: (1, 4)}, 12, JavaRandom(1), rack_aware=mode)


@pytest.mark.parametrize("algorithm", ["classic", "kraft"])
@pytest.mark.parametrize("make", [placed, grown])
def test_racks_count_as_asked(make: Make, algorithm: Algorithm) -> None:
    """Both new topics and new partitions: enforced refuses racks on some brokers only, safe ignores these, disabled all."""
    bare = make(algorithm, BARE, "enforced")
    assert make(algorithm, RACKED, "disabled") == make(algorithm, MIXED, "disabled") == bare
    assert make(algorithm, MIXED, "safe") == bare
    with pytest.raises(IncompleteRacks):
        make(algorithm, MIXED, "enforced")
    for mode in COUNTING:
        lists = make(algorithm, RACKED, mode).values()
        assert all(len({b // 3 for b in replicas}) == 2 for replicas in lists), "one replica in each rack"
    assert any(len({b // 3 for b in replicas}) == 1 for replicas in bare.values())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_new_partitions_follow_the_existing_ones(algorithm: Algorithm) -> None:
    """They have as many replicas as partition 0."""
    found = grown(algorithm, RACKED, "enforced")
    assert list(found) == list(range(2, 12))
    assert {len(replicas) for replicas in found.values()} == {2}


def cluster(version: str | None, mode: str) -> ClusterState:
    """Of this release and mode."""
    return build("c", (), (), [], kafka_version=version, api=frozenset({mode}))


@pytest.mark.parametrize(
    ("version", "mode", "controllers", "tools", "log_dirs"),
    [
        ("2.3.1", "zookeeper", "classic", "classic", False),
        ("3.9", "zookeeper", "classic", "classic", False),
        ("3.9", "kraft", "kraft", "classic", False),
        ("4.0", "kraft", "kraft", "classic", False),
        ("4.1", "kraft", "kraft", "kraft", False),
        ("4.2", "kraft", "kraft", "kraft", True),
        ("4.10", "kraft", "kraft", "kraft", True),
        (None, "kraft", "kraft", "kraft", False),
        (None, "zookeeper", "classic", "classic", False),
    ],
)
def test_controllers_and_tools_place_as_their_release_does(
    version: str | None, mode: str, controllers: str, tools: str, *, log_dirs: bool
) -> None:
    """Where the release is unknown, the tool is taken to place as the controller does."""
    state = cluster(version, mode)
    assert (controllers_algorithm(state), tools_algorithm(state)) == (controllers, tools)
    assert tool_shows_log_dirs(state) is log_dirs

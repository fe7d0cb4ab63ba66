"""Which of Kafka's two placements a cluster would use, and one call for both, and for the naive layout.

* ``classic`` (``core.placement``): ZooKeeper-mode controllers, and ``--generate`` of the stock tools up to 4.0.
* ``kraft`` (``core.placement.kraft``): KRaft controllers of any version, and ``--generate`` since 4.1.

Both draw from a ``java.util.Random``.  A cluster's own is not seeded as ours is: a placement is a sample.  Several topics
are placed from one generator, one after the other: neighbouring seeds begin with the same high bits, and where the number
of brokers is a power of two, topics placed from them would all start on the same broker.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from ballast.core.cluster import ClusterState
from ballast.core.placement.classic import (
    Assignment,
    Placeable,
    RackMode,
    assign_replicas,
    check_expansion,
    expand_replicas,
)
from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.kraft import place_kraft
from ballast.core.placement.naive import naive_layout

Algorithm = Literal["classic", "kraft", "naive"]
ALGORITHMS: Final[tuple[Algorithm, ...]] = ("classic", "kraft", "naive")

_FIRST_KRAFT_TOOL: Final = (4, 1)
_FIRST_TOOL_WITH_LOG_DIRS: Final = (4, 2)


def controllers_algorithm(state: ClusterState) -> Algorithm:
    """What the cluster's controller places new topics and partitions with."""
    return "classic" if "zookeeper" in state.api else "kraft"


def choose_algorithm(placement: str, state: ClusterState, *, start: int | None) -> Algorithm:
    """The one that is named; for ``auto`` the classic one where a start fixes it, else the controller's."""
    named = next((a for a in ALGORITHMS if a == placement), None)
    return named or ("classic" if start is not None else controllers_algorithm(state))


def tools_algorithm(state: ClusterState) -> Algorithm:
    """What ``kafka-reassign-partitions --generate`` of the cluster's version places with."""
    version = _version(state)
    if version is None:
        return controllers_algorithm(state)
    return "kraft" if version >= _FIRST_KRAFT_TOOL else "classic"


def tool_shows_log_dirs(state: ClusterState) -> bool:
    """Do ``--generate`` and ``--execute`` of the cluster's version say in which log dirs the present replicas are?"""
    version = _version(state)
    return version is not None and version >= _FIRST_TOOL_WITH_LOG_DIRS


def _version(state: ClusterState) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", state.kafka_version or "")
    return (int(found[1]), int(found[2])) if found else None


def place(
    algorithm: Algorithm,
    brokers: Sequence[Placeable],
    partitions: int,
    replication_factor: int,
    rng: JavaRandom,
    *,
    rack_aware: RackMode = "enforced",
) -> Assignment:
    """Place the partitions of a new topic, or all partitions of a topic anew."""
    if algorithm == "kraft":
        return place_kraft(brokers, partitions, replication_factor, rng, rack_aware=rack_aware)
    if algorithm == "naive":
        return naive_layout(brokers, partitions, replication_factor)
    return assign_replicas(brokers, partitions, replication_factor, rack_aware=rack_aware, rng=rng)


def expand(
    algorithm: Algorithm,
    brokers: Sequence[Placeable],
    existing: Mapping[int, Sequence[int]],
    total: int,
    rng: JavaRandom,
    *,
    rack_aware: RackMode = "enforced",
) -> Assignment:
    """Place the partitions that a topic lacks to have ``total``, with as many replicas as partition 0 has.

    The classic and the naive expansion draw nothing.
    """
    added = check_expansion(existing, total)
    if algorithm == "classic":
        return expand_replicas(brokers, existing, total, rack_aware=rack_aware)
    if algorithm == "naive":
        layout = naive_layout(brokers, total, len(existing[0]))
        return {number: layout[number] for number in range(len(existing), total)}
    return place_kraft(brokers, added, len(existing[0]), rng, start_partition=len(existing), rack_aware=rack_aware)

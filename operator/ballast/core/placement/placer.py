"""Which of Kafka's two placements a cluster would use, and one call for both.

* ``classic`` (``core.placement``): ZooKeeper-mode controllers, and ``--generate`` of the stock tools up to 4.0.
* ``striped`` (``core.placement.kraft``): KRaft controllers of any version, and ``--generate`` since 4.1.

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
from ballast.core.placement.kraft import place_striped

Algorithm = Literal["classic", "striped"]
ALGORITHMS: Final[tuple[Algorithm, ...]] = ("classic", "striped")

_FIRST_STRIPED_TOOL: Final = (4, 1)
_FIRST_TOOL_WITH_LOG_DIRS: Final = (4, 2)


def controllers_algorithm(state: ClusterState) -> Algorithm:
    """What the cluster's controller places new topics and partitions with."""
    return "classic" if "zookeeper" in state.api else "striped"


def tools_algorithm(state: ClusterState) -> Algorithm:
    """What ``kafka-reassign-partitions --generate`` of the cluster's version places with."""
    version = _version(state)
    if version is None:
        return controllers_algorithm(state)
    return "striped" if version >= _FIRST_STRIPED_TOOL else "classic"


def tool_shows_log_dirs(state: ClusterState) -> bool:
    """Does ``--generate`` of the cluster's version say in which log dirs the present replicas are?"""
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
    if algorithm == "striped":
        return place_striped(brokers, partitions, replication_factor, rng, rack_aware=rack_aware)
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

    The classic expansion draws nothing.
    """
    added = check_expansion(existing, total)
    if algorithm == "classic":
        return expand_replicas(brokers, existing, total, rack_aware=rack_aware)
    return place_striped(brokers, added, len(existing[0]), rng, start_partition=len(existing), rack_aware=rack_aware)

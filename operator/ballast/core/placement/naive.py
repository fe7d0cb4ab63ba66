"""The layout that people often take for Kafka's: partition i's replica j on broker (i + j) mod n.

A baseline to compare with, never a recommendation: every topic's partition 0 has the same first broker, and once there
are more partitions than brokers, the same replica lists repeat.
"""

from __future__ import annotations

from collections.abc import Sequence

from ballast.core.placement.classic import Assignment, Placeable, check_sizes


def naive_layout(brokers: Sequence[Placeable], partitions: int, replication_factor: int) -> Assignment:
    """Replica j of partition i on the broker at position ``(i + j) mod n`` of the list as given."""
    check_sizes(len(brokers), partitions, replication_factor)
    ids = [b.id for b in brokers]
    return {i: tuple(ids[(i + j) % len(ids)] for j in range(replication_factor)) for i in range(partitions)}

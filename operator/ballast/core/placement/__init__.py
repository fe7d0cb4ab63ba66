"""Kafka's own placement, bit for bit, and what it costs to place otherwise."""

from __future__ import annotations

from ballast.core.placement.classic import (
    Assignment,
    BrokerMetadata,
    IncompleteRacks,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    Placeable,
    RackMode,
    assign_replicas,
    check_expansion,
    check_manual,
    check_manual_expansion,
    effective_racks,
    expand_replicas,
    expansion_start,
    format_manual,
    parse_manual,
    rack_alternated,
)

__all__ = [
    "Assignment",
    "BrokerMetadata",
    "IncompleteRacks",
    "InvalidPartitions",
    "InvalidReplicaAssignment",
    "InvalidReplicationFactor",
    "Placeable",
    "RackMode",
    "assign_replicas",
    "check_expansion",
    "check_manual",
    "check_manual_expansion",
    "effective_racks",
    "expand_replicas",
    "expansion_start",
    "format_manual",
    "parse_manual",
    "rack_alternated",
]

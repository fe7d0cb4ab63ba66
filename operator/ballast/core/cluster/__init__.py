"""A cluster as it was read at one moment, and what is read off it."""

from __future__ import annotations

from ballast.core.cluster.state import (
    CONFIGS,
    LOG_DIRS,
    NO_LEADER,
    NO_LEADERSHIP_RECORD,
    STORAGE_ERROR,
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    Flags,
    Gap,
    Ints,
    LogDir,
    PartitionRow,
    Partitions,
    SmallInts,
    Topic,
    TopicPartition,
    build,
)

__all__ = [
    "CONFIGS",
    "LOG_DIRS",
    "NO_LEADER",
    "NO_LEADERSHIP_RECORD",
    "STORAGE_ERROR",
    "UNKNOWN",
    "Broker",
    "ClusterState",
    "ConfigValue",
    "Flags",
    "Gap",
    "Ints",
    "LogDir",
    "PartitionRow",
    "Partitions",
    "SmallInts",
    "Topic",
    "TopicPartition",
    "build",
]

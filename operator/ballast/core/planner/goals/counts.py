"""Counts: how many replicas a broker holds and how many partitions it leads by preference."""

from __future__ import annotations

from typing import Final

import numpy as np

from ballast.core.cluster import ClusterState, Ints
from ballast.core.planner.goals import disk
from ballast.core.planner.goals.resource import Resource
from ballast.core.planner.loads import DISK, Loads
from ballast.core.planner.policy import LEADERS, REPLICAS, PlannerPolicy

IDLE_AT_MOST: Final = 0.25
"""Counts stay about even on a cluster of mostly empty partitions, too."""


def replicas(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """A broker with twice the disk is meant to hold twice the replicas."""
    one = np.ones(len(loads), np.int64)
    by_disk = disk.goal(state, loads, policy)
    capacity = by_disk.capacity if by_disk is not None else np.ones(len(state.brokers))
    return Resource(
        name=REPLICAS,
        label="replicas",
        lead=one,
        follow=one,
        capacity=capacity,
        counted=True,
        idle=_idle(loads, np.diff(state.partitions.start)),
    )


def leaders(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """Leaders follow replicas, so that a broker leads about as large a part of what it holds as any other."""
    held = replicas(state, loads, policy)
    assert held is not None
    return Resource(
        name=LEADERS,
        label="preferred leaders",
        lead=held.lead,
        follow=np.zeros(len(loads), np.int64),
        capacity=held.capacity,
        counted=True,
        idle=_idle(loads, held.lead),
        leaders_only=True,
    )


def _idle(loads: Loads, weight: Ints) -> float:
    """The part of a count that empty partitions make up, a quarter of it at most; 0 where every partition is empty.

    An empty partition (most of Kafka's internal ones on a small cluster) is a line in a list: to even out where those lines
    are is worth no byte, and no move that takes the disks further from their shares.
    """
    if DISK not in loads.known or (loads.unknown_sizes and not np.median(loads.size_bytes)):
        return 0.0  # An unknown size was taken for the median, and is not known to be empty.
    empty, total = float(weight[loads.size_bytes == 0].sum()), float(weight.sum())
    return min(empty / total, IDLE_AT_MOST) if empty < total else 0.0

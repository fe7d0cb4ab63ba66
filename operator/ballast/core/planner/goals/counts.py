"""Counts: how many replicas a broker holds and how many partitions it leads by preference."""

from __future__ import annotations

import numpy as np

from ballast.core.cluster import ClusterState
from ballast.core.planner.goals import disk
from ballast.core.planner.goals.resource import Resource
from ballast.core.planner.loads import Loads
from ballast.core.planner.policy import LEADERS, REPLICAS, PlannerPolicy


def replicas(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """A broker with twice the disk is meant to hold twice the replicas."""
    one = np.ones(len(loads), np.int64)
    by_disk = disk.goal(state, loads, policy)
    capacity = by_disk.capacity if by_disk is not None else np.ones(len(state.brokers))
    return Resource(name=REPLICAS, label="replicas", lead=one, follow=one, capacity=capacity, counted=True)


def leaders(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """Leaders follow replicas, so that a broker leads about as large a part of what it holds as any other."""
    held = replicas(state, loads, policy)
    assert held is not None
    return Resource(
        name=LEADERS,
        label="leaders",
        lead=held.lead,
        follow=np.zeros(len(loads), np.int64),
        capacity=held.capacity,
        counted=True,
        leaders_only=True,
    )

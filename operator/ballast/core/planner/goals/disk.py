"""Disk: bytes of each replica, shared by the size of the brokers' log dirs."""

from __future__ import annotations

import numpy as np

from ballast.core.cluster import ClusterState
from ballast.core.planner.goals.resource import Resource
from ballast.core.planner.loads import DISK, Loads
from ballast.core.planner.policy import PlannerPolicy


def goal(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """Every replica costs its size, leader or not."""
    if DISK not in loads.known:
        return None
    stated = []
    for b in state.brokers:
        override = policy.capacities.get(b.id)
        stated.append(override.disk_bytes if override and override.disk_bytes else b.capacity_bytes)
    known = [c for c, b in zip(stated, state.brokers, strict=True) if b.alive and c > 0]
    # Half-known capacities would make the unknown brokers look large or small by accident: all of them, or none.
    everyone = bool(known) and len(known) == sum(b.alive for b in state.brokers)
    usual = float(np.median(known)) if everyone else 1.0
    capacity = [c if everyone and c > 0 else usual for c in stated]
    return Resource(
        name=DISK,
        label="disk",
        lead=loads.size_bytes,
        follow=loads.size_bytes,
        capacity=np.array(capacity, np.float64),
        unit="bytes",
    )

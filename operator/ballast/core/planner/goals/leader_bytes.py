"""Leader bytes: the bytes on disk that a broker leads, for clusters whose traffic is not measured.

A stand-in: what is large on disk is usually read and written much.  Only where the policy names a band for it, since where
bytes out are known they say the same thing better.
"""

from __future__ import annotations

import numpy as np

from ballast.core.cluster import ClusterState
from ballast.core.planner.goals import disk
from ballast.core.planner.goals.resource import Resource
from ballast.core.planner.loads import Loads
from ballast.core.planner.policy import LEADER_BYTES, PlannerPolicy


def goal(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """Followers cost nothing, so replica list changes do most of it for free."""
    held = disk.goal(state, loads, policy) if LEADER_BYTES in policy.bands else None
    if held is None:
        return None
    return Resource(
        name=LEADER_BYTES,
        label="leader bytes",
        lead=held.lead,
        follow=np.zeros(len(loads), np.int64),
        capacity=held.capacity,
        leaders_only=True,
        unit="bytes",
    )

"""Network: bytes in on every replica, bytes out on the leader alone."""

from __future__ import annotations

import numpy as np

from ballast.core.cluster import ClusterState
from ballast.core.planner.goals.resource import Resource, capacities
from ballast.core.planner.loads import BYTES_IN, BYTES_OUT, Loads
from ballast.core.planner.policy import PlannerPolicy


def incoming(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """The leader receives from producers what each follower fetches: the same bytes."""
    if BYTES_IN not in loads.known:
        return None
    return Resource(
        name=BYTES_IN,
        label="bytes in",
        lead=loads.bytes_in_per_s,
        follow=loads.bytes_in_per_s,
        capacity=capacities(state, policy, lambda c: c.bytes_in_per_s),
        unit="bytes/s",
    )


def outgoing(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """Consumers and followers read from the leader."""
    if BYTES_OUT not in loads.known:
        return None
    return Resource(
        name=BYTES_OUT,
        label="bytes out",
        lead=loads.bytes_out_per_s,
        follow=np.zeros(len(loads), np.int64),
        capacity=capacities(state, policy, lambda c: c.bytes_out_per_s),
        leaders_only=True,
        unit="bytes/s",
    )

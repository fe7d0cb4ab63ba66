"""CPU: what leading and following cost, shared by the brokers' CPU capacity."""

from __future__ import annotations

from ballast.core.cluster import ClusterState
from ballast.core.planner.goals.resource import Resource, capacities
from ballast.core.planner.loads import CPU, Loads
from ballast.core.planner.policy import PlannerPolicy


def goal(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """Leaders cost more than followers, so replica list changes balance a good part of it."""
    if CPU not in loads.known:
        return None
    return Resource(
        name=CPU,
        label="CPU",
        lead=loads.cpu_leader,
        follow=loads.cpu_follower,
        capacity=capacities(state, policy, lambda c: c.cpu),
        unit="cpu",
    )

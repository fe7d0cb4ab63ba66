"""The soft goals: one small module for each resource that is to be balanced, listed here in order.

To add one, copy ``goals/cpu.py``, give it a name and columns, and add it to ``GOALS`` and its name to
``policy.RESOURCES``: the search, the bound and every table pick it up from here.
"""

from __future__ import annotations

from typing import Final

from ballast.core.cluster import ClusterState
from ballast.core.planner.goals import counts, cpu, disk, leader_bytes, network
from ballast.core.planner.goals.resource import Goal, Resource
from ballast.core.planner.loads import Loads
from ballast.core.planner.policy import PlannerPolicy

GOALS: Final[tuple[Goal, ...]] = (
    disk.goal,
    network.incoming,
    network.outgoing,
    cpu.goal,
    counts.replicas,
    counts.leaders,
    leader_bytes.goal,
)


def resources(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> tuple[Resource, ...]:
    """The resources that can be balanced on this cluster: those that are known and not zero everywhere."""
    found = (goal(state, loads, policy) for goal in GOALS)
    return tuple(r for r in found if r is not None and bool(r.lead.any()))


__all__ = ["GOALS", "Goal", "Resource", "resources"]

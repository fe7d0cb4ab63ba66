"""What the planner is asked: one value from the call to the plan."""

from __future__ import annotations

from dataclasses import dataclass

from ballast.core.cluster import ClusterState
from ballast.core.planner.intents import Intent
from ballast.core.planner.loads import Loads
from ballast.core.planner.policy import PlannerPolicy


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is wanted of which cluster, within which limits."""

    state: ClusterState
    intent: Intent
    loads: Loads
    policy: PlannerPolicy
    seed: int

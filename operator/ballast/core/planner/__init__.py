"""The planner: from a cluster and an intent to the cheapest plan, with the proof of how cheap it could be.

``plan`` is the whole public call.  It is pure and deterministic: the same state, intent, loads, policy and seed give the
same plan on any machine.
"""

from __future__ import annotations

from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.plan.log_dirs import with_log_dir_errors
from ballast.core.planner.cross_rack.policy import ClientRacks, CrossRackPolicy
from ballast.core.planner.intents import (
    EVERYTHING,
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Place,
    Racks,
    ReplaceBroker,
    Selection,
)
from ballast.core.planner.loads import Loads
from ballast.core.planner.policy import Capacity, PlannerPolicy
from ballast.core.planner.topic_rule import TopicRule


def plan(
    state: ClusterState,
    intent: Intent,
    *,
    loads: Loads | None = None,
    policy: PlannerPolicy | None = None,
    seed: int = 0,
) -> Plan:
    """The cheapest plan found for this intent; raises ``UsageError`` when the intent names what is not there.

    Without ``loads`` the sizes in the state are all that is balanced, and the plan says so.  A plan that cannot reach
    everything is ``misses-some-goals`` or ``no-plan-found`` and names its obstacles; on a cluster that is balanced, or that no plan was
    found to bring nearer to its ranges, it is ``nothing-to-do`` and empty, with these ranges named.  Log dirs that report an
    error are named in any plan.
    """
    # The compiled search takes a second to import, which commands that make no plan must not pay.
    if isinstance(intent, Place):
        from ballast.core.planner.make_place import make_place  # noqa: PLC0415

        made = make_place(state, intent, loads=loads, policy=policy, seed=seed)
        return with_log_dir_errors(made, state)
    from ballast.core.planner.make import make  # noqa: PLC0415

    return with_log_dir_errors(make(state, intent, loads=loads, policy=policy, seed=seed), state)


__all__ = [
    "EVERYTHING",
    "Balance",
    "Capacity",
    "ChangeReplicationFactor",
    "ClientRacks",
    "CrossRackPolicy",
    "Decommission",
    "Demote",
    "Evacuate",
    "Expand",
    "Intent",
    "Leaders",
    "Loads",
    "Place",
    "PlannerPolicy",
    "Racks",
    "ReplaceBroker",
    "Selection",
    "TopicRule",
    "plan",
]

"""What a soft goal is: something that replicas load brokers with, to be shared by capacity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import ClusterState, Ints
from ballast.core.planner.loads import Loads
from ballast.core.planner.policy import Capacity, PlannerPolicy


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Resource:
    """One column of the problem."""

    name: str
    label: str
    """For tables."""
    lead: Ints
    """By partition: what the leader costs its broker, in the resource's own unit."""
    follow: Ints
    """By partition: what each follower costs."""
    capacity: npt.NDArray[np.float64]
    """By broker, relative: shares are in proportion to it."""
    counted: bool = False
    """Whole things are counted, so a share is rounded to whole neighbours."""
    leaders_only: bool = False
    """Followers cost nothing, so replica list changes alone can balance it."""
    idle: float = 0.0
    """Part of the whole that weighs next to nothing: ranges are wider by it."""
    unit: str = ""
    """``bytes``, ``bytes/s``, ``cpu`` (in ``CPU_UNIT``) or empty, for printing."""

    def aimed_at(self, policy: PlannerPolicy) -> float:
        """How far from its fair share a broker may be after a plan, as a fraction of that share."""
        return policy.band_of(self.name) + self.idle

    def tolerated(self, policy: PlannerPolicy) -> float:
        """How far from its fair share a broker may be before a plan is made, as a fraction of that share."""
        return policy.trigger_of(self.name) + self.idle


Goal = Callable[[ClusterState, Loads, PlannerPolicy], Resource | None]
"""Gives its column, or None where nothing is known of the resource."""


def capacities(
    state: ClusterState, policy: PlannerPolicy, of: Callable[[Capacity], float | None], default: float | None = None
) -> npt.NDArray[np.float64]:
    """Capacity by broker from the policy; brokers that it does not name are as large as the median of those it does."""
    stated = [of(policy.capacities[b.id]) if b.id in policy.capacities else default for b in state.brokers]
    known = [c for c in stated if c is not None and c > 0]
    usual = float(np.median(known)) if known else 1.0
    return np.array([c if c is not None and c > 0 else usual for c in stated], np.float64)

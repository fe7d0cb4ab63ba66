"""Where every broker stands on every resource: its load, its fair share, and the range around that in which nothing is done.

The one measure behind every count of brokers out of range: the daemon's figures and metrics, a plan's before and after, its
report.  Moves in flight count as done, as they do for plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ballast.core.cluster import ClusterState, Ints
from ballast.core.planner.intents import EVERYTHING, Balance, Selection
from ballast.core.planner.loads import Loads
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.problem import Problem, limits, loads_before, problem_of
from ballast.core.planner.problem.scope import scope_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One broker's part of one resource, in the resource's own unit."""

    load: float
    fair: float
    low: float
    high: float

    @property
    def outside(self) -> bool:
        """Is the load out of its range?"""
        return not self.low <= self.load <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """One resource over the brokers that share it."""

    resource: str
    label: str
    unit: str
    """``bytes``, ``bytes/s``, ``cpu`` or empty for counts."""
    target: float
    """How far from its fair share a broker may be after a plan, as a fraction of that share."""
    tolerance: float
    """How far from its fair share a broker may be before a plan is made, as a fraction of that share."""
    idle: float
    """The part of both that empty partitions add, which count for next to nothing."""
    shares: Mapping[int, Share]
    """By broker id."""

    @property
    def outside(self) -> tuple[int, ...]:
        """Brokers out of range."""
        return tuple(b for b, s in self.shares.items() if s.outside)


def ranges_of(
    state: ClusterState, loads: Loads, policy: PlannerPolicy, selection: Selection = EVERYTHING
) -> tuple[Range, ...]:
    """As ``balance`` would judge the cluster now; linear in replicas."""
    problem = problem_of(state, loads, policy, scope_of(state, Balance(selection=selection), policy), bands="trigger")
    return ranges(problem, policy, loads_before(problem))


def ranges(problem: Problem, policy: PlannerPolicy, load: Ints) -> tuple[Range, ...]:
    """For a matrix of scaled loads, brokers by resources."""
    scope, out = problem.scope, []
    for k, r in enumerate(problem.resources):
        fair = problem.share[:, k]
        tolerance = r.tolerance(policy)
        low, high = limits(r, fair, tolerance, policy)
        # A broker that takes nothing cannot rise: that it carries less cannot be repaired.
        low = np.where(scope.can_rise | scope.leading if r.leaders_only else scope.can_rise, low, 0.0)
        used = (scope.shares & scope.leading if r.leaders_only else scope.shares) & (fair > 0)
        own = np.rint(load[:, k] / problem.unit[k])
        shares = {
            int(problem.ids[b]): Share(load=float(own[b]), fair=float(fair[b]), low=float(low[b]), high=float(high[b]))
            for b in np.flatnonzero(used).tolist()
        }
        out.append(
            Range(
                resource=r.name,
                label=r.label,
                unit=r.unit,
                target=r.aim(policy),
                tolerance=tolerance,
                idle=r.idle,
                shares=shares,
            )
        )
    return tuple(out)

"""Plans for clusters of unlike brokers, executed, and the plans that would follow: every bar at once.

Twenty clusters of 8 brokers with 200 partitions each, the seeds from 100 to 120; on 113 a replica of a down broker finds no room, which its
plan says.  ``tests/unit/core/planner/test_mixed.py`` has larger ones.  ``BALLAST_SWEEP=N`` tries N further seeds, from 121 on: 121
passes, with a plan that takes a CPU minute.
"""

from __future__ import annotations

import os

import pytest
from bench.mixed import mixed
from bench.score import score

from ballast.core.planner import Balance, PlannerPolicy, plan

FURTHER = int(os.environ.get("BALLAST_SWEEP", "0"))
SEEDS = [seed for seed in range(100, 121 + FURTHER) if seed != 113]
MOST_OVER_BOUND = 1.1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_keeps_every_rule_near_the_least_bytes_and_leaves_nothing_to_the_next(seed: int) -> None:
    """No replica on a down broker or twice on one, no rack shared, at most 1.1 of the bound, and an empty second plan."""
    case = mixed(seed, brokers=8, partitions=200)
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities)
    made = plan(case.state, Balance(), loads=case.loads, policy=policy)
    new = {(m.topic, m.partition): m.new for m in made.moves}
    found = score(case, new)
    assert found["twins"] == found["on_down"] == found["factor_changed"] == found["rack_breaches"] == 0
    assert made.bound_bytes is not None
    assert made.bytes_moved <= MOST_OVER_BOUND * made.bound_bytes
    after = case.moved(new)
    assert plan(after.state, Balance(), loads=after.loads, policy=policy).is_empty

"""Among plans that are worth the same, the one that leaves topics as even over brokers as they were."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.core.planner.clusters import cluster

from ballast.core.planner import Balance, Loads, PlannerPolicy
from ballast.core.planner.problem.problem import problem_of
from ballast.core.planner.problem.scope import scope_of
from ballast.core.planner.search.search import Candidate, most_even, unevenness
from ballast.core.planner.search.world import World


def world() -> World:
    """Four partitions of one topic on two brokers, two on each."""
    state = cluster((1,), (1,), (2,), (2,), brokers=2)
    scope = scope_of(state, Balance(), PlannerPolicy())
    return World.of(problem_of(state, Loads.from_state(state), PlannerPolicy(), scope, bands="target"), PlannerPolicy())


def plan_of(w: World, excess: int, copied: int, *brokers: int) -> Candidate:
    """A plan that puts these partitions on these brokers."""
    return excess, copied, (np.array(brokers, np.int32), w.load, w.held, w.budget, w.tally)


def test_unevenness_is_the_deviation_of_each_topic() -> None:
    """Two and two is even; three and one is one replica off at both."""
    w = world()
    assert unevenness(w, np.array([0, 0, 1, 1], np.int32)) == 0
    assert unevenness(w, np.array([0, 0, 0, 1], np.int32)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("before", "taken"), [((0, 0, 1, 1), 1), ((0, 0, 0, 1), 0)], ids=["it was even", "it was uneven"]
)
def test_a_thousandth_of_the_bytes_is_not_worth_a_scattered_topic(before: tuple[int, ...], taken: int) -> None:
    """An even plan for hardly more is taken where the cheapest would scatter; one that leaves a band never is."""
    w = world()
    found = [
        plan_of(w, 0, 100_000, 0, 0, 0, 1),
        plan_of(w, 0, 100_090, 0, 1, 0, 1),
        plan_of(w, 0, 100_200, 1, 1, 0, 0),
        plan_of(w, 7, 100_000, 1, 0, 0, 1),
    ]
    assert most_even(w, np.array(before, np.int32), found) is found[taken][2]


def test_where_none_is_even_the_least_uneven_is_taken() -> None:
    """Three and one is better than four and none."""
    w = world()
    found = [plan_of(w, 0, 100_000, 0, 0, 0, 0), plan_of(w, 0, 100_090, 0, 0, 0, 1)]
    assert most_even(w, np.array((0, 0, 1, 1), np.int32), found) is found[1][2]

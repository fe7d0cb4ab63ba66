"""The busiest sender and receiver of a plan, at the same cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from bench.cases import make
from bench.fleet import cluster as fleet_cluster
from bench.forms import Case, written
from bench.mixed import mixed
from bench.score import Lists, busiest, busiest_floor, score

from ballast.core.copying import copying_of
from ballast.core.plan import Move, Plan
from ballast.core.planner import Balance, PlannerPolicy, plan
from ballast.core.planner.search import shorten as shortening
from ballast.core.planner.search.loops import relief

MOST_OVER_FLOOR = 1.10
MOST_MORE_BYTES = 1.005


def lists(made: Plan) -> Lists:
    """By partition its new replicas."""
    return {(m.topic, m.partition): m.new for m in made.moves}


def both(case: Case, policy: PlannerPolicy, monkeypatch: pytest.MonkeyPatch) -> tuple[Plan, Plan]:
    """The plan without the last step, and with it."""
    with monkeypatch.context() as patch:
        patch.setattr("ballast.core.planner.search.find.shorten", lambda *_args, **_more: None)
        long = plan(case.state, Balance(), loads=case.loads, policy=policy)
    return long, plan(case.state, Balance(), loads=case.loads, policy=policy)


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_takes_hardly_longer_than_the_emptiest_broker_needs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 1.10 of the floor at ±10 %, for at most half a percent more bytes, with every range met as before."""
    case = written("shorten", *make(brokers=40, racks=5, topics=200, partitions=4_000, seed=seed))
    policy = PlannerPolicy(band=0.1, trigger=0.1, capacities=case.capacities, prove=False)
    long, short = both(case, policy, monkeypatch)
    assert short.status == long.status == "meets-all-goals"
    assert busiest(case, lists(short)) <= MOST_OVER_FLOOR * busiest_floor(case, lists(short), 0.1)
    assert short.bytes_moved <= MOST_MORE_BYTES * long.bytes_moved
    assert busiest(case, lists(short)) == short.summary["busiest_bytes"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 206))
def test_no_rule_and_no_range_pays_for_a_shorter_plan(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On unlike brokers, with down ones and empty partitions: never slower, never dearer than allowed, never further out."""
    case = mixed(seed, brokers=8, partitions=150)
    policy = PlannerPolicy(band=0.1, trigger=0.1, capacities=case.capacities, prove=False)
    long, short = both(case, policy, monkeypatch)
    found = score(case, lists(short))
    assert found["twins"] == found["on_down"] == found["factor_changed"] == found["rack_breaches"] == 0
    assert busiest(case, lists(short)) <= busiest(case, lists(long))
    assert short.bytes_moved <= MOST_MORE_BYTES * long.bytes_moved
    for before, after in zip(long.summary["resources"], short.summary["resources"], strict=True):
        assert after["after"]["out_of_range"] <= before["after"]["out_of_range"]


@pytest.mark.slow
def test_a_broker_that_nothing_relieves_ends_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three replicas in three racks: hardly a copy may go elsewhere.  No copy is offered twice to no avail."""
    state = fleet_cluster(1, 20, 4_000).state
    tried: list[int] = []

    def counted(*given: Any) -> int:
        tried.append(given[-1])
        return int(scan(*given))

    scan = relief.best_swap
    monkeypatch.setattr(relief, "best_swap", counted)
    assert plan(state, Balance(), policy=PlannerPolicy(prove=False)).moves
    assert 0 < len(tried) <= shortening.COPIES * len(state.brokers)


def test_a_time_is_not_told_where_a_size_is_unknown() -> None:
    """Unknown is not short: of moves that copy, one without a size is enough."""
    known = Move("t", 0, (1, 2), (3, 2), 10)
    assert copying_of([known], lambda _: 2).busiest == 10
    unknown = replace(known, partition=1, size_bytes=-1)
    assert copying_of([known, unknown], lambda _: 2).busiest is None
    list_change = replace(unknown, new=(2, 1))
    copying = copying_of([known, list_change], lambda _: 2)
    assert (copying.busiest, copying.sent[2], copying.received[3]) == (10, 10, 10)
    assert copying_of([known], lambda _: -1).sent == {}

"""The busiest sender where brokers are unlike: exchanges and programs that let others send, within every range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.floor import proven_floor
from bench.forms import Case
from bench.mixed import mixed
from bench.score import Lists, busiest

from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.plan import Plan
from ballast.core.planner import Balance, Loads, PlannerPolicy, plan
from ballast.core.planner.problem.problem import problem_of
from ballast.core.planner.problem.scope import scope_of
from ballast.core.planner.search import shorten
from ballast.core.planner.search.busiest import relieve
from ballast.core.planner.search.exchange import exchange
from ballast.core.planner.search.search import search
from ballast.core.planner.search.sides import Sides
from ballast.core.planner.search.world import World

SEED = 11
"""A cluster of which one broker must give away 1.6 times as much as any must receive, and leads most of that."""


def lists(made: Plan) -> Lists:
    """By partition its new replicas."""
    return {(m.topic, m.partition): m.new for m in made.moves}


def test_a_broker_that_is_too_full_sends_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a quarter at least, for half a percent more bytes at most, with every range met as before."""
    case = mixed(SEED)
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities, prove=False)
    with monkeypatch.context() as patch:
        patch.setattr(shorten, "exchange", lambda *_, **__: None)
        patch.setattr(shorten, "relieve", lambda *_, **__: False)
        long = plan(case.state, Balance(), loads=case.loads, policy=policy)
    short = plan(case.state, Balance(), loads=case.loads, policy=policy)
    assert short.status == long.status == "meets-all-goals"
    assert busiest(case, lists(short)) <= 0.75 * busiest(case, lists(long))
    assert short.bytes_moved <= 1.005 * long.bytes_moved


@pytest.mark.parametrize("seed", [6, 8, 15])
@pytest.mark.parametrize("step", [exchange, relieve])
def test_no_range_no_disk_and_no_rule_pays_for_it(step: Any, seed: int) -> None:
    """No broker is further out than before, what is copied keeps to its limit, the sums are exact, and a program leaves none busier in all."""
    case = mixed(seed, brokers=8, partitions=150)
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities, prove=False)
    problem = problem_of(case.state, case.loads, policy, scope_of(case.state, Balance(), policy), bands="target")
    world = World.of(problem, policy)
    search(world, seed=0)
    leader = case.state.partitions.leader
    sides = Sides.of(world, problem, np.asarray(leader, np.int32))
    load, full, most = world.load.copy(), np.maximum(world.held, problem.room), int(world.copied * 1.004)
    over = sides.over(sides.work(world))
    step(world, problem, np.asarray(leader, np.int32), most_bytes=most, seed=0)
    assert bool((world.load <= np.maximum(problem.high, load)).all())
    assert bool((world.load >= np.minimum(problem.low, load)).all())
    assert bool((world.held <= full).all())
    assert world.copied <= most
    assert step is exchange or sides.over(sides.work(world)) <= over
    again = World.of(problem, policy)
    again.place(world.cur)
    assert bool((again.load == world.load).all() and (again.held == world.held).all())
    for p in range(len(problem.size)):
        members = world.cur[problem.start[p] : problem.start[p + 1]].tolist()
        assert len(set(members)) == len(members)
        assert max(np.bincount(problem.rack[members])) <= problem.rack_limit[p]


def test_exchanges_save_bytes_where_the_search_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that is not polished, as those of large clusters hardly are, copies bytes that it need not."""
    monkeypatch.setattr("ballast.core.planner.search.search.POLISH_ROUNDS", 0)
    case = mixed(3, brokers=40, partitions=4_000)
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities, prove=False)
    problem = problem_of(case.state, case.loads, policy, scope_of(case.state, Balance(), policy), bands="target")
    world = World.of(problem, policy)
    search(world, seed=0)
    copied, excess = world.copied, world.excess
    exchange(world, problem, np.asarray(case.state.partitions.leader, np.int32), most_bytes=copied, seed=0)
    assert world.excess <= excess
    assert world.copied < 0.99 * copied


def test_a_plan_with_a_limit_is_not_exchanged() -> None:
    """Its moves were chosen for the limit."""
    case = mixed(6, brokers=8, partitions=150)
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities, prove=False, max_replica_moves=20)
    problem = problem_of(case.state, case.loads, policy, scope_of(case.state, Balance(), policy), bands="target")
    world = World.of(problem, policy)
    search(world, seed=0)
    cur = world.cur.tolist()
    leader = np.asarray(case.state.partitions.leader, np.int32)
    exchange(world, problem, leader, most_bytes=1 << 60, seed=0)
    assert not relieve(world, problem, leader, most_bytes=1 << 60, seed=0)
    assert world.cur.tolist() == cur


def test_a_broker_that_alone_holds_everything_sends_all_that_the_others_receive() -> None:
    """The proven floor is what it sends, twice as much as any of the others receives, and the plan has no more."""
    rows = [PartitionRow("t", n, 0, (0,), (0,), sizes=(100,)) for n in range(12)]
    state = build("c", tuple(Broker(b, rack=f"z{b}") for b in range(3)), (Topic("t"),), rows)
    case = Case("one", state, Loads.from_state(state), {}, "mixed")
    policy = PlannerPolicy(band=0.05, trigger=0.05, prove=False)
    made = plan(state, Balance(), loads=case.loads, policy=policy)
    assert proven_floor(case, lists(made), policy) == pytest.approx(800)
    assert busiest(case, lists(made)) == 800


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "whole"), [(0, 2), (20, 0)])
def test_the_busiest_broker_has_little_more_than_in_any_plan(seed: int, whole: int) -> None:
    """Where a few partitions are large, or one rack is small, some broker has more to do than the emptiest lacks."""
    case = mixed(seed)
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities, prove=False)
    made = plan(case.state, Balance(), loads=case.loads, policy=policy)
    floor = proven_floor(case, lists(made), policy, whole=whole)
    assert floor is not None
    assert floor <= busiest(case, lists(made)) <= 1.1 * floor

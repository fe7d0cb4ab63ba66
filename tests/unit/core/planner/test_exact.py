"""Small clusters beside an exact solver, and steps of several brokers at once.

The first test prints how the planner compares: bytes over the least that any plan needs, and how many plans need just that.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import highspy
import numpy as np
import pytest
from bench.mixed import mixed
from tests.unit.core.planner.clusters import cluster

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, build
from ballast.core.planner import Balance, Loads, PlannerPolicy, linear, plan
from ballast.core.planner.problem import LOWER, UPPER, Problem, problem_of
from ballast.core.planner.scope import scope_of
from ballast.core.planner.search.exact import refine
from ballast.core.planner.search.run import search
from ballast.core.planner.search.world import World

TWENTY = PlannerPolicy(band=0.2, trigger=0.2, slack_bytes=0, prove=False)
SEEDS = range(24)
BOUNDS = 0.92
"""The bounds of all these clusters together, as a part of what is needed."""
BROKERS, PARTITIONS = 4, 12


def drawn(seed: int) -> ClusterState:
    """Two replicas each, on brokers of unlike popularity and in three racks on every other seed."""
    rng = np.random.default_rng(seed)
    pull = rng.dirichlet(np.full(BROKERS, 4.0))
    racks = 3 if seed % 2 else 0
    lists, sizes = [], tuple(rng.choice([100, 200, 300, 500], PARTITIONS).tolist())
    for _ in range(PARTITIONS):
        drawn_list = rng.choice(np.arange(1, BROKERS + 1), BROKERS, replace=False, p=pull).tolist()
        first = drawn_list[0]
        second = next(b for b in drawn_list[1:] if not racks or b % racks != first % racks)
        lists.append((first, second))
    return cluster(*lists, brokers=BROKERS, sizes=sizes, racks=racks)


def asked(state: ClusterState) -> Problem:
    """With the ranges that a plan aims at."""
    return problem_of(state, Loads.from_state(state), TWENTY, scope_of(state, Balance(), TWENTY), bands="target")


def least_bytes(problem: Problem) -> float | None:
    """What an integer program over all brokers needs to meet every range; None where no plan meets them all."""
    partitions, brokers = len(problem.size), len(problem.ids)
    solver = linear.program(mip_rel_gap=0.0, mip_abs_gap=1e-6)

    def column(p: int, b: int, *, leads: bool) -> int:
        return (p * brokers + b) * 2 + leads

    for p in range(partitions):
        home = problem.old[problem.old_start[p] : problem.old_start[p + 1]].tolist()
        for b in range(brokers):
            price = 0.0 if b in home else problem.size[p] / problem.average
            solver.addVar(0, 1)
            solver.addVar(0, 1)
            for leads in (False, True):
                solver.changeColCost(column(p, b, leads=leads), price)
    solver.changeColsIntegrality(
        solver.getNumCol(), np.arange(solver.getNumCol(), dtype=np.int32), np.ones(solver.getNumCol(), np.uint8)
    )

    def row(low: float, high: float, index: list[int], value: list[float]) -> None:
        solver.addRow(low, high, len(index), np.array(index, np.int32), np.array(value, np.float64))

    for p in range(partitions):
        factor = float(problem.start[p + 1] - problem.start[p])
        followers = [column(p, b, leads=False) for b in range(brokers)]
        leaders = [column(p, b, leads=True) for b in range(brokers)]
        row(1, 1, leaders, [1.0] * brokers)
        row(factor - 1, factor - 1, followers, [1.0] * brokers)
        for rack in np.unique(problem.rack).tolist():
            inside = [c for b in range(brokers) if problem.rack[b] == rack for c in (followers[b], leaders[b])]
            row(0, float(problem.rack_limit[p]), inside, [1.0] * len(inside))
        for b in range(brokers):
            row(0, 1, [followers[b], leaders[b]], [1.0, 1.0])
    for b in range(brokers):
        for k in range(len(problem.resources)):
            index = [column(p, b, leads=leads) for p in range(partitions) for leads in (False, True)]
            value = [
                float(f[p, k]) / problem.average for p in range(partitions) for f in (problem.follow, problem.lead)
            ]
            row(problem.low[b, k] / problem.average, problem.high[b, k] / problem.average, index, value)
    end = linear.solve(solver, "an exact plan", ends=linear.ANSWERED | {highspy.HighsModelStatus.kInfeasible})
    if end not in linear.ANSWERED:
        return None
    return float(solver.getInfo().objective_function_value) * problem.average / problem.byte_unit


def test_small_clusters_beside_an_exact_solver(capsys: pytest.CaptureFixture[str]) -> None:
    """No plan is missed that there is, and bytes are near the least; none has fewer, which would be an error here."""
    planned, needed, bound = [], [], []
    for seed in SEEDS:
        state = drawn(seed)
        made, least = plan(state, Balance(), policy=replace(TWENTY, prove=True)), least_bytes(asked(state))
        assert (least is None) == bool(made.obstacles)
        if least is not None:
            assert made.bytes_moved >= least * (1 - 1e-6)
            assert made.bound_bytes is not None
            assert made.bound_bytes <= least * (1 + 1e-6)
            bound.append(made.bound_bytes)
            planned.append(made.bytes_moved)
            needed.append(least)
    exact = sum(a < b * (1 + 1e-6) + 1e-6 for a, b in zip(planned, needed, strict=True))
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(needed)} of {len(SEEDS)} clusters can be planned, {exact} plans need the least bytes; "
            f"all together {sum(planned) / sum(needed):.3f} of the least; the bounds {sum(bound) / sum(needed):.3f} of it\n"
        )
    assert sum(planned) <= 1.15 * sum(needed)
    assert sum(bound) >= BOUNDS * sum(needed)
    assert exact >= len(needed) // 2


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_brokers_placed_anew_together_keep_every_rule(seed: int) -> None:
    """After the search: nothing worse, sums exact, no hard limit crossed."""
    problem = asked(drawn(seed))
    met = World.of(problem, TWENTY)
    inside = (met.load >= problem.low) & (met.load <= problem.high)
    problem.hard[inside] = UPPER | LOWER
    world = World.of(problem, TWENTY)
    search(world, seed=seed)
    before = world.excess, world.copied
    refine(world, seed=seed)
    assert (world.excess, world.copied) <= before
    still = (world.load >= problem.low) & (world.load <= problem.high)
    assert bool(still[inside].all())
    for p in range(len(problem.size)):
        members = world.cur[problem.start[p] : problem.start[p + 1]].tolist()
        assert len(set(members)) == len(members)
        assert max(np.bincount(problem.rack[members])) <= problem.rack_limit[p]
    again = World.of(problem, TWENTY)
    again.place(world.cur)
    assert bool((again.load == world.load).all() and (again.held == world.held).all())


def test_the_step_ends_at_its_limit_of_work_and_says_so() -> None:
    """The same placement each time, no worse than before, and told apart from a step that ended by itself."""
    case = mixed(26)
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities, prove=False)
    problem = problem_of(case.state, case.loads, policy, scope_of(case.state, Balance(), policy), bands="target")
    begun = World.of(problem, policy)
    search(begun, seed=0)
    found = []
    for most in (0, 100_000, 100_000, 1 << 60):
        world = World.of(problem, policy)
        world.place(begun.cur)
        found.append((refine(world, seed=0, most=most), world.excess, world.copied, world.cur.tolist()))
    assert [f[0] for f in found] == [False, False, False, True]
    assert found[0][1:] == (begun.excess, begun.copied, begun.cur.tolist())
    assert found[1] == found[2]
    assert found[3][1:3] < found[1][1:3] <= found[0][1:3]


def test_an_integer_program_does_not_end_the_process() -> None:
    """With HiGHS 1.15.1 the last step of this plan freed memory that was not its own, and the process aborted."""
    racks = ["r0", "r1", "r2", "r3", "r0", "r2", "r2", "r3"]
    brokers = tuple(Broker(b, rack=rack, log_dirs_known=True) for b, rack in enumerate(racks, 1))
    lists = [
        ("t0", (1, 8, 5, 4), 400), ("t0", (8, 5, 3, 6), 0), ("t0", (7, 2, 8, 4), 100), ("t0", (1, 2, 7, 8), 7),
        ("t1", (7, 1, 5, 2), 100), ("t1", (7, 8, 1, 5), 100), ("t1", (3, 1, 4, 7), 7),
    ]  # fmt: skip
    rows = [
        PartitionRow(t, n if t == "t0" else n - 4, m[0], m, m, sizes=(size,) * 4)
        for n, (t, m, size) in enumerate(lists)
    ]
    state = build("c", brokers, (Topic("t0"), Topic("t1")), rows)
    policy = PlannerPolicy(band=0.05, trigger=0.05, slack_bytes=0, cordoned=frozenset({8}), prove=False)
    assert plan(state, Balance(), policy=policy).moves

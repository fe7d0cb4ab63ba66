"""Small clusters beside an exact solver, and steps of several brokers at once.

The first three tests say how the planner compares: bytes over the least that any plan needs, and how many plans need just that.
``tests/figures.py`` prints it at the end of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import highspy
import numpy as np
import pytest
from bench.mixed import mixed
from tests.figures import FIGURE
from tests.unit.core.planner.clusters import cluster

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, build
from ballast.core.plan import Plan
from ballast.core.planner import Balance, Expand, Intent, Loads, PlannerPolicy, linear, plan
from ballast.core.planner.policy import Capacity
from ballast.core.planner.problem.problem import LOWER, UPPER, Problem, problem_of
from ballast.core.planner.problem.scope import scope_of
from ballast.core.planner.search.exact import refine
from ballast.core.planner.search.search import search
from ballast.core.planner.search.world import World

TWENTY = PlannerPolicy(band=0.2, trigger=0.2, slack_bytes=0, prove=False)
SEEDS, OF_TWO_KINDS, LOPSIDED = range(24), range(8), range(12)
BOUNDS = 0.92
"""The bounds of all these clusters together, as a part of what is needed."""
BROKERS, PARTITIONS, EXPANDED = 4, 12, 16
UNLIKE = 0.2
WHOLE = Balance()


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


def two_kinds(seed: int) -> tuple[ClusterState, Loads, PlannerPolicy]:
    """The same with two disks and two networks, of which half the brokers have the larger, and with rates of each partition."""
    state, rng = drawn(seed), np.random.default_rng(seed + 1_000)
    sizes = Loads.from_state(state).size_bytes
    rate = np.rint(sizes * rng.choice([1.0, 1.0, 2.0], PARTITIONS)).astype(np.int64)
    loads = Loads(
        size_bytes=sizes,
        bytes_in_per_s=rate,
        bytes_out_per_s=rate + np.rint(rate * rng.choice([0.5, 1.0, 2.0], PARTITIONS)).astype(np.int64),
        cpu_leader=np.zeros(PARTITIONS, np.int64),
        cpu_follower=np.zeros(PARTITIONS, np.int64),
        known=frozenset({"disk", "bytes-in", "bytes-out"}),
    )
    large = {1, 1 + int(rng.integers(1, BROKERS))}
    weight = {b: 3 if b in large else 2 for b in range(1, BROKERS + 1)}
    capacities = {b: Capacity(disk_bytes=10_000 * w, bytes_in_per_s=w, bytes_out_per_s=w) for b, w in weight.items()}
    return state, loads, replace(TWENTY, band=UNLIKE, trigger=UNLIKE, capacities=capacities)


def lopsided(seed: int) -> ClusterState:
    """Four brokers of which two lead most of the partitions, and a fifth that holds nothing."""
    rng = np.random.default_rng(seed)
    lists, sizes = [], tuple(rng.choice([100, 200, 300, 500], EXPANDED).tolist())
    for _ in range(EXPANDED):
        first = int(rng.choice([1, 2, 3, 4], p=[0.45, 0.35, 0.1, 0.1]))
        lists.append((first, int(rng.choice([b for b in (1, 2, 3, 4) if b != first]))))
    return cluster(*lists, brokers=BROKERS + 1, sizes=sizes)


def asked(
    state: ClusterState, intent: Intent = WHOLE, policy: PlannerPolicy = TWENTY, loads: Loads | None = None
) -> Problem:
    """With the ranges that a plan aims at."""
    scope = scope_of(state, intent, policy)
    return problem_of(state, loads or Loads.from_state(state), policy, scope, bands="target")


def least_bytes(problem: Problem, held: Sequence[int] | None = None) -> float | None:
    """What an integer program over all brokers needs to meet every range, or those of ``held``; None where no plan does."""
    partitions, brokers = len(problem.size), len(problem.ids)
    solver = linear.program(mip_rel_gap=0.0, mip_abs_gap=1e-6)

    def column(p: int, b: int, *, leads: bool) -> int:
        return (p * brokers + b) * 2 + leads

    for p in range(partitions):
        home = problem.old[problem.old_start[p] : problem.old_start[p + 1]].tolist()
        for b in range(brokers):
            price = 0.0 if b in home else problem.size[p] / problem.average
            stays, leader = b in home, home[:1] == [b]
            solver.addVar(0, float(stays or problem.scope.takes[b]))
            solver.addVar(0, float(leader or (problem.scope.leads[b] and (stays or problem.scope.takes[b]))))
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
    for b in range(brokers) if held is None else held:
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


@dataclass
class Beside:
    """Plans beside the least bytes that do what they do."""

    planned: list[int] = field(default_factory=list)
    needed: list[float] = field(default_factory=list)
    bound: list[int] = field(default_factory=list)

    def add(self, made: Plan, least: float) -> None:
        """No plan moves fewer bytes than the least, and no bound is above it: either would be an error here."""
        assert made.bytes_moved >= least * (1 - 1e-6)
        assert made.bound_bytes is not None
        assert made.bound_bytes <= least * (1 + 1e-6)
        self.planned.append(made.bytes_moved)
        self.needed.append(least)
        self.bound.append(made.bound_bytes)

    @property
    def exact(self) -> int:
        """Plans with the least bytes."""
        return sum(a < b * (1 + 1e-6) + 1e-6 for a, b in zip(self.planned, self.needed, strict=True))

    @property
    def times_least(self) -> float:
        """All together."""
        return sum(self.planned) / sum(self.needed)

    @property
    def bound_part(self) -> float:
        """The bounds of all together, as a part of what is needed."""
        return sum(self.bound) / sum(self.needed)

    def __str__(self) -> str:
        return (
            f"{len(self.needed)} clusters can be planned, {self.exact} plans need the least bytes; all together "
            f"{self.times_least:.3f} of the least; the bounds {self.bound_part:.3f} of it"
        )


@pytest.mark.slow
def test_small_clusters_beside_an_exact_solver(record_property: Callable[[str, object], None]) -> None:
    """No plan is missed that there is, and bytes are near the least."""
    found = Beside()
    for seed in SEEDS:
        state = drawn(seed)
        made, least = plan(state, Balance(), policy=replace(TWENTY, prove=True)), least_bytes(asked(state))
        assert (least is None) == bool(made.obstacles)
        if least is not None:
            found.add(made, least)
    record_property(FIGURE, f"equal brokers: {found}")
    assert found.times_least <= 1.15
    assert found.bound_part >= BOUNDS
    assert found.exact >= len(found.needed) // 2


@pytest.mark.slow
def test_two_kinds_of_brokers_with_rates_beside_an_exact_solver(
    record_property: Callable[[str, object], None],
) -> None:
    """Two disk sizes, two networks, bytes in and out of each partition: hardly more than the least bytes."""
    found = Beside()
    for seed in OF_TWO_KINDS:
        state, loads, policy = two_kinds(seed)
        made = plan(state, WHOLE, loads=loads, policy=replace(policy, prove=True))
        least = least_bytes(asked(state, policy=policy, loads=loads))
        assert (least is None) == ("band" in {o.code for o in made.obstacles})
        if least is not None:
            found.add(made, least)
    record_property(FIGURE, f"two kinds of brokers: {found}")
    assert len(found.needed) > len(OF_TWO_KINDS) // 2
    assert found.times_least <= 1.02


def test_a_new_broker_beside_an_exact_solver(record_property: Callable[[str, object], None]) -> None:
    """Where old brokers lead unevenly: the new one within its range of everything, for the bytes of an exact plan that relieves the old ones as much."""
    found, alone = Beside(), []
    intent = Expand(brokers=frozenset({BROKERS + 1}))
    for seed in LOPSIDED:
        state = lopsided(seed)
        made, problem = plan(state, intent, policy=replace(TWENTY, prove=True)), asked(state, intent)
        told = {b["broker"]: b["after"] for b in made.summary["brokers"]}
        after = np.array([[told[b.id][r.name] for r in problem.resources] for b in state.brokers]) * problem.unit
        assert bool(((after[-1] >= problem.low[-1]) & (after[-1] <= problem.high[-1])).all())
        least = least_bytes(replace(problem, low=np.minimum(problem.low, after), high=np.maximum(problem.high, after)))
        assert least is not None
        found.add(made, least)
        alone.append(least_bytes(problem, held=[BROKERS]) or 0)
    more = sum(found.planned) / sum(alone)
    record_property(FIGURE, f"a new broker: {found}; {more:.3f} of what it takes to fill it whatever it relieves")
    assert found.times_least <= 1.05


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


@pytest.mark.slow
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

"""The lower bound: its value against every placement there is, and what each way of finding prices can promise."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from bench.cases import make
from bench.forms import written
from bench.mixed import mixed
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.planner.clusters import cluster, clusters
from tests.unit.core.planner.search.test_exact import drawn

from ballast.core.cluster import ClusterState, SmallInts
from ballast.core.planner import (
    Balance,
    ChangeReplicationFactor,
    Expand,
    Intent,
    Loads,
    PlannerPolicy,
    linear,
    plan,
)
from ballast.core.planner.bound import ascent as bound_ascent
from ballast.core.planner.bound import branch as bound_branch
from ballast.core.planner.bound import program as bound_program
from ballast.core.planner.bound.bound import ASCENT, BY_BROKER, FILLING, WHOLE, Bound, bound_of
from ballast.core.planner.bound.branch import branch
from ballast.core.planner.bound.kernels import ANYWHERE, APART, CLOSED, LOOSE, SCALE, sum_loads
from ballast.core.planner.bound.listed import list_large_partitions, list_placements
from ballast.core.planner.bound.program import WORK, Floats, Program, generate
from ballast.core.planner.bound.value import Relaxation, relaxation_of
from ballast.core.planner.problem.problem import Problem, problem_of
from ballast.core.planner.problem.scope import scope_of
from ballast.core.planner.search.search import search
from ballast.core.planner.search.world import World

TIGHT = PlannerPolicy(band=0.1, trigger=0.1, slack_bytes=0)
Ints = npt.NDArray[np.int64]


def searched(state: ClusterState, intent: Intent, policy: PlannerPolicy, loads: Loads | None = None) -> World:
    """What the planner finds for this cluster, before anything is said about it."""
    scope = scope_of(state, intent, policy)
    problem = problem_of(state, loads or Loads.from_state(state), policy, scope, bands="target")
    world = World.of(problem, policy)
    search(world, seed=0)
    return world


def bound(world: World, *, pairs: int) -> Bound:
    """The bound of what was found; no pairs at all means broker by broker."""
    return bound_of(world.problem, world.load, world.cur, prove=True, pairs=pairs)


def at_prices(prices: Ints, figures: Ints) -> list[int]:
    """By broker what one replica costs there, without its copy, in a sum that anybody can check."""
    return [sum(int(m) * int(f) for m, f in zip(row, figures, strict=True)) for row in prices.tolist()]


def legal(p: Problem, kind: int, row: int, members: tuple[int, ...]) -> bool:
    """May the partition be placed so?"""
    homes = p.old[p.old_start[row] : p.old_start[row + 1]].tolist()
    if any(p.scope.leave[b] or not (p.scope.takes[b] or b in homes) for b in members):
        return False
    if not (p.scope.leads[members[0]] or members[0] == homes[0]):
        return False
    return kind != APART or len({int(p.rack[b]) for b in members}) == len(members)


def least(r: Relaxation, prices: Ints, row: int) -> int:
    """The cheapest of all placements of one partition, tried one after another."""
    p, kind = r.problem, int(r.kind[row])
    factor = int(p.start[row + 1] - p.start[row])
    homes = tuple(p.old[p.old_start[row] : p.old_start[row + 1]].tolist())
    lead, follow = at_prices(prices, p.lead[row].tolist()), at_prices(prices, p.follow[row].tolist())
    copy = [0 if b in homes else int(p.size[row]) * SCALE for b in range(len(p.ids))]

    def cost(members: tuple[int, ...]) -> int:
        return lead[members[0]] + sum(follow[b] for b in members[1:]) + sum(copy[b] for b in members)

    if kind == CLOSED:
        return cost(homes)
    tries = () if kind == ANYWHERE else itertools.permutations(range(len(p.ids)), factor)
    anywhere = min(0, *lead) + (factor - 1) * min(0, *follow)
    return min((cost(m) for m in tries if legal(p, kind, row, m)), default=anywhere)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_the_value_is_that_of_the_cheapest_of_all_placements(data: st.DataObject) -> None:
    """At any prices, on clusters of every kind: down and demoted brokers, pinned topics, racks or none."""
    state = data.draw(clusters())
    ids = [b.id for b in state.brokers]
    policy = PlannerPolicy(
        band=0.1,
        trigger=0.1,
        slack_bytes=0,
        pinned_topics=data.draw(st.sampled_from([None, "t0"])),
        demoted=frozenset(data.draw(st.sets(st.sampled_from(ids), max_size=1))),
        cordoned=frozenset(data.draw(st.sets(st.sampled_from(ids), max_size=1))),
    )
    intent = data.draw(st.sampled_from([Balance(), Expand(brokers=frozenset({min(state.alive)}))]))
    world = searched(state, intent, policy)
    r = relaxation_of(world.problem, world.load, world.cur)
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    scale = data.draw(st.sampled_from([0.0, 0.2, 1.0, 3.0]))
    prices = np.rint(rng.normal(0, scale, r.low.shape) * SCALE * rng.integers(0, 2, r.low.shape)).astype(np.int64)
    rows = [row for row in range(len(state.partitions)) if r.problem.start[row + 1] > r.problem.start[row]]
    worth = sum(least(r, prices, row) for row in rows)
    for m, low, high in zip(prices.ravel().tolist(), r.low.ravel().tolist(), r.high.ravel().tolist(), strict=True):
        worth -= m * (high if m > 0 else low)
    assert r.evaluate(prices)[0] == worth // SCALE - len(r.problem.home)
    # Placements that are listed one by one are those of the kernel, where every broker may carry each of them.
    free = np.full_like(r.high, 1 << 60)
    found = (list_placements(r.problem, row, free, r.kind, r.gone) for row in rows if r.kind[row] in (APART, LOOSE))
    assert replace(r, listed=tuple(one for one in found if one)).evaluate(prices)[0] == r.evaluate(prices)[0]


@settings(max_examples=15)
@given(clusters())
def test_with_large_partitions_whole_no_plan_moves_less(state: ClusterState) -> None:
    """The plan found is always among the cases into which the bound divides placements."""
    world = searched(state, Balance(), TIGHT)
    r = relaxation_of(world.problem, world.load, world.cur)
    r.listed = list_large_partitions(r.problem, r.high, r.kind, r.gone)
    for one in r.listed:
        mine = world.cur[world.problem.start[one.row] : world.problem.start[one.row + 1]]
        leads = one.members[:, 0] == mine[0]
        assert (leads & (np.sort(one.members, axis=1) == np.sort(mine)).all(axis=1)).any()
    program = Program(r)
    prices, _ = generate(program, r, world.cur, np.zeros(r.low.shape, np.int64))
    assert branch(r, program, prices, 1 << 60) << r.shift <= world.copied


@pytest.mark.parametrize("left", [1, 5])
def test_a_program_whose_work_is_spent_keeps_the_solution_that_it_had(left: int) -> None:
    """Placements that came later, and a round that is broken off, leave it as it was; with no work at all there is none."""
    world = searched(drawn(2), Balance(), TIGHT)
    r = relaxation_of(world.problem, world.load, world.cur)
    steps: list[int] = []

    class Rounds(Program):
        """Tells after how many steps each round was solved."""

        def solve(self) -> tuple[float, Floats, Floats] | None:
            found = super().solve()
            if found is not None:
                steps.append(self.steps)
            return found

    def made(work: int) -> tuple[Program, bool]:
        steps.clear()
        program = Rounds(r, excess=1.0, work=work)
        return program, generate(program, r, world.problem.home, np.zeros(r.low.shape, np.int64))[1]

    whole, solved = made(WORK)
    assert solved
    first, second, third = steps[:3]
    assert first < second < third - left
    spent, solved = made(int(whole.solver.getNumRow()) * (second + left))
    assert steps == [first, second]
    assert solved
    assert {row for row, _ in spent.heaviest()} == set(range(len(world.problem.size)))
    spent.make_whole(1.0, split_only=False, weight=0.999)
    assert made(0)[1] is False


@pytest.mark.slow
@settings(max_examples=40)
@given(clusters())
def test_broker_by_broker_no_plan_moves_less(state: ClusterState) -> None:
    """The bound of large clusters, asked of small ones, is never above what the search found."""
    world = searched(state, Balance(), TIGHT)
    assert bound(world, pairs=0).bytes <= int(world.copied / world.problem.byte_unit) + 1


def test_broker_by_broker_sees_what_disk_alone_does_not() -> None:
    """Between the crude bound and that of the whole program, and the plan says how it is known."""
    # More brokers with too much than with too little, on several resources at once.
    case = written("drifted", *make(brokers=10, racks=5, topics=30, partitions=400, seed=8))
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities)
    world = searched(case.state, Balance(), policy, case.loads)
    crude = bound_of(world.problem, world.load, world.cur, prove=False)
    by_broker, whole = bound(world, pairs=0), bound(world, pairs=1 << 40)
    assert (crude.method, by_broker.method, whole.method) == ("disk alone", BY_BROKER, WHOLE)
    assert crude.bytes < by_broker.bytes <= whole.bytes <= world.copied / world.problem.byte_unit


class Work:
    """What a proof does: rows times steps of the simplex method by program, and replica slots looked at by gradient ascent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs: dict[int, int] = {}
        self.slots = 0
        solve, add_up = linear.solve, sum_loads
        kept: list[Any] = []

        def solved(solver: Any, what: str, **options: Any) -> Any:
            kept.append(solver)
            end = solve(solver, what, **options)
            steps = int(solver.getInfo().simplex_iteration_count)
            self.programs[id(solver)] = self.programs.get(id(solver), 0) + steps * int(solver.getNumRow())
            return end

        def looked(start: Any, placement: SmallInts, *figures: Any) -> None:
            self.slots += len(placement)
            add_up(start, placement, *figures)

        monkeypatch.setattr(bound_program, "solve", solved)
        monkeypatch.setattr(bound_ascent, "sum_loads", looked)


def spread_by_size(p: Problem) -> SmallInts:
    """Each partition, the largest first, on the brokers that lack most of what they lack least of; racks apart."""
    share, load = (p.share * p.unit).astype(np.float64), np.zeros(p.share.shape)
    placement = p.home.copy()
    for row in np.argsort(-p.size, kind="stable").tolist():
        members: list[int] = []
        for slot in range(int(p.start[row]), int(p.start[row + 1])):
            figures = p.follow[row] if members else p.lead[row]
            after = ((load + figures - share) / np.maximum(share, 1)).max(axis=1)
            after[~p.scope.takes | np.isin(p.rack, p.rack[members])] = np.inf
            members.append(int(after.argmin()))
            load[members[-1]] += figures
            placement[slot] = members[-1]
    return placement


def test_the_proof_takes_no_more_than_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 16 unlike brokers with 4,392 partitions it once took twelve times as long as the plan: every part of it ends where its work does."""
    case = mixed(2, brokers=16, partitions=4_392)
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities)
    problem = problem_of(case.state, case.loads, policy, scope_of(case.state, Balance(), policy), bands="target")
    world = World.of(problem, policy)
    world.place(spread_by_size(problem))
    steps, most, in_cases = 2_000_000, 2_500_000, 1_000_000
    monkeypatch.setattr(bound_ascent, "WORK", steps)
    monkeypatch.setattr(bound_program, "WORK", most)
    monkeypatch.setattr(bound_branch, "WORK", in_cases)
    work = Work(monkeypatch)
    found = bound(world, pairs=1 << 40)
    assert 0 < found.bytes <= world.copied / problem.byte_unit
    assert steps / 2 < work.slots <= steps
    whole, cases = work.programs.values()
    assert most / 2 < whole <= most
    assert in_cases / 2 < cases <= in_cases


@pytest.mark.parametrize("most", [80_000, 250_000])
@pytest.mark.parametrize("seed", [1, 11])
def test_all_cases_together_take_no_more_than_their_work(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that ended at its limit has no work left for the next case; it once began with the same again."""
    case = mixed(seed, brokers=8, partitions=120)
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities)
    problem = problem_of(case.state, case.loads, policy, scope_of(case.state, Balance(), policy), bands="target")
    world = World.of(problem, policy)
    world.place(spread_by_size(problem))
    monkeypatch.setattr(bound_branch, "WORK", most)
    work = Work(monkeypatch)
    bound(world, pairs=1 << 40)
    _, cases = work.programs.values()
    assert most / 2 < cases <= most


@pytest.mark.slow
def test_prices_found_by_steps_alone_are_not_far_below_those_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without work for the program the bound is lower, and still near that of the whole program."""
    case = written("drifted", *make(brokers=10, racks=5, topics=30, partitions=400, seed=8))
    # One broker is meant to carry a little more: steps are made where brokers are not alike.
    unlike = {b: replace(c, cpu=(c.cpu or 1) * (1.05 if b == 0 else 1)) for b, c in case.capacities.items()}
    world = searched(case.state, Balance(), PlannerPolicy(band=0.05, trigger=0.05, capacities=unlike), case.loads)
    whole = bound(world, pairs=1 << 40)
    monkeypatch.setattr(bound_program, "WORK", 0)
    # No cases either, which have a program of their own.
    monkeypatch.setattr("ballast.core.planner.bound.bound.NEAR", 100)
    work = Work(monkeypatch)
    short = bound(world, pairs=1 << 40)
    assert (whole.method, short.method, work.programs) == (WHOLE, ASCENT, {})
    assert 0.85 * whole.bytes <= short.bytes < whole.bytes


def test_filling_an_empty_broker_says_that_it_is_what_decides() -> None:
    """More is too little than too much: the crude bound is about what must arrive, and the plan says so."""
    state = cluster(*[(1, 2), (2, 3), (3, 1)] * 8, brokers=4)
    made = plan(state, Expand(brokers=frozenset({4})), policy=replace(TIGHT, prove=False))
    assert (made.bound_method, made.status) == (FILLING, "meets-all-goals")
    assert made.bound_bytes is not None
    assert 0 < made.bound_bytes <= made.bytes_moved


def test_a_down_broker_does_not_blind_the_program() -> None:
    """Staying on a down broker is no placement: the whole program finds a bound close to the plan all the same."""
    case = written("down", *make(brokers=15, racks=5, topics=50, partitions=1_000, down=1, seed=27))
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities)
    made = plan(case.state, Balance(), loads=case.loads, policy=policy)
    assert made.bound_bytes is not None
    assert made.bound_method == WHOLE
    assert made.bytes_moved <= 1.03 * made.bound_bytes


def test_replicas_that_may_go_on_sharing_a_rack_cost_nothing() -> None:
    """``expand`` repairs no racks, so its bound may not count the copies that a repair would take."""
    state = cluster(*[(1, 3), (3, 1)] * 6, brokers=4, racks=2)
    made = plan(state, Expand(brokers=frozenset({4})), policy=TIGHT)
    assert made.bound_bytes is not None
    assert made.bound_bytes <= made.bytes_moved


def test_a_replica_that_is_dropped_costs_no_copy() -> None:
    """Where the replica count falls, what leaves a full broker need not be copied anywhere."""
    state = cluster((1, 2, 3), (1, 2, 3), (1, 2, 3), (4,), brokers=4, sizes=(100, 100, 100, 1))
    made = plan(state, ChangeReplicationFactor(to=2), policy=TIGHT)
    assert made.bytes_moved == 1
    assert made.bound_bytes == 1

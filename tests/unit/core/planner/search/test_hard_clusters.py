"""Clusters on which a plan was once wrong: small and large partitions together, unlike brokers, little room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.figures import FIGURE
from tests.unit.core.planner.clusters import cluster, clusters, snapshot

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.plan import Plan
from ballast.core.planner import Balance, Evacuate, Expand, Loads, PlannerPolicy, ReplaceBroker, linear, plan
from ballast.core.planner.moves import REPAIRS
from ballast.core.planner.problem.problem import problem_of
from ballast.core.planner.problem.scope import scope_of
from ballast.core.planner.search import rounding

FIVE = PlannerPolicy(band=0.05, trigger=0.05)


def moved(state: ClusterState, made: Plan) -> ClusterState:
    """The cluster once every move is made and every new leader leads."""
    p = state.partitions
    replica, leader = p.replica.copy(), p.leader.copy()
    for m in made.moves:
        row = state.index[m.name]
        replica[p.start[row] : p.start[row + 1]] = m.new
    leader[:] = replica[p.start[:-1]]
    return replace(state, partitions=replace(p, replica=replica, leader=leader))


def lopsided(largest: float) -> ClusterState:
    """Six brokers of large partitions; the seventh holds internal topics of a few hundred bytes alone."""
    rng = np.random.default_rng(5)
    brokers = tuple(Broker(i, rack=None, log_dirs=(LogDir("/d", 1 << 60),), log_dirs_known=True) for i in range(1, 8))
    rows = []
    for n in range(50):
        replicas: tuple[int, ...] = (7, 1 + n % 6, 1 + (n + 1) % 6)
        rows.append(PartitionRow("__consumer_offsets", n, 7, replicas, replicas, sizes=(104 + n,) * 3))
    for n in range(600):
        replicas = tuple(int(b) for b in rng.permutation(6)[:3] + 1)
        size = int(largest * rng.lognormal(0, 1))
        rows.append(PartitionRow("orders", n, replicas[0], replicas, replicas, sizes=(size,) * 3))
    return build("c", brokers, (Topic("__consumer_offsets"), Topic("orders")), rows)


def test_a_broker_with_tiny_partitions_beside_full_ones_gets_a_plan() -> None:
    """Sums are exact to the byte, whatever the sizes beside them."""
    seen = snapshot("tiny_partitions")
    made = plan(seen.state, Balance(), loads=seen.loads, policy=FIVE)
    assert made.status == "meets-all-goals"


@pytest.mark.parametrize("size", [2e7, 2e10, 2e11], ids=["gigabytes", "terabytes", "a hundred terabytes"])
def test_a_new_broker_with_internal_topics_alone_is_filled(size: float) -> None:
    """The state right before ``expand``, up to brokers of a hundred terabytes; each figure is that of the sizes."""
    state = lopsided(size)
    p = state.partitions
    made = plan(state, Expand(brokers=frozenset({7})), policy=PlannerPolicy(prove=False))
    assert made.status == "meets-all-goals"
    told = {b["broker"]: b["before"]["disk"] for b in made.summary["brokers"]}
    assert told == {b: int(p.size_bytes[p.replica == b].sum()) for b in range(1, 8)}


def test_sums_are_exact_where_floats_are_not() -> None:
    """A byte more or less is seen on brokers that hold more bytes than a float counts one by one."""
    huge = (1 << 53) // 4 + 1
    state = cluster(*[(1, 2), (2, 3), (3, 1)] * 3, brokers=4, sizes=tuple(huge + n for n in range(9)))
    made = plan(state, Balance(), policy=FIVE)
    p = state.partitions
    told = {b["broker"]: b["before"]["disk"] for b in made.summary["brokers"]}
    assert told == {b: int(p.size_bytes[p.replica == b].sum()) for b in range(1, 5)}


def test_replicas_without_room_are_tried_again_once_others_have_moved() -> None:
    """Every replica of the rack finds a broker at once, where little room is left elsewhere."""
    seen = snapshot("evacuate_room")
    made = plan(seen.state, Evacuate(racks=frozenset({"r1"})), loads=seen.loads)
    assert (made.status, made.obstacles) == ("meets-all-goals", ())
    assert made.bytes_moved == made.bound_bytes


@pytest.mark.parametrize(
    ("name", "broker", "band"), [("expand_lopsided_5", 74, 0.05), ("expand_lopsided_7", 157, 0.08)]
)
def test_a_new_broker_is_not_filled_beyond_its_range(name: str, broker: int, band: float) -> None:
    """However many leaders and bytes out the others have too much; the old way gave up to 1.8 times its share."""
    seen = snapshot(name)
    policy = PlannerPolicy(band=band, trigger=max(band, 0.1))
    made = plan(seen.state, Expand(brokers=frozenset({broker})), loads=seen.loads, policy=policy)
    told = next(b for b in made.summary["brokers"] if b["broker"] == broker)
    assert made.status == "meets-all-goals"
    assert made.bytes_moved <= 1.06 * (made.bound_bytes or 0)
    for resource, share in told["share"].items():
        assert told["after"][resource] <= share * (1 + band) + 1, resource


def test_who_takes_a_brokers_place_takes_each_place_in_the_lists() -> None:
    """The newcomer stands where the old broker stood, first, in the middle or last."""
    state = cluster((3, 1, 2), (1, 2, 3), (2, 3, 1), brokers=7)
    made = plan(state, ReplaceBroker(old=1, new=7))
    assert [m.new for m in sorted(made.moves, key=lambda m: m.partition)] == [(3, 7, 2), (7, 2, 3), (2, 3, 7)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "over_bound"), [("little_room_whole", 1.001), ("little_room_leaders", 1.011)])
def test_a_plan_is_found_where_steps_of_one_or_two_replicas_end_in_corners(name: str, over_bound: float) -> None:
    """Complete, at the bytes of an exact solver (161 and 1,050 GB); a search without the program stops short."""
    seen = snapshot(name)
    made = plan(seen.state, Balance(), loads=seen.loads, policy=FIVE)
    assert (made.status, made.obstacles) == ("meets-all-goals", ())
    assert made.bytes_moved <= over_bound * (made.bound_bytes or 0)
    after = moved(seen.state, made)
    assert plan(after, Balance(), loads=seen.loads, policy=FIVE).is_empty


@pytest.mark.slow
def test_unlike_brokers_that_are_nearly_full_get_a_plan_near_the_bound() -> None:
    """At twice the least bytes and with ranges missed before; today with every range met, at 1.031, and nothing left to the next plan."""
    seen = snapshot("unlike_brokers_full")
    made = plan(seen.state, Balance(), loads=seen.loads, policy=FIVE)
    assert (made.status, made.obstacles) == ("meets-all-goals", ())
    assert [r["after"]["out_of_range"] for r in made.summary["resources"]] == [0] * 6
    assert made.bytes_moved <= 1.05 * (made.bound_bytes or 0)
    assert plan(moved(seen.state, made), Balance(), loads=seen.loads, policy=FIVE).is_empty


@pytest.mark.slow
def test_unlike_brokers_in_uneven_racks_get_a_plan_that_meets_every_range(
    record_property: Callable[[str, object], None],
) -> None:
    """With ranges missed before; today complete, further from the bound than 1.10, as ``docs/benchmarks.md`` says, and not further than that."""
    seen = snapshot("unlike_brokers_racks")
    made = plan(seen.state, Balance(), loads=seen.loads, policy=FIVE)
    over = made.bytes_moved / (made.bound_bytes or 1)
    record_property(FIGURE, f"{over:.3f} of the bound")
    assert (made.status, made.obstacles) == ("meets-all-goals", ())
    assert [r["after"]["out_of_range"] for r in made.summary["resources"]] == [0] * 6
    assert 1.0 <= over <= 1.34
    assert plan(moved(seen.state, made), Balance(), loads=seen.loads, policy=FIVE).is_empty


def test_a_broker_that_is_meant_to_hold_more_than_a_replica_of_each_partition_gets_what_it_can() -> None:
    """Shares follow what one broker can hold, every range is met, and the cause is named."""
    seen = snapshot("one_large_broker")
    made = plan(seen.state, Balance(), loads=seen.loads, policy=FIVE)
    assert [(o.code, o.subject) for o in made.obstacles] == [("uneven-racks", "broker 1")]
    assert all(r["after"]["out_of_range"] == 0 for r in made.summary["resources"])


@pytest.mark.slow
@settings(max_examples=60)
@given(clusters(), st.sampled_from([0.05, 0.2]))
def test_no_plan_breaks_a_range_that_is_met(state: ClusterState, band: float) -> None:
    """Unless a repair forces it: what is within its range before is within it after, on each broker."""
    policy = PlannerPolicy(band=band, trigger=band, slack_bytes=0, prove=False)
    made = plan(state, Balance(), policy=policy)
    if any(m.reason is None or m.reason.code in REPAIRS for m in made.moves):
        return
    scope = scope_of(state, Balance(), policy)
    asked = problem_of(state, Loads.from_state(state), policy, scope, bands="target")
    told = {b["broker"]: b for b in made.summary["brokers"]}
    for i, b in enumerate(state.brokers):
        for k, r in enumerate(asked.resources):
            low, high = int(asked.low[i, k]), int(asked.high[i, k])
            before, after = (told[b.id][side][r.name] * int(asked.unit[k]) for side in ("before", "after"))
            assert not (low <= before <= high) or low <= after <= high


def nearly_full(seed: int, *, brokers: int, partitions: int) -> ClusterState:
    """Two replicas each on unlike disks that are all but full; the last broker is down."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum((rng.pareto(1.1, partitions) + 1) * 1e8, 3e10).astype(np.int64).tolist()
    rows, used = [], dict.fromkeys(range(1, brokers + 1), 0)
    for number, size in enumerate(sizes):
        members = tuple((rng.permutation(brokers)[:2] + 1).tolist())
        alive = tuple(b for b in members if b != brokers)
        rows.append(PartitionRow("t", number, alive[0], members, alive, sizes=(size,) * 2))
        for b in members:
            used[b] += size
    weight = {b: (1.0, 1.3)[int(rng.integers(2))] for b in range(1, brokers)}
    total = 2 * sum(sizes) / sum(weight.values())
    disk = {b: max(int(total * 1.01 * w), int(used[b] * 1.0005)) for b, w in weight.items()}
    down = Broker(brokers, alive=False, log_dirs_known=False)
    alive_brokers = [Broker(b, log_dirs=(LogDir("/d", disk[b], disk[b] - used[b]),), log_dirs_known=True) for b in disk]
    return build("c", (*alive_brokers, down), (Topic("t"),), rows)


@pytest.mark.slow
def test_disks_on_which_nothing_fits_whole_get_the_plan_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The integer program for what was split may be infeasible: no bug, and no second start, where disks have no room before others have left."""
    seen = []

    def solve(solver: Any, what: str, **options: Any) -> Any:
        seen.append(linear.solve(solver, what, **options))
        return seen[-1]

    monkeypatch.setattr(rounding, "solve", solve)
    made = plan(nearly_full(1, brokers=5, partitions=720), Balance(), policy=PlannerPolicy(prove=False))
    assert seen[0] == highspy.HighsModelStatus.kInfeasible
    assert made.moves

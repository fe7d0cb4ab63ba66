"""The search ends on clusters that cannot be balanced: by what it tried, never by a clock."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.planner.clusters import cluster

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, build
from ballast.core.plan import Plan
from ballast.core.planner import Balance, Loads, PlannerPolicy, plan
from ballast.core.planner.problem.problem import problem_of
from ballast.core.planner.problem.question import Question
from ballast.core.planner.problem.scope import scope_of
from ballast.core.planner.search import search
from ballast.core.planner.search.find import find
from ballast.core.planner.search.loops import swaps

TIGHT = PlannerPolicy(band=0.05, trigger=0.05, slack_bytes=0, prove=False)


def uneven() -> ClusterState:
    """One partition is larger than all others together: no plan brings every broker within its band."""
    return cluster(*[(1, 2), (2, 3), (3, 4), (4, 1)] * 8, brokers=6, sizes=(90_000, *range(100, 131)))


def even() -> ClusterState:
    """Partitions of one size, which can be balanced."""
    return cluster(*[(1, 2), (2, 3), (3, 1)] * 8, brokers=6)


def scans_of(state: ClusterState, monkeypatch: pytest.MonkeyPatch) -> tuple[Plan, list[int]]:
    """The plan, and the exchanges that each scan was allowed."""
    scans: list[int] = []
    scan = swaps.swap_scan

    def counted(*given: Any) -> int:
        slots, partners, samples = given[6], given[11], given[12]
        scans.append(len(slots) * partners * samples)
        return int(scan(*given))

    with monkeypatch.context() as patch:
        patch.setattr(swaps, "swap_scan", counted)
        return plan(state, Balance(), policy=TIGHT), scans


@pytest.mark.slow
def test_enough_is_enough_where_no_plan_is_balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the limit is passed one round of polishing is the last, and its scans at no price are not repeated."""
    _, long = scans_of(uneven(), monkeypatch)
    monkeypatch.setattr(search, "TRIES", 1)
    made, short = scans_of(uneven(), monkeypatch)
    assert made.status == "misses-some-goals"
    assert 0 < len(short) < len(long) / 3


def test_a_cluster_that_can_be_balanced_gets_all_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit takes nothing from a plan that is balanced."""
    whole, long = scans_of(even(), monkeypatch)
    monkeypatch.setattr(search, "TRIES", 1)
    made, short = scans_of(even(), monkeypatch)
    assert (made.status, made.moves) == ("meets-all-goals", whole.moves)
    assert short == long


@pytest.mark.slow
def test_no_scan_tries_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many offenders fewer replicas of each partner are tried; one is the least."""
    monkeypatch.setattr(search, "SCAN", 500)
    _, scans = scans_of(uneven(), monkeypatch)
    replicas, most_partners = 64, search.SETTLE_PARTNERS << (search.SETTLE_PATIENCE - 1)
    assert max(scans) <= max(500, replicas * most_partners)


@pytest.mark.parametrize(("size", "limit", "moves"), [(10_000, None, False), (10_000, 5, True), (400_000, None, True)])
def test_what_brings_a_cluster_hardly_nearer_is_no_plan(size: int, limit: int | None, *, moves: bool) -> None:
    """Broker 1 keeps a partition that is too large for its range; another leaves it only for a twentieth of what is missed, or where plans are limited."""
    rows = [PartitionRow("t", n, 1, (1,), (1,), sizes=(s,)) for n, s in enumerate((1_000_000, size))]
    rows += [PartitionRow("t", n, b, (b,), (b,), sizes=(100_000,)) for n, b in enumerate((2, 3, 4), 2)]
    state = build("c", tuple(Broker(b) for b in (1, 2, 3, 4)), (Topic("t"),), rows)
    loads, policy = (
        Loads.from_state(state),
        PlannerPolicy(band=0.6, trigger=0.6, slack_bytes=0, max_replica_moves=limit),
    )
    asked = problem_of(state, loads, policy, scope_of(state, Balance(), policy), bands="target")
    found = find(Question(state, Balance(), loads, policy, 0), asked, asked)
    assert bool(found.moves) is moves

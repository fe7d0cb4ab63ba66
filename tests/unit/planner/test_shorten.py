"""The busiest sender and receiver of a plan, at the same cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from bench.cases import make
from bench.forms import Case, written
from bench.mixed import mixed
from bench.score import score

from ballast.core.copying import copying_of
from ballast.core.plan import Move, Plan
from ballast.core.planner import Level, PlannerPolicy, plan
from ballast.core.planner.search import shorten as shortening

MOST_OVER_FLOOR = 1.10
MOST_MORE_BYTES = 1.005


def busiest(case: Case, made: Plan) -> int:
    """The most that one broker receives, or sends as the leader, from plain lists."""
    received: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    for m in made.moves:
        for b in set(m.new) - set(m.old):
            received[b] += m.size_bytes
            sent[int(case.state.partitions.leader[case.state.index[m.name]])] += m.size_bytes
    return max([0, *received.values(), *sent.values()])


def floor(case: Case, made: Plan, band: float) -> float:
    """What the emptiest of equal brokers lacks, or each broker's part of all bytes."""
    alive = [b.id for b in case.state.brokers if b.alive]
    p = case.state.partitions
    rows = np.repeat(np.arange(len(p)), np.diff(p.start))
    held = np.bincount(p.replica, weights=case.loads.size_bytes[rows], minlength=max(alive) + 1)
    return float(max((held.sum() / len(alive) * (1 - band) - held[alive]).max(), made.bytes_moved / len(alive)))


def both(case: Case, policy: PlannerPolicy, monkeypatch: pytest.MonkeyPatch) -> tuple[Plan, Plan]:
    """The plan without the last step, and with it."""
    with monkeypatch.context() as patch:
        patch.setattr(shortening, "TURNS", 0)
        long = plan(case.state, Level(), loads=case.loads, policy=policy)
    return long, plan(case.state, Level(), loads=case.loads, policy=policy)


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_takes_hardly_longer_than_the_emptiest_broker_needs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 1.10 of the floor at ±10 %, for at most half a percent more bytes, with every range met as before."""
    case = written("shorten", *make(brokers=40, racks=5, topics=200, partitions=4_000, seed=seed))
    policy = PlannerPolicy(band=0.1, trigger=0.1, capacities=case.capacities, prove=False)
    long, short = both(case, policy, monkeypatch)
    assert short.status == long.status == "complete"
    assert busiest(case, short) <= MOST_OVER_FLOOR * floor(case, short, 0.1)
    assert short.bytes_moved <= MOST_MORE_BYTES * long.bytes_moved
    assert busiest(case, short) == short.summary["busiest_bytes"]


@pytest.mark.parametrize("seed", range(200, 206))
def test_no_rule_and_no_range_pays_for_a_shorter_plan(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On unlike brokers, with dead ones and empty partitions: never slower, never dearer than allowed, never further out."""
    case = mixed(seed, brokers=8, partitions=150)
    policy = PlannerPolicy(band=0.1, trigger=0.1, capacities=case.capacities, prove=False)
    long, short = both(case, policy, monkeypatch)
    found = score(case, {(m.topic, m.partition): m.new for m in short.moves})
    assert found["twins"] == found["on_dead"] == found["factor_changed"] == found["rack_breaches"] == 0
    assert busiest(case, short) <= busiest(case, long)
    assert short.bytes_moved <= MOST_MORE_BYTES * long.bytes_moved
    for before, after in zip(long.summary["resources"], short.summary["resources"], strict=True):
        assert after["after"]["outside"] <= before["after"]["outside"]


def test_a_time_is_not_told_where_a_size_is_unknown() -> None:
    """Unknown is not short: of moves that copy, one without a size is enough."""
    known = Move("t", 0, (1, 2), (3, 2), 10)
    assert copying_of([known], lambda _: 2).busiest == 10
    unknown = replace(known, partition=1, size_bytes=-1)
    assert copying_of([known, unknown], lambda _: 2).busiest is None
    reorder = replace(unknown, new=(2, 1))
    copying = copying_of([known, reorder], lambda _: 2)
    assert (copying.busiest, copying.sent[2], copying.received[3]) == (10, 10, 10)
    assert copying_of([known], lambda _: -1).sent == {}

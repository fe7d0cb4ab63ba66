"""Balancing preferred leaders: exact for counts, shown by exhaustion and by a solver."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ballast.core.cluster import Broker, ClusterState, Ints, PartitionRow, Topic, build
from ballast.core.leadership.reorder import (
    Choices,
    balance_counts,
    balance_weights,
    choices,
    least_cap,
    loads,
    reorder_moves,
)
from ballast.core.planner.linear import program

Row = tuple[tuple[int, ...], int | None]
"""The brokers that may lead, and the one that does, if it may."""


def problem(rows: list[Row], brokers: int) -> Choices:
    """Rows as columns; broker ids are their positions."""
    options = [list(o) for o, _ in rows]
    start = np.concatenate(([0], np.cumsum([len(o) for o in options]))).astype(np.int64)
    home = [int(start[i]) + o.index(h) if h is not None else -1 for i, (o, h) in enumerate(rows)]
    return Choices(
        np.arange(len(rows)),
        start,
        np.array([b for o in options for b in o], np.int32),
        np.array(home, np.int64),
        np.arange(brokers),
    )


def exhaust(rows: list[Row], brokers: int) -> tuple[int, int]:
    """Least maximum and least changes at that maximum, by trying everything."""
    best = (len(rows) + 1, 0)
    for leaders in product(*(o for o, _ in rows)):
        load = [leaders.count(b) for b in range(brokers)]
        changes = sum(h is not None and b != h for b, (_, h) in zip(leaders, rows, strict=True))
        best = min(best, (max(load), changes))
    return best


def solved(rows: list[Row], brokers: int) -> tuple[int, int]:
    """The same from a linear program (whose corners are whole numbers), solved twice."""
    found: list[int] = []
    for step in range(2):
        h = program()
        use = [{b: h.addVariable(0, 1) for b in o} for o, _ in rows]
        top = h.addVariable(0, len(rows))
        for u in use:
            h.addConstr(sum(u.values()) == 1)
        for b in range(brokers):
            h.addConstr(sum(u[b] for u in use if b in u) - top <= 0)
        if step == 0:
            h.minimize(top)
            found.append(round(np.ceil(h.val(top) - 1e-6)))
        else:
            h.addConstr(top <= found[0])
            h.minimize(
                sum(u[b] for u, (_, home) in zip(use, rows, strict=True) if home is not None for b in u if b != home)
            )
            found.append(round(h.getObjectiveValue()))
    return found[0], found[1]


def changes(found_from: Choices, chosen: Ints) -> int:
    """Rows that leave a home."""
    return int(((chosen != found_from.home) & (found_from.home >= 0)).sum())


@st.composite
def small(draw: st.DrawFn) -> tuple[list[Row], int]:
    """Up to seven partitions on up to four brokers."""
    brokers = draw(st.integers(1, 4))
    options = st.lists(st.integers(0, brokers - 1), min_size=1, max_size=3, unique=True).map(tuple)
    rows = [
        (o, draw(st.sampled_from([*o, None])) if draw(st.booleans()) else o[0])
        for o in draw(st.lists(options, min_size=1, max_size=7))
    ]
    return rows, brokers


@settings(max_examples=300)
@given(small())
def test_exact_against_exhaustion(case: tuple[list[Row], int]) -> None:
    """The least maximum, and the fewest changes among all choices that have it."""
    rows, brokers = case
    choice = problem(rows, brokers)
    found = balance_counts(choice)
    assert (found.maximum, changes(choice, found.chosen)) == exhaust(rows, brokers)
    assert found.bound == found.maximum
    assert found.gap == 0
    assert np.array_equal(found.load, loads(choice, found.chosen, np.ones(len(rows), np.int64)))


@pytest.mark.parametrize("seed", range(4))
def test_exact_against_a_solver(seed: int) -> None:
    """Four hundred partitions on a crooked cluster: chains through several brokers are needed and found."""
    rng = Random(seed)
    brokers = 15
    rows: list[Row] = []
    for _ in range(400):
        # Replicas lie near each other, leaders at the low end: loads must travel over many brokers.
        near = rng.randint(0, brokers - 3)
        options = tuple(rng.sample(range(near, near + 3), rng.choice((1, 2, 3, 3))))
        rows.append((options, min(options) if rng.random() < 0.9 else None))
    choice = problem(rows, brokers)
    found = balance_counts(choice)
    assert (found.maximum, changes(choice, found.chosen)) == solved(rows, brokers)


def test_chains_through_several_brokers() -> None:
    """Broker 0 has three too many and shares partitions only with 1, which shares only with 2."""
    rows: list[Row] = [*[((0, 1), 0)] * 4, *[((1, 2), 1)] * 2]
    found = balance_counts(problem(rows, 3))
    assert found.maximum == 2
    assert sorted(found.load.tolist()) == [2, 2, 2]
    assert len(found.changed) == 4


def test_what_is_balanced_stays_as_it_is() -> None:
    """No change for the sake of change, also where the maximum cannot be the average."""
    assert not len(balance_counts(problem([((0, 1), 0), ((0, 1), 1)], 2)).changed)
    stuck = balance_counts(problem([((0,), 0)] * 5 + [((1, 2), 1)], 3))
    assert stuck.maximum == 5
    assert not len(stuck.changed)
    assert balance_counts(problem([], 2)).maximum == 0


def test_least_cap_of_split_weights() -> None:
    """The relaxation's bound is met by no whole choice here, and it is the right one."""
    rows: list[Row] = [((0, 1), 0)] * 3
    assert least_cap(problem(rows, 2), np.array([10, 10, 10])) == 15


def relaxation(rows: list[Row], weight: list[int], brokers: int) -> float:
    """The least maximum when partitions may be led in parts, from a solver."""
    h = program()
    use = [{b: h.addVariable(0, w) for b in o} for (o, _), w in zip(rows, weight, strict=True)]
    top = h.addVariable(0, sum(weight))
    for u, w in zip(use, weight, strict=True):
        h.addConstr(sum(u.values()) == w)
    for b in range(brokers):
        h.addConstr(sum(u[b] for u in use if b in u) - top <= 0)
    h.minimize(top)
    return float(h.getObjectiveValue())


@settings(max_examples=300)
@given(small(), st.lists(st.integers(0, 50), min_size=7, max_size=7))
def test_bytes_stay_between_the_bound_and_the_start(case: tuple[list[Row], int], weights: list[int]) -> None:
    """Never below the true optimum's bound, never above rounding's guarantee; the bound never above the optimum."""
    rows, brokers = case
    choice, weight = problem(rows, brokers), np.array(weights[: len(rows)], np.int64)
    found = balance_weights(choice, weight)
    optimum = min(
        max(sum(w for w, b in zip(weights, leaders, strict=False) if b == at) for at in range(brokers))
        for leaders in product(*(o for o, _ in rows))
    )
    assert found.bound <= optimum <= found.maximum
    # The part that wins is at least a third of its row, and a broker's parts are within the cap.
    assert found.maximum <= 3 * found.bound
    assert np.array_equal(found.load, loads(choice, found.chosen, weight))


@pytest.mark.parametrize("seed", range(3))
def test_the_bytes_bound_is_the_relaxation_of_a_solver(seed: int) -> None:
    """The bound is the linear program's value, rounded up, and the choice found is within a percent of it."""
    rng = Random(seed)
    brokers = 12
    rows: list[Row] = []
    for _ in range(600):
        options = tuple(rng.sample(range(brokers), rng.choice((1, 2, 3, 3))))
        rows.append((options, min(options)))
    weight = [int(rng.lognormvariate(12, 1)) for _ in rows]
    choice = problem(rows, brokers)
    found = balance_weights(choice, np.array(weight, np.int64))
    assert found.bound == int(np.ceil(relaxation(rows, weight, brokers) - 1e-3))
    assert found.gap < 0.01


def test_a_swap_balances_what_no_single_change_can() -> None:
    """Ten and six against five and nine: exchanging six for five is all that helps."""
    rows: list[Row] = [((0,), 0), ((0, 1), 0), ((0, 1), 1), ((1,), 1)]
    found = balance_weights(problem(rows, 2), np.array([10, 6, 5, 9]))
    assert sorted(found.load.tolist()) == [15, 15]
    assert found.gap == 0


def cluster(rows: list[PartitionRow], *, down: tuple[int, ...] = ()) -> ClusterState:
    """Brokers 10, 20 and 30."""
    brokers = tuple(Broker(b, alive=b not in down) for b in (10, 20, 30))
    return build("c", brokers, tuple(Topic(t, deleting=t == "gone") for t in {r.topic for r in rows}), rows)


def test_moves_are_replica_list_changes_with_the_rest_in_order() -> None:
    """The chosen replica comes first and nothing else changes."""
    state = cluster([PartitionRow("t", i, 10, (10, 20, 30), (10, 20, 30)) for i in range(3)])
    found = balance_counts(choices(state))
    moves = reorder_moves(state, found)
    assert found.maximum == 1
    assert len(moves) == 2
    assert all(m.is_list_change and m.bytes_moved == 0 for m in moves)
    assert {m.new for m in moves} == {(20, 10, 30), (30, 10, 20)}
    assert {(m.reason.code, m.reason.detail, m.size_bytes) for m in moves if m.reason} == {
        ("leader-balance", "spread preferred leaders over the brokers; no data moves", 0)
    }


def test_who_may_lead() -> None:
    """Down and excluded brokers never; moving and pinned partitions stay; dying topics and hopeless partitions are out."""
    rows = [
        PartitionRow("t", 0, 10, (30, 10, 20), (10, 20)),
        PartitionRow("t", 1, 10, (30,), ()),
        PartitionRow("t", 2, 10, (20, 10, 30), (10,), adding=(20,), removing=(30,)),
        PartitionRow("gone", 0, 10, (10, 20), (10, 20)),
        PartitionRow("pinned", 0, 10, (10, 20), (10, 20)),
    ]
    state = cluster(rows, down=(30,))
    found = choices(state, topics=("t", "gone"))
    names = [str(state.name(int(r))) for r in found.row]
    options = [found.brokers[found.option[a:b]].tolist() for a, b in zip(found.start, found.start[1:], strict=False)]
    assert dict(zip(names, options, strict=True)) == {"pinned-0": [10], "t-0": [10, 20], "t-2": [20]}
    assert found.home.tolist() == [0, -1, 3]
    assert choices(state, topics=("t",)).option.tolist() == found.option.tolist()
    assert [str(state.name(int(r))) for r in choices(state, excluded=(10,)).row] == [
        "pinned-0",
        "t-0",
        "t-2",
    ]


def test_no_broker_may_lead() -> None:
    """A cluster without eligible brokers is an empty problem."""
    state = cluster([PartitionRow("t", 0, 10, (10, 20), (10,))], down=(10, 20, 30))
    found = balance_counts(choices(state))
    assert (found.maximum, found.bound, found.gap) == (0, 0, 0.0)
    assert reorder_moves(state, found) == ()


def test_no_partition_is_led_by_any() -> None:
    """A cluster without topics is an empty problem too."""
    assert len(choices(cluster([]))) == 0
    assert balance_counts(choices(cluster([]))).load.tolist() == [0, 0, 0]
    found = balance_weights(choices(cluster([])), np.zeros(0, np.int64))
    assert (found.load.tolist(), found.bound, found.gap) == ([0, 0, 0], 0, 0.0)


def test_partitions_that_weigh_nothing_need_no_change() -> None:
    """No broker leads a byte, which no choice betters."""
    found = balance_weights(problem([((0, 1), 0)] * 3, 2), np.zeros(3, np.int64))
    assert (found.maximum, found.bound, found.changed.tolist()) == (0, 0, [])

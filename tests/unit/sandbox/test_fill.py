"""What the sandbox fills itself with: shapes that are what they are called."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.errors import UsageError
from ballast.sandbox.fill import SHAPES, Filling, assignments, check_space, records_per_partition

fillings = st.builds(
    Filling,
    topics=st.integers(1, 5),
    partitions=st.integers(1, 12),
    replication_factor=st.integers(1, 3),
    shape=st.sampled_from(sorted(SHAPES)),
)
brokers = st.integers(4, 9).map(lambda count: list(range(1, count + 1)))


def racks(ids: list[int], count: int = 3) -> dict[int, str | None]:
    """Brokers dealt over racks in turn."""
    return {broker: f"rack-{(broker - 1) % count + 1}" for broker in ids}


@given(fillings, brokers)
def test_every_row_has_its_replicas_on_distinct_brokers(filling: Filling, ids: list[int]) -> None:
    """Whatever the shape: the right count, no broker twice, no broker that is not there."""
    plan = assignments(filling, ids, racks(ids))
    assert len(plan) == filling.topics
    for rows in plan.values():
        assert len(rows) == filling.partitions
        for row in rows:
            assert len(row) == len(set(row)) == filling.replication_factor
            assert set(row) <= set(ids)


@given(fillings.map(lambda f: Filling(topics=f.topics, partitions=f.partitions, replication_factor=3)), brokers)
def test_balance_spreads_leaders_and_racks(filling: Filling, ids: list[int]) -> None:
    """Leader counts differ by one at most, and three replicas stand in three racks."""
    rows = [row for rows in assignments(filling, ids, racks(ids)).values() for row in rows]
    assert len(rows) == filling.topics * filling.partitions
    leaders = Counter(dict.fromkeys(ids, 0))
    leaders.update(row[0] for row in rows)
    assert max(leaders.values()) - min(leaders.values()) <= 1
    assert all(len({racks(ids)[broker] for broker in row}) == 3 for row in rows)


def test_an_empty_broker_holds_nothing() -> None:
    """The last broker is empty, and the others are not."""
    plan = assignments(Filling(shape="empty-broker", replication_factor=3), [1, 2, 3, 4, 5], racks([1, 2, 3, 4, 5]))
    assert {broker for rows in plan.values() for row in rows for broker in row} == {1, 2, 3, 4}


def test_leaders_pile_up_on_low_ids() -> None:
    """Each partition is led by the lowest id among its replicas."""
    plan = assignments(Filling(shape="leaders", replication_factor=2), [1, 2, 3], racks([1, 2, 3]))
    assert all(row[0] == min(row) for rows in plan.values() for row in rows)


def test_one_rack_puts_neighbours_together() -> None:
    """Some partition has all its replicas in one rack."""
    ids = [1, 2, 3, 4, 5, 6]
    plan = assignments(Filling(shape="one-rack"), ids, racks(ids))
    assert any(len({racks(ids)[broker] for broker in row}) == 1 for rows in plan.values() for row in rows)


@given(fillings, st.floats(0, 200))
def test_the_data_is_shared_out(filling: Filling, megabytes: float) -> None:
    """The records add up to the megabytes asked for, within rounding."""
    asked = Filling(topics=filling.topics, partitions=filling.partitions, shape=filling.shape, megabytes=megabytes)
    records = records_per_partition(asked)
    assert len(records) == asked.topics * asked.partitions
    assert abs(sum(records) * 16_384 - megabytes * 1e6) <= len(records) * 16_384


def test_hot_is_uneven() -> None:
    """A few partitions hold most of the data."""
    records = sorted(records_per_partition(Filling(shape="hot", megabytes=100)), reverse=True)
    assert sum(records[:5]) > sum(records) * 0.4


def test_more_replicas_than_brokers_are_refused() -> None:
    """The empty broker does not count: it stays empty."""
    with pytest.raises(UsageError, match="3 replicas do not fit on 2 brokers"):
        assignments(Filling(shape="empty-broker", replication_factor=3), [1, 2, 3], {})


def test_an_unknown_shape_is_refused() -> None:
    """The sentence names the shapes there are."""
    with pytest.raises(UsageError, match=r"pyramid.*empty-broker"):
        Filling(shape="pyramid")


@pytest.mark.parametrize(
    "wrong", [{"megabytes": float("nan")}, {"megabytes": float("inf")}, {"prefix": "a/b"}, {"prefix": ""}]
)
def test_what_no_cluster_would_take_is_refused_before_anything_is_created(wrong: dict[str, Any]) -> None:
    """A slip of the keyboard makes no topics without data."""
    with pytest.raises(UsageError):
        Filling(**wrong)


def test_data_that_would_fill_the_disk_is_refused() -> None:
    """Replicas count; what fits is let through."""
    filling = Filling(megabytes=500, replication_factor=2)
    check_space(filling, 2 * 10**9)
    with pytest.raises(UsageError, match="1,000 MB are free"):
        check_space(filling, 10**9)

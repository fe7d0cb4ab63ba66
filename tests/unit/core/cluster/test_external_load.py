"""What metrics say of a broker and topic is laid to the partitions that the broker leads, whole and to no others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.core.cluster.external_load import BrokerFigures, ExternalLoad, consumer_bytes_per_s, producer_bytes_per_s

TOPICS = ("orders", "clicks")


def shares(load: dict[tuple[int, str], float], rows: list[tuple[int, int, int]]) -> list[float]:
    """Attribute rates to rows of (topic, leader, size)."""
    topic, leader, size = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    found = consumer_bytes_per_s(
        ExternalLoad({}, load), TOPICS, topic=topic.astype(np.int32), leader=leader.astype(np.int32), led_size=size
    )
    return [float(x) for x in found]


def test_a_rate_is_shared_by_size_among_the_partitions_that_the_broker_leads() -> None:
    """Three quarters of the bytes, three quarters of the reading; another broker's and another topic's are their own."""
    rows = [(0, 1, 300), (0, 1, 100), (0, 2, 50), (1, 1, 10)]
    assert shares({(1, "orders"): 80.0, (2, "orders"): 7.0, (1, "clicks"): 5.0}, rows) == [60.0, 20.0, 7.0, 5.0]


def test_partitions_of_unknown_size_share_equally() -> None:
    """No size is known: no partition is preferred."""
    assert shares({(1, "orders"): 10.0}, [(0, 1, -1), (0, 1, -1)]) == [5.0, 5.0]


def test_a_partition_of_unknown_size_has_no_part_beside_known_ones() -> None:
    """Nor has an empty one; the smallest size is one byte."""
    assert shares({(1, "orders"): 10.0}, [(0, 1, -1), (0, 1, 1), (0, 1, 0)]) == [0.0, 10.0, 0.0]


def test_what_was_not_measured_is_unknown_and_not_zero() -> None:
    """A topic without a series, a partition without a leader, a figure of a topic that is gone, a broker that leads none."""
    load = {(1, "orders"): 10.0, (1, "gone"): 99.0, (3, "orders"): 44.0}
    assert shares(load, [(1, 1, 10), (0, -1, 10), (0, 2, 10), (0, 1, 10)]) == [-1.0, -1.0, -1.0, 10.0]
    assert shares({}, [(0, 1, 10)]) == [-1.0]
    assert shares(load, []) == []


@given(
    st.dictionaries(st.tuples(st.integers(0, 4), st.sampled_from(TOPICS)), st.floats(0, 1e9), max_size=10),
    st.lists(st.tuples(st.integers(0, 1), st.integers(-2, 4), st.integers(-1, 10**12)), max_size=40),
)
def test_nothing_is_lost_or_made(load: dict[tuple[int, str], float], rows: list[tuple[int, int, int]]) -> None:
    """What the partitions of a broker and topic are given adds up to its rate; where there is no rate they have none."""
    found = shares(load, rows)
    for broker in range(-2, 5):
        for topic, name in enumerate(TOPICS):
            given_ = [x for x, (t, leader, _) in zip(found, rows, strict=True) if (t, leader) == (topic, broker)]
            if (broker, name) not in load:
                assert set(given_) <= {-1.0}
            elif given_:
                assert min(given_) >= 0
                assert sum(given_) == pytest.approx(load[broker, name], rel=1e-4, abs=1e-3)


def test_what_producers_write_is_known_where_every_broker_tells_it() -> None:
    """A broker that is left out would be a cluster that takes in less."""
    load = ExternalLoad({1: BrokerFigures(bytes_in=3.0), 2: BrokerFigures(bytes_in=4.0), 3: BrokerFigures(cpu=1.0)}, {})
    assert producer_bytes_per_s(load, {1, 2}) == 7.0
    assert [producer_bytes_per_s(load, brokers) for brokers in ({1, 3}, {1, 9}, set[int]())] == [None, None, None]

"""What the loss of one broker, and of two, does to a placement, counted by hand."""

from __future__ import annotations

from ballast.core.placement.colocation import colocation


def test_every_figure_of_a_small_placement() -> None:
    """Broker 1 leads three partitions, whose next replicas are on 2 and 3; 1 and 2 share three, 4 has none."""
    lists = [(1, 2, 3), (1, 2), (2, 1), (1, 3), (3,)]
    assert colocation(lists, [1, 2, 3, 4]).as_json() == {
        "partitions": 5,
        "different_sets": 4,
        "preferred_leaders_min": 0,
        "preferred_leaders_max": 3,
        "max_leaders_taken_over": 2,
        "min_brokers_taking_over": 1,
        "max_partitions_shared_by_pair": 3,
        "mean_partitions_shared_by_pair": 1.0,
    }


def test_lists_that_repeat_leave_one_heir() -> None:
    """All that broker 1 leads falls on broker 2; where the next replicas differ, on two brokers."""
    repeating, varied = [(1, 2, 3)] * 2, [(1, 2, 3), (1, 3, 2)]
    same, other = colocation(repeating, [1, 2, 3]), colocation(varied, [1, 2, 3])
    assert (same.max_leaders_taken_over, same.min_brokers_taking_over) == (2, 1)
    assert (other.max_leaders_taken_over, other.min_brokers_taking_over) == (1, 2)
    assert same.different_sets == other.different_sets == 1
    assert (same.max_partitions_shared_by_pair, same.mean_partitions_shared_by_pair) == (2, 2.0)


def test_the_mean_is_over_all_pairs_of_brokers() -> None:
    """Those that share no partition count; two places are told."""
    assert colocation([(1, 2)], [1, 2, 3]).mean_partitions_shared_by_pair == 0.33
    assert colocation([(1, 2), (2, 3)], [1, 2, 3]).mean_partitions_shared_by_pair == 0.67
    assert colocation([(1, 2)] * 3, [1, 2]).mean_partitions_shared_by_pair == 3.0


def test_leaders_are_counted_on_the_brokers_that_are_asked_for() -> None:
    """Only theirs are compared; one that leads none has the least."""
    figures = colocation([(1, 2), (1, 2), (2, 1), (9, 1)], [1, 2])
    assert (figures.preferred_leaders_min, figures.preferred_leaders_max) == (1, 2)


def test_nothing_placed_and_single_replicas_lose_no_pair() -> None:
    """Every figure is zero where there is nothing to count."""
    assert set(colocation([], []).as_json().values()) == {0}
    alone = colocation([(1,), (2,)], [1, 2])
    assert (
        alone.max_leaders_taken_over,
        alone.min_brokers_taking_over,
        alone.max_partitions_shared_by_pair,
        alone.mean_partitions_shared_by_pair,
    ) == (0, 0, 0, 0.0)
    assert colocation([(1,)], [1]).mean_partitions_shared_by_pair == 0.0

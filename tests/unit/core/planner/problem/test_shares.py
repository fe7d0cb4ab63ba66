"""Fair shares within what racks and replica counts allow: the search's way and the checker's find the same split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.planner.clusters import cluster

from ballast.core.planner import Balance, Capacity, PlannerPolicy, plan
from ballast.core.planner.checker.shares import most_on_racks, rise
from ballast.core.planner.goals import Resource
from ballast.core.planner.problem.shares import _bounds, _excess, _split


def costs(lead: list[int], follow: list[int]) -> Resource:
    """What the leader and each follower of a partition cost."""
    return Resource(
        name="cpu",
        label="CPU",
        lead=np.array(lead, np.int64),
        follow=np.array(follow, np.int64),
        capacity=np.ones(1),
    )


@given(data=st.data())
def test_both_ways_to_shares_within_racks_agree(data: st.DataObject) -> None:
    """Racks of any size, brokers of any capacity, some that cannot rise, replication factors side by side.

    Leaders may cost more than followers, and some of what partitions cost may be on brokers that are left out.
    """
    racks = data.draw(st.integers(2, 5))
    factor = np.array(data.draw(st.lists(st.integers(1, racks + 2), min_size=1, max_size=12)), np.int64)
    rack = np.array([*range(racks), *data.draw(st.lists(st.integers(0, racks - 1), max_size=6))], np.int64)
    weight = np.array([data.draw(st.sampled_from([0.0, 1.0, 2.0, 4.0, 8.0])) for _ in rack])
    weight[0] = 1.0
    weight *= data.draw(st.sampled_from([1.0, 1e12]))
    most = np.array([data.draw(st.sampled_from([np.inf, np.inf, 0.0, 1.0, 3.0])) for _ in rack])
    limit = -(-factor // racks)
    fewest = np.array([data.draw(st.integers(0, min(f, racks))) for f in factor.tolist()], np.int64) * (limit > 1)
    follow = data.draw(st.lists(st.integers(0, 3), min_size=len(factor), max_size=len(factor)))
    r = costs([data.draw(st.integers(figure, 5)) for figure in follow], follow)
    total = float((r.lead + (factor - 1) * r.follow).sum()) * data.draw(st.sampled_from([1.0, 1.0, 0.9, 0.5]))
    bound = most_on_racks(r, factor, limit, fewest, racks)
    assert bound == pytest.approx(_bounds(r, factor, limit.astype(np.int32), fewest.astype(np.int32), racks))
    found = _split(total, weight, most, rack.astype(np.int32), np.arange(racks), bound)
    assert found == pytest.approx(rise(total, weight, most, rack, bound), abs=1e-6)
    assert _excess(found, rack.astype(np.int32), bound)[0] <= 1e-6
    assert bool((found <= most + 1e-9).all())


@pytest.mark.parametrize(
    ("factor", "limit", "fewest", "expected"),
    [
        pytest.param(1, 1, 0, [0, 5, 5, 5, 5], id="a-leader-alone"),
        pytest.param(2, 1, 0, [0, 5, 7, 7, 7], id="a-leader-and-a-follower"),
        pytest.param(3, 1, 0, [0, 5, 7, 9, 9], id="one-in-each-rack"),
        pytest.param(4, 2, 0, [0, 7, 11, 11, 11], id="two-in-a-rack"),
        pytest.param(4, 2, 3, [0, 7, 9, 11, 11], id="none-less-than-one-in-three-racks"),
        pytest.param(0, 1, 0, [0, 0, 0, 0, 0], id="no-replica"),
    ],
)
def test_racks_hold_at_most_the_leader_and_as_many_followers_as_fit(
    factor: int, limit: int, fewest: int, expected: list[float]
) -> None:
    """By how many of four racks; a leader costs 5 and a follower 2."""
    held, each, least = (np.array([n], np.int64) for n in (factor, limit, fewest))
    assert most_on_racks(costs([5], [2]), held, each, least, 4).tolist() == expected


def test_two_racks_carry_no_more_than_two_replicas_of_what_has_two() -> None:
    """Most partitions have one replica: two large racks together cannot take what each of them could alone."""
    lists = [(1,)] * 30 + [(1, 2, 3)] * 10
    state = cluster(*lists, brokers=3, sizes=(10,) * 40)
    policy = PlannerPolicy(
        band=0.02,
        trigger=0.02,
        slack_bytes=0,
        capacities={b: Capacity(disk_bytes=10**6 if b < 3 else 1000) for b in (1, 2, 3)},
    )
    made = plan(state, Balance(), policy=policy)
    shares = {b["broker"]: b["share"]["replicas"] for b in made.summary["brokers"]}
    # Of 60 replicas the third must have one of each of the ten; the others share the rest evenly.
    assert shares == {1: 25, 2: 25, 3: 10}
    assert {b["broker"]: b["after"]["replicas"] for b in made.summary["brokers"]} == shares
    assert {o.code for o in made.obstacles} == {"uneven-racks"}


def test_a_cordoned_empty_broker_has_no_share_of_its_rack() -> None:
    """What its rack carries at most is for the brokers there that take replicas."""
    state = cluster(*[(1, 2, 3), (4, 2, 3)] * 12, brokers=5, racks=3)
    made = plan(state, Balance(), policy=PlannerPolicy(cordoned=frozenset({5}), band=0.02, trigger=0.02, slack_bytes=0))
    shares = {b["broker"]: b["share"]["replicas"] for b in made.summary["brokers"]}
    assert shares == {1: 12, 2: 24, 3: 24, 4: 12, 5: 0}

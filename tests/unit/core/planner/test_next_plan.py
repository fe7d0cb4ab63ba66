"""What a plan on the result would add is in the plan already."""

from __future__ import annotations

import pytest
from bench.mixed import mixed

from ballast.core.cluster import UNKNOWN, Broker, PartitionRow, Topic, build
from ballast.core.plan import Move
from ballast.core.planner import Balance, PlannerPolicy, plan
from ballast.core.planner.next_plan import state_after


def test_the_cluster_after_a_plan_has_its_lists() -> None:
    """Led by their first and in sync, in log dirs that are not known yet; everything else is as it was."""
    rows = [PartitionRow("t", n, 1, (1, 2), (1,), sizes=(10, 10)) for n in range(2)]
    state = build("c", tuple(Broker(b) for b in (1, 2, 3)), (Topic("t"),), rows)
    after = state_after(state, [Move("t", 1, (1, 2), (3, 1), 10)])
    assert [after.target(row) for row in range(2)] == [(1, 2), (3, 1)]
    assert after.partitions.leader.tolist() == [1, 3]
    assert after.partitions.in_sync.tolist() == [True, False, True, True]
    assert after.partitions.log_dir.tolist()[2:] == [UNKNOWN, UNKNOWN]
    assert [state.target(row) for row in range(2)] == [(1, 2), (1, 2)]


@pytest.mark.parametrize(("seed", "brokers", "partitions"), [(113, 8, 200)])
def test_replicas_that_find_a_broker_at_the_second_try_find_it_in_the_first_plan(
    seed: int, brokers: int, partitions: int
) -> None:
    """Where disks are too full for all that a dead broker held, once others have left there is room."""
    case = mixed(seed, brokers=brokers, partitions=partitions)
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities)
    made = plan(case.state, Balance(), loads=case.loads, policy=policy)
    after = case.moved({(m.topic, m.partition): m.new for m in made.moves})
    assert plan(after.state, Balance(), loads=after.loads, policy=policy).is_empty

"""The cluster as a plan leaves it."""

from __future__ import annotations

from ballast.core.cluster import UNKNOWN, Broker, PartitionRow, Topic, build
from ballast.core.plan import Move
from ballast.core.planner.make import state_after


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

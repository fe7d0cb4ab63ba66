"""Clusters on which a plan was once wrong: small and large partitions together, unlike brokers, little room."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.planner.clusters import cluster, snapshot

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.planner import Expand, Level, PlannerPolicy, plan

FIVE = PlannerPolicy(band=0.05, trigger=0.05)


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
    made = plan(seen.state, Level(), loads=seen.loads, policy=FIVE)
    assert made.status == "complete"


@pytest.mark.parametrize("size", [2e7, 2e10, 2e11], ids=["gigabytes", "terabytes", "a hundred terabytes"])
def test_a_new_broker_with_internal_topics_alone_is_filled(size: float) -> None:
    """The state right before ``expand``, up to brokers of a hundred terabytes; each figure is that of the sizes."""
    state = lopsided(size)
    p = state.partitions
    made = plan(state, Expand(brokers=frozenset({7})), policy=PlannerPolicy(prove=False))
    assert made.status == "complete"
    told = {b["broker"]: b["before"]["disk"] for b in made.summary["brokers"]}
    assert told == {b: int(p.size_bytes[p.replica == b].sum()) for b in range(1, 8)}


def test_sums_are_exact_where_floats_are_not() -> None:
    """A byte more or less is seen on brokers that hold more bytes than a float counts one by one."""
    huge = (1 << 53) // 4 + 1
    state = cluster(*[(1, 2), (2, 3), (3, 1)] * 3, brokers=4, sizes=tuple(huge + n for n in range(9)))
    made = plan(state, Level(), policy=FIVE)
    p = state.partitions
    told = {b["broker"]: b["before"]["disk"] for b in made.summary["brokers"]}
    assert told == {b: int(p.size_bytes[p.replica == b].sum()) for b in range(1, 5)}

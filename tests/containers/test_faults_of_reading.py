"""What Ballast sees of a cluster whose brokers are frozen, killed or cut off: a marked gap, in bounded time, never a zero."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.containers.cluster import ContainerCluster
from tests.waiting import PATIENCE_S, eventually

from ballast.core.cluster import ClusterState
from ballast.errors import BallastError
from ballast.ports.cluster import Cluster
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.containers

TIMEOUT_S = 10.0
"""The reader's own limit for each broker."""
BOUND_S = 45.0
"""A whole reading with one unreachable broker, on a busy machine: a few limits side by side and one after another."""
TOPIC = "read-under-faults"


@pytest.fixture(scope="module")
def topic(containers_cluster: ContainerCluster) -> str:
    """Six partitions on three of the brokers."""
    admin = AdminClient({"bootstrap.servers": containers_cluster.bootstrap_server})
    placed = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]]
    admin.create_topics([NewTopic(TOPIC, 6, replica_assignment=placed)])[TOPIC].result(timeout=PATIENCE_S)
    return TOPIC


@pytest.fixture
def cluster(containers_cluster: ContainerCluster, topic: str) -> Iterator[Cluster]:
    """A reader of the cluster, which is whole when the test begins."""
    with open_cluster(bootstrap_server=containers_cluster.bootstrap_server, timeout_s=TIMEOUT_S) as opened:
        assert eventually(lambda: is_whole(opened.cluster, containers_cluster.broker_ids), within_s=120)
        yield opened.cluster


def is_whole(cluster: Cluster, brokers: tuple[int, ...]) -> bool:
    """Whether every broker lives, nothing is missing and every replica is in sync."""
    try:
        state = cluster.snapshot()
    except BallastError:
        return False
    return state.alive == set(brokers) and not state.gaps and bool(state.partitions.in_sync.all())


def read_in_time(cluster: Cluster) -> ClusterState:
    """One reading, within the bound."""
    begun = time.monotonic()
    state = cluster.snapshot()
    assert time.monotonic() - begun < BOUND_S
    return state


def sizes_on(state: ClusterState, broker: int) -> list[int]:
    """The known sizes of the topic's replicas on a broker, unknown ones as negative numbers."""
    partitions = state.partitions
    rows = zip(partitions.replica.tolist(), partitions.size_bytes.tolist(), strict=True)
    return [size for replica, size in rows if replica == broker]


Break = Callable[[ContainerCluster, int], None]


@pytest.mark.parametrize(
    ("hurt", "heal"),
    [
        pytest.param(ContainerCluster.pause, ContainerCluster.unpause, id="frozen"),
        pytest.param(ContainerCluster.kill, ContainerCluster.start, id="killed"),
        pytest.param(ContainerCluster.disconnect, ContainerCluster.reconnect, id="cut-off"),
    ],
)
def test_an_unreachable_broker_is_a_marked_gap_in_bounded_time(
    containers_cluster: ContainerCluster, cluster: Cluster, hurt: Break, heal: Break
) -> None:
    """Its sizes are unknown and not zero, the others' are known, and the first reading already comes in time."""
    hurt(containers_cluster, 3)
    try:
        at_once = read_in_time(cluster)
        assert {gap.subject for gap in at_once.gaps} <= {"broker 3"}

        def gone() -> bool:
            return 3 not in read_in_time(cluster).alive

        assert eventually(gone, within_s=PATIENCE_S)
        state = read_in_time(cluster)
        assert "broker 3" in {gap.subject for gap in state.gaps}
        assert all(size < 0 for size in sizes_on(state, 3))
        assert sizes_on(state, 3)
        assert all(size >= 0 for size in sizes_on(state, 1) + sizes_on(state, 2))
    finally:
        heal(containers_cluster, 3)
    assert eventually(lambda: is_whole(cluster, containers_cluster.broker_ids), within_s=120)

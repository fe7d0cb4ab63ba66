"""The four kinds of cluster that the suite covers, and that each is what it says."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
from tests.waiting import PATIENCE_S, becomes, until

from ballast.sandbox import Sandbox

pytestmark = pytest.mark.kafka


def racks(sandbox: Sandbox) -> dict[int, str | None]:
    """Every broker's rack, as the cluster tells it."""
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    return {node.id: node.rack for node in admin.describe_cluster().result(timeout=PATIENCE_S).nodes}


IN_THREE_RACKS = {1: "rack-1", 2: "rack-2", 3: "rack-3"}


def test_a_quorum_of_three_controllers_serves(quorum3: Sandbox) -> None:
    """Three brokers in three racks over three controllers, each a process of its own."""
    assert racks(quorum3) == IN_THREE_RACKS
    running = quorum3.supervisor.running()
    assert sum(running.values()) == 6


def test_kafka_39_serves_on_kraft(kraft39: Sandbox) -> None:
    """The last 3.x without ZooKeeper."""
    assert racks(kraft39) == IN_THREE_RACKS
    assert kraft39.zookeeper is None


@pytest.mark.parametrize("kind", ["zk39", "zk23"])
def test_zookeeper_knows_the_brokers(kind: str, request: pytest.FixtureRequest) -> None:
    """The brokers of a ZooKeeper cluster have registered there, and one of them is the controller."""
    sandbox: Sandbox = request.getfixturevalue(kind)
    zookeeper = KazooClient(hosts=sandbox.zookeeper)
    zookeeper.start(timeout=PATIENCE_S)
    try:
        # Seconds without the processor end a broker's session: then it registers anew, and another is elected.
        becomes(lambda: {int(name) for name in zookeeper.get_children("/brokers/ids")}, {1, 2, 3})
        until(lambda: zookeeper.exists("/controller"), "one of them is the controller")
    finally:
        zookeeper.stop()
        zookeeper.close()

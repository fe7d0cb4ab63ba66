"""The JSON that commands print has the documented shape, key by key."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.documents import validated

from ballast.cli.commands.status import view as status_view
from ballast.cli.commands.topics import describe as topic_describe
from ballast.core.cluster import Broker, ClusterState, ConfigValue, Gap, LogDir, PartitionRow, Topic, build
from ballast.core.cluster.balancers import OtherBalancer
from ballast.core.cluster.drain import Drain
from ballast.core.cluster.topic_description import Depth, describe_topic
from ballast.core.planner import CrossRackPolicy
from ballast.core.planner.cross_rack.traffic import CrossRackTraffic, figures
from ballast.core.status import cluster_status

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "json.md"


def picture() -> ClusterState:
    """A cluster that fills every list of the shapes: a move, a unhealthy partition, a skew, a throttle, another balancer, a gap."""
    rate = {"leader.replication.throttled.rate": ConfigValue("1", "DYNAMIC_BROKER_CONFIG")}
    rows = [PartitionRow("t", 0, 1, (3, 1, 2), (1,), adding=(3,), removing=(2,))]
    rows += [PartitionRow("t", n, 1, (1,), (1,)) for n in range(1, 40)]
    return build(
        "c",
        (Broker(1, log_dirs=(LogDir("/d"),), log_dirs_known=True), Broker(2), Broker(3)),
        (
            Topic("t", configs={"min.insync.replicas": ConfigValue("2", "DYNAMIC_TOPIC_CONFIG")}),
            Topic("__CruiseControlMetrics"),
        ),
        rows,
        broker_configs={1: rate},
        gaps=(Gap.of_broker(2, "log dirs", "silent"),),
    )


DRAIN = Drain(broker=4, by="Ada", since_ms=0)
CROSSING = {
    **figures(CrossRackTraffic(producers=600, followers=900, consumers=200, unknown_reads=0), CrossRackPolicy()),
    "currency": "",
}


def documented(kind: str) -> object:
    """The example of this kind."""
    for block in re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(), re.DOTALL):
        example = json.loads(block)
        if example["kind"] == kind:
            return example
    raise AssertionError(f"docs/json.md has no example of {kind}")


def shape(value: object) -> object:
    """Keys in order, all the way down; of a list, the shape of its first element."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value and isinstance(value[0], dict) else "list"
    return "figure"


@pytest.mark.parametrize("kind", ["Status", "Topic"])
def test_the_document_shows_the_real_shape(kind: str) -> None:
    """Every key that is printed is documented, and every documented key is printed."""
    state = picture()
    assert isinstance(cluster_status(state).others[-1], OtherBalancer)
    topic = describe_topic(state, "t", Depth())
    assert topic is not None
    printed = {
        "Status": status_view.document(replace(cluster_status(state), drains=(DRAIN,), cross_rack=CROSSING)),
        "Topic": topic_describe.document(topic),
    }
    (found,) = validated(printed[kind].model_dump_json())
    assert shape(found) == shape(documented(kind))

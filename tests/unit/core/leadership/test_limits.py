"""The cluster's own percentage and interval count where its controller works by them, and ours win."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.app.elect import over_threshold
from ballast.core.cluster import (
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    PartitionRow,
    Topic,
    TopicPartition,
    build,
)
from ballast.core.leadership.limits import (
    CLUSTER,
    DEFAULT,
    INTERVAL,
    PERCENTAGE,
    SETTINGS,
    Limit,
    check_interval_s,
    imbalance_percentage,
)
from ballast.daemon.policy import LeaderPolicy


def cluster(mode: str = "zookeeper", **own: str) -> ClusterState:
    """Broker 1 does not lead two of its five partitions; broker 2 is the controller and has these configs."""
    rows = [PartitionRow("t", n, 1 if n < 3 else 2, (1, 2), (1, 2)) for n in range(5)]
    rows += [PartitionRow("t", 5 + n, 2, (2, 1), (1, 2)) for n in range(5)]
    keys = {"percentage": PERCENTAGE, "interval": INTERVAL}
    entries = {keys[k]: ConfigValue(v, "STATIC_BROKER_CONFIG") for k, v in own.items()}
    state = build(
        "c",
        (Broker(1), Broker(2, controller=True)),
        (Topic("t"),),
        rows,
        broker_configs={1: {}, 2: entries},
        api=frozenset({mode}),
    )
    object.__setattr__(state, "controller_id", 2)
    return state


def test_the_controllers_own_values_are_the_default() -> None:
    """Where no user set them, Kafka's defaults count."""
    state = cluster(percentage="50", interval="60")
    assert imbalance_percentage(state, None) == Limit(50, CLUSTER)
    assert check_interval_s(state, None) == Limit(60, CLUSTER)
    assert imbalance_percentage(cluster(), None) == Limit(10, DEFAULT)
    assert check_interval_s(None, None) == Limit(300, DEFAULT)


def test_ours_win_and_kraft_has_none() -> None:
    """A setting is a setting, 0 included; a KRaft controller does not go by the percentage, whatever brokers say."""
    assert imbalance_percentage(cluster(percentage="50"), 0.0) == Limit(0, SETTINGS)
    assert check_interval_s(cluster(interval="60"), 5.0) == Limit(5, SETTINGS)
    assert imbalance_percentage(cluster("kraft", percentage="50"), None) == Limit(10, DEFAULT)


def told_by(controller: int, **values: str | None) -> ClusterState:
    """Brokers b1, b2, … of a ZooKeeper cluster tell these percentages."""
    configs = {int(b[1:]): {PERCENTAGE: ConfigValue(v, "STATIC_BROKER_CONFIG")} for b, v in values.items()}
    state = build("c", (Broker(1), Broker(2), Broker(3)), (), [], broker_configs=configs, api=frozenset({"zookeeper"}))
    return replace(state, controller_id=controller)


def test_while_the_controller_does_not_tell_the_strictest_broker_counts() -> None:
    """What the controller tells counts whatever the others say; what is no number does not."""
    assert imbalance_percentage(told_by(2, b1="5", b2="30", b3="20"), None) == Limit(30, CLUSTER)
    assert imbalance_percentage(told_by(2, b1="25", b3="20"), None) == Limit(20, CLUSTER)
    assert imbalance_percentage(told_by(UNKNOWN, b1="25", b2="30", b3="20"), None) == Limit(20, CLUSTER)
    assert imbalance_percentage(told_by(UNKNOWN, b1=None, b2="", b3="20"), None) == Limit(20, CLUSTER)
    assert imbalance_percentage(told_by(2, b2=None, b3="20"), None) == Limit(10, DEFAULT)
    assert imbalance_percentage(told_by(UNKNOWN), None) == Limit(10, DEFAULT)


@pytest.mark.parametrize(
    ("given", "percentage", "elected"), [(None, "50", 0), (None, "30", 2), (40.0, "1", 0), (39.0, "50", 2)]
)
def test_elect_takes_the_brokers_over_the_percentage(given: float | None, percentage: str, elected: int) -> None:
    """40 % of broker 1's partitions are led by another: strictly more than the percentage, or nothing."""
    names = over_threshold(cluster(percentage=percentage), given, print)
    assert names == [TopicPartition("t", 3), TopicPartition("t", 4)][:elected]


def test_a_broker_is_never_well_above_the_percentage_in_force() -> None:
    """The cluster's own percentage may be below the level that the settings give."""
    assert LeaderPolicy().recovery_percentage(30) == 15
    assert LeaderPolicy(recovered_percentage=20).recovery_percentage(30) == 20
    assert LeaderPolicy(recovered_percentage=20).recovery_percentage(10) == 10

"""Who else moves things: told from what the cluster says of itself."""

from __future__ import annotations

from ballast.core.cluster import Broker, ClusterState, ConfigValue, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.daemon.others import controller_interval_s, controller_rebalances, find

OFF = {"auto.leader.rebalance.enable": ConfigValue("false", "STATIC_BROKER_CONFIG")}


def cluster(*topics: str, moving: bool = False, cordoned: bool = False, **configs: str) -> ClusterState:
    """Two brokers and a topic each; the controller's rebalance is off."""
    dirs = (LogDir("/d", cordoned=cordoned),)
    entries = {k.replace("_", "."): ConfigValue(v, "DYNAMIC_BROKER_CONFIG") for k, v in configs.items()}
    rows = [
        PartitionRow(t, 0, 1, (1, 2), (1, 2), adding=(2,) if moving and t == "orders" else ())
        for t in ("orders", *topics)
    ]
    return build(
        "c",
        (Broker(1, log_dirs=dirs), Broker(2)),
        tuple(Topic(t) for t in ("orders", *topics)),
        rows,
        broker_configs={1: {**OFF, **entries}, 2: OFF},
    )


def codes(state: ClusterState, **how: object) -> dict[str, bool]:
    """What was found, and whether it blocks."""
    return {o.code: o.blocking for o in find(state, **how)}  # type: ignore[arg-type]


def test_a_quiet_cluster_has_nobody_else() -> None:
    """No sign, no finding."""
    assert find(cluster()) == ()


def test_a_foreign_move_blocks_and_ours_does_not() -> None:
    """The difference is whether the journal or the driver knows of it."""
    state = cluster(moving=True)
    assert codes(state) == {"foreign-reassignment": True}
    assert codes(state, ours={TopicPartition("orders", 0)}) == {}


def test_balancers_are_known_by_their_topics_and_settings() -> None:
    """Cruise Control, Strimzi's, Confluent's, MSK; what moves data blocks until it is told to be ignored."""
    assert codes(cluster("__CruiseControlMetrics")) == {"cruise-control": True}
    (strimzi,) = find(cluster("strimzi.cruisecontrol.metrics"))
    assert "Strimzi's Cruise Control" in strimzi.sentence
    assert codes(cluster("__CruiseControlMetrics"), ignore=["cruise-control"]) == {"cruise-control": False}
    assert codes(cluster(confluent_balancer_enable="true")) == {"confluent-balancer": True}
    assert codes(cluster("_confluent_balancer_api_state", confluent_balancer_enable="false")) == {}
    assert codes(cluster("__amazon_msk_canary")) == {"msk": False}
    assert codes(cluster(cordoned=True)) == {"cordoned": False}


def test_the_controllers_own_rebalance_is_on_unless_somebody_said_no() -> None:
    """Kafka's default is true, and a setting that nobody set is not listed."""
    assert not controller_rebalances(cluster())
    silent = build("c", (Broker(1),), (), [], broker_configs={1: {}})
    assert controller_rebalances(silent)
    assert controller_interval_s(silent) == 300
    assert controller_interval_s(cluster(leader_imbalance_check_interval_seconds="60")) == 60

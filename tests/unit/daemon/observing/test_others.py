"""Who else moves things: told from what the cluster says of itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import Broker, ClusterState, ConfigValue, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.cluster.balancers import controller_interval_s, controller_rebalances, other_balancers
from ballast.daemon.observing.others import find

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


def test_a_quiet_cluster_has_no_other_balancer() -> None:
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
    assert "Strimzi's Cruise Control" in strimzi.detail
    assert codes(cluster("__CruiseControlMetrics"), ignore=["cruise-control"]) == {"cruise-control": False}
    assert codes(cluster(confluent_balancer_enable="true")) == {"confluent-balancer": True}
    assert codes(cluster("_confluent_balancer_api_state", confluent_balancer_enable="false")) == {}
    assert codes(cluster("__amazon_msk_canary")) == {"msk": False}
    assert codes(cluster(cordoned=True)) == {"cordoned": False}


def test_cordoned_brokers_are_named_in_the_singular_and_the_plural() -> None:
    """Broker 1, or brokers 1, 2."""
    one = cluster(cordoned=True)
    both = replace(one, brokers=tuple(replace(b, log_dirs=one.brokers[0].log_dirs) for b in one.brokers))
    told = [found.detail for state in (one, both) for found in find(state)]
    assert told == [
        f"Log dirs of {named} are cordoned: nothing new is placed there." for named in ("broker 1", "brokers 1, 2")
    ]


@pytest.mark.parametrize(
    "state",
    [
        cluster(),
        cluster("__CruiseControlMetrics"),
        cluster("strimzi.cruisecontrol.metrics"),
        cluster(metric_reporters="com.linkedin.kafka.cruisecontrol.metricsreporter.CruiseControlMetricsReporter"),
        cluster("_confluent_balancer_broker_samples"),
        cluster(confluent_balancer_enable="true", auto_leader_rebalance_enable="true"),
        cluster("__amazon_msk_canary"),
    ],
    ids=["none", "topics", "strimzi", "reporter", "confluent topic", "two", "msk"],
)
def test_daemon_and_status_find_the_same(state: ClusterState) -> None:
    """One place finds; the daemon judges each finding, leaves none out and adds no balancer of its own."""
    assert {o.code for o in find(state)} == {o.id for o in other_balancers(state)}


def test_one_broker_that_elects_by_itself_is_enough() -> None:
    """Any broker may become the controller: only where all of them say no, none elects."""
    assert codes(cluster(auto_leader_rebalance_enable="true")) == {"controller": False}
    assert controller_rebalances(cluster(auto_leader_rebalance_enable="true"))


def test_what_blocks_is_named_before_what_does_not() -> None:
    """The first of the list is the reason why nothing is moved."""
    state = cluster("__amazon_msk_canary", "__CruiseControlMetrics", auto_leader_rebalance_enable="true")
    assert next(iter(codes(state))) == "cruise-control"


def test_the_controllers_own_rebalance_is_on_unless_a_setting_says_no() -> None:
    """Kafka's default is true, and a setting that no user set is not listed."""
    assert not controller_rebalances(cluster())
    silent = build("c", (Broker(1),), (), [], broker_configs={1: {}})
    assert controller_rebalances(silent)
    assert controller_interval_s(silent) == 300
    assert controller_interval_s(cluster(leader_imbalance_check_interval_seconds="60")) == 60

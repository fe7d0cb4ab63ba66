"""Who else moves leaders or replicas, by the marks that each leaves, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ballast.core.cluster import Broker, ClusterState, ConfigValue, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.cluster.balancers import (
    OtherBalancer,
    auto_rebalance_brokers,
    controller_interval_s,
    controller_rebalances,
    cordoned_brokers,
    foreign_moves,
    other_balancers,
)

AUTO, INTERVAL = "auto.leader.rebalance.enable", "leader.imbalance.check.interval.seconds"
CONFLUENT, REPORTERS = "confluent.balancer.enable", "metric.reporters"
OFF = {AUTO: "false"}
Settings = Mapping[int, Mapping[str, str | None]]
"""By broker, what it says of itself."""


def entries(values: Mapping[str, str | None]) -> dict[str, ConfigValue]:
    """As a broker tells them."""
    return {key: ConfigValue(value, "STATIC_BROKER_CONFIG") for key, value in values.items()}


def cluster(
    *topics: str,
    own: Settings | None = None,
    default: Mapping[str, str | None] | None = None,
    hosts: tuple[str, ...] = ("a", "b"),
    kraft: bool = False,
) -> ClusterState:
    """These topics, what the brokers set themselves, and the cluster-wide default; the controller does not elect by itself."""
    return build(
        "c",
        tuple(Broker(b, host=host) for b, host in enumerate(hosts, 1)),
        tuple(Topic(t) for t in topics),
        [],
        broker_configs={b: entries(values) for b, values in ({1: OFF, 2: OFF} if own is None else own).items()},
        cluster_configs=entries(default or {}),
        api=frozenset({"kraft"} if kraft else ()),
    )


def both(**values: str | None) -> dict[int, dict[str, str | None]]:
    """Both brokers say this, and that the controller does not elect by itself."""
    return {b: {**OFF, **{k.replace("_", "."): v for k, v in values.items()}} for b in (1, 2)}


MSK_HOST = "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("state", "id_", "name", "evidence"),
    [
        (
            cluster("__CruiseControlMetrics", "strimzi.cruisecontrol.metrics"),
            "cruise-control",
            "Cruise Control",
            "topic __CruiseControlMetrics exists",
        ),
        (
            cluster("strimzi.cruisecontrol.modeltrainingsamples"),
            "cruise-control",
            "Strimzi's Cruise Control",
            "topic strimzi.cruisecontrol.modeltrainingsamples exists",
        ),
        (
            cluster(own={1: OFF, 2: OFF | {REPORTERS: " com.linkedin.kafka.CruiseControl.Reporter "}}),
            "cruise-control",
            "Cruise Control",
            "its metrics reporter runs on broker 2",
        ),
        (
            cluster(own=both(confluent_balancer_enable=" TRUE ")),
            "confluent-balancer",
            "Confluent's Self-Balancing",
            "confluent.balancer.enable is true on brokers 1, 2",
        ),
        (
            cluster(own={1: OFF | {CONFLUENT: "false"}, 2: OFF}, default={CONFLUENT: "True "}),
            "confluent-balancer",
            "Confluent's Self-Balancing",
            "confluent.balancer.enable is true on broker 2",
        ),
        (
            cluster("_confluent_balancer_broker_samples"),
            "confluent-balancer",
            "Confluent's Self-Balancing",
            "topic _confluent_balancer_broker_samples exists",
        ),
        (cluster(hosts=("a", MSK_HOST)), "msk", "Amazon MSK's own maintenance", "the brokers' addresses are MSK's"),
        (
            cluster(hosts=(f"{MSK_HOST}.cn",)),
            "msk",
            "Amazon MSK's own maintenance",
            "the brokers' addresses are MSK's",
        ),
        (
            cluster("__amazon_msk_canary"),
            "msk",
            "Amazon MSK's own maintenance",
            "topic __amazon_msk_canary exists",
        ),
    ],
)
def test_what_moves_replicas_is_told_with_the_mark_that_it_left(
    state: ClusterState, id_: str, name: str, evidence: str
) -> None:
    """Its own topics before its settings; how a setting is capitalised does not count."""
    assert other_balancers(state) == (OtherBalancer(id_, name, evidence, moves_replicas=True),)


@pytest.mark.parametrize(
    "state",
    [
        cluster(),
        cluster("_confluent_balancer_api_state", own={1: OFF | {CONFLUENT: "false"}, 2: OFF}),
        cluster(own=both(metric_reporters=None, confluent_balancer_enable="false"), default={CONFLUENT: "true"}),
        cluster(hosts=("kafka.amazonaws.com", "b.kafka.example")),
    ],
)
def test_without_a_mark_no_balancer_is_told(state: ClusterState) -> None:
    """Nor where a broker says that it is off, nor for brokers that a user runs at the same provider."""
    assert other_balancers(state) == ()


def test_the_controllers_rebalance_only_elects_and_is_told_with_its_brokers() -> None:
    """The first five of them; on KRaft the brokers' setting is not the one that decides."""
    (one,) = other_balancers(cluster(own={3: {}, 1: OFF}))
    assert one == OtherBalancer(
        "controller",
        "the controller's automatic leader rebalance",
        f"{AUTO} is not false on broker 3",
        moves_replicas=False,
    )
    (five,) = other_balancers(cluster(own={b: {} for b in (5, 4, 3, 2, 1)}))
    assert five.evidence == f"{AUTO} is not false on brokers 1, 2, 3, 4, 5"
    (six,) = other_balancers(cluster(own={b: {} for b in range(1, 7)}, kraft=True))
    assert six.evidence == (
        f"{AUTO} is not false on brokers 1, 2, 3, 4, 5 and 1 more (on KRaft the controllers' own setting decides)"
    )


def test_a_broker_that_says_nothing_of_the_rebalance_has_the_cluster_wide_default() -> None:
    """Which is true where no user set it; of brokers that told no configs nothing is known, and Kafka's default is assumed."""
    own: Settings = {1: OFF, 2: {}, 3: {AUTO: "True"}, 4: {AUTO: None}}
    assert auto_rebalance_brokers(cluster(own=own)) == (2, 3, 4)
    assert auto_rebalance_brokers(cluster(own=own, default={AUTO: " False"})) == (3,)
    assert auto_rebalance_brokers(cluster(own=own, default={AUTO: None})) == (2, 3, 4)
    assert auto_rebalance_brokers(cluster(own={})) is None
    assert [controller_rebalances(cluster(own=each)) for each in (own, {}, {1: OFF})] == [True, True, False]


def test_the_controller_looks_as_seldom_as_the_slowest_setting_says() -> None:
    """Any broker's, or the cluster-wide default; what is no number does not count, and 300 s is Kafka's default."""
    own = {1: {INTERVAL: "60"}, 2: {INTERVAL: "90"}, 3: {INTERVAL: "often"}, 4: {}}
    assert controller_interval_s(cluster(own=own)) == 90
    assert controller_interval_s(cluster(own=own, default={INTERVAL: "120"})) == 120
    assert controller_interval_s(cluster()) == 300


def test_moves_that_are_not_ours_and_cordoned_log_dirs_are_found() -> None:
    """By partition and by broker; one cordoned log dir of several is enough."""
    dirs = (LogDir("/a"), LogDir("/b", cordoned=True))
    rows = [
        PartitionRow("t", 0, 1, (1, 2), (1,), adding=(2,)),
        PartitionRow("t", 1, 1, (1,), (1,)),
        PartitionRow("t", 2, 1, (1, 2), (1,), removing=(2,)),
    ]
    state = build("c", (Broker(1, log_dirs=dirs[:1]), Broker(2, log_dirs=dirs), Broker(3)), (Topic("t"),), rows)
    first, last = TopicPartition("t", 0), TopicPartition("t", 2)
    assert foreign_moves(state, ()) == (first, last)
    assert foreign_moves(state, [first]) == (last,)
    assert cordoned_brokers(state) == (2,)

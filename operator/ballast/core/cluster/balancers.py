"""Who else moves leaders or replicas on this cluster, told from the marks that they leave in it.

The one place that finds them; what follows from a finding is judged by the caller.  A mark is evidence and not proof: a
Cruise Control that was switched off leaves its topics behind.  So each finding says what was seen, and what it may do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Final

from ballast.core.cluster.state import ClusterState, TopicPartition
from ballast.core.field_types import OneOf
from ballast.core.wording import human_brokers


@dataclass(frozen=True, slots=True)
class OtherBalancer:
    """Another program that balances this cluster, or Kafka's own controller."""

    id: Annotated[str, OneOf("controller", "cruise-control", "confluent-balancer", "msk")]
    name: str
    evidence: str
    moves_replicas: bool
    """False: it only elects leaders."""


_CRUISE_CONTROL_TOPICS: Final = (
    "__CruiseControlMetrics",
    "__KafkaCruiseControlPartitionMetricSamples",
    "__KafkaCruiseControlModelTrainingSamples",
)
_STRIMZI_TOPICS: Final = (
    "strimzi.cruisecontrol.metrics",
    "strimzi.cruisecontrol.partitionmetricsamples",
    "strimzi.cruisecontrol.modeltrainingsamples",
)
_REPORTERS: Final = "metric.reporters"
_CONFLUENT_TOPICS: Final = ("_confluent_balancer_api_state", "_confluent_balancer_broker_samples")
_CONFLUENT: Final = "confluent.balancer.enable"
_MSK_TOPIC: Final = "__amazon_msk_canary"
_MSK_HOSTS: Final = (".amazonaws.com", ".amazonaws.com.cn")
_AUTO_REBALANCE: Final = "auto.leader.rebalance.enable"
_CHECK_INTERVAL: Final = "leader.imbalance.check.interval.seconds"
_CHECK_INTERVAL_S: Final = 300.0
"""Kafka's default of that setting."""


def other_balancers(state: ClusterState) -> tuple[OtherBalancer, ...]:
    """Every balancer that has left a trace in the cluster."""
    found = (_controller(state), _cruise_control(state), _confluent(state), _msk(state))
    return tuple(other for other in found if other is not None)


def foreign_moves(state: ClusterState, ours: Collection[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Partitions that are being reassigned and are not among ours."""
    own = frozenset(ours)
    return tuple(name for row in state.moving.nonzero()[0] if (name := state.name(int(row))) not in own)


def cordoned_brokers(state: ClusterState) -> tuple[int, ...]:
    """Brokers with a cordoned log dir, which takes no new replica (KIP-1066)."""
    return tuple(b.id for b in state.brokers if any(d.cordoned for d in b.log_dirs))


def auto_rebalance_brokers(state: ClusterState) -> tuple[int, ...] | None:
    """The brokers on which the controller's rebalance is not switched off; None when no broker told its configs.

    Kafka's default is true, and an entry that is not set is not among the entries.
    """
    if not state.broker_configs:
        return None
    fallback = _of_all(state, _AUTO_REBALANCE) or "true"
    return tuple(b for b, value in _by_broker(state, _AUTO_REBALANCE) if (value or fallback) != "false")


def controller_rebalances(state: ClusterState) -> bool:
    """Does the controller run preferred leader elections by itself, as far as can be told?

    Controllers of their own cannot be asked and any broker of an older cluster may become the controller: so only where
    every broker says no, it does not.  Silence is Kafka's default.
    """
    return auto_rebalance_brokers(state) != ()


def controller_interval_s(state: ClusterState) -> float:
    """How often the controller looks, in seconds: the longest that any broker names."""
    values = [v for _, v in _by_broker(state, _CHECK_INTERVAL)] + [_of_all(state, _CHECK_INTERVAL)]
    return max((float(v) for v in values if v is not None and v.isdigit()), default=_CHECK_INTERVAL_S)


def _controller(state: ClusterState) -> OtherBalancer | None:
    auto = auto_rebalance_brokers(state)
    if not auto:
        return None
    return OtherBalancer(
        "controller",
        "the controller's automatic leader rebalance",
        f"{_AUTO_REBALANCE} is not false on {human_brokers(auto)}"
        + (" (on KRaft the controllers' own setting decides)" if "kraft" in state.api else ""),
        moves_replicas=False,
    )


def _cruise_control(state: ClusterState) -> OtherBalancer | None:
    own, strimzi = _topic(state, _CRUISE_CONTROL_TOPICS), _topic(state, _STRIMZI_TOPICS)
    reporting = [b for b, value in _by_broker(state, _REPORTERS) if "cruisecontrol" in (value or "")]
    if own or strimzi:
        evidence = f"topic {own or strimzi} exists"
    elif reporting:
        evidence = f"its metrics reporter runs on {human_brokers(reporting)}"
    else:
        return None
    name = "Strimzi's Cruise Control" if strimzi and not own else "Cruise Control"
    return OtherBalancer("cruise-control", name, evidence, moves_replicas=True)


def _confluent(state: ClusterState) -> OtherBalancer | None:
    fallback = _of_all(state, _CONFLUENT)
    said = {b: value or fallback for b, value in _by_broker(state, _CONFLUENT)}
    enabled = [b for b, value in said.items() if value == "true"]
    topic = _topic(state, _CONFLUENT_TOPICS)
    if enabled:
        evidence = f"{_CONFLUENT} is true on {human_brokers(enabled)}"
    elif topic and "false" not in said.values():
        evidence = f"topic {topic} exists"
    else:
        return None
    return OtherBalancer("confluent-balancer", "Confluent's Self-Balancing", evidence, moves_replicas=True)


def _msk(state: ClusterState) -> OtherBalancer | None:
    if any(".kafka." in b.host and b.host.endswith(_MSK_HOSTS) for b in state.brokers):
        evidence = "the brokers' addresses are MSK's"
    elif _MSK_TOPIC in state.topic_index:
        evidence = f"topic {_MSK_TOPIC} exists"
    else:
        return None
    return OtherBalancer("msk", "Amazon MSK's own maintenance", evidence, moves_replicas=True)


def _topic(state: ClusterState, names: Iterable[str]) -> str | None:
    return next((name for name in names if name in state.topic_index), None)


def _by_broker(state: ClusterState, key: str) -> Iterator[tuple[int, str | None]]:
    """What each broker says of a setting, in the order of their ids; None where it says nothing."""
    for broker, entries in sorted(state.broker_configs.items()):
        entry = entries.get(key)
        yield broker, None if entry is None or entry.value is None else entry.value.strip().lower()


def _of_all(state: ClusterState, key: str) -> str | None:
    """What the cluster-wide default says."""
    entry = state.cluster_configs.get(key)
    return None if entry is None or entry.value is None else entry.value.strip().lower()

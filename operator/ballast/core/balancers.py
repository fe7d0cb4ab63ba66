"""Who else moves leaders or replicas on this cluster, told from the marks that they leave in it.

A mark is evidence and not proof: a Cruise Control that was switched off leaves its topics behind.  So each finding says
what was seen, and what it may do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ballast.core.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class OtherBalancer:
    """Something that may change what Ballast changes."""

    id: str
    """``controller``, ``cruise-control``, ``confluent-balancer``, ``msk``."""
    name: str
    evidence: str
    moves_replicas: bool
    """False: it only elects leaders."""


_CRUISE_CONTROL_TOPICS: Final = (
    "__CruiseControlMetrics",
    "__KafkaCruiseControlPartitionMetricSamples",
    "__KafkaCruiseControlModelTrainingSamples",
)
_AUTO_REBALANCE: Final = "auto.leader.rebalance.enable"


def other_balancers(state: ClusterState) -> tuple[OtherBalancer, ...]:
    """Everything that left a mark."""
    return tuple(_find(state))


def _find(state: ClusterState) -> Iterator[OtherBalancer]:
    if (auto := auto_rebalance_brokers(state)) is not None and auto:
        yield OtherBalancer(
            "controller",
            "the controller's automatic leader rebalance",
            f"{_AUTO_REBALANCE} is not false on {_brokers(auto)}"
            + (" (on KRaft the controllers' own setting decides)" if "kraft" in state.api else ""),
            moves_replicas=False,
        )
    seen = [t for t in _CRUISE_CONTROL_TOPICS if t in state.topic_index]
    if seen:
        yield OtherBalancer("cruise-control", "Cruise Control", f"it keeps the topic {seen[0]}", moves_replicas=True)
    confluent = [
        b
        for b, entries in state.broker_configs.items()
        if (e := entries.get("confluent.balancer.enable")) and e.value == "true"
    ]
    if confluent:
        evidence = f"confluent.balancer.enable is true on {_brokers(tuple(confluent))}"
        yield OtherBalancer("confluent-balancer", "Confluent's Self-Balancing", evidence, moves_replicas=True)
    if any(".kafka." in b.host and b.host.endswith((".amazonaws.com", ".amazonaws.com.cn")) for b in state.brokers):
        yield OtherBalancer(
            "msk", "Amazon MSK's own maintenance", "the brokers' addresses are MSK's", moves_replicas=True
        )


def auto_rebalance_brokers(state: ClusterState) -> tuple[int, ...] | None:
    """The brokers on which the controller's rebalance is not switched off; None when no broker told its configs.

    Kafka's default is true, and an entry that nobody set is not among the entries.
    """
    if not state.broker_configs:
        return None
    default = state.cluster_configs.get(_AUTO_REBALANCE)
    fallback = default.value if default is not None else "true"
    return tuple(
        sorted(
            b
            for b, entries in state.broker_configs.items()
            if (entry.value if (entry := entries.get(_AUTO_REBALANCE)) is not None else fallback) != "false"
        )
    )


def _brokers(ids: tuple[int, ...]) -> str:
    shown = ", ".join(str(i) for i in ids[:5])
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return f"broker{'s' if len(ids) > 1 else ''} {shown}{more}"

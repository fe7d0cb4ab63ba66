"""Who else moves things on this cluster?  Found from what the cluster itself says, and named.

Pure.  A foreign reassignment always makes Ballast stand back: it ends.  A balancer that is installed makes it stand back
from moves until the operator says that it may be ignored: two balancers undo each other for ever.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.daemon.view import Other

_CRUISE_CONTROL: Final = (
    "__CruiseControlMetrics",
    "__KafkaCruiseControlPartitionMetricSamples",
    "__KafkaCruiseControlModelTrainingSamples",
    "strimzi.cruisecontrol.metrics",
    "strimzi.cruisecontrol.partitionmetricsamples",
    "strimzi.cruisecontrol.modeltrainingsamples",
)
_CONFLUENT: Final = ("_confluent_balancer_api_state", "_confluent_balancer_broker_samples")
_MSK: Final = "__amazon_msk_canary"
_NAMED: Final = 3


def find(
    state: ClusterState, ours: Collection[TopicPartition] = (), *, ignore: Collection[str] = ()
) -> tuple[Other, ...]:
    """Everybody else who moves things here, the ones that move right now first."""
    found = (
        _foreign_moves(state, ours),
        _cruise_control(state, ignore),
        _confluent(state, ignore),
        _msk(state),
        _cordoned(state),
        _controller(state),
    )
    return tuple(other for other in found if other is not None)


def controller_rebalances(state: ClusterState) -> bool:
    """Does the controller hold preferred elections by itself?  Kafka's default is yes.

    Brokers name the setting only where it was set, and controllers of their own cannot be asked: silence is the default.
    """
    return _says(state, "auto.leader.rebalance.enable", default="true") == "true"


def controller_interval_s(state: ClusterState) -> float:
    """How often the controller looks, in seconds."""
    said = _says(state, "leader.imbalance.check.interval.seconds", default="300")
    return float(said) if said.isdigit() else 300.0


def _says(state: ClusterState, key: str, *, default: str) -> str:
    # The broker that is the controller decides; where none is marked, any broker that names the setting does.
    ordered = sorted(state.brokers, key=lambda b: not b.controller)
    for configs in [state.broker_configs.get(b.id, {}) for b in ordered] + [state.cluster_configs]:
        entry = configs.get(key)
        if entry is not None and entry.value is not None:
            return entry.value.strip().lower()
    return default


def _foreign_moves(state: ClusterState, ours: Collection[TopicPartition]) -> Other | None:
    moving = [state.name(int(row)) for row in state.moving.nonzero()[0]]
    foreign = [name for name in moving if name not in set(ours)]
    if not foreign:
        return None
    named = ", ".join(str(n) for n in foreign[:_NAMED]) + (" and others" if len(foreign) > _NAMED else "")
    what = "A reassignment" if len(foreign) == 1 else f"{len(foreign)} reassignments"
    return Other(code="foreign-reassignment", sentence=f"{what} that Ballast did not start: {named}.", blocking=True)


def _cruise_control(state: ClusterState, ignore: Collection[str]) -> Other | None:
    topic = next((t for t in _CRUISE_CONTROL if t in state.topic_index), None)
    reporters = _says(state, "metric.reporters", default="")
    if topic is None and "cruisecontrol" not in reporters:
        return None
    sign = f"its topic {topic}" if topic else "its metrics reporter"
    whose = "Strimzi's Cruise Control" if topic and topic.startswith("strimzi.") else "Cruise Control"
    return _balancer("cruise-control", f"{whose} is installed here ({sign}).", ignore)


def _confluent(state: ClusterState, ignore: Collection[str]) -> Other | None:
    enabled = _says(state, "confluent.balancer.enable", default="")
    topic = next((t for t in _CONFLUENT if t in state.topic_index), None)
    if enabled == "false" or (enabled != "true" and topic is None):
        return None
    sign = "confluent.balancer.enable is true" if enabled == "true" else f"its topic {topic}"
    return _balancer("confluent-balancer", f"Confluent's own balancer is active here ({sign}).", ignore)


def _balancer(code: str, sentence: str, ignore: Collection[str]) -> Other:
    if code in ignore:
        return Other(code=code, sentence=f"{sentence} The settings say to ignore it.", blocking=False)
    return Other(
        code=code, sentence=f"{sentence} Set caution.ignore_others: [{code}] if it moves nothing.", blocking=True
    )


def _msk(state: ClusterState) -> Other | None:
    if _MSK not in state.topic_index:
        return None
    return Other(
        code="msk",
        sentence="This is Amazon MSK: brokers of its Express type rebalance by themselves, which Kafka's protocol does "
        "not say; keep Ballast in observe there.",
        blocking=False,
    )


def _cordoned(state: ClusterState) -> Other | None:
    brokers = [b.id for b in state.brokers if any(d.cordoned for d in b.log_dirs)]
    if not brokers:
        return None
    ids = ", ".join(str(b) for b in brokers)
    return Other(
        code="cordoned",
        sentence=f"Somebody cordoned log dirs of broker {ids}: nothing new is placed there.",
        blocking=False,
    )


def _controller(state: ClusterState) -> Other | None:
    if not controller_rebalances(state):
        return None
    return Other(
        code="controller",
        sentence=f"The controller holds preferred elections itself every {controller_interval_s(state):.0f} s "
        "(auto.leader.rebalance.enable on the brokers).",
        blocking=False,
    )

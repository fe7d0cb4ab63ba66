"""Which leader imbalance is tolerated and how often it is looked at, and who said so.

Kafka's names are Ballast's own settings.  A cluster whose ZooKeeper controller works by them has values of its own: these are
the default there.  KRaft controllers know neither the percentage (gone in 4.0) nor honour it before, so theirs count for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ballast.core.cluster import ClusterState
from ballast.core.leadership.imbalance import DEFAULT_THRESHOLD_PERCENT

PERCENTAGE: Final = "leader.imbalance.per.broker.percentage"
INTERVAL: Final = "leader.imbalance.check.interval.seconds"
DEFAULT_INTERVAL_S: Final = 300.0

SETTINGS: Final = "settings"
CLUSTER: Final = "cluster"
DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class Limit:
    """A value and where it comes from: ``settings``, ``cluster`` or ``default``."""

    value: float
    origin: str


def imbalance_percentage(state: ClusterState | None, given: float | None) -> Limit:
    """Above which (strictly) a broker counts as imbalanced."""
    return _limit(state, given, PERCENTAGE, DEFAULT_THRESHOLD_PERCENT)


def check_interval_s(state: ClusterState | None, given: float | None) -> Limit:
    """Seconds between two checks."""
    return _limit(state, given, INTERVAL, DEFAULT_INTERVAL_S)


def _limit(state: ClusterState | None, given: float | None, key: str, default: float) -> Limit:
    if given is not None:
        return Limit(given, SETTINGS)
    told = None if state is None else _of_the_controller(state, key)
    return Limit(default, DEFAULT) if told is None else Limit(told, CLUSTER)


def _of_the_controller(state: ClusterState, key: str) -> float | None:
    """What the active controller goes by; while there is none, or it did not tell, the strictest of the other brokers."""
    if "zookeeper" not in state.api:
        return None
    own = state.broker_configs.get(state.controller_id)
    told = [own] if own is not None else list(state.broker_configs.values())
    values = [entries[key].value for entries in told if key in entries]
    return min((float(v) for v in values if v is not None and v.isdigit()), default=None)

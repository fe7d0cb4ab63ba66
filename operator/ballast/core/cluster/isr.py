"""How long a change of an ISR may take to show."""

from __future__ import annotations

from typing import Final

from ballast.core.cluster.state import UNKNOWN, ClusterState

REPLICA_LAG_TIME: Final = "replica.lag.time.max.ms"


def leaves_isr_after_s(state: ClusterState, leader: int) -> float:
    """How long a follower that stops fetching stays in the ISR at most; ``UNKNOWN`` without a leader that told its configs.

    The leader looks every half of ``replica.lag.time.max.ms`` for followers that have not caught up for that long.
    """
    configs = state.broker_configs.get(leader)
    if configs is None:
        return UNKNOWN
    entry = configs.get(REPLICA_LAG_TIME)
    lag_ms = float(entry.value) if entry is not None and entry.value else _default_lag_ms(state.kafka_version)
    return 1.5 * lag_ms / 1000


def leaves_every_isr_after_s(state: ClusterState) -> float:
    """The same for any leader; ``UNKNOWN`` where none told its configs."""
    return max((leaves_isr_after_s(state, b) for b in state.broker_configs), default=UNKNOWN)


def leaving_sentence(seconds: float) -> str:
    """The same for people; empty where it is not known."""
    if seconds < 0:
        return ""
    return f"A follower that stops fetching leaves the ISR after at most {seconds:g} s (1.5 times {REPLICA_LAG_TIME})."


def _default_lag_ms(kafka_version: str | None) -> float:
    """KIP-537 tripled the default in Kafka 2.5."""
    release = tuple(int(part) for part in (kafka_version or "").split(".")[:2] if part.isdecimal())
    return 10_000.0 if (0,) < release < (2, 5) else 30_000.0

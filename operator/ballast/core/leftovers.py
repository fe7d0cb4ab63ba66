"""Throttles that stand on a cluster now, and whether they look left behind.

A throttle is needed while a replica that it lists is being copied.  One that outlived its move keeps slowing replicas down
whenever they fall behind (KIP-73 applies to every listed replica out of sync), which nobody notices until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ballast.core.cluster import ClusterState, ConfigValue
from ballast.core.throttles import EVERYTHING, LISTS, LOG_DIR_RATE, RATES, parse_list

STATIC = "STATIC_BROKER_CONFIG"


@dataclass(frozen=True, slots=True)
class StandingThrottle:
    """One throttle setting that is in force."""

    resource: str
    """``topic orders``, ``broker 3`` or ``every broker``."""
    key: str
    value: str
    left_behind: bool
    """Nothing that it could serve is happening now."""
    reason: str


def standing_throttles(state: ClusterState) -> tuple[StandingThrottle, ...]:
    """Topics in their order, then the cluster-wide default, then brokers by id; linear in replicas."""
    return tuple(_topics(state)) + tuple(_rates(state))


def _topics(state: ClusterState) -> Iterator[StandingThrottle]:
    moving_of: dict[int, set[int]] = {}
    for row in np.flatnonzero(state.moving).tolist():
        moving_of.setdefault(int(state.partitions.topic[row]), set()).add(int(state.partitions.number[row]))
    for at, topic in enumerate(state.topics):
        for key in LISTS:
            entry = topic.configs.get(key)
            if entry is None or not entry.value:
                continue
            stale, reason = _judge_list(entry.value, moving_of.get(at, set()))
            yield StandingThrottle(f"topic {topic.name}", key, entry.value, stale, reason)


def _judge_list(value: str, moving: set[int]) -> tuple[bool, str]:
    if value.strip() == EVERYTHING:
        return False, "every replica of the topic, set by hand"
    listed = {int(p) for e in parse_list(value) if (p := e.partition(":")[0]).isdecimal()}
    busy = listed & moving
    if busy:
        return False, f"{len(busy)} of its partitions {'is' if len(busy) == 1 else 'are'} moving"
    return True, "none of its partitions is moving"


def _rates(state: ClusterState) -> Iterator[StandingThrottle]:
    p = state.partitions
    rows = np.repeat(state.moving, np.diff(p.start))
    involved = set(np.unique(p.replica[rows]).tolist())
    copying = set(np.unique(p.replica[p.future_size_bytes >= 0]).tolist())
    for key, entry in _rate_entries(state.cluster_configs):
        busy = copying if key == LOG_DIR_RATE else involved
        yield _rate("every broker", key, entry, busy=bool(busy))
    for broker in sorted(state.broker_configs):
        for key, entry in _rate_entries(state.broker_configs[broker]):
            # A value inherited from the cluster-wide default was told above.
            if entry.source != "DYNAMIC_DEFAULT_BROKER_CONFIG":
                busy = copying if key == LOG_DIR_RATE else involved
                yield _rate(f"broker {broker}", key, entry, busy=broker in busy)


def _rate_entries(entries: Mapping[str, ConfigValue]) -> Iterator[tuple[str, ConfigValue]]:
    for key in RATES:
        entry = entries.get(key)
        if entry is not None and entry.value:
            yield key, entry


def _rate(resource: str, key: str, entry: ConfigValue, *, busy: bool) -> StandingThrottle:
    assert entry.value is not None
    if entry.source == STATIC:
        return StandingThrottle(resource, key, entry.value, left_behind=False, reason="in the broker's own file")
    if busy:
        return StandingThrottle(resource, key, entry.value, left_behind=False, reason="a move is using it")
    return StandingThrottle(resource, key, entry.value, left_behind=True, reason="no move is using it")

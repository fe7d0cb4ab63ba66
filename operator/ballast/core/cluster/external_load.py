"""Figures from outside the Kafka protocol, and which partition they are laid to.

The protocol says what is appended; what consumers read, what requests cost and how busy a broker's CPU is, only the brokers'
own metrics say.  A caller that has them hands over an ``ExternalLoad``; without one, everything here is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster.state import UNKNOWN, Ints, SmallInts

_SHIFT: Final = 32


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """Figures of one broker from outside the Kafka protocol, None where unknown."""

    bytes_in: float | None = None
    """Bytes produced to it per second, without replication."""
    bytes_out: float | None = None
    """Bytes consumed from it per second, without replication."""
    requests: float | None = None
    """Requests per second."""
    cpu: float | None = None
    """CPU seconds that the broker's process uses per second: 2.0 is two cores kept busy."""


@dataclass(frozen=True, slots=True)
class ExternalLoad:
    """Figures from outside the Kafka protocol that join a sample."""

    brokers: Mapping[int, BrokerFigures]
    topic_bytes_out: Mapping[tuple[int, str], float]
    """Bytes per second consumed from (broker, topic)."""
    missing: tuple[str, ...] = field(default=())
    """What was asked for and did not come, one sentence each."""


def producer_bytes_per_s(load: ExternalLoad, brokers: Iterable[int]) -> float | None:
    """Bytes per second from producers to these brokers together; None where the figure of one is unknown."""
    figures = [load.brokers[b].bytes_in if b in load.brokers else None for b in brokers]
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known and len(known) == len(figures) else None


def consumer_bytes_per_s(
    load: ExternalLoad, topics: Sequence[str], *, topic: SmallInts, leader: SmallInts, led_size: Ints
) -> npt.NDArray[np.float32]:
    """Bytes per second to consumers of each partition, ``UNKNOWN`` where its leader's figure for the topic is.

    A topic's rate at a broker is shared by the partitions that the broker leads, in proportion to ``led_size``, the bytes on
    the leader: no figure says which of them consumers read, and size is the only hint that needs no earlier sample.  What is read
    from a broker that leads nothing of the topic (a follower in the reader's rack) is laid to no partition, since moving a leader
    would not move it.  O(P log P + B).
    """
    position = {name: at for at, name in enumerate(topics)}
    given = {
        (broker << _SHIFT) | position[name]: rate
        for (broker, name), rate in load.topic_bytes_out.items()
        if name in position
    }
    keys = np.fromiter(sorted(given), np.int64, len(given))
    rates = np.array([given[key] for key in keys.tolist()], np.float64)
    out = np.full(len(topic), UNKNOWN, np.float32)
    wanted = (leader.astype(np.int64) << _SHIFT) | topic.astype(np.int64)
    if not len(keys) or not len(wanted):
        return out
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = (keys[at] == wanted) & (leader >= 0)
    group, size = at[found], np.maximum(led_size[found], 0).astype(np.float64)
    total = np.bincount(group, size, len(keys))[group]
    members = np.bincount(group, minlength=len(keys))[group]
    share = np.where(total > 0, size / np.where(total > 0, total, 1.0), 1.0 / np.maximum(members, 1))
    out[found] = share * rates[group]
    return out

"""What a reading takes over from earlier ones, and whether it shows anything else than they did.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState
from ballast.core.planner import Loads
from ballast.core.planner.loads import DISK

_PICTURE: Final = ("topic", "number", "leader", "start", "replica", "in_sync", "adding", "removing", "offline")
"""What readings of partitions are compared by."""


def alike(old: ClusterState, new: ClusterState) -> bool:
    """Do both readings show the same brokers, replicas, leaders and ISRs?  Sizes, which always grow, do not count."""
    p, q = old.partitions, new.partitions
    return (
        old.alive == new.alive
        and [(t.name, t.topic_id) for t in old.topics] == [(t.name, t.topic_id) for t in new.topics]
        and all(np.array_equal(getattr(p, column), getattr(q, column)) for column in _PICTURE)
    )


def count_unknown_sizes(state: ClusterState) -> int:
    """Replicas whose size no broker has told."""
    return int((state.partitions.size_bytes == UNKNOWN).sum())


def current_loads(known: tuple[ClusterState, Loads] | None, state: ClusterState) -> Loads | None:
    """The traffic that the newest plan was made with, and the sizes of now; None where the partitions are others by now."""
    if known is None:
        return None
    before, loads = known[0].partitions, known[1]
    now = state.partitions
    names = [t.name for t in known[0].topics] == [t.name for t in state.topics]
    if not (names and np.array_equal(before.topic, now.topic) and np.array_equal(before.number, now.number)):
        return None
    sizes = Loads.from_state(state)
    return replace(loads, size_bytes=sizes.size_bytes, known=(loads.known - {DISK}) | sizes.known)


def with_racks(state: ClusterState, known: Mapping[int, str]) -> tuple[ClusterState, Mapping[int, str]]:
    """Give brokers that are down the racks that they named before; and remember those that are named now."""
    remembered = dict(known) | {b.id: b.rack for b in state.brokers if b.rack is not None}
    if all(b.rack is not None or b.alive or b.id not in remembered for b in state.brokers):
        return state, remembered
    brokers = tuple(
        replace(b, rack=remembered.get(b.id)) if b.rack is None and not b.alive else b for b in state.brokers
    )
    return replace(state, brokers=brokers), remembered

"""Plans of small clusters that together call every compiled loop of the planner: the library is built from them (``library.py``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.leadership.reorder import balance_counts, balance_weights, choices
from ballast.core.planner import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Loads,
    PlannerPolicy,
    Racks,
    ReplaceBroker,
    TopicRule,
    plan,
)
from ballast.core.planner.loads import BYTES_IN, BYTES_OUT

GIB = 1 << 30


def cluster(seed: int, *, brokers: int, partitions: int, racks: int, room: int, crowded: float = 2.0) -> ClusterState:
    """Topics of one to three replicas, more of them on the first brokers; ``room`` is what a broker's disk holds."""
    dice = np.random.default_rng(seed)
    dirs = (LogDir("/a", room, room // 2), LogDir("/b", room, room // 2)) if room > 0 else (LogDir("/a"),)
    members = tuple(
        Broker(b, rack=f"r{b % racks}" if racks else None, log_dirs=dirs, log_dirs_known=True)
        for b in range(1, brokers + 1)
    )
    weights = np.linspace(crowded, 1.0, brokers)
    names = tuple(Topic(f"t{t}") for t in range(4))
    rows = []
    for number in range(partitions):
        factor = min(brokers, 3 if number % 4 else 2)
        replicas = tuple(
            int(b) for b in dice.choice(np.arange(1, brokers + 1), factor, replace=False, p=weights / weights.sum())
        )
        size = int(dice.integers(1, 20)) * GIB // 10
        rows.append(
            PartitionRow(f"t{number % 4}", number // 4, replicas[0], replicas, replicas, sizes=(size,) * factor)
        )
    return build("kernels", members, names, rows)


def plans() -> Iterator[tuple[ClusterState, Intent]]:
    """Every intent, on clusters with and without racks and known disks."""
    for seed, racks, room in ((1, 3, 400 * GIB), (2, 0, UNKNOWN), (3, 3, 40 * GIB)):
        state = cluster(seed, brokers=7, partitions=160, racks=racks, room=room)
        yield state, Balance()
        yield state, Leaders()
        yield state, Demote(brokers=frozenset({1}))
        yield state, Decommission(brokers=frozenset({1}))
        yield state, Expand(brokers=frozenset({7}))
        yield state, Evacuate(brokers=frozenset({2}))
        yield state, ChangeReplicationFactor(to=3)
        yield state, ChangeReplicationFactor(to=1)
        yield state, ReplaceBroker(old=1, new=7)
        if racks:
            yield state, Racks()
    # Few and heavy partitions: some broker stays outside its range, so that the search tries its last means.
    yield cluster(4, brokers=5, partitions=9, racks=0, room=UNKNOWN, crowded=4.0), Balance()


def make_plans() -> None:
    """Make each plan by sizes alone; then one under rules, one with traffic, and both ways of reordering."""
    for state, intent in plans():
        plan(state, intent)
    state = cluster(5, brokers=7, partitions=160, racks=3, room=400 * GIB)
    rules = (TopicRule(topics="t0", max_per_broker=20), TopicRule(topics="t1", spread_evenly=True))
    plan(state, Balance(), policy=PlannerPolicy(topic_rules=rules))
    sizes = Loads.from_state(state)
    rate = sizes.size_bytes >> 10
    known = sizes.known | {BYTES_IN, BYTES_OUT}
    plan(state, Balance(), loads=replace(sizes, bytes_in_per_s=rate, bytes_out_per_s=3 * rate, known=known))
    balance_counts(choices(state))
    balance_weights(choices(state), sizes.size_bytes)

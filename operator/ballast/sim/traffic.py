"""How replication traffic shares the wires: network cards, KIP-73 throttles and fairness.

A *flow* is one lagging replica fetching from its leader.  Each flow is bound by several *pipes*: the sender's card, the
receiver's card, and on either side the replication quota where the replica is listed as throttled.  Rates are max-min fair:
all flows rise together until a pipe is full, its flows stop there, the others go on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from ballast.sim.model import SimBroker, SimPartition

LEADER_LIST: Final = "leader.replication.throttled.replicas"
FOLLOWER_LIST: Final = "follower.replication.throttled.replicas"
LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIRS_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"

Pipe = tuple[str, int]


@lru_cache(maxsize=4096)
def throttled_pairs(value: str) -> frozenset[tuple[int, int]] | None:
    """The ``partition:broker`` pairs of a throttle list; None stands for ``*``, every replica."""
    if value.strip() == "*":
        return None
    pairs = (entry.split(":") for entry in value.split(",") if entry.strip())
    return frozenset((int(partition), int(broker)) for partition, broker in pairs)


def is_throttled(configs: Mapping[str, str], key: str, partition: int, broker: int) -> bool:
    """Whether this replica stands in the topic's list."""
    value = configs.get(key, "")
    if not value:
        return False
    pairs = throttled_pairs(value)
    return pairs is None or (partition, broker) in pairs


def rate_of(broker: SimBroker, cluster_configs: Mapping[str, str], key: str) -> float:
    """The effective rate in bytes a second: the broker's own, else the cluster default, else static, else none."""
    value = broker.setting(key, cluster_configs)
    return math.inf if value is None else float(value)


def pipes_of(
    partition: SimPartition, follower: int, topic_configs: Mapping[str, str], *, leader: int
) -> tuple[Pipe, ...]:
    """The pipes that bind the flow from ``leader`` to ``follower``."""
    pipes: list[Pipe] = [("out", leader), ("in", follower)]
    if is_throttled(topic_configs, LEADER_LIST, partition.number, leader):
        pipes.append((LEADER_RATE, leader))
    if is_throttled(topic_configs, FOLLOWER_LIST, partition.number, follower):
        pipes.append((FOLLOWER_RATE, follower))
    return tuple(pipes)


def fair_rates(flows: Sequence[tuple[Pipe, ...]], capacity: Mapping[Pipe, float]) -> list[float]:
    """Max-min fair rates in bytes a second, one per flow; O(flows * pipes) a round and at most one round per pipe."""
    rates = [0.0] * len(flows)
    open_flows = set(range(len(flows)))
    left = dict(capacity)
    while open_flows:
        users = Counter(pipe for i in open_flows for pipe in flows[i])
        share = min(left[pipe] / count for pipe, count in users.items())
        if math.isinf(share):
            for i in open_flows:
                rates[i] = math.inf
            return rates
        full = {pipe for pipe, count in users.items() if left[pipe] / count <= share * (1 + 1e-12)}
        for i in sorted(open_flows):
            rates[i] += share
            for pipe in flows[i]:
                left[pipe] -= share
        open_flows = {i for i in open_flows if not full.intersection(flows[i])}
    return rates

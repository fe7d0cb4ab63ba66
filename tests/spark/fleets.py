"""Generated unbalanced clusters, for fleets."""

from __future__ import annotations

import random

import numpy as np

from ballast.core.cluster import Broker, LogDir, PartitionRow, Topic, build
from ballast.core.what_if import Member, Traffic


def member(seed: int, *, brokers: int = 6, partitions: int = 40, traffic: bool = False) -> Member:
    """An unbalanced cluster."""
    dice = random.Random(seed)
    members = tuple(
        Broker(
            i,
            rack=f"r{i % 3}",
            host=f"h{i}",
            port=9092,
            log_dirs=(LogDir("/d", 10**12, 6 * 10**11),),
            log_dirs_known=True,
        )
        for i in range(1, brokers + 1)
    )
    rows = []
    for n in range(partitions):
        first = min(dice.randint(1, brokers), dice.randint(1, brokers))
        replicas = (first, first % brokers + 1)
        size = dice.randint(10**8, 10**10)
        rows.append(PartitionRow("t", n, first, replicas, replicas, sizes=(size, size), log_dirs=(0, 0)))
    state = build(f"c{seed}", members, (Topic("t", topic_id="id", min_isr=1),), rows, taken_at_ms=5)
    rates = [np.array([dice.randint(0, 10**6) for _ in rows]) for _ in range(3)]
    known = Traffic(rates[0], rates[1], rates[2].astype(np.float64)) if traffic else None
    return Member(f"cluster-{seed}", state, known)

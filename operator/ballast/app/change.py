"""What a run has made of each broker: leaders, replicas and bytes, before it and once the cluster shows what it did."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Final

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, TopicPartition
from ballast.core.plan import Plan
from ballast.ports.cluster import ClusterReader

SETTLES_S: Final = 10.0
"""How long metadata may take to show what the controller has done; elections show late."""
LOOK_S: Final = 0.5


def broker_figures(state: ClusterState, among: Collection[TopicPartition]) -> dict[int, dict[str, int]]:
    """Leaders, replicas (without those being added) and bytes of each broker; ``UNKNOWN`` bytes where it did not say.

    Only partitions ``among`` these count: what was created meanwhile, the journal's own topics first of all, is no run's work.
    """
    p = state.partitions
    counted = np.fromiter((name in among for name in state.index), np.bool_, len(p))
    replica_counted = np.repeat(counted, np.diff(p.start))
    out = {}
    for broker in state.brokers:
        here = (p.replica == broker.id) & ~p.adding & replica_counted
        sizes = p.size_bytes[here]
        said = broker.log_dirs_known and not bool((sizes == UNKNOWN).any())
        out[broker.id] = {
            "leaders": int(((p.leader == broker.id) & counted).sum()),
            "replicas": int(here.sum()),
            "bytes": int(sizes.astype(np.int64).sum()) if said else UNKNOWN,
        }
    return out


def settled_snapshot(cluster: ClusterReader, plan: Plan) -> ClusterState:
    """The cluster once metadata shows what the plan has done, or a little later as it is."""
    until = time.monotonic() + SETTLES_S
    names = [*(m.name for m in plan.moves), *plan.elections]
    wanted = {m.name: m.new for m in plan.moves}
    while time.monotonic() < until:
        seen = cluster.partitions(names)
        late = any(
            s.replicas != wanted.get(n, s.replicas) or (n in plan.elections and s.leader != s.replicas[0])
            for n, s in seen.items()
        )
        if not late:
            break
        time.sleep(LOOK_S)
    return cluster.snapshot(configs=False)

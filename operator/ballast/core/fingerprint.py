"""A short name for an assignment, so that a plan can say which picture it was made from."""

from __future__ import annotations

import hashlib

import numpy as np

from ballast.core.cluster import ClusterState


def fingerprint(state: ClusterState) -> str:
    """Hash the cluster id, topics and target replica lists; leaders, sizes and ISRs drift without changing it."""
    p = state.partitions
    digest = hashlib.sha256(state.cluster_id.encode())
    digest.update("\0".join(t.name for t in state.topics).encode())
    keep = ~p.removing
    counts = np.add.reduceat(keep.astype(np.int64), p.start[:-1]) if len(p) else np.zeros(0, np.int64)
    for column in (p.topic, p.number, counts, p.replica[keep]):
        digest.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
    return f"sha256:{digest.hexdigest()[:32]}"

"""A short name for an assignment, so that a plan can say which picture it was made from; and the ids of its topics."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from ballast.core.cluster import ClusterState
from ballast.core.plan.model import Plan


def fingerprint(state: ClusterState) -> str:
    """Hash the cluster id, topics and target replica lists; leaders, sizes and ISRs drift without changing it."""
    p = state.partitions
    digest = hashlib.sha256(state.cluster_id.encode())
    digest.update("\0".join(t.name for t in state.topics).encode())
    keep = ~p.removing
    counts = np.add.reduceat(keep.astype(np.int64), p.start[:-1])
    for column in (p.topic, p.number, counts, p.replica[keep]):
        digest.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
    return f"sha256:{digest.hexdigest()[:32]}"


def with_topic_ids(plan: Plan, state: ClusterState) -> Plan:
    """The plan with the ids of the topics that it moves or elects leaders of, where the cluster has ids."""
    wanted = {m.topic for m in plan.moves} | {name.topic for name in plan.elections}
    return replace(plan, topic_ids=_ids(state, wanted))


def find_recreated(plan: Plan, state: ClusterState) -> dict[str, tuple[str, str]]:
    """Topics of the plan that were deleted and recreated since, with the id of the plan's and that of the present one."""
    now = _ids(state, plan.topic_ids)
    return {name: (id_, now[name]) for name, id_ in plan.topic_ids.items() if now.get(name, id_) != id_}


def _ids(state: ClusterState, names: Iterable[str]) -> Mapping[str, str]:
    at = state.topic_index
    found = {name: state.topics[at[name]].topic_id for name in sorted(names) if name in at}
    return {name: id_ for name, id_ in found.items() if id_ is not None}

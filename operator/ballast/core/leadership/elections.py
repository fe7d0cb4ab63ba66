"""The elections that make preferred leaders lead again, and the plan that runs them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from ballast.core.cluster import NO_LEADERSHIP_RECORD, UNKNOWN, ClusterState, Flags, TopicPartition
from ballast.core.leadership.imbalance import deleting_rows
from ballast.core.plan import Plan, Purpose
from ballast.core.plan.fingerprint import fingerprint


def electable(state: ClusterState) -> Flags:
    """Per partition: could a preferred leader election succeed, and would it change anything?

    The preferred leader is alive and in the ISR, the partition is not being moved, its topic is not being deleted, and
    the leader is known to be another broker or none.
    """
    p = state.partitions
    preferred = state.preferred
    rows = np.repeat(np.arange(len(p)), np.diff(p.start))
    in_sync = np.zeros(len(p), np.bool_)
    in_sync[rows[p.in_sync & (p.replica == preferred[rows])]] = True
    alive = np.isin(preferred, np.array(sorted(state.alive), np.int32))
    not_led_by_preferred = (p.leader != preferred) & (p.leader != NO_LEADERSHIP_RECORD) & (preferred != UNKNOWN)
    return np.asarray(in_sync & alive & not_led_by_preferred & ~state.moving & ~deleting_rows(state))


def elections(state: ClusterState, brokers: Collection[int]) -> tuple[TopicPartition, ...]:
    """Name every preferred leader election that would make one of these brokers the leader.

    Broker by broker in order of id, so that one broker's preferred leaders are elected together.
    """
    chosen = np.flatnonzero(electable(state) & np.isin(state.preferred, np.array(sorted(brokers), np.int32)))
    chosen = chosen[np.argsort(state.preferred[chosen], kind="stable")]
    return tuple(state.name(int(row)) for row in chosen)


def election_plan(
    state: ClusterState, names: Iterable[TopicPartition], *, unclean: bool = False, created_at_ms: int = 0
) -> Plan:
    """The plan that holds these elections and moves nothing."""
    elected = tuple(names)
    return Plan(
        intent="elect unclean leaders" if unclean else "elect preferred leaders",
        purpose=Purpose("elect-unclean" if unclean else "elect"),
        cluster_id=state.cluster_id,
        fingerprint=fingerprint(state),
        moves=(),
        elections=elected,
        status="meets-all-goals" if elected else "nothing-to-do",
        created_at_ms=created_at_ms,
    )

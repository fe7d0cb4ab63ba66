"""What a cluster would look like after losing brokers: who leads, what is offline, what writers can no longer write to.

Pure: the picture is changed as Kafka's controller would change it once the session times out.  A down broker leaves every
ISR that has another member; the last member stays, since only it is known to hold everything; a partition is then led by the
first replica of its list that is alive and in sync.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from ballast.core.cluster import NO_LEADER, ClusterState, Flags, Ints, SmallInts, TopicPartition
from ballast.core.cluster.min_isr import (
    at_min_isr,
    min_isr_unknown,
    min_isrs,
    replication_factors,
    under_min_isr,
    under_replicated,
)
from ballast.errors import UsageError


@dataclass(frozen=True, slots=True, eq=False)
class Health:
    """How one picture's partitions fare: rows, in order."""

    offline: Ints
    """No leader: nothing can be written or read."""
    under_min_isr: Ints
    """Led, with too few replicas in sync (``core.cluster.min_isr``): ``acks=all`` is refused."""
    at_min_isr: Ints
    """One more loss and they are under it."""
    under_replicated: Ints
    """Led, with replicas that are not in sync."""
    min_isr_unknown: Ints
    """Of these, the ones whose topic's minimum is unknown: in neither of the two above, and each may belong there."""


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """A cluster before and after brokers are gone."""

    brokers: tuple[int, ...]
    before: ClusterState
    after: ClusterState
    health_before: Health
    health_after: Health
    leaders_moved: int
    """Partitions that another broker leads afterwards."""

    def find_new(self, kind: str) -> list[TopicPartition]:
        """Partitions that the loss alone brings into this state (a field of ``Health``)."""
        was = getattr(self.health_before, kind)
        return [self.after.name(row) for row in np.setdiff1d(getattr(self.health_after, kind), was).tolist()]


def loss_of(state: ClusterState, brokers: frozenset[int]) -> Loss:
    """The cluster without these brokers."""
    after = take_brokers_down(state, brokers)
    led = after.partitions.leader
    return Loss(
        tuple(sorted(brokers)),
        state,
        after,
        health_of(state),
        health_of(after),
        int(((led != state.partitions.leader) & (led >= 0)).sum()),
    )


def brokers_of(state: ClusterState, brokers: Collection[int], racks: Collection[str]) -> frozenset[int]:
    """The brokers that are named, by id or by rack; raises ``UsageError`` for one that is not there."""
    state.require_brokers(brokers)
    known_racks = sorted({b.rack for b in state.brokers if b.rack is not None})
    strange = sorted(set(racks) - set(known_racks))
    if strange:
        raise UsageError(
            f"There is no rack {strange[0]!r}.", hint=f"The brokers name {', '.join(known_racks) or 'no rack at all'}."
        )
    return frozenset(brokers) | {b.id for b in state.brokers if b.rack in racks}


def take_brokers_down(state: ClusterState, brokers: frozenset[int]) -> ClusterState:
    """The same reading with these brokers down: out of every ISR that has another member, and leading nothing."""
    p = state.partitions
    down = np.isin(p.replica, sorted(brokers))
    alive = np.isin(p.replica, sorted(state.alive - brokers))
    row = _row(state)
    left = np.bincount(row, weights=p.in_sync & ~down, minlength=len(p)) > 0
    in_sync = p.in_sync & (~down | ~left[row])
    return replace(
        state,
        brokers=tuple(replace(b, alive=False, host="", port=0) if b.id in brokers else b for b in state.brokers),
        partitions=replace(
            p,
            leader=_leaders_after(state, in_sync & alive, row),
            in_sync=in_sync,
            offline=p.offline | down,
        ),
    )


def health_of(state: ClusterState) -> Health:
    """Count what is in trouble, in one picture."""
    led = state.partitions.leader != NO_LEADER
    # Where min ISR is the replication factor, being at it is no news.
    spare = replication_factors(state) > min_isrs(state)
    return Health(
        offline=np.flatnonzero(~led),
        under_min_isr=np.flatnonzero(led & under_min_isr(state)),
        at_min_isr=np.flatnonzero(led & at_min_isr(state) & spare),
        under_replicated=np.flatnonzero(led & under_replicated(state)),
        min_isr_unknown=np.flatnonzero(led & min_isr_unknown(state)),
    )


def _row(state: ClusterState) -> Ints:
    return np.repeat(np.arange(len(state.partitions)), np.diff(state.partitions.start))


def _leaders_after(state: ClusterState, may: Flags, row: Ints) -> SmallInts:
    """The leader stays while it may lead; else the first that may; else none."""
    p = state.partitions
    out = np.full(len(p), NO_LEADER, np.int32)
    # Written back to front, so that the first candidate of each row is the one that stays.
    out[row[may][::-1]] = p.replica[may][::-1]
    leads = may & (p.replica == p.leader[row])
    out[row[leads]] = p.replica[leads]
    return out

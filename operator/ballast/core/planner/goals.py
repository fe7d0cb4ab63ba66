"""The soft goals: a function for each resource that is to be balanced gives its column, and ``GOALS`` lists them in order.

To add one, copy ``cpu``, give it a name and columns, and add it to ``GOALS`` and its name to ``policy.RESOURCES``: the search,
the bound and every table pick it up from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import ClusterState, Ints
from ballast.core.planner.loads import BYTES_IN, BYTES_OUT, CPU, DISK, Loads
from ballast.core.planner.policy import LEADER_BYTES, LEADERS, REPLICAS, Capacity, PlannerPolicy

IDLE_AT_MOST: Final = 0.25
"""Counts stay about even on a cluster of mostly empty partitions, too."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Resource:
    """What replicas load brokers with, to be shared by capacity: one column of the problem."""

    name: str
    label: str
    """For tables."""
    lead: Ints
    """By partition: what the leader costs its broker, in the resource's own unit."""
    follow: Ints
    """By partition: what each follower costs."""
    capacity: npt.NDArray[np.float64]
    """By broker, relative: shares are in proportion to it."""
    counted: bool = False
    """Whole things are counted, so a share is rounded to whole neighbours."""
    leaders_only: bool = False
    """Followers cost nothing, so replica list changes alone can balance it."""
    idle: float = 0.0
    """Part of the whole that weighs next to nothing: ranges are wider by it."""
    unit: str = ""
    """``bytes``, ``bytes/s``, ``cpu`` (in ``CPU_UNIT``) or empty, for printing."""

    def aim(self, policy: PlannerPolicy) -> float:
        """How far from its fair share a broker may be after a plan, as a fraction of that share."""
        return policy.band_of(self.name) + self.idle

    def tolerance(self, policy: PlannerPolicy) -> float:
        """How far from its fair share a broker may be before a plan is made, as a fraction of that share."""
        return policy.trigger_of(self.name) + self.idle


Goal = Callable[[ClusterState, Loads, PlannerPolicy], Resource | None]
"""Gives its column, or None where nothing is known of the resource."""


def disk(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """Every replica costs its size, leader or not; shared by the size of the brokers' log dirs."""
    if DISK not in loads.known:
        return None
    stated = []
    for b in state.brokers:
        override = policy.capacities.get(b.id)
        stated.append(override.disk_bytes if override and override.disk_bytes else b.capacity_bytes)
    known = [c for c, b in zip(stated, state.brokers, strict=True) if b.alive and c > 0]
    # Half-known capacities would make the unknown brokers look large or small by accident: all of them, or none.
    everyone = bool(known) and len(known) == sum(b.alive for b in state.brokers)
    usual = float(np.median(known)) if everyone else 1.0
    capacity = [c if everyone and c > 0 else usual for c in stated]
    return Resource(
        name=DISK,
        label="disk",
        lead=loads.size_bytes,
        follow=loads.size_bytes,
        capacity=np.array(capacity, np.float64),
        unit="bytes",
    )


def bytes_in(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """The leader receives from producers what each follower fetches: the same bytes."""
    if BYTES_IN not in loads.known:
        return None
    return Resource(
        name=BYTES_IN,
        label="bytes in",
        lead=loads.bytes_in_per_s,
        follow=loads.bytes_in_per_s,
        capacity=_capacities(state, policy, lambda c: c.bytes_in_per_s),
        unit="bytes/s",
    )


def bytes_out(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """Consumers and followers read from the leader."""
    if BYTES_OUT not in loads.known:
        return None
    return Resource(
        name=BYTES_OUT,
        label="bytes out",
        lead=loads.bytes_out_per_s,
        follow=np.zeros(len(loads), np.int64),
        capacity=_capacities(state, policy, lambda c: c.bytes_out_per_s),
        leaders_only=True,
        unit="bytes/s",
    )


def cpu(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """Leaders cost more than followers, so replica list changes balance a good part of it."""
    if CPU not in loads.known:
        return None
    return Resource(
        name=CPU,
        label="CPU",
        lead=loads.cpu_leader,
        follow=loads.cpu_follower,
        capacity=_capacities(state, policy, lambda c: c.cpu),
        unit="cpu",
    )


def replicas(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """A broker with twice the disk is meant to hold twice the replicas."""
    one = np.ones(len(loads), np.int64)
    by_disk = disk(state, loads, policy)
    capacity = by_disk.capacity if by_disk is not None else np.ones(len(state.brokers))
    return Resource(
        name=REPLICAS,
        label="replicas",
        lead=one,
        follow=one,
        capacity=capacity,
        counted=True,
        idle=_idle(loads, np.diff(state.partitions.start)),
    )


def leaders(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """Leaders follow replicas, so that a broker leads about as large a part of what it holds as any other."""
    held = replicas(state, loads, policy)
    assert held is not None
    return Resource(
        name=LEADERS,
        label="preferred leaders",
        lead=held.lead,
        follow=np.zeros(len(loads), np.int64),
        capacity=held.capacity,
        counted=True,
        idle=_idle(loads, held.lead),
        leaders_only=True,
    )


def leader_bytes(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> Resource | None:
    """The bytes on disk that a broker leads, for clusters whose traffic is not measured; replica list changes do most of it.

    A stand-in: what is large on disk is usually read and written much.  Only where the policy names a band for it, since where
    bytes out are known they say the same thing better.
    """
    held = disk(state, loads, policy) if LEADER_BYTES in policy.bands else None
    if held is None:
        return None
    return Resource(
        name=LEADER_BYTES,
        label="leader bytes",
        lead=held.lead,
        follow=np.zeros(len(loads), np.int64),
        capacity=held.capacity,
        leaders_only=True,
        unit="bytes",
    )


def _idle(loads: Loads, weight: Ints) -> float:
    """The part of a count that empty partitions make up, a quarter of it at most; 0 where every partition is empty.

    An empty partition (most of Kafka's internal ones on a small cluster) is a line in a list: to even out where those lines
    are is worth no byte, and no move that takes the disks further from their shares.
    """
    if DISK not in loads.known or (loads.unknown_sizes and not np.median(loads.size_bytes)):
        return 0.0  # An unknown size was taken for the median, and is not known to be empty.
    empty, total = float(weight[loads.size_bytes == 0].sum()), float(weight.sum())
    return min(empty / total, IDLE_AT_MOST) if empty < total else 0.0


def _capacities(
    state: ClusterState, policy: PlannerPolicy, of: Callable[[Capacity], float | None]
) -> npt.NDArray[np.float64]:
    """Capacity by broker from the policy; brokers that it does not name are as large as the median of those it does."""
    stated = [of(policy.capacities[b.id]) if b.id in policy.capacities else None for b in state.brokers]
    known = [c for c in stated if c is not None and c > 0]
    usual = float(np.median(known)) if known else 1.0
    return np.array([c if c is not None and c > 0 else usual for c in stated], np.float64)


GOALS: Final[tuple[Goal, ...]] = (disk, bytes_in, bytes_out, cpu, replicas, leaders, leader_bytes)


def resources(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> tuple[Resource, ...]:
    """The resources that can be balanced on this cluster: those that are known and not zero everywhere."""
    found = (goal(state, loads, policy) for goal in GOALS)
    return tuple(r for r in found if r is not None and bool(r.lead.any()))

"""The cluster as the search sees it: dense integer arrays, one column for each resource.

Each resource is counted in a whole fraction of its own unit, so that every sum is exact, and the fraction is chosen so that
the fair share of an average broker is about ``Problem.average`` on every resource: then one unit of excess means the
same on disk as on CPU.  The arrays say nothing about time, threads or the order of dictionaries: the same input gives the
same arrays on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import ClusterState, Ints, SmallInts
from ballast.core.planner.goals import Resource, resources
from ballast.core.planner.loads import DISK, Loads
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.scope import Scope
from ballast.core.planner.problem.shares import fair_shares
from ballast.core.wording import human_brokers

SHARE: Final = 1 << 36
"""The least that the share of an average broker counts; more only where a resource has more of its own units."""
UPPER: Final = 1
LOWER: Final = 2
"""Ends of a range that are hard limits: no step of the search crosses them, whatever it repairs elsewhere."""
FREE: Final = 1 << 60
"""A limit that no load reaches."""
ROUNDING: Final = 1e-12
"""Part of a share by which the end of a band changes when its fractions are summed in another order."""

ALIKE: Final = 2e-5
"""Brokers whose ranges differ by less than this part of an average share are of one kind."""

Floats = npt.NDArray[np.float64]


@dataclass(slots=True, eq=False, kw_only=True)
class Problem:
    """Input of one search.  ``B`` brokers, ``P`` partitions, ``R`` replica slots, ``K`` resources."""

    ids: SmallInts
    rack: SmallInts
    """Rack number by broker; without racks, each broker is a rack of its own."""
    rack_limit: SmallInts
    """By partition: most replicas in one rack."""
    rack_least: SmallInts
    """By partition: fewest racks that hold it; 0 where ``rack_limit`` alone sees to it, or racks do not matter.

    The search lowers it for replicas that are added and find no broker otherwise.
    """
    start: Ints
    """Slots of partition p are ``start[p]:start[p + 1]``, as many as it shall have."""
    home: SmallInts
    """By slot: the broker index before, -1 for a slot that is added."""
    old_start: Ints
    old: SmallInts
    """The replica lists before, addressed by ``old_start``; differs from ``home`` where the count changes."""
    topic: SmallInts
    lead: Ints
    """P x K: what the leader loads its broker with."""
    follow: Ints
    """P x K: what each follower loads its broker with."""
    low: Ints
    high: Ints
    """B x K: the band."""
    hard: npt.NDArray[np.int8]
    """B x K: the ends of ranges that no step may cross (``UPPER``, ``LOWER``)."""
    share: Floats
    """B x K: the fair share, in the resource's own unit."""
    unit: Ints
    """K: scaled units in one of the resource's own, a whole number: what is counted is exact."""
    average: int
    """About what an average broker's share is on each resource, in scaled units."""
    size: Ints
    """P: the price of a copy in scaled bytes, at least 1."""
    room: Ints
    """B: most scaled bytes that a broker may hold, ``FREE`` where its disk is unknown."""
    byte_unit: int
    """Scaled bytes in one byte."""
    resources: tuple[Resource, ...]
    scope: Scope
    assumptions: tuple[str, ...] = ()


def problem_of(state: ClusterState, loads: Loads, policy: PlannerPolicy, scope: Scope, *, bands: str) -> Problem:
    """Arrays for the search; ``bands`` is ``target`` or ``trigger``."""
    start, home, old_start, old = _slots(state, scope)
    columns = resources(state, loads, policy)
    rack, rack_limit, rack_least = _racks(state, scope, start, home)
    count, width = len(start) - 1, len(columns)
    lead, follow = np.zeros((count, width), np.int64), np.zeros((count, width), np.int64)
    shape = (len(state.brokers), width)
    low, high, share = np.zeros(shape, np.int64), np.full(shape, FREE, np.int64), np.zeros(shape)
    fairs = [fair_shares(r, scope, start, home, rack, rack_limit, rack_least) for r in columns]
    # Bytes are priced in disk units: what one average broker has on its disk is the average.
    mean_disk = float(loads.size_bytes @ np.diff(start)) / max(int(scope.shares.sum()), 1)
    average, unit, byte_unit = _units([_mean(fair, scope) for fair in fairs], mean_disk)
    for k, (r, fair) in enumerate(zip(columns, fairs, strict=True)):
        if r.name == DISK:
            byte_unit = int(unit[k])
        lead[:, k], follow[:, k] = r.lead * unit[k], r.follow * unit[k]
        band = r.aim(policy) if bands == "target" else r.tolerance(policy)
        below, above = limits(r, fair, band, policy)
        used = scope.shares & scope.leading if r.leaders_only else scope.shares
        low[used, k] = below[used].astype(np.int64) * unit[k]
        high[used, k] = above[used].astype(np.int64) * unit[k]
        low[~(scope.takes | scope.leading) if r.leaders_only else ~scope.takes, k] = 0
        share[:, k] = fair
    return Problem(
        ids=np.array([b.id for b in state.brokers], np.int32),
        rack=rack,
        rack_limit=rack_limit,
        rack_least=rack_least,
        start=start,
        home=home,
        old_start=old_start,
        old=old,
        topic=state.partitions.topic.astype(np.int32),
        lead=lead,
        follow=follow,
        low=low,
        high=high,
        hard=_hard(scope, shape),
        share=share,
        unit=unit,
        average=average,
        size=np.maximum(loads.size_bytes * byte_unit, 1),
        room=_room(state, policy, byte_unit),
        byte_unit=byte_unit,
        assumptions=_assumptions(state),
        resources=columns,
        scope=scope,
    )


def _hard(scope: Scope, shape: tuple[int, int]) -> npt.NDArray[np.int8]:
    """Brokers that are filled get no more than their share, however much the others have too much."""
    hard = np.zeros(shape, np.int8)
    hard[scope.filled] = UPPER
    return hard


def _mean(fair: Floats, scope: Scope) -> float:
    return float(fair[scope.shares].mean()) if bool(scope.shares.any()) else 0.0


def _units(means: list[float], mean_disk: float) -> tuple[int, Ints, int]:
    """The average in scaled units; by resource, and for bytes, how many scaled units its own has."""
    largest = max(*means, mean_disk, 1.0)
    average = int(largest * max(round(SHARE / largest), 1))

    def of(mean: float) -> int:
        return max(round(average / mean), 1) if mean > 0 else 1

    return average, np.array([of(mean) for mean in means], np.int64), of(mean_disk)


def is_uniform(problem: Problem) -> bool:
    """Is every broker meant to carry the same of everything?"""
    share = problem.share[problem.scope.shares] * problem.unit
    return bool((np.abs(share - share.mean(axis=0)) <= ALIKE * problem.average).all()) if len(share) else True


def loads_before(problem: Problem) -> Ints:
    """B x K: the scaled loads of the replica lists before."""
    counts = np.diff(problem.old_start)
    row = np.repeat(np.arange(len(counts)), counts)
    first = np.zeros(len(row), np.bool_)
    first[problem.old_start[:-1][counts > 0]] = True
    load = np.zeros(problem.low.shape, np.int64)
    for k in range(len(problem.resources)):
        np.add.at(load[:, k], problem.old, np.where(first, problem.lead[row, k], problem.follow[row, k]))
    return load


def _assumptions(state: ClusterState) -> tuple[str, ...]:
    told = []
    nameless = [b.id for b in state.brokers if b.alive and b.rack is None]
    if nameless and any(b.rack is not None for b in state.brokers):
        told.append(f"Broker {nameless[0]} names no rack, so racks are not looked at (as Kafka does).")
    silent = [b.id for b in state.brokers if b.alive and not b.reachable]
    if silent:
        one = len(silent) == 1
        verb, whom = ("does", "it") if one else ("do", "them")
        told.append(
            f"{human_brokers(silent, start=True)} {verb} not answer, though the cluster lists {whom} as alive: "
            f"the plan counts on {whom}."
        )
    return tuple(told)


def _slots(state: ClusterState, scope: Scope) -> tuple[Ints, SmallInts, Ints, SmallInts]:
    """Replica lists as slots; of lists that shrink the best replicas stay, in lists that grow -1 waits for a broker."""
    p = state.partitions
    ids = np.array([b.id for b in state.brokers], np.int64)
    keep = ~p.removing
    old = np.searchsorted(ids, p.replica[keep]).astype(np.int32)
    kept = np.concatenate(([0], np.cumsum(keep)))
    old_start = np.asarray(kept[p.start], np.int64)
    counts = np.diff(old_start)
    if bool((counts == scope.factor).all()):
        return old_start, old.copy(), old_start, old
    start = np.concatenate(([0], np.cumsum(scope.factor))).astype(np.int64)
    row = np.repeat(np.arange(len(counts)), scope.factor)
    place = np.arange(len(row)) - start[row]
    inside = place < counts[row]
    home = np.full(len(row), -1, np.int32)
    home[inside] = old[(old_start[row] + place)[inside]]
    in_sync = p.in_sync[keep]
    for shrinking in np.flatnonzero(counts > scope.factor).tolist():
        run = slice(int(old_start[shrinking]), int(old_start[shrinking + 1]))
        stay = _survivors(state, scope, shrinking, old[run].tolist(), in_sync[run].tolist())
        home[start[shrinking] : start[shrinking + 1]] = stay
    return start, home, old_start, old


def _survivors(state: ClusterState, scope: Scope, row: int, members: list[int], in_sync: list[bool]) -> list[int]:
    """Which replicas stay when a list shrinks: those that may, in sync, in racks of their own, in their order.

    What lives where the selection does not let it go stays before all others.  Where the first goes, the next that may
    lead comes first.
    """
    classes, factor = scope.classes, int(scope.factor[row])
    barred, leads = classes.barred[classes.of[row]], scope.leads & ~classes.unled[classes.of[row]]
    synced = dict(zip(members, in_sync, strict=True))
    stay: list[int] = []
    while len(stay) < factor:
        racks = {state.brokers[b].rack for b in stay}
        left = [b for b in members if b not in stay]
        stay.append(
            min(
                left,
                key=lambda b: (
                    bool(scope.gives[b]) or not state.brokers[b].alive,
                    not state.brokers[b].alive,
                    bool(scope.leave[b] or barred[b]),
                    not synced[b],
                    state.brokers[b].rack is not None and state.brokers[b].rack in racks,
                    not stay and not leads[b] and b != members[0],
                    members.index(b),
                ),
            )
        )
    return sorted(stay, key=lambda b: (b != members[0] and not leads[b], members.index(b)))


def _racks(state: ClusterState, scope: Scope, start: Ints, home: SmallInts) -> tuple[SmallInts, SmallInts, SmallInts]:
    """By broker its rack; by partition the most replicas in one rack, and the fewest racks that hold it."""
    names = [b.rack for b in state.brokers]
    live = [b.rack for b in state.brokers if b.alive]
    if any(r is None for r in live) or not live:
        # Kafka places without racks as soon as one broker does not name its own; so does the planner.
        rack = np.arange(len(names), dtype=np.int32)
        return rack, np.ones(len(scope.factor), np.int32), np.zeros(len(scope.factor), np.int32)
    order = {name: i for i, name in enumerate(sorted({r or "" for r in names}))}
    rack = np.array([order[r or ""] for r in names], np.int32)
    usable = scope.takes | (scope.shares & ~scope.leave) | (scope.leave & scope.keep_racks)
    classes, factor = scope.classes, scope.factor.astype(np.int64)
    racks = np.array([max(len(np.unique(rack[usable & ~barred])), 1) for barred in classes.barred])
    limit = np.where(classes.loose[classes.of], factor, -(-factor // racks[classes.of]))
    limit = np.maximum(limit, 1).astype(np.int32)
    return rack, limit, _fewest_racks(scope, start, home, rack, limit)


def _fewest_racks(scope: Scope, start: Ints, home: SmallInts, rack: SmallInts, limit: SmallInts) -> SmallInts:
    """By partition: as many racks as hold it, one more for each replica that is added, as far as racks remain when what must go has gone.

    Where a rack holds one replica at most, no move takes the partition to fewer racks anyway.
    """
    classes = scope.classes
    fewest = np.zeros(len(limit), np.int32)
    rows = np.flatnonzero((limit > 1) & ~classes.loose[classes.of])
    if not len(rows):
        return fewest
    remain = np.zeros((len(classes.barred), int(rack.max()) + 1), np.bool_)
    for c, barred in enumerate(classes.barred):
        remain[c, rack[(scope.takes | (scope.shares & ~scope.leave)) & ~barred]] = True
    remain = remain[classes.of[rows]]
    held = np.zeros_like(remain)
    at = np.full(len(limit), -1, np.int64)
    at[rows] = np.arange(len(rows))
    row = np.repeat(np.arange(len(limit)), np.diff(start))
    added = np.bincount(row[home < 0], minlength=len(limit))
    slots = np.flatnonzero((at[row] >= 0) & (home >= 0))
    row, broker = row[slots], home[slots]
    held[at[row], rack[broker]] = True
    stays = ~(scope.leave[broker] | classes.expelled[classes.of[row], broker])
    remain[at[row[stays]], rack[broker[stays]]] = True
    fewest[rows] = np.minimum(held.sum(axis=1) + added[rows], remain.sum(axis=1))
    return fewest


def limits(r: Resource, fair: Floats, band: float, policy: PlannerPolicy) -> tuple[Floats, Floats]:
    """The band around fair shares, in whole units of the resource's own."""
    if r.counted:
        # A count is whole: a band narrower than one replica still allows the two counts next to the share.
        above = np.maximum(np.floor(fair * (1 + band) + 1e-9), np.ceil(fair - 1e-9))
        below = np.minimum(np.ceil(fair * (1 - band) - 1e-9), np.floor(fair + 1e-9))
        return below, above
    width = np.maximum(fair * band, policy.slack_of(r.name, band))
    loose = fair * ROUNDING
    return np.ceil(np.maximum(fair - width - loose, 0)), np.floor(fair + width + loose)


def _room(state: ClusterState, policy: PlannerPolicy, byte_unit: int) -> Ints:
    room = np.full(len(state.brokers), FREE, np.int64)
    for i, b in enumerate(state.brokers):
        override = policy.capacities.get(b.id)
        capacity = override.disk_bytes if override and override.disk_bytes is not None else b.capacity_bytes
        if capacity > 0:
            room[i] = min(int(capacity * policy.disk_limit) * byte_unit, FREE)
    return room

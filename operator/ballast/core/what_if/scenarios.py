"""What-ifs: a cluster as it would be, and the plan that it would then need.

Every scenario is planned by the one planner with the loads of the cluster, so a fleet's plans are the plans that
``ballast plan`` would make, one by one.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import NO_LEADER, UNKNOWN, Broker, ClusterState, Ints, TopicPartition
from ballast.core.cluster.min_isr import min_isrs
from ballast.core.leadership import imbalance
from ballast.core.plan import Plan
from ballast.core.plan.log_dirs import log_dir_errors
from ballast.core.planner import (
    Balance,
    ChangeReplicationFactor,
    Evacuate,
    Expand,
    Intent,
    Loads,
    PlannerPolicy,
)
from ballast.core.planner import (
    plan as make_plan,
)
from ballast.core.planner.policy import LEADERS
from ballast.errors import BallastError, UsageError

BALANCE: Final = "balance"
LOSE_BROKER: Final = "lose-broker"
LOSE_RACK: Final = "lose-rack"
ADD_BROKERS: Final = "add-brokers"
CHANGE_RF: Final = "change-rf"
GROW: Final = "grow"
KINDS: Final = (BALANCE, LOSE_BROKER, LOSE_RACK, ADD_BROKERS, CHANGE_RF, GROW)

# A fleet is compared, not executed: the crude bound costs nothing and is the same everywhere.
POLICY: Final = PlannerPolicy(prove=False)


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Per partition, what history says of it."""

    bytes_in: Ints
    bytes_out: Ints
    growth: npt.NDArray[np.float64]
    """Bytes per day of one replica; NaN where it is not known."""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One cluster of a fleet."""

    name: str
    state: ClusterState
    traffic: Traffic | None = None

    @property
    def loads(self) -> Loads:
        """What the planner weighs: sizes of now, and traffic where there is a history."""
        if self.traffic is None:
            return Loads.from_state(self.state)
        names = np.array([t.name for t in self.state.topics], dtype=np.str_)
        columns = {
            "topic": names[self.state.partitions.topic],
            "partition": self.state.partitions.number,
            "bytes_in_per_s": self.traffic.bytes_in,
            "bytes_out_per_s": self.traffic.bytes_out,
        }
        return Loads.from_model(self.state, columns)


def plan_scenario(member: Member, kind: str, subject: str) -> dict[str, Any]:
    """Plan one cluster under one scenario; a failure is a row that says so, and no other cluster suffers by it."""
    before = member.state
    row: dict[str, Any] = {
        "cluster": before.cluster_id,
        "name": member.name,
        "taken_at_ms": before.taken_at_ms,
        "scenario": kind,
        "subject": subject,
        "brokers": len(before.brokers),
        "partitions": len(before.partitions),
        "bytes_stored": int(np.maximum(before.partitions.size_bytes, 0).sum()),
        "sizes_unknown": int((before.partitions.size_bytes < 0).sum()),
        "imbalance": imbalance(before).worst_ratio,
        "days_to_full": days_to_full(member),
        "log_dir_errors": [asdict(e) for e in log_dir_errors(before)],
        **room(member),
    }
    try:
        state, intent, loads = apply_scenario(member, kind, subject)
        row |= {"offline": offline(state), "under_min_isr": under_min_isr(state)}
        made = make_plan(state, intent, loads=loads, policy=POLICY)
        grown = loads.size_bytes - member.loads.size_bytes
        row |= _figures(made, lost_rows(state)) | fullest(state, made, grown, lost_rows(state))
    except BallastError as failure:
        row = (
            {"offline": None, "under_min_isr": None}
            | row
            | _NOTHING
            | {"status": "not-planned", "detail": str(failure)}
        )
    return row


def apply_scenario(member: Member, kind: str, subject: str) -> tuple[ClusterState, Intent, Loads]:
    """The cluster, the intent and the loads of a scenario."""
    state, loads = member.state, member.loads
    if kind == BALANCE:
        return state, Balance(), loads
    if kind == LOSE_BROKER:
        return lose_brokers(state, frozenset({int(subject)})), Evacuate(brokers=frozenset({int(subject)})), loads
    if kind == LOSE_RACK:
        lost = frozenset(b.id for b in state.brokers if b.rack == subject)
        return lose_brokers(state, lost), Evacuate(brokers=lost), loads
    if kind == ADD_BROKERS:
        grown, new = with_brokers(state, int(subject))
        return grown, Expand(brokers=new), loads
    if kind == CHANGE_RF:
        return state, ChangeReplicationFactor(to=int(subject)), loads
    if kind == GROW:
        days = float(subject)
        # What is not known to grow stays as large as it is; ``growth_unknown`` tells how many these are.
        growth = np.nan_to_num(member.traffic.growth) if member.traffic else np.zeros(len(state.partitions))
        ahead = np.maximum(growth, 0) * days
        return state, Balance(), replace(loads, size_bytes=loads.size_bytes + np.rint(ahead).astype(np.int64))
    raise UsageError(f"There is no scenario {kind!r}.", hint=f"Choose among {', '.join(KINDS)}.")


def lose_brokers(state: ClusterState, lost: frozenset[int]) -> ClusterState:
    """The cluster once these brokers are lost for good: out of every ISR, even as its last member; the first replica left in sync leads in their place."""
    p = state.partitions
    gone = np.isin(p.replica, np.array(sorted(lost), np.int32))
    in_sync = p.in_sync & ~gone
    owner = np.repeat(np.arange(len(p)), np.diff(p.start))
    next_leader = np.full(len(p), NO_LEADER, np.int32)
    next_leader[owner[in_sync][::-1]] = p.replica[in_sync][::-1]
    leader = np.where(np.isin(p.leader, np.array(sorted(lost), np.int32)), next_leader, p.leader).astype(np.int32)
    brokers = tuple(replace(b, alive=False, controller=False) if b.id in lost else b for b in state.brokers)
    return replace(state, brokers=brokers, partitions=replace(p, in_sync=in_sync, leader=leader))


def with_brokers(state: ClusterState, count: int) -> tuple[ClusterState, frozenset[int]]:
    """The cluster with so many more brokers, empty and otherwise like its first live one, spread over the racks."""
    alive = [b for b in state.brokers if b.alive]
    if not alive or count < 1:
        raise UsageError("Brokers can be added to a cluster that has a live one, and at least one at a time.")
    racks = sorted({b.rack for b in alive if b.rack is not None})
    held = {rack: sum(b.rack == rack for b in alive) for rack in racks}
    first = max(b.id for b in state.brokers) + 1
    new = []
    for i in range(count):
        rack = min(racks, key=lambda r: (held[r], r)) if racks else None
        if rack is not None:
            held[rack] += 1
        dirs = tuple(replace(d, usable_bytes=d.total_bytes) for d in alive[0].log_dirs if d.error is None)
        new.append(Broker(first + i, rack=rack, log_dirs=dirs, log_dirs_known=bool(dirs)))
    return replace(state, brokers=(*state.brokers, *new)), frozenset(b.id for b in new)


def _live_in_sync(state: ClusterState) -> Ints:
    p = state.partitions
    alive = np.isin(p.replica, np.array(sorted(state.alive), np.int32))
    running = np.concatenate(([0], np.cumsum(alive & p.in_sync)))
    return np.asarray(running[p.start[1:]] - running[p.start[:-1]], np.int64)


def lost_rows(state: ClusterState) -> frozenset[TopicPartition]:
    """The partitions that no live replica in sync can lead: nothing is left to copy from."""
    return frozenset(state.name(row) for row in np.flatnonzero(_live_in_sync(state) == 0).tolist())


def offline(state: ClusterState) -> int:
    """Partitions that no live replica in sync can lead."""
    return int((_live_in_sync(state) == 0).sum())


def under_min_isr(state: ClusterState) -> int | None:
    """Partitions with too few live replicas in sync, so that acks=all fails.

    None where no topic tells, or where that of a partition which lacks a replica is not known.
    """
    if state.topics and all(t.min_isr == UNKNOWN for t in state.topics):
        return None
    wanted = min_isrs(state)
    lacking = _live_in_sync(state) < np.diff(state.partitions.start)
    return None if bool((lacking & (wanted == UNKNOWN)).any()) else int((_live_in_sync(state) < wanted).sum())


def days_to_full(member: Member) -> float | None:
    """Days until the first broker's free space is used up at the known growth of what it holds; None when no broker's is."""
    if member.traffic is None:
        return None
    p = member.state.partitions
    growth = np.repeat(np.nan_to_num(member.traffic.growth), np.diff(p.start))
    soonest = math.inf
    for broker in member.state.brokers:
        per_day = float(growth[p.replica == broker.id].sum())
        if per_day > 0 and broker.usable_bytes >= 0:
            soonest = min(soonest, broker.usable_bytes / per_day)
    return soonest if math.isfinite(soonest) else None


def room(member: Member) -> dict[str, int | None]:
    """How large the disks are, how much of them is free, what all replicas together gain in a day, and whose growth that lacks."""
    told = [b for b in member.state.brokers if b.alive and b.capacity_bytes >= 0 and b.usable_bytes >= 0]
    replicas = np.diff(member.state.partitions.start)
    growth = member.traffic.growth if member.traffic else np.full(len(replicas), np.nan)
    unknown = int(np.isnan(growth).sum())
    return {
        "disk_bytes": sum(b.capacity_bytes for b in told) if told else None,
        "disk_free_bytes": sum(b.usable_bytes for b in told) if told else None,
        "growth_bytes_per_day": round(float(np.nansum(growth * replicas))) if unknown < len(growth) else None,
        "growth_unknown": unknown,
    }


def fullest(state: ClusterState, made: Plan, grown: Ints, lost: frozenset[TopicPartition]) -> dict[str, float | None]:
    """How full the fullest live broker's disks are before and after the plan, of those that told their size.

    Everything on these disks counts, Kafka's or not.  ``grown`` is what each partition has gained since the reading; of ``lost``
    partitions nothing is left to copy.
    """
    p = state.partitions
    gained = np.repeat(grown, np.diff(p.start))
    used = {
        b.id: b.used_bytes + int(gained[p.replica == b.id].sum())
        for b in state.brokers
        if b.alive and b.used_bytes >= 0 and b.capacity_bytes > 0
    }
    size = {b.id: b.capacity_bytes for b in state.brokers}

    def most() -> float | None:
        return max((used[b] / size[b] for b in used), default=None)

    before = most()
    for move in made.moves:
        if move.is_list_change or move.name in lost:
            continue
        if move.size_bytes < 0:
            return {"disk_full_before": before, "disk_full_after": None}
        for broker in used.keys() & set(move.adding):
            used[broker] += move.size_bytes
        for broker in used.keys() & set(move.removing):
            used[broker] -= move.size_bytes
    return {"disk_full_before": before, "disk_full_after": most()}


_NOTHING: Final[dict[str, Any]] = {
    "moves": None,
    "replica_list_changes": None,
    "bytes_moved": None,
    "bound_bytes": None,
    "worst_before": None,
    "worst_after": None,
    "disk_full_before": None,
    "disk_full_after": None,
    "preferred_leaders_before": None,
    "preferred_leaders_after": None,
    "digest": "",
}


def _figures(made: Plan, lost: frozenset[TopicPartition]) -> dict[str, Any]:
    resources = {r["name"]: r for r in made.summary.get("resources", [])}

    def most(name: str, when: str) -> float | None:
        return float(resources[name][when]["maximum"]) if name in resources else None

    copied = [m for m in made.moves if m.name not in lost]
    return {
        "status": made.status,
        "detail": f"{made.obstacles[0].subject}: {made.obstacles[0].detail}" if made.obstacles else "",
        "moves": len(made.moves),
        "replica_list_changes": sum(m.is_list_change for m in made.moves),
        "bytes_moved": None if any(m.size_unknown for m in copied) else sum(m.bytes_moved for m in copied),
        "bound_bytes": made.bound_bytes,
        "worst_before": most("disk", "before"),
        "worst_after": most("disk", "after"),
        "preferred_leaders_before": most(LEADERS, "before"),
        "preferred_leaders_after": most(LEADERS, "after"),
        "digest": digest(made),
    }


def digest(made: Plan) -> str:
    """A name for the moves and elections in their order: equal plans have equal digests."""
    text = hashlib.sha256()
    for m in made.moves:
        text.update(f"{m.topic}\0{m.partition}\0{m.old}\0{m.new}\n".encode())
    for name in made.elections:
        text.update(f"{name}\n".encode())
    return text.hexdigest()

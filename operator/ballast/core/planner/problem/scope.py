"""What an intent allows: which brokers give, take and lead, and which partitions may change.

Built once from state, intent and policy.  The search obeys it through masks, explanations read it for reasons.  The
checker does not use it: it derives what is allowed from the intent by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ballast.core.cluster import ClusterState, Flags, Ints, SmallInts
from ballast.core.cluster.min_isr import replicas_below_min_isr
from ballast.core.planner.intents import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Place,
    Racks,
    ReplaceBroker,
    Selection,
)
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.classes import Classes, add_topic_limits, classes_of
from ballast.errors import UsageError


@dataclass(slots=True, eq=False, kw_only=True)
class Scope:
    """Masks by broker (in the order of ``state.brokers``) and by partition row."""

    takes: Flags
    """May receive replicas."""
    can_rise: Flags
    """Could receive replicas by its own state, whatever the intent allows: what it lacks counts as out of range."""
    leads: Flags
    """May become preferred leader."""
    leading: Flags
    """Takes part in sharing leadership; more than ``leads`` where only new brokers may become leaders."""
    leave: Flags
    """Every replica here must go elsewhere."""
    gives: Flags
    """May lose replicas or leadership that it need not lose."""
    unlead: Flags
    """Must give preferred leadership up."""
    shares: Flags
    """Takes part in sharing the load: the fair share is computed over these."""
    filled: Flags
    """Is to be filled, up to its share."""
    open_rows: Flags
    """May change at all."""
    left_rows: Flags
    """May not, for want of replicas alone: brokers would refuse writes with ``acks=all`` while one is copied."""
    factor: SmallInts
    """Replicas that each partition shall have: as many as it has where brokers that take no part hold more than asked for."""
    classes: Classes
    """What topics have rules of their own for."""
    roam: bool = False
    """May a replica leave a broker that it need not leave?"""
    shift: bool = False
    """May leadership move where nothing forces it?"""
    repair_racks: bool = False
    """Must replicas that share a rack be parted?"""
    repair_rules: bool = False
    """Must replicas go where the rules of their topics want them?"""
    keep_racks: bool = False
    """Do the racks of brokers that are emptied count among those that replicas are spread over?"""
    why_closed: dict[int, str] = field(default_factory=dict)
    """By broker index: the cause why it takes no replica, as ``sentences.REJECTIONS`` has it."""


def scope_of(state: ClusterState, intent: Intent, policy: PlannerPolicy) -> Scope:
    """Masks for this intent; raises ``UsageError`` when it names brokers that are not there."""
    brokers = state.brokers
    ids = np.array([b.id for b in brokers], np.int64)
    alive = np.array([b.alive for b in brokers], np.bool_)
    chosen = np.array([intent.selection.broker(b.id) for b in brokers], np.bool_)
    cordoned = np.array([b.cordoned or b.id in policy.cordoned for b in brokers], np.bool_)
    draining = np.isin(ids, sorted(policy.draining))
    demoted = np.isin(ids, sorted(policy.demoted))
    leads = alive & chosen & ~draining & ~demoted
    takes = alive & chosen & ~cordoned & ~draining
    open_rows = _open_rows(state, intent, policy)
    left_rows = open_rows & _left_rows(state, intent, policy)
    scope = Scope(
        takes=takes,
        can_rise=takes.copy(),
        leads=leads,
        leading=leads,
        leave=np.zeros(len(brokers), np.bool_),
        gives=chosen.copy(),
        unlead=(draining | demoted) & chosen,
        shares=alive & chosen & ~draining,
        open_rows=open_rows & ~left_rows,
        left_rows=left_rows,
        factor=_counts(state),
        filled=np.zeros(len(brokers), np.bool_),
        classes=classes_of(state, policy),
    )
    for i in range(len(brokers)):
        if cause := _why_closed(alive[i], chosen[i], cordoned[i], draining[i]):
            scope.why_closed[i] = cause
    _apply(scope, state, intent, ids, alive, draining & chosen)
    holds = alive & ~draining & ~scope.leave
    scope.classes = add_topic_limits(scope.classes, state, scope.factor, holds, holds & chosen & ~cordoned)
    if scope.repair_rules:
        scope.classes.expelled = scope.classes.barred & chosen
    if isinstance(intent, Balance | Leaders):
        scope.classes.must_step_down = scope.classes.unled & chosen
    return scope


def _apply(scope: Scope, state: ClusterState, intent: Intent, ids: Ints, alive: Flags, draining: Flags) -> None:
    match intent:
        case Balance():
            scope.leave = (~alive | draining) & np.array([intent.selection.broker(int(b)) for b in ids], np.bool_)
            scope.unlead |= scope.leave
            scope.roam = scope.shift = scope.repair_racks = scope.repair_rules = True
        case Leaders():
            scope.shift = True
            scope.takes[:] = False
        case Demote():
            mask = _flag_brokers(state, ids, intent.brokers)
            scope.leads &= ~mask
            scope.unlead = mask
            scope.takes[:] = False
        case Decommission():
            _empty(scope, _flag_brokers(state, ids, intent.brokers), "decommissioned")
        case Evacuate():
            _empty(scope, _flag_evacuated(state, intent, ids), "evacuated")
            scope.keep_racks = intent.keep_racks
        case Expand():
            mask = _flag_brokers(state, ids, intent.brokers)
            _require_alive(ids, mask & ~alive)
            for i in np.flatnonzero(scope.takes & ~mask).tolist():
                scope.why_closed[i] = "not-filled"
            scope.takes &= mask
            scope.filled = mask
            # Old brokers keep their share of leadership: a new one is filled up to its own.
            scope.leads = scope.leads & mask
            scope.unlead[:] = False
            scope.gives &= ~mask
            scope.roam = scope.shift = True
        case ChangeReplicationFactor():
            may = scope.open_rows & (_count_fixed(state, ids, alive & ~scope.gives) <= intent.to)
            scope.factor = np.where(may, np.int32(intent.to), scope.factor).astype(np.int32)
            scope.unlead[:] = False
        case Place():
            wanted = intent.replication_factor
            scope.factor = (
                scope.factor if wanted is None else np.where(scope.open_rows, wanted, scope.factor).astype(np.int32)
            )
            scope.gives[:] = True
            scope.unlead[:] = False
        case Racks():
            # What a demoted broker leads is another intent's affair: nothing moves but what shares a rack.
            scope.repair_racks = scope.repair_rules = True
            scope.unlead[:] = False
        case ReplaceBroker():
            old, new = (_flag_brokers(state, ids, frozenset({b})) for b in (intent.old, intent.new))
            _require_alive(ids, new & ~alive)
            # The newcomer takes the place of the old one in the list, leadership included.
            scope.leave = old
            scope.unlead[:] = False
            scope.takes &= new
            scope.shares &= ~old
        case _:
            raise TypeError(f"{type(intent).__name__} is not an intent that the planner knows")


def _empty(scope: Scope, mask: Flags, cause: str) -> None:
    scope.leave = mask
    scope.unlead = mask
    scope.takes &= ~mask
    scope.leads &= ~mask
    scope.shares &= ~mask
    for i in np.flatnonzero(mask).tolist():
        scope.why_closed[i] = cause


def _flag_brokers(state: ClusterState, ids: Ints, wanted: frozenset[int]) -> Flags:
    if not wanted:
        raise UsageError("No broker is named.", hint=f"The cluster has brokers {', '.join(map(str, ids.tolist()))}.")
    state.require_brokers(wanted)
    return np.isin(ids, sorted(wanted))


def _require_alive(ids: Ints, down: Flags) -> None:
    if bool(down.any()):
        raise UsageError(f"Broker {ids[down][0]} is not alive.", hint="Start it before it is given replicas.")


def _flag_evacuated(state: ClusterState, intent: Evacuate, ids: Ints) -> Flags:
    racks = {b.rack for b in state.brokers}
    unknown = sorted(intent.racks - {r for r in racks if r is not None})
    if unknown:
        known = ", ".join(sorted(r for r in racks if r is not None)) or "no rack at all"
        raise UsageError(f"There is no rack {unknown[0]!r}.", hint=f"The brokers name {known}.")
    wanted = intent.brokers | {b.id for b in state.brokers if b.rack in intent.racks}
    return _flag_brokers(state, ids, frozenset(wanted))


def _open_rows(state: ClusterState, intent: Intent, policy: PlannerPolicy) -> Flags:
    pinned, selection = Selection(topics=policy.pinned_topics), intent.selection
    balancing = isinstance(intent, Balance | Leaders | Expand)
    kafkas = [r for r in policy.topic_rules if r.kafka_placement and balancing]
    topics = np.array(
        [
            selection.topic(t.name)
            and not t.deleting
            and not (policy.pinned_topics is not None and pinned.topic(t.name))
            and not any(r.matches(t.name) for r in kafkas)
            for t in state.topics
        ],
        np.bool_,
    )
    rows = topics[state.partitions.topic] if len(state.partitions) else np.zeros(0, np.bool_)
    if isinstance(intent, Evacuate) and intent.offline_only:
        rows &= _offline_on(state, intent)
    return rows & ~state.moving & (_counts(state) > 0)


def _left_rows(state: ClusterState, intent: Intent, policy: PlannerPolicy) -> Flags:
    """Partitions that take every write only as long as nothing is copied; a person who names what is to move means them too."""
    if policy.replicas_below_min_isr or not isinstance(intent, Balance | Expand | Racks):
        return np.zeros(len(state.partitions), np.bool_)
    return replicas_below_min_isr(state)


def _offline_on(state: ClusterState, intent: Evacuate) -> Flags:
    """By partition: does one of these brokers hold an offline replica of it?"""
    p = state.partitions
    ids = np.array([b.id for b in state.brokers], np.int64)
    lost = p.offline & np.isin(p.replica, ids[_flag_evacuated(state, intent, ids)])
    out = np.zeros(len(p), np.bool_)
    out[np.repeat(np.arange(len(p)), np.diff(p.start))[lost]] = True
    return out


def _counts(state: ClusterState) -> SmallInts:
    p = state.partitions
    kept = np.concatenate(([0], np.cumsum(~p.removing)))
    return np.asarray(kept[p.start[1:]] - kept[p.start[:-1]], np.int32)


def _count_fixed(state: ClusterState, ids: Ints, stays: Flags) -> Ints:
    """By partition: replicas on these brokers."""
    p = state.partitions
    mine = stays[np.searchsorted(ids, p.replica)] & ~p.removing if len(p.replica) else ~p.removing
    kept = np.concatenate(([0], np.cumsum(mine)))
    return np.asarray(kept[p.start[1:]] - kept[p.start[:-1]], np.int64)


def _why_closed(alive: bool, chosen: bool, cordoned: bool, draining: bool) -> str:  # noqa: FBT001
    if not alive:
        return "down"
    if not chosen:
        return "selection"
    if cordoned:
        return "cordoned"
    return "draining" if draining else ""

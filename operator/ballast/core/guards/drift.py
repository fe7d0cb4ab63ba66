"""How a cluster differs from what a plan was made from or wants: codes with figures, their sentences, and what still holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ballast.core.catalogue import Message, Table
from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.plan import Move, Plan
from ballast.core.plan.fingerprint import find_recreated, fingerprint


class Difference(Message):
    """One way in which the cluster is another than the plan says; its sentence has no capital and no full stop."""

    __slots__ = ()
    sentences: ClassVar[Table] = {
        # Since the plan was made.
        "topic-recreated": "topic {topic} was deleted and recreated (its id was {was} and is {now})",
        "replicas-changed": "replicas changed on {count:partitions} of it ({partition} has {replicas:list})",
        "deleted": "{count:partitions} of it deleted ({partition})",
        "already-there": "{count:partitions} of it moved already ({partition})",
        "elsewhere": "other topics or partitions were created, deleted or moved, none of the plan's own",
        # What verify finds of one partition.
        "gone": "the partition does not exist",
        "moving": "it is on its way to {replicas:list}",
        "order": "its replica list is {replicas:list}, wanted is {wanted:list}",
        "replicas": "its replica list is {replicas:list}, wanted is {wanted:list}",
        "out-of-sync": "the replicas on {brokers:list} are not in sync",
    }


@dataclass(frozen=True, slots=True)
class Drift:
    """What has changed since the plan was made."""

    same_fingerprint: bool
    changed: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """Partitions of the plan whose replicas are neither the plan's before nor its after; with what they are now."""
    gone: tuple[TopicPartition, ...] = ()
    """Partitions of the plan that do not exist any more."""
    done: tuple[TopicPartition, ...] = ()
    """Partitions that already have the replicas the plan wants."""
    recreated: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Topics of the plan that were deleted and recreated, with their ids then and now."""
    all_done: bool = False
    """Every move of the plan was made already, and none is still in progress."""

    @property
    def touches_plan(self) -> bool:
        """Does the difference concern the plan's own partitions?"""
        return bool(self.changed or self.gone or self.done or self.recreated)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Why the plan does not fit: each kind of difference with its count and its first partition."""
        found = [
            Difference("topic-recreated", {"topic": name, "was": was, "now": now})
            for name, (was, now) in self.recreated.items()
        ]
        for name, replicas in list(self.changed.items())[:1]:
            first = {"count": len(self.changed), "partition": name, "replicas": replicas}
            found.append(Difference("replicas-changed", first))
        for code, names in (("deleted", self.gone), ("already-there", self.done)):
            if names:
                found.append(Difference(code, {"count": len(names), "partition": names[0]}))
        return tuple(found) or (Difference("elsewhere"),)

    def explain(self) -> str:
        """The same for people."""
        return "; ".join(map(str, self.differences))


def drift(plan: Plan, state: ClusterState) -> Drift:
    """Compare the plan's picture with the present one."""
    same = fingerprint(state) == plan.fingerprint
    changed: dict[TopicPartition, tuple[int, ...]] = {}
    gone: list[TopicPartition] = []
    done: list[TopicPartition] = []
    for move in plan.moves:
        row = state.index.get(move.name)
        if row is None:
            gone.append(move.name)
            continue
        now = state.target(row)
        if now == move.new and move.new != move.old:
            done.append(move.name)
        elif now != move.old:
            changed[move.name] = now
    gone += [name for name in plan.elections if name not in state.index]
    return Drift(
        same,
        changed,
        tuple(dict.fromkeys(gone)),
        tuple(done),
        topics := find_recreated(plan, state),
        bool(done)
        and len(done) == len(plan.moves)
        and not (gone or topics or any(state.moving[state.index[name]] for name in done)),
    )


def keep_valid(plan: Plan, found: Drift, state: ClusterState) -> Plan:
    """The part of the plan that still holds: changed, gone and finished partitions and recreated topics are left out."""
    out = {*found.changed, *found.gone, *found.done}
    elections = [n for n in plan.elections if n not in {*found.changed, *found.gone}]
    if found.all_done:
        rows = ((n, state.index[n]) for n in elections)
        elections = [n for n, row in rows if state.partitions.leader[row] != state.preferred[row]]
    return replace(
        plan,
        moves=tuple(m for m in plan.moves if m.name not in out and m.topic not in found.recreated),
        elections=tuple(n for n in elections if n.topic not in found.recreated),
        fingerprint=fingerprint(state),
    )


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One partition that is not as the plan wanted it."""

    name: TopicPartition
    difference: Difference


def mismatches(moves: tuple[Move, ...], state: ClusterState) -> list[Mismatch]:
    """What a verify finds, by partition: gone, still moving, elsewhere, in another order, out of sync."""
    out = []
    for move in sorted(moves, key=lambda m: m.name):
        found = _mismatch(move, state)
        if found is not None:
            out.append(Mismatch(move.name, found))
    return out


def _mismatch(move: Move, state: ClusterState) -> Difference | None:
    row = state.index.get(move.name)
    if row is None:
        return Difference("gone")
    now = state.target(row)
    if bool(state.moving[row]):
        return Difference("moving", {"replicas": now})
    if now != move.new:
        code = "order" if set(now) == set(move.new) else "replicas"
        return Difference(code, {"replicas": now, "wanted": move.new})
    lacking = tuple(sorted(set(now) - set(state.isr(row))))
    return Difference("out-of-sync", {"brokers": lacking}) if lacking else None

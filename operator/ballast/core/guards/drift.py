"""How a cluster differs from the picture a plan was made from, in sentences, and what of the plan still holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.cluster.fingerprint import fingerprint, recreated
from ballast.core.plan import Move, Plan


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
    """Topics of the plan that were deleted and made again, with their ids then and now."""
    all_done: bool = False
    """Every move of the plan was made already, and none is still in flight."""

    @property
    def touches_plan(self) -> bool:
        """Does the difference concern the plan's own partitions?"""
        return bool(self.changed or self.gone or self.done or self.recreated)

    def explain(self) -> str:
        """Why the plan does not fit, for people."""
        parts = [
            f"topic {name} was deleted and made again (its id was {before} and is {now})"
            for name, (before, now) in self.recreated.items()
        ]
        if self.changed:
            name, replicas = next(iter(self.changed.items()))
            parts.append(f"{len(self.changed)} of its partitions have other replicas now ({name} has {list(replicas)})")
        if self.gone:
            parts.append(f"{len(self.gone)} no longer exist ({self.gone[0]})")
        if self.done:
            parts.append(f"{len(self.done)} already have the replicas it wants ({self.done[0]})")
        if not parts:
            parts.append("other topics or partitions were created, deleted or moved, none of the plan's own")
        return "; ".join(parts)


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
        topics := recreated(plan, state),
        bool(done)
        and len(done) == len(plan.moves)
        and not (gone or topics or any(state.moving[state.index[name]] for name in done)),
    )


def fitted(plan: Plan, found: Drift, state: ClusterState) -> Plan:
    """The part of the plan that still holds: changed, gone and finished partitions and topics made again are left out."""
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
    code: str
    detail: str


def mismatches(moves: tuple[Move, ...], state: ClusterState) -> list[Mismatch]:
    """What a verify finds, by partition: gone, still moving, elsewhere, in another order, out of sync."""
    out = []
    for move in sorted(moves, key=lambda m: m.name):
        row = state.index.get(move.name)
        if row is None:
            out.append(Mismatch(move.name, "gone", "the partition does not exist"))
            continue
        now = state.target(row)
        if bool(state.moving[row]):
            out.append(Mismatch(move.name, "moving", f"it is on its way to {list(now)}"))
        elif now != move.new:
            word = "order" if set(now) == set(move.new) else "replicas"
            out.append(Mismatch(move.name, word, f"it has {list(now)}, wanted are {list(move.new)}"))
        elif len(state.isr(row)) < len(now):
            lacking = sorted(set(now) - set(state.isr(row)))
            out.append(Mismatch(move.name, "out-of-sync", f"the replicas on {lacking} are not in sync"))
    return out

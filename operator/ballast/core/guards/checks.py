"""What must hold before moves start: each guard answers with a verdict, a value that says who, why and what to do.

A verdict *holds* its move (it is judged again at the next look) or *ends* it (the partition is gone, another process changed
its assignment, it is already there).  An unrelated under-replicated partition elsewhere stops nothing; a partition at its minimum ISR
anywhere stops every move but the ones that repair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, TopicPartition
from ballast.core.cluster.isr import leaves_isr_after_s
from ballast.core.cluster.min_isr import min_isr_of, min_isrs
from ballast.core.guards.verdicts import Value, Verdict, verdict
from ballast.core.plan import Move, Place


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """The partitions that are not well, and the brokers that hold them."""

    neighbours: Mapping[int, TopicPartition] = field(default_factory=dict)
    """Broker to one under-replicated partition on it that no move of ours repairs."""
    at_min_isr: TopicPartition | None = None
    """A partition that has shrunk to its minimum ISR and that no move of ours repairs."""
    min_isr_unknown: TopicPartition | None = None
    """One that lacks a replica and whose topic's minimum is unknown: it may have shrunk to that."""
    isr: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)


def repairs(move: Move, state: ClusterState, row: int) -> bool:
    """Does this move replace or drop a replica that is offline or out of sync?"""
    healthy = set(state.isr(row)) & state.alive
    leaving = set(move.removing)
    return any(b not in healthy and b in leaving for b in state.settled_replicas(row))


def unhealthy_partitions(state: ClusterState, moves: Mapping[TopicPartition, Move]) -> Unhealthy:
    """Find under-replicated partitions; replicas being added do not count, and neither do partitions we repair."""
    p = state.partitions
    lacking = np.concatenate(([0], np.cumsum(~p.in_sync & ~p.adding)))
    rows = np.flatnonzero(lacking[p.start[1:]] > lacking[p.start[:-1]])
    minima = min_isrs(state)
    neighbours: dict[int, TopicPartition] = {}
    isrs: dict[TopicPartition, tuple[int, ...]] = {}
    at_min: TopicPartition | None = None
    unknown: TopicPartition | None = None
    for row in rows.tolist():
        topic = state.topics[int(p.topic[row])]
        name = state.name(row)
        move = moves.get(name)
        if topic.deleting or (move is not None and repairs(move, state, row)):
            continue
        isr = state.isr(row)
        isrs[name] = isr
        for broker in state.settled_replicas(row):
            neighbours.setdefault(broker, name)
        if minima[row] == UNKNOWN:
            unknown = unknown or name
        elif len(isr) <= minima[row]:
            at_min = at_min or name
    return Unhealthy(neighbours, at_min, unknown, isrs)


def cancel_is_safe(old: Sequence[int], isr: Collection[int], alive: Collection[int]) -> bool:
    """Can the old list be given back without an unclean election: is one of it alive and in sync?"""
    return any(b in isr and b in alive for b in old)


def cancel_stops_writes(old: Sequence[int], isr: Collection[int], min_isr: int) -> bool:
    """Would brokers refuse writes with ``acks=all``, which they take now, once nothing but the old list is in sync?"""
    return len([b for b in old if b in isr]) < min_isr <= len(isr)


def rooms(state: ClusterState, incoming: Mapping[Place, int], reserve_share: float) -> dict[Place, int]:
    """Bytes that each broker, and each of its log dirs, can still take; where the free space is unknown nothing is said.

    ``incoming`` are the bytes that copies on their way have yet to write to each broker and each log dir, foreign ones too.
    """
    out: dict[Place, int] = {}
    for b in state.brokers:
        disks: list[tuple[Place, int, int]] = [(b.id, b.usable_bytes, b.capacity_bytes)]
        disks += [((b.id, d.path), d.usable_bytes, d.total_bytes) for d in b.log_dirs]
        for place, free, total in disks:
            if free != UNKNOWN:
                # A disk whose size is not known is at least as large as what is free on it.
                reserve = int(max(total, free) * reserve_share)
                out[place] = free - incoming.get(place, 0) - reserve
    return out


def unknown_rooms(state: ClusterState) -> frozenset[int]:
    """Live brokers whose free space is unknown, in a cluster whose brokers tell it (Kafka 3.3 and newer).

    One that did not answer, or whose every log dir has failed.  Where no broker tells, a plan goes by stated capacities.
    """
    tells = any(d.usable_bytes != UNKNOWN for b in state.brokers for d in b.log_dirs)
    return frozenset(b.id for b in state.brokers if tells and b.alive and b.usable_bytes == UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Unknown:
    """Brokers of which it is unknown how much they can take."""

    silent: Collection[int]
    """They do not tell their free space."""
    unsized: Mapping[int, TopicPartition]
    """A partition of unknown size is being copied there."""

    def verdict(self, move: Move, broker: Broker) -> Verdict | None:
        """Against a copy onto this broker."""
        code = "destination-space-unknown"
        if broker.id in self.silent and not broker.log_dirs:
            return verdict(code, broker.id, cause="unreachable", broker=broker.id, partition=move.name)
        if broker.id in self.silent:
            return verdict(code, broker.id, broker=broker.id, partition=move.name, failed=_failed_dirs(broker))
        if broker.id in self.unsized:
            other = self.unsized[broker.id]
            return verdict(code, broker.id, cause="unsized", broker=broker.id, partition=move.name, other=other)
        return None


def judge(
    waiting: Iterable[Move],
    state: ClusterState,
    *,
    ours: Mapping[TopicPartition, Move],
    room: Mapping[Place, int],
    unsized: Mapping[int, TopicPartition] | None = None,
    sizes: Mapping[TopicPartition, int] | None = None,
    under_replicated_neighbours: bool = True,
    allow_unknown_disk_space: bool = False,
    allow_replicas_below_min_isr: bool = False,
) -> dict[TopicPartition, Verdict]:
    """Judge every waiting move on this picture; a move without a verdict may start.

    Nothing is copied that is not known to fit: neither onto a broker whose free space is not known, nor where a copy of unknown size
    is on its way, nor a partition whose size is not known, unless ``allow_unknown_disk_space``.  No replica is added where brokers would
    refuse writes until it is in sync, unless ``allow_replicas_below_min_isr``.

    ``ours`` are all moves of the run that have not ended, waiting or in progress; ``room`` is what ``rooms`` said, ``unsized`` are
    the brokers to which copies of unknown size are on their way, with one such partition each, ``sizes`` is what the last full
    reading said of each partition, also where its replicas are others by now.
    """
    unhealthy = unhealthy_partitions(state, ours)
    # Where no broker tells its room, a copy of unknown size makes nothing unknown that was known.
    waited_for = {b: name for b, name in (unsized or {}).items() if b in room}
    unknown = None if allow_unknown_disk_space else _Unknown(unknown_rooms(state), waited_for)
    verdicts: dict[TopicPartition, Verdict] = {}
    for move in waiting:
        size = (sizes or {}).get(move.name, UNKNOWN)
        found = _partition(move, state) or _destinations(move, state, room, size, unknown) or _in_sync(move, state)
        if found is None and not allow_replicas_below_min_isr:
            found = _below_min_isr(move, state)
        if found is None and move.adding and not _repairs(move, state):
            found = _health(move, state, unhealthy, under_replicated_neighbours=under_replicated_neighbours)
        if found is not None:
            verdicts[move.name] = found
    return verdicts


def _repairs(move: Move, state: ClusterState) -> bool:
    return repairs(move, state, state.index[move.name])


def _partition(move: Move, state: ClusterState) -> Verdict | None:
    """Is the partition still the one that the plan spoke of?"""
    row = state.index.get(move.name)
    if row is None or state.topics[int(state.partitions.topic[row])].deleting:
        return verdict("deleted", move.name, partition=move.name)
    if bool(state.moving[row]):
        return in_flight(move, state.target(row))
    return _at_rest(move, state.target(row), int(state.partitions.leader[row]))


def in_flight(move: Move, target: tuple[int, ...]) -> Verdict | None:
    """A partition that is being moved: by us, or to the same place, or by a foreign reassignment."""
    if set(target) == set(move.new):
        return None
    return verdict("foreign-reassignment", move.name, partition=move.name, replicas=target)


def _at_rest(move: Move, replicas: tuple[int, ...], leader: int) -> Verdict | None:
    name = move.name
    if replicas == move.new:
        return verdict("already-there", name, partition=name, replicas=replicas) if move.log_dirs is None else None
    if set(replicas) not in (set(move.old), set(move.new)):
        return verdict("modified-externally", name, partition=name, replicas=replicas, planned=move.old)
    if move.adding and leader < 0:
        return verdict("no-leader", name, partition=name, replicas=move.old)
    return None


def _destinations(
    move: Move, state: ClusterState, room: Mapping[Place, int], known: int, unknown: _Unknown | None
) -> Verdict | None:
    """Can they take it?  ``unknown`` are brokers of unknown room; None where what is not known is trusted to fit."""
    # A plan may be older than what producers have written since.
    size = max(move.size_bytes, known, _present_size(state, move.name))
    for broker_id in move.adding:
        broker = state.broker(broker_id)
        if broker is None or not broker.alive:
            return verdict("destination-down", broker_id, broker=broker_id, partition=move.name)
        if broker.cordoned:
            return verdict("destination-cordoned", broker_id, broker=broker_id, partition=move.name)
        if (refusal := _no_room(move, broker, state, room, size, unknown)) is not None:
            return refusal
    return _other_dirs(move, state, room, size, unknown)


def _other_dirs(
    move: Move, state: ClusterState, room: Mapping[Place, int], size: int, unknown: _Unknown | None
) -> Verdict | None:
    """A replica that stays on its broker and changes its log dir is a copy as well: it must fit beside the one that is there."""
    for broker_id, path in move.named_dirs.items():
        broker = state.broker(broker_id)
        if broker is None or broker_id in move.adding or _lies_in(state, move.name, broker, path):
            continue
        if (refusal := _no_room(move, broker, state, room, size, unknown)) is not None:
            return refusal
    return None


def _no_room(
    move: Move, broker: Broker, state: ClusterState, room: Mapping[Place, int], size: int, unknown: _Unknown | None
) -> Verdict | None:
    """A copy onto this broker that does not fit, or of which it is unknown whether it does."""
    if unknown is not None:
        if (refusal := unknown.verdict(move, broker)) is not None:
            return refusal
        if size == UNKNOWN:
            held = state.settled_replicas(state.index[move.name])
            return verdict("size-unknown", move.name, partition=move.name, replicas=tuple(held))
    return _full(move, broker, size, room)


def _lies_in(state: ClusterState, name: TopicPartition, broker: Broker, path: str) -> bool:
    """Is its replica known to be in this log dir already?"""
    row, p = state.index[name], state.partitions
    run = slice(int(p.start[row]), int(p.start[row + 1]))
    places = p.log_dir[run][p.replica[run] == broker.id].tolist()
    return any(at != UNKNOWN and broker.log_dirs[at].path == path for at in places)


def _in_sync(move: Move, state: ClusterState) -> Verdict | None:
    """Would fewer replicas be in sync afterwards, because one that is not stays and one that is goes?

    Every replica that is added is in sync when a move ends; nothing brings the others into sync.
    """
    row = state.index[move.name]
    if bool(state.moving[row]):
        return None
    healthy = set(state.isr(row)) & state.alive
    lagging = [b for b in move.new if b not in move.adding and b not in healthy]
    if not lagging or len(move.new) - len(lagging) >= len(healthy):
        return None
    going = [b for b in move.removing if b in healthy]
    return verdict(
        "drops-in-sync",
        move.name,
        partition=move.name,
        keeps=lagging[0],
        gives_up=going[0],
        in_sync=tuple(sorted(healthy)),
        isr_within_s=_isr_within_s(state, move.name),
    )


def _below_min_isr(move: Move, state: ClusterState) -> Verdict | None:
    """Would its leader refuse writes with ``acks=all`` that it takes now, until what is added is in sync?"""
    row = state.index[move.name]
    held, in_sync = set(state.replicas(row)), len(state.isr(row))
    now, meanwhile = (min_isr_of(state, move.name, len(replicas)) for replicas in (held, held.union(move.new)))
    if not now <= in_sync < meanwhile:
        return None
    wanted = state.topics[int(state.partitions.topic[row])].min_isr
    return verdict("replicas-below-min-isr", move.name, partition=move.name, replicas=len(held), min_isr=wanted)


def _isr_within_s(state: ClusterState, name: TopicPartition) -> float:
    return leaves_isr_after_s(state, int(state.partitions.leader[state.index[name]]))


def _present_size(state: ClusterState, name: TopicPartition) -> int:
    row = state.index[name]
    p = state.partitions
    return int(p.size_bytes[p.start[row] : p.start[row + 1]].max())


def _failed_dirs(broker: Broker) -> tuple[str, ...]:
    return tuple(d.path for d in broker.log_dirs if d.failed)


def _full(move: Move, broker: Broker, size: int, room: Mapping[Place, int]) -> Verdict | None:
    """Does the replica not fit: on the broker's disks together, or in the log dir that the move asks for?"""
    for place in move.places(broker.id):
        free = room.get(place)
        if free is not None and size > free:
            return verdict(
                "destination-full",
                broker.id,
                cause="" if isinstance(place, int) else "log-dir",
                broker=broker.id,
                log_dir="" if isinstance(place, int) else place[1],
                partition=move.name,
                free=max(free, 0),
                size=size,
                failed=_failed_dirs(broker),
            )
    return None


def _health(
    move: Move, state: ClusterState, unhealthy: Unhealthy, *, under_replicated_neighbours: bool
) -> Verdict | None:
    def lacks(code: str, of: TopicPartition, **values: Value) -> Verdict:
        figures = {"in_sync": unhealthy.isr[of], **values}
        return Verdict(code, figures, subject=str(of), isr_within_s=_isr_within_s(state, of))

    if (name := unhealthy.at_min_isr) is not None:
        return lacks("at-min-isr", name, partition=name)
    if (name := unhealthy.min_isr_unknown) is not None:
        return lacks("min-isr-unknown", name, partition=name)
    if not under_replicated_neighbours:
        return None
    for broker in (*move.old, *move.adding):
        if (name := unhealthy.neighbours.get(broker)) is not None:
            return lacks("under-replicated", name, other=name, broker=broker, partition=move.name)
    return None

"""Which waiting moves start next: a stream bounded by caps, ordered so that the longest road is never idle.

List scheduling: the makespan is set by the busiest link (a broker's receiving or sending side), so moves that use the link
with the most work left go first, larger ones before smaller ones.  Moves that relieve a nearly full disk come before all
others, moves onto one come last.  Pure; O(n log n) in the waiting moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

from ballast.core.plan import Move, Place
from ballast.core.throttles import SAFE_SHARE

JSON_BYTES_PER_MOVE: Final = 40
"""Of Kafka's reassignment JSON, besides the topic's name and the broker ids."""

STAGGER_S: Final = 2.0
"""Work, in seconds of a destination's throttle, that one choice may start there besides its first move.

A throttle is shared by a broker's moves, so one move fills the link as well as four; started one after another, they also end
one after another, and there is always one to go on while the next is chosen.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Limits that hold at every moment."""

    moves_in_per_broker: int
    moves_out_per_broker: int
    moves_at_once: int
    bytes_at_once: int | None = None
    json_bytes: int | None = None
    """Size of the whole batch as Kafka's JSON, where one znode must hold it."""


@dataclass(frozen=True, slots=True)
class Load:
    """One move as the links see it."""

    move: Move
    leader: int
    """The broker that sends, -1 where there is none now."""
    left_bytes: int
    """Bytes still to be copied, as far as sizes are known."""
    inbound_bytes_per_s: float = 0.0
    size_unknown: bool = False
    """Then any number of bytes may be left."""

    @property
    def fills(self) -> tuple[int, ...]:
        """Brokers whose disks it fills: those that are added, or, where all stay, those whose log dir it names."""
        return self.move.adding or tuple(self.move.named_dirs)


@dataclass(slots=True)
class _Links:
    """What the admitted moves use of each cap."""

    into: Counter[int] = field(default_factory=Counter)
    out: Counter[int] = field(default_factory=Counter)
    inbound_in: Counter[int] = field(default_factory=Counter)
    inbound_out: Counter[int] = field(default_factory=Counter)
    fresh_in: Counter[int] = field(default_factory=Counter)
    """Bytes of the moves admitted in this very choice, per destination."""
    moves: int = 0
    left_bytes: int = 0
    sizes_unknown: bool = False
    json_bytes: int = 60

    def add(self, load: Load, *, fresh: bool = False) -> None:
        fan = len(load.move.adding)
        if fresh:
            for b in load.move.adding:
                self.fresh_in[b] += load.left_bytes // fan
        self.into.update(load.move.adding)
        self.out[load.leader] += 1
        for b in load.move.adding:
            self.inbound_in[b] += int(load.inbound_bytes_per_s)
        self.inbound_out[load.leader] += int(load.inbound_bytes_per_s * fan)
        self.moves += 1
        self.left_bytes += load.left_bytes
        self.sizes_unknown |= load.size_unknown
        self.json_bytes += json_bytes(load.move)


def json_bytes(move: Move) -> int:
    """About how long this move is in Kafka's reassignment JSON; never under-estimated."""
    return JSON_BYTES_PER_MOVE + len(move.topic) + 12 + sum(len(str(b)) + 1 for b in move.new)


Urgency = tuple[int, float, int]
"""Relief, road and size: see ``_urgencies``."""
_Turn = tuple[int, int, float, int, int]


def choose(
    waiting: Sequence[Load],
    active: Collection[Load],
    caps: Caps,
    *,
    rates: Mapping[int, int],
    room: Mapping[Place, int],
    full: Collection[int] = (),
) -> list[Move]:
    """The waiting moves that may start now, in the order in which they should."""
    links = _Links()
    for load in active:
        links.add(load)
    left = dict(room)
    out: list[Move] = []
    queues: dict[int, list[tuple[Urgency, int]]] = {}
    for i, urgency in enumerate(_urgencies(waiting, active, rates, full)):
        queues.setdefault(waiting[i].leader, []).append((urgency, i))
    for queue in queues.values():
        queue.sort(reverse=True)

    def turn(sender: int) -> _Turn:
        """The most urgent move of a sender, among those of others: relief first, then who sends least."""
        (relief, road, size), i = queues[sender][-1]
        return relief, links.out[sender], road, size, i

    # Only a sender's own moves change what it sends: one place in the heap for each keeps ten thousand moves quick.
    heap = [turn(sender) for sender in queues]
    heapify(heap)
    while heap and links.moves < caps.moves_at_once:
        *_, i = heappop(heap)
        load = waiting[i]
        queues[load.leader].pop()
        if _fits(load, links, caps, rates, left):
            links.add(load, fresh=True)
            for place in (p for b in load.fills for p in load.move.places(b) if p in left):
                left[place] -= load.left_bytes // len(load.fills)
            out.append(load.move)
        if queues[load.leader]:
            heappush(heap, turn(load.leader))
    return out


def _fits(load: Load, links: _Links, caps: Caps, rates: Mapping[int, int], room: Mapping[Place, int]) -> bool:
    move = load.move
    fan = len(move.adding)
    if links.moves and _exceeds(load, links, caps):
        return False
    if load.leader >= 0:
        if links.out[load.leader] >= caps.moves_out_per_broker:
            return False
        if _exceeds_rate(links.inbound_out[load.leader], load.inbound_bytes_per_s * fan, rates.get(load.leader)):
            return False
    size = load.left_bytes // max(len(load.fills), 1)
    if any(size > room[place] for b in load.fills for place in move.places(b) if place in room):
        return False
    if any(_lockstep(links.fresh_in[b], size, rates.get(b)) for b in move.adding):
        return False
    return all(
        links.into[b] < caps.moves_in_per_broker
        and not _exceeds_rate(links.inbound_in[b], load.inbound_bytes_per_s, rates.get(b))
        for b in move.adding
    )


def _exceeds(load: Load, links: _Links, caps: Caps) -> bool:
    """Would the batch be longer, or more bytes be in flight, than may be?  What may be any number of bytes goes alone."""
    longer = caps.json_bytes is not None and links.json_bytes + json_bytes(load.move) > caps.json_bytes
    unknown = load.size_unknown or links.sizes_unknown
    most = caps.bytes_at_once
    return longer or (most is not None and (unknown or links.left_bytes + load.left_bytes > most))


def _lockstep(fresh: int, size: int, rate: int | None) -> bool:
    """Would large moves that start together also end together, and leave the link idle until the next look?"""
    return rate is not None and fresh > 0 and fresh + size > rate * STAGGER_S


def _exceeds_rate(inbound: int, more: float, rate: int | None) -> bool:
    """Would producers write to the moving partitions faster than the throttle lets the copies follow?"""
    return rate is not None and inbound > 0 and inbound + more > rate * SAFE_SHARE


def _urgencies(
    waiting: Sequence[Load], active: Collection[Load], rates: Mapping[int, int], full: Collection[int]
) -> list[Urgency]:
    """How urgent each waiting move is among those of its sender, least first.

    Relief of full disks first, then by the work left on the busiest link each uses.  Between the two comes, among the moves of
    all senders, whose sender is least busy: a destination that is filled from one sender alone gets no more than that sender's
    rate, however many moves it has.
    """
    into: Counter[int] = Counter()
    out: Counter[int] = Counter()
    for load in (*waiting, *active):
        fan = len(load.move.adding)
        for b in load.move.adding:
            into[b] += load.left_bytes // max(fan, 1)
        out[load.leader] += load.left_bytes
    usual = max(rates.values(), default=1)

    def urgency(load: Load) -> Urgency:
        relief = (
            0 if any(b in full for b in load.move.removing) else 2 if any(b in full for b in load.move.adding) else 1
        )
        roads = [into[b] / rates.get(b, usual) for b in load.move.adding]
        roads.append(out[load.leader] / rates.get(load.leader, usual))
        return relief, -max(roads), -load.left_bytes

    return [urgency(load) for load in waiting]

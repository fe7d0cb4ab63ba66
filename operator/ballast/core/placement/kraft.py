"""Where a KRaft controller puts replicas: ``StripedReplicaPlacer`` of Kafka 4.x, from the same seed to the same lists.

KRaft controllers place new topics and new partitions so, and ``kafka-reassign-partitions --generate`` does since 4.1.
A live controller's generator is not seeded: what this module draws is one sample of what the cluster might do.

Racks take turns, and within a rack brokers take turns, each from a random start.  After as many partitions as there are
unfenced brokers everything is shuffled.  Fenced brokers (registered, not serving) come last and never first in a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ballast.core.placement.classic import (
    Assignment,
    InvalidReplicationFactor,
    Placeable,
    RackMode,
    check_sizes,
    effective_racks,
)
from ballast.core.placement.java_random import JavaRandom, hash_map_order, utf16


@dataclass(slots=True)
class _Ring:
    """Brokers that take turns; each round of the placer starts one further on."""

    brokers: list[int] = field(default_factory=list)
    taken: int = 0
    offset: int = 0
    round: int = 0

    def prepare(self, rng: JavaRandom) -> None:
        if self.brokers:
            self.brokers.sort()
            self.offset = rng.next_int(len(self.brokers))

    def next(self, current_round: int) -> int | None:
        if not self.brokers:
            return None
        if self.round != current_round:
            self.round = current_round
            self.taken = 0
            self.offset = (self.offset + 1) % len(self.brokers)
        if self.taken >= len(self.brokers):
            return None
        broker = self.brokers[(self.taken + self.offset) % len(self.brokers)]
        self.taken += 1
        return broker


@dataclass(slots=True)
class _Rack:
    """A rack's unfenced and fenced brokers."""

    unfenced: _Ring = field(default_factory=_Ring)
    fenced: _Ring = field(default_factory=_Ring)

    def rings(self) -> tuple[_Ring, _Ring]:
        """In the order in which Kafka prepares and shuffles them."""
        return self.fenced, self.unfenced

    def next(self, current_round: int) -> int | None:
        broker = self.unfenced.next(current_round)
        return broker if broker is not None else self.fenced.next(current_round)


class _Racks:
    """All racks of one placement; good for one topic, as in Kafka."""

    def __init__(self, brokers: Iterable[tuple[int, str | None, bool]], rng: JavaRandom) -> None:
        self._rng = rng
        self._racks: dict[str | None, _Rack] = {}
        self.unfenced = 0
        for broker, name, fenced in brokers:
            rack = self._racks.setdefault(name, _Rack())
            (rack.fenced if fenced else rack.unfenced).brokers.append(broker)
            self.unfenced += not fenced
        # Kafka visits its racks in HashMap order, here and in every shuffle, and draws numbers as it goes.
        self._visit = [self._racks[name] for name in hash_map_order(list(self._racks))]
        for rack in self._visit:
            for ring in rack.rings():
                ring.prepare(rng)
        # The rack of brokers without one comes first.
        self._names = sorted(self._racks, key=lambda name: (name is not None, utf16(name or "")))
        self._offset = rng.next_int(len(self._names)) if self._names else 0
        self._round = 0

    def place(self, replication_factor: int) -> tuple[int, ...]:
        if self._round == self.unfenced and self.unfenced > 1:
            self._shuffle()
            self._round = 0
        if self._offset == len(self._names):
            self._offset = 0
        turn = self._offset
        leader = self._racks[self._names[turn]].unfenced.next(self._round)
        while leader is None:
            turn = (turn + 1) % len(self._names)
            leader = self._racks[self._names[turn]].unfenced.next(self._round)
        replicas = [leader, *self._followers(replication_factor - 1, leader_turn=turn)]
        self._round += 1
        self._offset += 1
        return tuple(replicas)

    def _followers(self, count: int, *, leader_turn: int) -> list[int]:
        """Go round the racks from this partition's first, passing over the leader's rack once."""
        found: list[int] = []
        passed_leader = False
        turn = self._offset
        while len(found) < count:
            if turn == leader_turn and not passed_leader:
                passed_leader = True
            else:
                broker = self._racks[self._names[turn]].next(self._round)
                if broker is not None:
                    found.append(broker)
            turn = (turn + 1) % len(self._names)
        return found

    def _shuffle(self) -> None:
        self._rng.shuffle(self._names)
        for rack in self._visit:
            for ring in rack.rings():
                self._rng.shuffle(ring.brokers)


def place_kraft(
    brokers: Sequence[Placeable],
    partitions: int,
    replication_factor: int,
    rng: JavaRandom,
    *,
    fenced: frozenset[int] = frozenset(),
    start_partition: int = 0,
    rack_aware: RackMode | None = None,
) -> Assignment:
    """Place a topic's partitions, numbered from ``start_partition``, which changes the numbers and nothing else.

    Without ``rack_aware`` racks count as the controller counts them: brokers without one are one rack more.  The modes
    of ``assign_replicas`` do what they do there; the stock tool's is ``enforced``.  The order of ``brokers`` matters only
    where two rack names share a hash bin.
    """
    check_sizes(len(brokers), partitions, replication_factor)
    by_id: Mapping[int, str | None] = {b.id: b.rack for b in brokers}
    if rack_aware is not None:
        by_id = effective_racks(brokers, rack_aware) or {}
    racks = _Racks(((b.id, by_id.get(b.id), b.id in fenced) for b in brokers), rng)
    if racks.unfenced == 0:
        raise InvalidReplicationFactor("All brokers are fenced at present.", hint="Start a broker first.")
    return {start_partition + i: racks.place(replication_factor) for i in range(partitions)}

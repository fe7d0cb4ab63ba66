"""Where Kafka puts replicas: ``AdminUtils.assignReplicasToBrokers``, bit for bit, and what surrounds it.

This is the placement of ZooKeeper-mode controllers and of the stock tools up to 4.0.  KRaft controllers, and
``kafka-reassign-partitions --generate`` since 4.1, use another one: see ``core.placement.kraft``.  ``core.placement.naive`` is neither.

Replica lists are tuples of broker ids, the preferred leader first.  Positions below are positions in the list that the
walk uses: the brokers as given (rack-unaware), or the rack-alternated list (rack-aware).  Nothing here knows load.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Final, Literal, Protocol

from ballast.core.placement.java_random import utf16
from ballast.errors import UsageError

RackMode = Literal["enforced", "safe", "disabled"]
"""``enforced``: racks count, and either every broker has one or none has.  ``safe``: racks count if every broker has
one.  ``disabled``: racks are ignored."""

RACK_MODES: Final[tuple[RackMode, ...]] = ("enforced", "safe", "disabled")

_MOST_DIGITS: Final = 20

Assignment = dict[int, tuple[int, ...]]
"""Partition number to replica list."""


class Placeable(Protocol):
    """Anything with a broker id and perhaps a rack; ``core.cluster.Broker`` is one."""

    @property
    def id(self) -> int:
        """The broker id."""
        ...

    @property
    def rack(self) -> str | None:
        """The rack's name or None."""
        ...


class Draws(Protocol):
    """A source of random positions: ``random.Random`` or ``core.placement.java_random.JavaRandom``."""

    def randrange(self, stop: int, /) -> int:
        """A number of ``[0, stop)``."""
        ...


@dataclass(frozen=True, slots=True)
class BrokerMetadata:
    """A broker as placement sees it."""

    id: int
    rack: str | None = None


class InvalidPartitions(UsageError):
    """The number of partitions makes no sense (Kafka: InvalidPartitionsException)."""

    id = "invalid-partitions"


class InvalidReplicationFactor(UsageError):
    """The replication factor makes no sense here (Kafka: InvalidReplicationFactorException)."""

    id = "invalid-replication-factor"


class IncompleteRacks(UsageError):
    """Some brokers have a rack and some have none (Kafka: AdminOperationException)."""

    id = "incomplete-racks"


class InvalidReplicaAssignment(UsageError):
    """A replica list written by a person cannot be used (Kafka: InvalidReplicaAssignmentException)."""

    id = "invalid-replica-assignment"


def assign_replicas(
    brokers: Sequence[Placeable],
    partitions: int,
    replication_factor: int,
    *,
    start_index: int | None = None,
    replica_shift: int | None = None,
    start_partition: int = 0,
    rack_aware: RackMode = "enforced",
    rng: Draws | None = None,
) -> Assignment:
    """Place ``partitions`` partitions, numbered from ``start_partition``.

    ``start_index`` is the position of partition 0's first replica, ``replica_shift`` the distance of its followers; a
    ``start_index`` alone fixes both, as Kafka's ``fixedStartIndex`` does.  What is not given is drawn from ``rng``, the
    start first; without an ``rng`` from one without a seed, as Kafka does, and the result cannot be repeated.

    Raises ``InvalidPartitions``, ``InvalidReplicationFactor`` or ``IncompleteRacks``.
    """
    check_sizes(len(brokers), partitions, replication_factor)
    racks = effective_racks(brokers, rack_aware)
    order = [b.id for b in brokers] if racks is None else rack_alternated(racks)
    for name, value in (("start_index", start_index), ("replica_shift", replica_shift)):
        if value is not None and value < 0:
            raise UsageError(f"{name} must not be negative, and is {value}.")
    draws = rng if rng is not None else Random()
    if start_index is None:
        start = draws.randrange(len(order))
        shift = draws.randrange(len(order)) if replica_shift is None else replica_shift
    else:
        start = start_index
        shift = start_index if replica_shift is None else replica_shift
    numbers = range(max(0, start_partition), max(0, start_partition) + partitions)
    if racks is None:
        return _walk(order, numbers, replication_factor, start, shift)
    return _walk_racks(order, racks, numbers, replication_factor, start, shift)


def check_sizes(brokers: int, partitions: int, replication_factor: int) -> None:
    """Refuse what Kafka refuses, in its order."""
    if partitions <= 0:
        raise InvalidPartitions(f"The number of partitions must be larger than 0, and is {partitions}.")
    if replication_factor <= 0:
        raise InvalidReplicationFactor(f"The replication factor must be larger than 0, and is {replication_factor}.")
    if replication_factor > brokers:
        raise InvalidReplicationFactor(
            f"The replication factor {replication_factor} is larger than the number of available brokers, {brokers}.",
            hint="Add brokers, or ask for fewer replicas.",
        )


def effective_racks(brokers: Iterable[Placeable], mode: RackMode) -> dict[int, str] | None:
    """Broker id to rack, or None where racks do not count; raises ``IncompleteRacks`` in mode ``enforced``."""
    if mode not in RACK_MODES:
        raise UsageError(f"Rack awareness is {', '.join(RACK_MODES)}, not {mode!r}.")
    racks: dict[int, str | None] = {}
    for b in brokers:
        if b.id in racks:
            raise UsageError(f"Broker {b.id} is listed more than once.")
        racks[b.id] = b.rack
    named = {i: rack for i, rack in racks.items() if rack is not None}
    if mode == "disabled" or not named:
        return None
    if len(named) == len(racks):
        return named
    if mode == "safe":
        return None
    bare = sorted(i for i in racks if i not in named)
    raise IncompleteRacks(
        "Not all brokers have rack information for replica rack aware assignment: "
        f"{'broker' if len(bare) == 1 else 'brokers'} {', '.join(map(str, bare))} {'has' if len(bare) == 1 else 'have'} none.",
        hint="Set broker.rack there, or place without racks (--disable-rack-aware).",
    )


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """One broker of each rack in turn, racks by name and brokers by id, until every rack is exhausted."""
    by_rack: defaultdict[str, list[int]] = defaultdict(list)
    for broker in sorted(racks, reverse=True):
        by_rack[racks[broker]].append(broker)
    order: list[int] = []
    # Kafka sorts names as Java does, by UTF-16 code unit.
    for rack in cycle(sorted(by_rack, key=utf16)):
        if len(order) == len(racks):
            break
        if by_rack[rack]:
            order.append(by_rack[rack].pop())
    return order


def follower_position(first: int, shift: int, follower: int, brokers: int) -> int:
    """The position of the ``follower``-th follower (from 0) of a partition whose first replica is at ``first``."""
    return (first + 1 + (shift + follower) % (brokers - 1)) % brokers


def _walk(order: list[int], numbers: range, replication_factor: int, start: int, shift: int) -> Assignment:
    n = len(order)
    out: Assignment = {}
    for number in numbers:
        if number > 0 and number % n == 0:
            shift += 1
        first = (number + start) % n
        followers = (follower_position(first, shift, j, n) for j in range(replication_factor - 1))
        out[number] = (order[first], *(order[i] for i in followers))
    return out


def _walk_racks(
    order: list[int], racks: Mapping[int, str], numbers: range, replication_factor: int, start: int, shift: int
) -> Assignment:
    n = len(order)
    all_racks = len(set(racks.values()))
    out: Assignment = {}
    for number in numbers:
        if number > 0 and number % n == 0:
            shift += 1
        first = (number + start) % n
        replicas = [order[first]]
        used = {racks[order[first]]}
        step = 0
        while len(replicas) < replication_factor:
            broker = order[follower_position(first, shift * all_racks, step, n)]
            step += 1
            # As replication_factor <= n, a broker without a replica of this partition always remains to be found.
            if broker not in replicas and (racks[broker] not in used or len(used) == all_racks):
                replicas.append(broker)
                used.add(racks[broker])
        out[number] = tuple(replicas)
    return out


def check_expansion(existing: Mapping[int, Sequence[int]], total: int) -> int:
    """The number of partitions to add; raises ``InvalidPartitions`` unless it is positive."""
    if 0 not in existing:
        raise InvalidPartitions("The topic has no partition 0, which every topic should have.")
    if total <= len(existing):
        raise InvalidPartitions(
            f"The number of partitions can only be increased: there are {len(existing)}, "
            f"and {total} would not be an increase."
        )
    return total - len(existing)


def expansion_start(brokers: Iterable[Placeable], first_replica: int) -> int:
    """Position, by id, of the first broker whose id is at least ``first_replica``; 0 where none is.

    The position is found in the list sorted by id and then used in the list that the walk uses, which with racks is
    another one.  Kafka does so, and the new partitions' first replica may therefore surprise.
    """
    ids = sorted(b.id for b in brokers)
    return next((at for at, i in enumerate(ids) if i >= first_replica), 0)


def expand_replicas(
    brokers: Sequence[Placeable],
    existing: Mapping[int, Sequence[int]],
    total: int,
    *,
    rack_aware: RackMode = "enforced",
) -> Assignment:
    """Place the partitions that a topic lacks to have ``total``; the existing ones are neither moved nor listed."""
    added = check_expansion(existing, total)
    ordered = sorted(brokers, key=lambda b: b.id)
    return assign_replicas(
        ordered,
        added,
        len(existing[0]),
        start_index=expansion_start(ordered, existing[0][0]),
        start_partition=len(existing),
        rack_aware=rack_aware,
    )


def check_manual_expansion(
    existing: Mapping[int, Sequence[int]],
    total: int,
    manual: Mapping[int, Sequence[int]],
    alive: Collection[int],
) -> Assignment:
    """Check a manual assignment of **all** partitions of a topic that grows, and return the new ones.

    The entries of existing partitions are skipped unread, as ``kafka-topics --alter --replica-assignment`` does.
    """
    check_expansion(existing, total)
    if len(manual) != total:
        raise InvalidReplicaAssignment(
            f"The assignment lists {len(manual)} partitions, and the topic is to have {total}.",
            hint="List every partition, the existing ones first.",
        )
    added = {number: tuple(manual[number]) for number in sorted(manual) if number >= len(existing)}
    check_manual(added, alive, replication_factor=len(existing[0]), first_partition=len(existing))
    return added


def check_manual(
    assignment: Mapping[int, Sequence[int]],
    alive: Collection[int],
    *,
    replication_factor: int | None = None,
    first_partition: int = 0,
) -> None:
    """Refuse gaps in the numbering, empty, repeated or unavailable replicas, and unequal replica counts."""
    numbers = sorted(assignment)
    if numbers != list(range(first_partition, first_partition + len(numbers))):
        raise InvalidReplicaAssignment(f"Partitions must be consecutive from {first_partition}, and are {numbers}.")
    for number in numbers:
        replicas = assignment[number]
        if not replicas:
            raise InvalidReplicaAssignment(f"Partition {number} has an empty replica list.")
        if len(set(replicas)) != len(replicas):
            raise InvalidReplicaAssignment(f"Partition {number} lists a broker more than once: {_colons(replicas)}.")
        expected = replication_factor if replication_factor is not None else len(assignment[numbers[0]])
        if len(replicas) != expected:
            raise InvalidReplicaAssignment(
                f"Partition {number} has {len(replicas)} replicas ({_colons(replicas)}) where {expected} are expected."
            )
        missing = sorted(set(replicas) - set(alive))
        if missing:
            raise InvalidReplicaAssignment(
                f"Partition {number} names {'broker' if len(missing) == 1 else 'brokers'} "
                f"{', '.join(map(str, missing))}, which {'is' if len(missing) == 1 else 'are'} not available."
            )


def parse_manual(text: str) -> Assignment:
    """Read ``0:1:2,0:1:2,…``: partitions in order, separated by commas, brokers by colons.

    Space around a broker id is allowed and trailing commas and colons are ignored, as the stock tool does.
    """
    out: Assignment = {}
    for number, entry in enumerate(_java_split(text, ",")):
        replicas = tuple(_broker(piece.strip(), number) for piece in _java_split(entry, ":"))
        if len(set(replicas)) != len(replicas):
            raise InvalidReplicaAssignment(
                f"Partition replica lists may not contain duplicate entries: partition {number} is {_colons(replicas)}."
            )
        out[number] = replicas
        if len(replicas) != len(out[0]):
            raise InvalidReplicaAssignment(
                f"Partition {number} has a different replication factor: {_colons(replicas)} after {_colons(out[0])}."
            )
    return out


def format_manual(assignment: Mapping[int, Sequence[int]]) -> str:
    """Write ``0:1:2,0:1:2,…``; raises ``InvalidReplicaAssignment`` for an assignment that the form cannot say."""
    if sorted(assignment) != list(range(len(assignment))):
        raise InvalidReplicaAssignment("Only partitions numbered from 0 without gaps can be written in this form.")
    return ",".join(_colons(assignment[number]) for number in range(len(assignment)))


def _colons(replicas: Sequence[int]) -> str:
    return ":".join(map(str, replicas))


def _java_split(text: str, separator: str) -> list[str]:
    """``String.split``: empty pieces at the end are dropped, elsewhere they stay."""
    pieces = text.split(separator)
    while len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    return pieces


def _broker(text: str, partition: int) -> int:
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdigit()):
        raise InvalidReplicaAssignment(
            f"Partition {partition} names {text!r}, which is not a broker id.",
            hint="Write brokers as numbers: 0:1:2,1:2:0 gives two partitions three replicas each.",
        )
    # Python refuses to read numbers of some thousand digits.
    broker = int(text) if len(digits) <= _MOST_DIGITS else 1 << 31
    if not 0 <= broker < 1 << 31:
        shown = text if len(digits) <= _MOST_DIGITS else f"{text[:_MOST_DIGITS]}…"
        raise InvalidReplicaAssignment(f"Partition {partition} names broker {shown}; ids run from 0 to 2147483647.")
    return broker

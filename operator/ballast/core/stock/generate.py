"""What ``kafka-reassign-partitions --generate`` and ``--list`` say, as values and as text.

The proposal forgets the present: every topic is placed anew on the brokers of the list, with the number of replicas it
has.  It is the stock tool's answer, not a good one; ``ballast plan`` moves as little as possible instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ballast.core.cluster import Broker, ClusterState, TopicPartition
from ballast.core.placement import RackMode
from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.placer import Algorithm, place, tool_shows_log_dirs
from ballast.core.stock.files import format_reassignment, sort_as_kafka


@dataclass(frozen=True, slots=True)
class GeneratedAssignment:
    """Both sections of the stock tool's answer, and what it does not say."""

    current: Mapping[TopicPartition, tuple[int, ...]]
    proposed: Mapping[TopicPartition, tuple[int, ...]]
    log_dirs: Mapping[tuple[TopicPartition, int], str] = field(default_factory=dict)
    """Where the present replicas are, as far as it is to be shown and known."""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"Current partition replica assignment\n{format_reassignment(self.current, self.log_dirs)}\n\n"
            f"Proposed partition reassignment configuration\n{format_reassignment(self.proposed)}"
        )


def propose(
    state: ClusterState,
    topics: Sequence[str],
    brokers: Sequence[int],
    *,
    algorithm: Algorithm,
    rng: JavaRandom,
    rack_aware: RackMode = "enforced",
    drained: Collection[int] = (),
) -> GeneratedAssignment:
    """Place every topic anew on these brokers.

    As in the stock tool, brokers that are not alive are left out, which may leave too few.  Unlike there, so are cordoned
    ones, which would refuse, and drained ones, which a person wants empty; and a partition in mid-move is shown as it will be, not as the union of old and new, since
    rolled back to the union it would grow.
    """
    warnings = list(_warnings(state, topics, brokers, drained))
    usable = [b for b in _known_brokers(state, brokers) if b.alive and not b.cordoned and b.id not in drained]
    current: dict[TopicPartition, tuple[int, ...]] = {}
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in topics:
        rows = (state.partitions.topic == state.topic_index[topic]).nonzero()[0].tolist()
        targets = {state.name(row): state.target(row) for row in rows}
        factors = [len(replicas) for replicas in targets.values()]
        if len(set(factors)) > 1:
            warnings.append(
                f"The partitions of {topic} differ in replica count; all get the {factors[0]} of the first."
            )
        placed = place(algorithm, usable, len(rows), factors[0], rng, rack_aware=rack_aware)
        current |= targets
        proposed |= {TopicPartition(topic, number): replicas for number, replicas in placed.items()}
    return GeneratedAssignment(current, proposed, shown_log_dirs(state, current), tuple(warnings))


def shown_log_dirs(state: ClusterState, names: Iterable[TopicPartition]) -> dict[tuple[TopicPartition, int], str]:
    """Where these partitions' replicas are, as far as it is known, and where the tool of the cluster's version says it."""
    if not tool_shows_log_dirs(state):
        return {}
    return {place: path for name in names for place, path in _log_dirs(state, state.index[name]).items()}


def describe_moves(moves: Mapping[TopicPartition, tuple[Sequence[int], Sequence[int], Sequence[int]]]) -> str:
    """The text of ``--list`` for moves in progress: replicas (the union), adding, removing."""
    if not moves:
        return "No partition reassignments found."
    lines = ["Current partition reassignments:"]
    for name in sort_as_kafka(moves):
        replicas, adding, removing = (",".join(map(str, ids)) for ids in moves[name])
        line = f"{name}: replicas: {replicas}."
        line += f" adding: {adding}." if adding else ""
        line += f" removing: {removing}." if removing else ""
        lines.append(line)
    return "\n".join(lines)


def _warnings(
    state: ClusterState, topics: Sequence[str], brokers: Sequence[int], drained: Collection[int]
) -> Iterator[str]:
    absent = [b for b in brokers if b not in state.alive]
    if absent:
        yield f"Not alive and excluded, as kafka-reassign-partitions does: broker {', '.join(map(str, absent))}."
    cordoned = [b.id for b in _known_brokers(state, brokers) if b.alive and b.cordoned]
    if cordoned:
        yield f"Cordoned and left out, since they take no replicas: broker {', '.join(map(str, cordoned))}."
    draining = [b.id for b in _known_brokers(state, brokers) if b.alive and not b.cordoned and b.id in drained]
    if draining:
        yield f"Drained and left out: broker {', '.join(map(str, draining))}."
    wanted = {state.topic_index[topic] for topic in topics}
    moving = [
        str(state.name(row)) for row in state.moving.nonzero()[0].tolist() if int(state.partitions.topic[row]) in wanted
    ]
    if moving:
        yield f"In mid-move and shown as they will be: {', '.join(moving)}."


def _known_brokers(state: ClusterState, ids: Sequence[int]) -> list[Broker]:
    return [b for b in map(state.broker, ids) if b is not None]


def _log_dirs(state: ClusterState, row: int) -> dict[tuple[TopicPartition, int], str]:
    p = state.partitions
    name = state.name(row)
    found = {}
    for at in range(int(p.start[row]), int(p.start[row + 1])):
        broker = state.broker(int(p.replica[at]))
        if broker is not None and p.log_dir[at] >= 0:
            found[name, broker.id] = broker.log_dirs[int(p.log_dir[at])].path
    return found

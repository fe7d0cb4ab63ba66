"""The replica lists that Kafka's own algorithm gives topics: what ``ballast plan place`` and the topic rule want.

No plan: ``make_place`` makes one of the lists, and the checker compares a plan with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ballast.core.cluster import Broker, ClusterState, TopicPartition
from ballast.core.cluster.min_isr import replicas_below_min_isr
from ballast.core.placement import Assignment, assign_replicas, effective_racks, rack_alternated
from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.placer import ALGORITHMS, place
from ballast.core.planner.intents import Balance, Expand, Leaders, Place, Selection
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.report.sentences import FEW_REPLICAS
from ballast.errors import UsageError

Lists = dict[TopicPartition, tuple[int, ...]]
BALANCING: Final = (Balance, Leaders, Expand)
"""Intents that leave topics alone whose lists follow Kafka's."""
TRIES: Final = 1_000_000
"""Partitions placed at most while the start and shift are looked for that a topic has already."""


def kafka_placements(state: ClusterState, intent: Place, policy: PlannerPolicy, seed: int) -> Lists:
    """The replica lists that Kafka's algorithm gives each topic, drawn from one generator, topics by name.

    Raises ``UsageError`` where no topic is meant, or one cannot be placed now.
    """
    rng = JavaRandom(seed)
    out: Lists = {}
    for topic, rows in _topics(state, intent, policy):
        usable = [b for b in usable_brokers(state, intent, policy) if _allowed(policy, topic, b.id)]
        present = [state.target(row) for row in rows]
        factor = intent.replication_factor or len(present[0])
        found = _place(intent, usable, present, factor, rng)
        out |= {TopicPartition(topic, number): replicas for number, replicas in found.items()}
    return out


def _topics(state: ClusterState, intent: Place, policy: PlannerPolicy) -> Iterator[tuple[str, list[int]]]:
    topic = state.partitions.topic
    pinned = Selection(topics=policy.pinned_topics)
    any_topic = False
    for at, t in enumerate(state.topics):
        if not intent.selection.topic(t.name):
            continue
        rows = np.flatnonzero(topic == at).tolist()
        if not rows:
            continue
        any_topic = True
        if t.deleting or (policy.pinned_topics is not None and pinned.topic(t.name)):
            raise UsageError(f"Topic {t.name} is {'being deleted' if t.deleting else 'pinned'} and cannot be placed.")
        if bool(state.moving[rows].any()):
            raise UsageError(f"Partitions of {t.name} are being moved.", hint="Place it when that has ended.")
        if refusal := _refusal(state, intent, policy, t.name, rows):
            raise refusal
        yield t.name, rows
    if not any_topic:
        raise UsageError(
            f"No topic matches {intent.selection.topics!r}.", hint="Topics are regular expressions on the whole name."
        )


def _refusal(
    state: ClusterState, intent: Place, policy: PlannerPolicy, topic: str, rows: Sequence[int]
) -> UsageError | None:
    """Why the algorithm has no lists for this topic, whenever it is asked."""
    if any(r.beyond_kafka for r in policy.topic_rules if r.matches(topic)):
        return UsageError(
            f"A topic rule asks more of {topic} than which brokers hold it, and Kafka's placement knows nothing of that.",
            hint="Keep brokers, not_brokers and kafka_placement for topics that Kafka's algorithm places.",
        )
    if [int(n) for n in state.partitions.number[rows]] != list(range(len(rows))):
        return UsageError(f"The partitions of {topic} are not all known.", hint="Read the cluster again.")
    factors = sorted({len(state.target(row)) for row in rows})
    if intent.replication_factor is None and len(factors) > 1:
        return UsageError(
            f"The partitions of {topic} have different replica counts ({', '.join(map(str, factors))}).",
            hint="Say with --replication-factor how many each of them is to have.",
        )
    return None


def kafka_placement_intent(state: ClusterState, policy: PlannerPolicy) -> tuple[Place | None, tuple[str, ...]]:
    """The intent to place topics whose rule says ``kafka_placement``, and a sentence for each that cannot be placed.

    None where no topic can be placed now.  What is pinned, deleted or moved is left out without a word.
    """
    rules = [r for r in policy.topic_rules if r.kafka_placement]
    wanted = Place(selection=Selection(), as_partition_0=True)
    pinned = Selection(topics=policy.pinned_topics)
    few = replicas_below_min_isr(state)
    names, refusals = [], []
    for at, t in enumerate(state.topics):
        if not any(r.matches(t.name) for r in rules) or t.deleting:
            continue
        rows = np.flatnonzero(state.partitions.topic == at).tolist()
        if (policy.pinned_topics is not None and pinned.topic(t.name)) or bool(state.moving[rows].any()) or not rows:
            continue
        if refusal := _refusal(state, wanted, policy, t.name, rows):
            refusals.append(refusal.message)
        elif not policy.replicas_below_min_isr and bool(few[rows].any()):
            refusals.append(f"Topic {t.name} has {FEW_REPLICAS}.")
        else:
            names.append(re.escape(t.name))
    if not names:
        return None, tuple(refusals)
    return replace(wanted, selection=Selection(topics="|".join(names))), tuple(refusals)


def usable_brokers(state: ClusterState, intent: Place, policy: PlannerPolicy) -> list[Broker]:
    """Those that may be given replicas."""
    closed = policy.cordoned | policy.draining
    return [
        b for b in state.brokers if b.alive and not b.cordoned and b.id not in closed and intent.selection.broker(b.id)
    ]


def _allowed(policy: PlannerPolicy, topic: str, broker: int) -> bool:
    return all(r.allows(broker) for r in policy.topic_rules if r.matches(topic))


def _place(
    intent: Place, usable: Sequence[Broker], present: Sequence[tuple[int, ...]], factor: int, rng: JavaRandom
) -> Assignment:
    if intent.algorithm != "classic":
        algorithm = next(a for a in ALGORITHMS if a == intent.algorithm)
        return place(algorithm, usable, len(present), factor, rng)
    if not intent.as_partition_0:
        return assign_replicas(
            usable, len(present), factor, start_index=intent.start, replica_shift=intent.shift, rng=rng
        )
    return _nearest(usable, present, factor)


def _nearest(usable: Sequence[Broker], present: Sequence[tuple[int, ...]], factor: int) -> Assignment:
    """The placement from partition 0's own start, with the shift that changes the fewest lists; of equals the smallest.

    A topic that Kafka has placed keeps its lists, whatever it has drawn.
    """
    racks = effective_racks(usable, "enforced")
    order = [b.id for b in usable] if racks is None else rack_alternated(racks)
    n = len(order)
    first = present[0][0]
    starts = [order.index(first)] if first in order else range(n) if n * n * len(present) <= TRIES else [0]

    def count_changes(start: int, shift: int) -> tuple[int, int, int]:
        found = assign_replicas(usable, len(present), factor, start_index=start, replica_shift=shift)
        return sum(found[i] != members for i, members in enumerate(present)), start, shift

    _, start, shift = min(count_changes(start, shift) for start in starts for shift in range(n))
    return assign_replicas(usable, len(present), factor, start_index=start, replica_shift=shift)

"""The replica lists that Kafka's own algorithm gives topics, as a plan: what ``ballast plan place`` and the topic rule want.

No search: the lists are computed, and the plan tells what reaching them costs.  It shows beside it what balancing the same topics
would have moved instead, and how the lists fare when brokers are lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ballast.core.cluster import Broker, ClusterState, Ints, TopicPartition
from ballast.core.cluster.fingerprint import fingerprint, with_topic_ids
from ballast.core.cluster.min_isr import replicas_below_min_isr
from ballast.core.placement import Assignment, assign_replicas, effective_racks, rack_alternated
from ballast.core.placement.colocation import colocation
from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.naive import naive_layout
from ballast.core.placement.placer import ALGORITHMS, place
from ballast.core.plan import Move, Plan, Reason
from ballast.core.planner.intents import Balance, Expand, Leaders, Place, Selection
from ballast.core.planner.loads import Loads
from ballast.core.planner.moves import least_known
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.question import Question
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
        usable = [b for b in _usable(state, intent, policy) if _allowed(policy, topic, b.id)]
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


def _usable(state: ClusterState, intent: Place, policy: PlannerPolicy) -> list[Broker]:
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


def place_moves(state: ClusterState, loads: Loads, lists: Lists, intent: Place) -> tuple[Move, ...]:
    """The moves to these lists, those first that copy nothing."""
    reason = Reason(
        "placement", f"Kafka's {intent.algorithm} placement" if intent.algorithm != "naive" else "naive layout"
    )
    moves = []
    for name, new in lists.items():
        row = state.index[name]
        size = loads.known_bytes[row]
        if (old := state.target(row)) != new:
            moves.append(Move(name.topic, name.partition, old, new, size, reason))
    return tuple(sorted(moves, key=lambda m: bool(m.adding)))


def make_place(
    state: ClusterState, intent: Place, *, loads: Loads | None, policy: PlannerPolicy | None, seed: int
) -> Plan:
    """The plan to the lists that the algorithm gives."""
    # Compiled code, which the lists alone do not need.
    from ballast.core.planner.bound.bound import bound_of  # noqa: PLC0415
    from ballast.core.planner.checker.checker import demand_possible  # noqa: PLC0415
    from ballast.core.planner.make import make  # noqa: PLC0415
    from ballast.core.planner.problem.problem import loads_before, problem_of  # noqa: PLC0415
    from ballast.core.planner.problem.scope import scope_of  # noqa: PLC0415
    from ballast.core.planner.report.summary import summary_of  # noqa: PLC0415
    from ballast.core.planner.request import dump_request  # noqa: PLC0415

    policy = policy or PlannerPolicy()
    loads = loads if loads is not None else Loads.from_state(state)
    lists = kafka_placements(state, intent, policy, seed)
    moves = place_moves(state, loads, lists, intent)
    problem = problem_of(state, loads, policy, scope_of(state, intent, policy), bands="target")
    before = loads_before(problem)
    index = state.broker_index
    after, slots = _after(state, problem, before, moves)
    copies = any(m.adding for m in moves)
    bound = bound_of(problem, after, slots, prove=False) if copies else None
    made = Plan(
        intent=intent.words,
        purpose=intent.purpose,
        cluster_id=state.cluster_id,
        fingerprint=fingerprint(state),
        moves=moves,
        elections=_elections(state, lists),
        status="meets-all-goals",
        assumptions=loads.assumptions + problem.assumptions,
        seed=seed,
        bound_bytes=least_known(bound.bytes, moves) if bound is not None else 0,
        bound_method=bound.method if bound is not None else "no byte moves",
        allow_replication_factor_change=any(m.changes_replication_factor for m in moves),
        request=dump_request(intent, policy, seed),
        summary=summary_of(Question(state, intent, loads, policy, seed), problem, moves, before, after),
    )
    if made.is_empty:
        made = replace(made, status="nothing-to-do")
    demand_possible(state, made, intent, loads=loads, policy=policy)
    topics = replace(intent.selection, brokers=None, exclude_brokers=None)
    instead = make(state, Balance(selection=topics), loads=loads, policy=replace(policy, prove=False), seed=seed)
    brokers = [b.id for b in _usable(state, intent, policy) if b.id in index]
    summary = {
        **made.summary,
        "placement": _compare_colocation(state, intent, lists, brokers),
        "instead": _summarise_balance(instead),
    }
    return with_topic_ids(replace(made, summary=summary), state)


def _after(state: ClusterState, problem: Any, before: Ints, moves: tuple[Move, ...]) -> tuple[Ints, Any]:
    """The loads by broker when every move is made, and the broker of each slot."""
    load, index = before.copy(), state.broker_index
    slots = problem.home.copy()
    for m in moves:
        row = state.index[m.name]
        for sign, members in ((-1, m.old), (1, m.new)):
            for at, b in enumerate(members):
                load[index[b]] += sign * (problem.lead[row] if at == 0 else problem.follow[row])
        slots[problem.start[row] : problem.start[row + 1]] = [index[b] for b in m.new]
    return load, slots


def _elections(state: ClusterState, lists: Lists) -> tuple[TopicPartition, ...]:
    """Where another broker leads than the list will say, and the first of the list can lead when it is there."""
    out = []
    for name, new in lists.items():
        row = state.index[name]
        copied = new[0] not in state.target(row)
        if int(state.partitions.leader[row]) != new[0] and (copied or new[0] in state.isr(row)):
            out.append(name)
    return tuple(out)


def _compare_colocation(state: ClusterState, intent: Place, lists: Lists, brokers: list[int]) -> dict[str, Any]:
    """What is lost with one broker or two: by the present lists, by the new ones, and by the naive layout of the same topics."""
    sizes = Counter(name.topic for name in lists)
    factors = {name.topic: len(new) for name, new in lists.items()}
    usable = [b for b in state.brokers if b.id in brokers]
    naive = [m for t, n in sizes.items() for m in naive_layout(usable, n, factors[t]).values()]
    now = [state.target(state.index[name]) for name in lists]
    return {
        "algorithm": intent.algorithm,
        "now": colocation(now, brokers).as_json(),
        "placed": colocation(list(lists.values()), brokers).as_json(),
        "naive": colocation(naive, brokers).as_json(),
    }


def _summarise_balance(balance: Plan) -> dict[str, Any]:
    return {
        "intent": balance.intent,
        "status": balance.status,
        "moves": len(balance.moves),
        "bytes_moved": balance.known_bytes,
        "elections": len(balance.elections),
    }

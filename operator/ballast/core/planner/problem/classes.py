"""Partitions by the rules that their topics have for themselves, as masks for the search.

Topics for which the same rules hold are one class; class 0 has none.  The checker does not use this: it asks the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ballast.core.cluster import ClusterState, Flags, Ints, SmallInts
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.topic_rule import TopicRule


@dataclass(slots=True, eq=False, kw_only=True)
class Classes:
    """``C`` classes over ``B`` brokers; ``T`` topics whose replicas are counted by broker."""

    of: SmallInts
    """By partition row: its class."""
    barred: Flags
    """C x B: may not receive a replica of the class."""
    unled: Flags
    """C x B: may not become preferred leader of the class."""
    expelled: Flags
    """C x B: what is barred and may not stay either."""
    must_step_down: Flags
    """C x B: what may not lead and may not go on leading either."""
    loose: Flags
    """By class: racks may be shared."""
    waived: Flags
    """By class: no broker that may lead by the rules is alive, so that any may; what is on a broker that is down must be rebuilt all the same."""
    counted: SmallInts
    """By partition row: the number of its topic among those that are counted, -1 for none."""
    most: Ints
    """T: most replicas of the topic on one broker."""
    topics: SmallInts
    """T: which topic that is."""
    rules: tuple[tuple[TopicRule, ...], ...]
    """By class: the rules that hold for it."""

    @property
    def any(self) -> bool:
        """Has any topic a rule of its own?"""
        return len(self.rules) > 1

    def reorder(self, rows: Ints) -> Classes:
        """The same for partitions in another order."""
        return replace(self, of=self.of[rows], counted=self.counted[rows])


def classes_of(state: ClusterState, policy: PlannerPolicy) -> Classes:
    """Who may hold and lead what; no broker is expelled or must step down, and nothing is counted yet."""
    numbers: dict[tuple[TopicRule, ...], int] = {(): 0}
    of_topic = np.zeros(len(state.topics), np.int32)
    if policy.topic_rules:
        for i, topic in enumerate(state.topics):
            holding = tuple(r for r in policy.topic_rules if r.matches(topic.name))
            of_topic[i] = numbers.setdefault(holding, len(numbers))
    shape = (len(numbers), len(state.brokers))
    alive = np.array([b.alive for b in state.brokers], np.bool_)
    barred, unled, loose = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_), np.zeros(len(numbers), np.bool_)
    for rules, c in numbers.items():
        for rule in rules:
            barred[c] |= [not rule.allows(b.id) for b in state.brokers]
            unled[c] |= [not rule.allows_leader(b.id, b.rack) for b in state.brokers]
            loose[c] |= rule.ignore_racks
    waived = np.array([c > 0 and not bool((alive & ~barred[c] & ~unled[c]).any()) for c in numbers.values()], np.bool_)
    unled[waived] = False
    rows = len(state.partitions)
    return Classes(
        of=of_topic[state.partitions.topic] if rows else np.zeros(0, np.int32),
        barred=barred,
        unled=unled,
        expelled=np.zeros(shape, np.bool_),
        must_step_down=np.zeros(shape, np.bool_),
        loose=loose,
        waived=waived,
        counted=np.full(rows, -1, np.int32),
        most=np.zeros(0, np.int64),
        topics=np.zeros(0, np.int32),
        rules=tuple(numbers),
    )


def add_topic_limits(
    classes: Classes, state: ClusterState, factor: SmallInts, holds: Flags, receives: Flags
) -> Classes:
    """The same with the limits of topics; ``holds`` are the brokers that hold replicas for good, of which some ``receives`` more."""
    limits: dict[int, int] = {}
    replicas = np.bincount(state.partitions.topic, weights=factor, minlength=len(state.topics)).astype(np.int64)
    for c, rules in enumerate(classes.rules):
        stated = [r.max_per_broker for r in rules if r.max_per_broker is not None]
        even = any(r.spread_evenly for r in rules)
        if not stated and not even:
            continue
        free = holds & ~classes.barred[c]
        for t in np.unique(state.partitions.topic[classes.of == c]).tolist():
            limits[t] = min(
                [
                    *stated,
                    even_limit(
                        int(replicas[t]),
                        int((free & receives).sum()),
                        _count_replicas(state, t)[free & ~receives].tolist(),
                    ),
                ]
                if even
                else stated
            )
    topics = np.array(sorted(limits), np.int32)
    number = np.full(len(state.topics), -1, np.int32)
    number[topics] = np.arange(len(topics), dtype=np.int32)
    return replace(
        classes,
        counted=number[state.partitions.topic] if len(state.partitions) else classes.counted,
        most=np.array([limits[t] for t in topics.tolist()], np.int64),
        topics=topics,
    )


def even_limit(replicas: int, receivers: int, held: list[int]) -> int:
    """The least limit under which all replicas find room; a broker that receives nothing has no more than it held."""
    rest, brokers = replicas, receivers + len(held)
    for have in sorted(held):
        if have >= -(-rest // brokers):
            break
        rest, brokers = rest - have, brokers - 1
    return -(-rest // brokers) if brokers else replicas


def _count_replicas(state: ClusterState, topic: int) -> Ints:
    """Replicas of the topic by broker."""
    p = state.partitions
    mine = np.repeat(p.topic == topic, np.diff(p.start)) & ~p.removing
    ids = np.array([b.id for b in state.brokers], np.int64)
    return np.bincount(np.searchsorted(ids, p.replica[mine]), minlength=len(ids))

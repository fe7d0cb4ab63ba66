"""The hard rules as objects that answer: accept, or reject with a reason.

The search obeys the same rules through masks and inlined tests, because it asks a hundred million times; these objects
serve explanations, where a sentence matters and speed does not.  A test holds the two to each other.  To add a rule,
write a function that gives a ``Verdict`` or None and add it to ``RULES``, its sentence to ``sentences.REJECTIONS`` and
its mask to ``scope``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ballast.core.catalogue import Message
from ballast.core.cluster import ClusterState, Ints
from ballast.core.planner.intents import Intent
from ballast.core.planner.loads import Loads
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.scope import Scope, scope_of
from ballast.core.planner.report.sentences import CATALOGUE, REJECTIONS

Value = int | float | str | None


@dataclass(frozen=True, slots=True)
class Verdict(Message):
    """A rejection: by which rule, its code, of whom, and why."""

    subject: str = ""
    """``replica``: no broker may take it; ``broker``: it takes no replica at all; ``pair``: these two do not go together."""

    sentences = REJECTIONS
    catalogue = CATALOGUE


def _reject(rule: str, subject: str, cause: str = "", **values: Value) -> Verdict:
    return Verdict(rule, values, cause, subject)


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """What rules look at."""

    state: ClusterState
    intent: Intent
    loads: Loads
    policy: PlannerPolicy
    scope: Scope
    held: Ints
    """Bytes by broker, in the order of ``state.brokers``."""
    tally: Ints
    """By counted topic and broker: replicas."""

    @classmethod
    def of(cls, state: ClusterState, intent: Intent, loads: Loads, policy: PlannerPolicy) -> Setup:
        """Gather what the rules need."""
        p = state.partitions
        kept = ~p.removing
        rows = np.repeat(np.arange(len(p)), np.diff(p.start))[kept]
        at = np.searchsorted([b.id for b in state.brokers], p.replica[kept])
        held = np.zeros(len(state.brokers), np.int64)
        np.add.at(held, at, loads.size_bytes[rows])
        scope = scope_of(state, intent, policy)
        tally = np.zeros((len(scope.classes.most), len(state.brokers)), np.int64)
        topic = scope.classes.counted[rows]
        np.add.at(tally, (topic[topic >= 0], at[topic >= 0]), 1)
        return cls(state, intent, loads, policy, scope, held, tally)


Rule = Callable[[Setup, int, int], Verdict | None]
"""May the partition in this row have a new replica on this broker id?"""


def partition_open(setup: Setup, row: int, _broker: int) -> Verdict | None:
    """The partition takes part and is at rest."""
    if bool(setup.scope.open_rows[row]):
        return None
    state = setup.state
    topic = state.topics[int(state.partitions.topic[row])]
    if bool(state.moving[row]):
        return _reject("partition-open", "replica", "moving")
    if topic.deleting:
        return _reject("partition-open", "replica", "deleting")
    if bool(setup.scope.left_rows[row]):
        return _reject("partition-open", "replica", "replicas-below-min-isr")
    return _reject("partition-open", "replica", "selection")


def broker_open(setup: Setup, _row: int, broker: int) -> Verdict | None:
    """The broker is alive and takes replicas under this intent."""
    at = setup.state.broker_index[broker]
    if bool(setup.scope.takes[at]):
        return None
    return _reject("broker-open", "broker", setup.scope.why_closed.get(at, ""), broker=broker)


def no_twin(setup: Setup, row: int, broker: int) -> Verdict | None:
    """No two replicas of a partition on one broker."""
    if broker not in setup.state.target(row):
        return None
    return _reject("already-replica", "pair", broker=broker)


def topic_allows(setup: Setup, row: int, broker: int) -> Verdict | None:
    """The topic's own rules let it be there."""
    classes = setup.scope.classes
    c = int(classes.of[row])
    if not classes.barred[c, setup.state.broker_index[broker]]:
        return None
    pattern = next(r.topics for r in classes.rules[c] if not r.allows(broker))
    return _reject("topic-rule", "pair", topics=pattern, broker=broker)


def topic_spread(setup: Setup, row: int, broker: int) -> Verdict | None:
    """The broker holds fewer replicas of the topic than the topic's own rules allow."""
    classes, state = setup.scope.classes, setup.state
    topic = int(classes.counted[row])
    if topic < 0:
        return None
    held = int(setup.tally[topic, state.broker_index[broker]])
    if held < classes.most[topic]:
        return None
    name = state.topics[int(state.partitions.topic[row])].name
    return _reject("topic-spread", "pair", broker=broker, held=held, topic=name)


def rack_free(setup: Setup, row: int, broker: int) -> Verdict | None:
    """A rack for each replica while racks suffice: a full rack takes one only in exchange for its own."""
    state = setup.state
    mine = state.brokers[state.broker_index[broker]].rack
    if any(b.alive and b.rack is None for b in state.brokers):
        return None
    members = [state.broker_index[b] for b in state.target(row)]
    racks = [state.brokers[b].rack for b in members]
    others = racks.count(mine)
    scope, classes = setup.scope, setup.scope.classes
    c = int(classes.of[row])
    may_go = scope.leave | classes.expelled[c] | (scope.gives & scope.roam)
    if classes.loose[c] or any(may_go[b] for b, rack in zip(members, racks, strict=True) if rack == mine):
        return None
    closed = scope.leave | classes.barred[c]
    open_racks = {b.rack for b in state.brokers if b.alive and not closed[state.broker_index[b.id]]}
    if scope.keep_racks:
        open_racks |= {b.rack for b in state.brokers if scope.leave[state.broker_index[b.id]]}
    limit = -(-len(racks) // max(len(open_racks), 1))
    if others < limit:
        return None
    return _reject("rack-free", "pair", rack=mine, replicas=others)


def racks_kept(setup: Setup, row: int, broker: int) -> Verdict | None:
    """No fewer racks hold it than before, as far as racks remain for it: a replica that goes is not alone in its rack."""
    state, scope, classes = setup.state, setup.scope, setup.scope.classes
    rack = [b.rack for b in state.brokers]
    c, members = int(classes.of[row]), [state.broker_index[b] for b in state.target(row)]
    leave = scope.leave | classes.expelled[c]
    going = [b for b in members if (leave | (scope.gives & scope.roam))[b]]
    grows = int(scope.factor[row]) > len(members)
    if classes.loose[c] or grows or not going or any(b.alive and b.rack is None for b in state.brokers):
        return None
    usable = (scope.takes | (scope.shares & ~scope.leave)) & ~classes.barred[c]
    remain = {rack[b] for b in np.flatnonzero(usable)} | {rack[b] for b in members if not leave[b]}
    fewest = min(len({rack[b] for b in members}), len(remain))
    mine = rack[state.broker_index[broker]]
    left = max(len({mine, *(rack[m] for m in members if m != b)}) for b in going)
    return None if left >= fewest else _reject("racks-kept", "pair", racks=left, fewest=fewest)


def disk_room(setup: Setup, row: int, broker: int) -> Verdict | None:
    """The disk holds what it has and the newcomer, under the limit."""
    at = setup.state.broker_index[broker]
    override = setup.policy.capacities.get(broker)
    capacity = setup.state.brokers[at].capacity_bytes
    if override is not None and override.disk_bytes is not None:
        capacity = override.disk_bytes
    more = int(setup.held[at]) + int(setup.loads.size_bytes[row])
    if capacity <= 0 or more <= capacity * setup.policy.disk_limit:
        return None
    return _reject("disk-space", "pair", broker=broker, full=more / capacity)


RULES: Final[tuple[Rule, ...]] = (
    partition_open,
    broker_open,
    no_twin,
    topic_allows,
    topic_spread,
    rack_free,
    racks_kept,
    disk_room,
)


def judge(setup: Setup, row: int, broker: int) -> Verdict | None:
    """The first rule that rejects the pair, or None."""
    for rule in RULES:
        verdict = rule(setup, row, broker)
        if verdict is not None:
            return verdict
    return None

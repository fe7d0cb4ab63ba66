"""Answers the questions a person has about a plan: why this move, and why not that broker."""

from __future__ import annotations

from collections import Counter

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.plan import Plan
from ballast.core.planner.intents import Intent
from ballast.core.planner.loads import Loads
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.rules import Setup, broker_open, judge
from ballast.core.wording import human_brokers, human_bytes, human_many, human_percent, human_replicas
from ballast.errors import UsageError


def why(
    state: ClusterState, plan: Plan, intent: Intent, wanted: TopicPartition, *, loads: Loads, policy: PlannerPolicy
) -> tuple[str, ...]:
    """Why a partition moves, or stays."""
    row = state.index.get(wanted)
    if row is None:
        raise UsageError(f"There is no partition {wanted}.", hint=_partitions(state, wanted.topic))
    move = next((m for m in plan.moves if m.name == wanted), None)
    if move is None:
        return (
            f"{wanted} stays on {human_replicas(state.target(row))}: {_why_stays(state, plan, intent, row, loads, policy)}",
        )
    lines = [
        f"{wanted} goes from {human_replicas(move.old)} to {human_replicas(move.new)} because {move.reason.detail or move.reason.code}."
    ]
    lines.append(
        f"  It copies {human_bytes(None if move.size_unknown else move.bytes_moved)}."
        if move.adding
        else "  It is a replica list change: no byte moves."
    )
    lines += [f"  Broker {b}: {_standing(plan, b)}." for b in move.adding]
    lines += [f"  Broker {b} gives its replica up: {_standing(plan, b)}." for b in move.removing]
    setup = Setup.of(state, intent, loads, policy)
    refused: dict[str, list[int]] = {}
    for b in state.brokers:
        if (verdict := judge(setup, row, b.id)) is not None:
            refused.setdefault(verdict.code, []).append(b.id)
    lines += [f"  Not on {human_brokers(ids)}: {_REFUSED.get(rule, rule)}." for rule, ids in refused.items()]
    return tuple(lines)


def _partitions(state: ClusterState, topic: str) -> str:
    """What could have been meant."""
    at = state.topic_index.get(topic)
    count = int((state.partitions.topic == at).sum()) if at is not None else 0
    if not count:
        return "Write TOPIC-NUMBER, for example orders-3; ballast topics describe TOPIC lists a topic's partitions."
    return f"Topic {topic} has {human_many(count, 'partition')}: {topic}-0" + (
        f" to {topic}-{count - 1}." if count > 1 else "."
    )


def why_not(
    state: ClusterState, plan: Plan, intent: Intent, broker: int, *, loads: Loads, policy: PlannerPolicy
) -> tuple[str, ...]:
    """Why a broker gets nothing (or no more), and why it gives nothing (or no more)."""
    state.require_brokers((broker,))
    setup = Setup.of(state, intent, loads, policy)
    gets = [m for m in plan.moves if broker in m.adding]
    gives = [m for m in plan.moves if broker in m.removing]
    lines = [
        f"Broker {broker} gets {human_many(len(gets), 'replica')} and gives {len(gives)}: {_standing(plan, broker)}."
    ]
    closed = broker_open(setup, 0, broker)
    if closed is not None and closed.cause:
        lines.append(f"  It takes no replica: {closed.detail}.")
    elif not gets:
        lines.append(f"  No more replicas move to it: {_room(plan, broker)}.")
    refused: Counter[str] = Counter()
    for row in range(len(state.partitions)):
        verdict = judge(setup, row, broker)
        if verdict is not None:
            refused[verdict.code] += 1
    total = len(state.partitions)
    for rule, count in refused.most_common():
        lines.append(f"  {count} of {total} partitions cannot be placed here: {_WORDS.get(rule, rule)}.")
    return tuple(lines)


_REFUSED = {
    "partition-open": "it is left out, moving, pinned or being deleted",
    "broker-open": "no replica is taken there in this plan",
    "already-replica": "a replica of it is there",
    "topic-rule": "its topic's rules keep it off",
    "topic-spread": "as many replicas of its topic are there as its rules allow",
    "rack-free": "the rack has as many of its replicas as it may",
    "racks-kept": "it would be in fewer racks",
    "disk-space": "the disk would be too full",
}
"""Of one partition, about brokers."""
_WORDS = {
    "broker-open": "the broker takes no replicas in this plan",
    "partition-open": "they are left out, moving, pinned or being deleted",
    "already-replica": "they have a replica here already",
    "topic-rule": "the rules of their topics keep them off it",
    "topic-spread": "it holds as many replicas of their topics as the topics' rules allow",
    "rack-free": "its rack has as many of their replicas as it may, and none of those goes",
    "racks-kept": "they would be in fewer racks",
    "disk-space": "its disk would be too full",
}
"""Of partitions, about one broker."""


def _why_stays(state: ClusterState, plan: Plan, intent: Intent, row: int, loads: Loads, policy: PlannerPolicy) -> str:
    setup = Setup.of(state, intent, loads, policy)
    refused = [v for b in state.brokers if (v := judge(setup, row, b.id)) is not None]
    closed = next((v for v in refused if v.code == "partition-open"), None)
    if closed is not None:
        return f"{closed.detail}."
    if len(refused) == len(state.brokers):
        return "no other broker may have it (" + ", ".join(sorted({_REFUSED[v.code] for v in refused})) + ")."
    if plan.status == "nothing-to-do":
        return "everything is within its range."
    return "moving it would not bring any broker nearer to its range for fewer bytes than the moves that were chosen."


def _standing(plan: Plan, broker: int) -> str:
    """Where a broker stands before and after, in the resource that is furthest from its share."""
    figures = next((b for b in plan.summary.get("brokers", []) if b["broker"] == broker), None)
    if figures is None:
        return "nothing is known of it"
    told = []
    for r in plan.summary["resources"]:
        share = figures["share"][r["name"]]
        if share:
            before, after = (figures[side][r["name"]] / share for side in ("before", "after"))
            text = f"{r['label']} at {human_percent(before, 0)} of its share before, {human_percent(after, 0)} after"
            told.append((abs(before - 1), text))
    if not told:
        return "it has no share of the load"
    return "; ".join(text for _, text in sorted(told, key=lambda pair: -pair[0])[:3])


def _room(plan: Plan, broker: int) -> str:
    figures = next((b for b in plan.summary.get("brokers", []) if b["broker"] == broker), None)
    if figures is None:
        return "nothing is known of it"
    for r in plan.summary["resources"]:
        share = figures["share"][r["name"]]
        if share and figures["after"][r["name"]] < share * (1 - r["band"]):
            return f"its {r['label']} is below its range, but no legal move would repair that"
    return "every one of its resources is within its range after the plan"

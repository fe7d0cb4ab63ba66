"""Judges a plan by the rules that topics have for themselves, from the rules and the replica lists alone."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ballast.core.cluster import ClusterState
from ballast.core.plan import Move, Plan
from ballast.core.planner.checker.finding import Finding
from ballast.core.planner.intents import Balance, ChangeReplicationFactor, Intent, Leaders, Racks
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.topic_rule import TopicRule


class TopicJudge:
    """The rules by topic, and what the plan makes of them."""

    def __init__(
        self,
        state: ClusterState,
        plan: Plan,
        intent: Intent,
        policy: PlannerPolicy,
        *,
        emptied: Iterable[int],
        is_open: Callable[[int], bool],
        leaves_no_leader: Callable[[Move], bool],
    ) -> None:
        self.state, self.plan, self.intent, self.policy = state, plan, intent, policy
        self.brokers = {b.id: b for b in state.brokers}
        self.is_open, self.leaves_no_leader = is_open, leaves_no_leader
        gone = policy.draining | set(emptied)
        if isinstance(intent, Balance):
            gone |= {b.id for b in state.brokers if not b.alive}
        self.standing = [b for b in state.brokers if b.alive and b.id not in gone]
        """Brokers that may hold replicas for good."""
        self.receivers = {
            b.id for b in self.standing if not b.cordoned and b.id not in policy.cordoned and self._chosen(b.id)
        }
        self.orphaned: dict[tuple[TopicRule, ...], bool] = {}
        """By the rules of a topic: is no broker alive that may lead by them?"""
        self.rules: dict[str, tuple[TopicRule, ...]] = {}
        if policy.topic_rules:
            self.rules = {t.name: tuple(r for r in policy.topic_rules if r.matches(t.name)) for t in state.topics}
        self.new = {m.name: m.new for m in plan.moves}
        self.rows: dict[str, list[int]] = {name: [] for name, rules in self.rules.items() if rules}
        for row, t in enumerate(state.partitions.topic.tolist() if self.rows else ()):
            if (name := state.topics[t].name) in self.rows:
                self.rows[name].append(row)
        self.limits = {name: limit for name, rules in self.rules.items() if (limit := self._limit(name, rules))}
        self.counts = {side: self._counts(side) for side in ("before", "after")} if self.limits else {}

    def holds(self, topic: str, broker: int) -> bool:
        """May the broker hold replicas of the topic?"""
        return all(r.allows(broker) for r in self.rules.get(topic, ()))

    def leads(self, topic: str, broker: int) -> bool:
        """May the broker lead partitions of the topic?  Any may where no broker that its rules want is alive."""
        rack = self.brokers[broker].rack if broker in self.brokers else None
        rules = self.rules.get(topic, ())
        return all(r.allows_leader(broker, rack) for r in rules) or self._has_no_leader_broker(rules)

    def _has_no_leader_broker(self, rules: tuple[TopicRule, ...]) -> bool:
        """Is no broker alive that these rules want as a leader?"""
        if rules not in self.orphaned:
            live = (b for b in self.brokers.values() if b.alive)
            able = (all(r.allows(b.id) and r.allows_leader(b.id, b.rack) for r in rules) for b in live)
            self.orphaned[rules] = not any(able)
        return self.orphaned[rules]

    def racks(self, topic: str) -> int | None:
        """Racks that suffice or not for a topic with rules; None where it has none; 0 where racks do not matter."""
        rules = self.rules.get(topic)
        if not rules:
            return None
        if any(r.ignore_racks for r in rules):
            return 0
        return max(len(self.open_racks(topic)), 1)

    def open_racks(self, topic: str) -> set[str | None]:
        """Racks of brokers that take part and may hold the topic for good."""
        return {b.rack for b in self.standing if self._chosen(b.id) and self.holds(topic, b.id)}

    def repairs(self, move: Move) -> bool:
        """Does the move take a replica, or the lead, from where a rule does not want it?"""
        if not self.rules.get(move.topic):
            return False
        off = any(not self.holds(move.topic, b) for b in move.removing)
        led = not self.leads(move.topic, move.old[0]) and self.leads(move.topic, move.new[0])
        limit = self.limits.get(move.topic)
        thinned = limit is not None and any(self.counts["before"][move.topic, b] > limit for b in move.removing)
        return off or led or thinned

    def findings(self) -> Iterator[Finding]:
        """Every rule that the plan breaks, and every one that it should have repaired."""
        for move in self.plan.moves if self.rules else ():
            for b in move.adding:
                if not self.holds(move.topic, b):
                    text = f"would be put on broker {b}, off which its topic's rule keeps it"
                    yield Finding("topic-rule", str(move.name), text)
            if (
                move.new
                and move.new[0] != move.old[0]
                and not self.leads(move.topic, move.new[0])
                and not self.leaves_no_leader(move)
            ):
                text = f"would be led by broker {move.new[0]}, which its topic's rule does not let lead"
                yield Finding("topic-rule", str(move.name), text)
        for (topic, b), after in self._over():
            if after > self.counts["before"][topic, b]:
                text = f"would have {after} replicas on broker {b}, and its rule allows {self.limits[topic]}"
                yield Finding("topic-rule", f"topic {topic}", text)

    def find_unrepaired(self) -> Iterator[Finding]:
        """Rules that a plan without obstacles should have restored and did not."""
        whole = isinstance(self.intent, Balance | Racks)
        leaders = isinstance(self.intent, Balance | Leaders)
        for row in itertools.chain.from_iterable(self.rows.values()) if whole or leaders else ():
            name = self.state.name(row)
            if not self.is_open(row):
                continue
            members = self.new.get(name) or self.state.target(row)
            wrong = [b for b in members if whole and not self.holds(name.topic, b) and self._chosen(b)]
            if wrong:
                yield Finding("promise", str(name), f"stays on broker {wrong[0]}, off which its topic's rule keeps it")
            first = members[0] if members else -1
            if leaders and members and not self.leads(name.topic, first) and self._chosen(first):
                yield Finding("promise", str(name), f"stays led by broker {first}, against its topic's rule")
        for (topic, b), after in self._over() if whole else ():
            if self._chosen(b) and self._movable(topic, b):
                text = f"keeps {after} replicas on broker {b}, and its rule allows {self.limits[topic]}"
                yield Finding("promise", f"topic {topic}", text)

    def _over(self) -> Iterator[tuple[tuple[str, int], int]]:
        """Topics and brokers with more replicas afterwards than the rules allow."""
        counts = self.counts["after"] if self.counts else Counter()
        return (pair for pair in counts.items() if pair[1] > self.limits[pair[0][0]])

    def _chosen(self, broker: int) -> bool:
        return self.intent.selection.broker(broker)

    def _movable(self, topic: str, broker: int) -> bool:
        """Is there anything of the topic on the broker that may change?"""
        return any(self.is_open(r) and broker in self.state.target(r) for r in self.rows[topic])

    def _limit(self, topic: str, rules: tuple[TopicRule, ...]) -> int | None:
        limits = [r.max_per_broker for r in rules if r.max_per_broker is not None]
        if any(r.spread_evenly for r in rules):
            limits.append(self._evenly(topic))
        return min(limits, default=None)

    def _evenly(self, topic: str) -> int:
        """The least limit that leaves room for every replica, when a broker that receives nothing keeps what it has at most."""
        wanted = self._count_wanted(topic)
        holders = [b.id for b in self.standing if self.holds(topic, b.id)]
        held = Counter(b for row in self.rows[topic] for b in self.state.target(row))
        limit = -(-wanted // max(len(holders), 1))
        while limit < wanted and sum(limit if b in self.receivers else min(held[b], limit) for b in holders) < wanted:
            limit += 1
        return limit

    def _count_wanted(self, topic: str) -> int:
        """Replicas that the topic is to have."""
        return sum(self._factor(self.state.target(row), row) for row in self.rows[topic])

    def _factor(self, members: tuple[int, ...], row: int) -> int:
        """Replicas that the partition is to have: no fewer than sit on live brokers that take no part."""
        if not isinstance(self.intent, ChangeReplicationFactor) or not self.is_open(row):
            return len(members)
        fixed = sum(self.brokers[b].alive and not self._chosen(b) for b in members)
        return self.intent.to if fixed <= self.intent.to else len(members)

    def _counts(self, side: str) -> Counter[tuple[str, int]]:
        out: Counter[tuple[str, int]] = Counter()
        for topic in self.limits:
            for row in self.rows[topic]:
                members = self.new.get(self.state.name(row)) if side == "after" else None
                out.update((topic, b) for b in members or self.state.target(row))
        return out

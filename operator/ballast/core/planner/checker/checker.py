"""Judges a plan from the cluster, the intent and the loads alone.

Nothing of ``problem``, ``bound`` and ``search`` is imported: it reads the moves as lists of broker ids, applies them to its own
picture and asks of the result what the intent promised; only Kafka's placement is computed by the planner's own ``place``.  A
broken rule is a bug of the search and never leaves the core; a band that was not reached is a finding that the plan must admit.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import numpy as np

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.cluster.min_isr import bounded
from ballast.core.plan import Move, Plan
from ballast.core.planner.checker.bands import judge_figures
from ballast.core.planner.checker.finding import Finding
from ballast.core.planner.checker.topics import TopicJudge
from ballast.core.planner.intents import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Place,
    Racks,
    ReplaceBroker,
)
from ballast.core.planner.loads import Loads
from ballast.core.planner.place import BALANCING, kafka_placements
from ballast.core.planner.policy import PlannerPolicy
from ballast.errors import NoPlanFound, PlanRejected

RULES: Final = (
    "stale",
    "repeat",
    "duplicate",
    "down",
    "closed",
    "factor",
    "rack",
    "topic-rule",
    "selection",
    "disk",
    "intent",
    "leader",
    "log-dirs",
    "election",
    "promise",
    "status",
    "sum",
    "bound",
    "band",
    "regression",
)
"""Codes of findings that no plan may have."""
NAMED: Final = 3
"""Findings that a rejection quotes."""


def check(state: ClusterState, plan: Plan, intent: Intent, *, loads: Loads, policy: PlannerPolicy) -> list[Finding]:
    """Every rule that the plan breaks; empty when it breaks none."""
    judge = _Judge(state, plan, intent, loads, policy)
    # Figures are counted from the moves, which therefore have to be sound first.
    return judge.findings() or judge_figures(state, plan, intent, loads=loads, policy=policy, topics=judge.topics)


def demand_sound(state: ClusterState, plan: Plan, intent: Intent, *, loads: Loads, policy: PlannerPolicy) -> None:
    """Raise ``PlanRejected`` with what is wrong and where; a plan that is sound passes."""
    found = check(state, plan, intent, loads=loads, policy=policy)
    if found:
        more = f" (and {len(found) - NAMED} more)" if len(found) > NAMED else ""
        raise PlanRejected(
            f"The plan for {plan.intent} did not pass the planner's own checker: "
            + "; ".join(str(f) for f in found[:NAMED])
            + f"{more}.",
            hint="Nothing was changed. This is a bug in Ballast: please report it with ballast snapshot --anonymise.",
        )


POSSIBLE: Final = frozenset({"disk", "rack", "topic-rule", "leader", "down", "closed"})
"""Rules that given lists, which no search made, may break: then they cannot be had, which is no bug."""


def demand_possible(state: ClusterState, plan: Plan, intent: Intent, *, loads: Loads, policy: PlannerPolicy) -> None:
    """The same for lists that are given: one that breaks a rule is ``NoPlanFound``, with the rule."""
    found = _Judge(state, plan, intent, loads, policy).findings()
    if found and all(f.code in POSSIBLE for f in found):
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise NoPlanFound(f"{plan.intent} cannot be executed: {found[0]}{more}.")
    demand_sound(state, plan, intent, loads=loads, policy=policy)


class _Judge:
    def __init__(self, state: ClusterState, plan: Plan, intent: Intent, loads: Loads, policy: PlannerPolicy) -> None:
        self.state = state
        self.plan = plan
        self.intent = intent
        self.loads = loads
        self.policy = policy
        self.brokers = {b.id: b for b in state.brokers}
        self.racked = all(b.rack is not None for b in state.brokers if b.alive)
        self.rows = state.index
        self.emptied = _brokers_to_empty(state, intent)
        self.closed = self._closed_brokers()
        self.barred = policy.demoted | policy.draining | self.emptied
        gone = self.emptied | policy.draining
        staying = [b for b in state.brokers if b.alive and b.id not in gone and intent.selection.broker(b.id)]
        # Racks that can hold a replica for good: what must leave, or takes no part, makes no rack suffice.
        kept = [b for b in state.brokers if b.id in self.emptied] if _keeps_racks(intent) else []
        self.racks = max(len({b.rack for b in [*staying, *kept]}), 1)
        self.topics = TopicJudge(
            state,
            plan,
            intent,
            policy,
            emptied=self.emptied,
            is_open=self._open,
            leaves_no_leader=self._leaves_no_leader,
        )
        self.kafka_placements = self._kafka_placements()
        self.found: list[Finding] = []
        sole_leaders = [o for o in plan.obstacles if o.code == "sole-leader"]
        self.named = {o.subject for o in sole_leaders}
        self.counted = sum(n for o in sole_leaders if o.cause == "more" and isinstance(n := o.values.get("count"), int))
        """Partitions of which the plan says only how many there are."""
        self.unnamed: set[str] = set()

    def findings(self) -> list[Finding]:
        seen: set[tuple[str, int]] = set()
        for move in self.plan.moves:
            key = (move.topic, move.partition)
            if key in seen:
                self._report("repeat", move, "is moved twice")
            seen.add(key)
            self._move(move)
        self._elections()
        self._disks()
        self.found += self.topics.findings()
        if not self.found:
            self._status()
        return self.found

    def _report(self, code: str, subject: object, detail: str) -> None:
        name = str(subject.name) if isinstance(subject, Move) else str(subject)
        self.found.append(Finding(code, name, detail))

    def _closed_brokers(self) -> set[int]:
        """Brokers that may not receive anything."""
        policy, select = self.policy, self.intent.selection
        out = set(self.emptied)
        for b in self.state.brokers:
            if not b.alive or b.cordoned or b.id in policy.cordoned | policy.draining or not select.broker(b.id):
                out.add(b.id)
        if isinstance(self.intent, Expand):
            out |= set(self.brokers) - self.intent.brokers
        if isinstance(self.intent, ReplaceBroker):
            out |= set(self.brokers) - {self.intent.new}
        return out

    def _kafka_placements(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replica lists that Kafka's algorithm gives, computed anew; none where the intent asks for no placement."""
        if not isinstance(self.intent, Place):
            return {}
        return kafka_placements(self.state, self.intent, self.policy, self.plan.seed)

    def _move(self, move: Move) -> None:
        row = self.rows.get(move.name)
        if row is None:
            self._report("stale", move, "is not in the cluster")
            return
        before = self.state.target(row)
        if before != move.old:
            self._report("stale", move, f"is on {list(before)}, not on {list(move.old)}")
        if move.new == move.old or not move.new:
            self._report("intent", move, "does not change, or would lose every replica")
        if len(set(move.new)) != len(move.new):
            self._report("duplicate", move, f"would sit twice on a broker: {list(move.new)}")
        if move.log_dirs is not None and len(move.log_dirs) != len(move.new):
            self._report("log-dirs", move, "names another number of log dirs than of replicas")
        self._dirs(move)
        topic = self.state.topics[int(self.state.partitions.topic[row])]
        if not self._open(row):
            self._report("selection", move, f"is left out, pinned, being deleted or already moving ({topic.name})")
        self._sources(move)
        self._destinations(move)
        self._factor(move)
        self._racks_kept(move)
        self._intent(move)

    def _open(self, row: int) -> bool:
        """May this partition change at all?"""
        topic = self.state.topics[int(self.state.partitions.topic[row])]
        pinned = (
            self.policy.pinned_topics is not None and re.fullmatch(self.policy.pinned_topics, topic.name) is not None
        )
        chosen = self.intent.selection.topic(topic.name)
        if isinstance(self.intent, BALANCING):
            chosen = chosen and not any(r.kafka_placement and r.matches(topic.name) for r in self.policy.topic_rules)
        if isinstance(self.intent, Evacuate) and self.intent.offline_only:
            chosen = chosen and self._has_lost_one(row)
        return (
            chosen
            and not pinned
            and not topic.deleting
            and not bool(self.state.moving[row])
            and not self._would_refuse_writes(row)
        )

    def _would_refuse_writes(self, row: int) -> bool:
        """Would brokers refuse writes while another replica of it is copied, in a plan whose intent does not name what it moves?"""
        topic, held = self.state.topics[int(self.state.partitions.topic[row])], self.state.settled_replicas(row)
        in_sync = len(self.state.isr(row))
        named = not isinstance(self.intent, Balance | Expand | Racks) or self.policy.replicas_below_min_isr
        return not named and bounded(self.state) and len(held) == in_sync < topic.min_isr

    def _has_lost_one(self, row: int) -> bool:
        """Is a replica of it offline on a broker that the intent names?"""
        p = self.state.partitions
        slots = range(int(p.start[row]), int(p.start[row + 1]))
        return any(bool(p.offline[i]) and int(p.replica[i]) in self.emptied for i in slots)

    def _sources(self, move: Move) -> None:
        """Brokers that the selection leaves out stay as they are, unless they are down or to be emptied."""
        select = self.intent.selection
        for b in move.removing:
            placed = isinstance(self.intent, Place)
            if not select.broker(b) and b not in self.emptied and self.brokers[b].alive and not placed:
                self._report("selection", move, f"would leave broker {b}, which the selection leaves out")

    def _destinations(self, move: Move) -> None:
        for b in set(move.new) - set(move.old):
            broker = self.brokers.get(b)
            if broker is None or not broker.alive:
                self._report("down", move, f"would be put on broker {b}, which is not alive")
            elif b in self.closed:
                self._report("closed", move, f"would be put on broker {b}, which takes no replica here")
        first = move.new[0] if move.new else -1
        if first != move.old[0] and first in self.barred and not self._leaves_no_leader(move):
            self._report("leader", move, f"would be led by broker {first}, which must not lead")

    def _leaves_no_leader(self, move: Move) -> bool:
        """Does the list shrink to brokers of which none may lead, and does the plan say so?"""
        able = (b for b in move.new if self.brokers[b].alive and self.intent.selection.broker(b))
        may = (b not in self.barred and self.topics.leads(move.topic, b) for b in able)
        if len(move.new) >= len(move.old) or any(may):
            return False
        if (name := str(move.name)) in self.named:
            return True
        self.unnamed.add(name)
        return len(self.unnamed) <= self.counted

    def _dirs(self, move: Move) -> None:
        """Each log dir that is asked for is there and takes replicas."""
        for b, path in zip(move.new, move.log_dirs or (), strict=False):
            dirs = {d.path: d for d in self.brokers[b].log_dirs} if b in self.brokers else {}
            found = dirs.get(path)
            if path != "any" and (found is None or found.cordoned or found.error is not None):
                self._report("log-dirs", move, f"asks for {path} of broker {b}, which is not there or takes no replica")

    def _factor(self, move: Move) -> None:
        wanted = self.intent.to if isinstance(self.intent, ChangeReplicationFactor) else len(move.old)
        if isinstance(self.intent, Place):
            wanted = len(self.kafka_placements.get(move.name, ()))
        short = len(move.new) != wanted
        # A plan that cannot find every replica a broker must leave that partition as it is.
        if short:
            self._report("factor", move, f"would have {len(move.new)} replicas instead of {wanted}")

    def _racks_kept(self, move: Move) -> None:
        if not self.racked:
            return
        racks = [self._rack(b) for b in move.new]
        if len(set(racks)) == len(racks):
            return
        limit = self._rack_limit(move.topic, len(move.new))
        before = Counter(self._rack(b) for b in move.old)
        after = Counter(racks)
        for rack, count in after.items():
            if count > limit and count > before[rack]:
                self._report("rack", move, f"would have {count} replicas in rack {rack}, at most {limit} are right")
        if len(after) < self._fewest_racks(move):
            self._report("rack", move, f"would be in {len(after)} instead of {len(before)} racks")

    def _fewest_racks(self, move: Move) -> int:
        """As many as hold it, as far as racks remain for it; 0 where fewer may: in shorter lists, and where Kafka places."""
        shorter = len(move.new) < len(move.old)
        if shorter or isinstance(self.intent, Place) or self.topics.racks(move.topic) == 0:
            return 0
        stay = {self._rack(b) for b in move.old if not self._must_go(move.topic, b)}
        return min(len({self._rack(b) for b in move.old}), len(stay | self.topics.open_racks(move.topic)))

    def _must_go(self, topic: str, broker: int) -> bool:
        gone = not self.brokers[broker].alive or broker in self.policy.draining
        balanced = isinstance(self.intent, Balance) and self.intent.selection.broker(broker)
        return broker in self.emptied or (balanced and gone) or not self.topics.holds(topic, broker)

    def _rack_limit(self, topic: str, replicas: int) -> int:
        """Most replicas of one partition that a rack should hold."""
        racks = self.topics.racks(topic)
        return replicas if racks == 0 else -(-replicas // (racks or self.racks))

    def _crowding(self, topic: str, members: tuple[int, ...]) -> int:
        """Replicas beyond what each rack should hold."""
        limit = self._rack_limit(topic, len(members))
        return sum(max(count - limit, 0) for count in Counter(self._rack(b) for b in members).values())

    def _rack(self, broker: int) -> str | None:
        found = self.brokers.get(broker)
        return found.rack if found else None

    def _intent(self, move: Move) -> None:  # noqa: PLR0912 — one case for each intent reads best together
        adding, removing = set(move.adding), set(move.removing)
        intent = self.intent
        wrong = ""
        match intent:
            case Leaders() | Demote():
                if adding or removing:
                    wrong = "moves data, though only leadership may move"
                elif isinstance(intent, Demote) and (
                    move.old[0] not in intent.brokers or move.new[0] in intent.brokers
                ):
                    wrong = "is reordered, though its leader is not demoted"
            case Decommission() | Evacuate():
                if not removing <= self.emptied or not set(move.old) & self.emptied:
                    wrong = "moves, though it need not leave"
            case Expand():
                if not adding <= intent.brokers:
                    wrong = "moves between old brokers"
                elif removing & intent.brokers:
                    wrong = "leaves a new broker"
                elif move.new[0] != move.old[0] and move.new[0] not in intent.brokers:
                    wrong = "is led by another old broker"
            case ReplaceBroker():
                if adding != {intent.new} or removing != {intent.old}:
                    wrong = f"does more than put {intent.new} in the place of {intent.old}"
            case Racks():
                crowding = [self._crowding(move.topic, members) for members in (move.new, move.old)]
                if crowding[0] >= crowding[1] and not self.topics.repairs(move):
                    wrong = "moves, though that repairs no rack and no rule"
            case Place():
                if self.kafka_placements.get(move.name) != move.new:
                    wrong = f"is not where the {intent.algorithm} placement wants it"
            case ChangeReplicationFactor() | Balance():
                pass
            case _:
                wrong = "belongs to an intent that the checker does not know"
        if wrong:
            self._report("intent", move, wrong)

    def _elections(self) -> None:
        """Each once, of a partition that is there, for a first replica that lives."""
        new = {m.name: m.new for m in self.plan.moves}
        for name, count in Counter(self.plan.elections).items():
            row = self.rows.get(name)
            if row is None:
                self._report("stale", name, "is to be elected and is not in the cluster")
                continue
            first = (new.get(name) or self.state.target(row) or (-1,))[0]
            broker = self.brokers.get(first)
            if count > 1:
                self._report("election", name, "is elected twice")
            if broker is None or not broker.alive:
                self._report("election", name, f"would be led by broker {first}, which is not alive")

    def _status(self) -> None:
        """The word that the plan gives, against what is the case once it is executed."""
        plan, changes = self.plan, bool(self.plan.moves or self.plan.elections)
        wanted = (
            ("misses-some-goals" if changes else "no-plan-found")
            if plan.obstacles
            else "meets-all-goals"
            if changes
            else "nothing-to-do"
        )
        limited = self.policy.is_limited
        # Ranges that are missed and that nothing was found to mend leave nothing to do.
        missed = {o.code for o in plan.obstacles} <= {"band", "uneven-racks"}
        if isinstance(self.intent, Balance) and missed and not changes and not limited:
            wanted = "nothing-to-do"
        if plan.status != wanted:
            self._report("status", "the plan", f"calls itself {plan.status} and is {wanted}")
        if plan.obstacles:
            return
        new = {m.name: m.new for m in plan.moves}
        for row in self._concerned_rows():
            name = self.state.name(row)
            members = new.get(name) or self.state.target(row)
            wrong = self._broken_promise(name.topic, members)
            if wrong and self._open(row) and members:
                self._report("promise", name, f"{wrong}, and the plan does not admit it")
        for name, wanted_list in self.kafka_placements.items():
            if (new.get(name) or self.state.target(self.rows[name])) != wanted_list:
                self._report("promise", name, "is not placed as was asked, and the plan does not admit it")
        self.found += self.topics.find_unrepaired()

    def _concerned_rows(self) -> list[int]:
        """Rows about which the intent promises something: all where any can be, else those on the brokers it names."""
        intent, p = self.intent, self.state.partitions
        if isinstance(intent, ChangeReplicationFactor | Racks):
            return list(range(len(p)))
        if isinstance(intent, Balance):
            gone = {b.id for b in self.state.brokers if not b.alive} | self.policy.draining
            named = {b for b in gone if intent.selection.broker(b)}
        else:
            named = self.emptied | (set(intent.brokers) if isinstance(intent, Demote) else set())
        row = np.repeat(np.arange(len(p)), np.diff(p.start))
        return np.unique(row[np.isin(p.replica, sorted(named))]).tolist()  # type: ignore[no-any-return]

    def _broken_promise(self, topic: str, members: tuple[int, ...]) -> str:
        match intent := self.intent:
            case Balance():
                stuck = [
                    b
                    for b in members
                    if (not self.brokers[b].alive or b in self.policy.draining) and intent.selection.broker(b)
                ]
                return f"stays on broker {stuck[0]}, which is down or draining" if stuck else ""
            case Decommission() | Evacuate() | ReplaceBroker():
                stuck = [b for b in members if b in self.emptied]
                return f"stays on broker {stuck[0]}, which is to be emptied" if stuck else ""
            case Demote():
                return f"stays led by broker {members[0]}" if members and members[0] in intent.brokers else ""
            case ChangeReplicationFactor():
                return f"has {len(members)} replicas instead of {intent.to}" if len(members) != intent.to else ""
            case Racks():
                crowded = self.racked and self._crowding(topic, members) > 0
                return "has replicas that share a rack" if crowded else ""
            case _:
                return ""

    def _disks(self) -> None:
        """What is held now and all that arrives must fit, whatever leaves and when; in order, what has left counts no more."""
        held, peak = Counter(self._held_bytes()), Counter[int]()
        for move in self.plan.moves:
            row = self.rows.get(move.name)
            size = int(self.loads.size_bytes[row]) if row is not None else 0
            for b in move.adding:
                held[b] += size
                peak[b] = max(peak[b], held[b])
            for b in move.removing if self.plan.in_order else ():
                # Which of several disks has room then is unknown.
                held[b] -= size if b in self.brokers and len(self.brokers[b].log_dirs) < 2 else 0
        for b, most in sorted(peak.items()):
            override = self.policy.capacities.get(b)
            broker = self.brokers.get(b)
            capacity = (
                override.disk_bytes if override and override.disk_bytes else broker.capacity_bytes if broker else -1
            )
            if capacity > 0 and most > int(capacity * self.policy.disk_limit):
                full = 100 * most / capacity
                self._report("disk", f"broker {b}", f"would fill its disk to {full:.1f} % while the plan runs")

    def _held_bytes(self) -> dict[int, int]:
        p = self.state.partitions
        kept = ~p.removing
        rows = np.repeat(np.arange(len(p)), np.diff(p.start))[kept]
        ids, inverse = np.unique(p.replica[kept], return_inverse=True)
        sums = np.zeros(len(ids), np.int64)
        np.add.at(sums, inverse, self.loads.size_bytes[rows])
        return dict(zip(ids.tolist(), sums.tolist(), strict=True))


def _keeps_racks(intent: Intent) -> bool:
    return isinstance(intent, Evacuate) and intent.keep_racks


def _brokers_to_empty(state: ClusterState, intent: Intent) -> set[int]:
    """Brokers that the intent wants empty."""
    match intent:
        case Decommission():
            return set(intent.brokers)
        case Evacuate():
            return set(intent.brokers) | {b.id for b in state.brokers if b.rack in intent.racks}
        case ReplaceBroker():
            return {intent.old}
        case _:
            return set()

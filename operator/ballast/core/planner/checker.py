"""Judges a plan from the cluster, the intent and the loads alone.

This module shares no code with the search: it reads the moves as lists of broker ids, applies them to its own picture
and asks of the result what the intent promised.  A broken rule is a bug of the search and never leaves the core; a band
that was not reached is a finding that the plan must admit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from ballast.core.cluster import ClusterState
from ballast.core.plan import Move, Plan
from ballast.core.planner.intents import (
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Level,
    Racks,
    Swap,
)
from ballast.core.planner.loads import Loads
from ballast.core.planner.policy import PlannerPolicy

RULES: Final = (
    "stale",
    "repeat",
    "duplicate",
    "dead",
    "closed",
    "factor",
    "rack",
    "selection",
    "disk",
    "intent",
    "leader",
    "log-dirs",
)
"""Codes of findings that no plan may have."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the plan does wrong, and where."""

    code: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.detail} [{self.code}]"


def check(state: ClusterState, plan: Plan, intent: Intent, *, loads: Loads, policy: PlannerPolicy) -> list[Finding]:
    """Every rule that the plan breaks; empty when it breaks none."""
    return _Judge(state, plan, intent, loads, policy).findings()


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
        self.emptied = _emptied(state, intent)
        self.closed = self._closed()
        self.barred = policy.demoted | policy.draining | self.emptied
        open_racks = {b.rack for b in state.brokers if b.alive and b.id not in self.closed and b.id not in self.emptied}
        held = {b.rack for b in state.brokers if b.alive and b.id not in self.emptied}
        self.racks = max(len(held | open_racks), 1)
        self.found: list[Finding] = []

    def findings(self) -> list[Finding]:
        seen: set[tuple[str, int]] = set()
        for move in self.plan.moves:
            key = (move.topic, move.partition)
            if key in seen:
                self._report("repeat", move, "is moved twice")
            seen.add(key)
            self._move(move)
        self._disks()
        return self.found

    def _report(self, code: str, subject: object, detail: str) -> None:
        name = str(subject.name) if isinstance(subject, Move) else str(subject)
        self.found.append(Finding(code, name, detail))

    def _closed(self) -> set[int]:
        """Brokers that may not receive anything."""
        policy, select = self.policy, self.intent.selection
        out = set(self.emptied)
        for b in self.state.brokers:
            if not b.alive or b.cordoned or b.id in policy.cordoned | policy.draining or not select.broker(b.id):
                out.add(b.id)
        if isinstance(self.intent, Expand):
            out |= set(self.brokers) - self.intent.brokers
        if isinstance(self.intent, Swap):
            out |= set(self.brokers) - {self.intent.new}
        return out

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
        topic = self.state.topics[int(self.state.partitions.topic[row])]
        if not self.intent.selection.topic(topic.name) or topic.deleting or bool(self.state.moving[row]):
            self._report("selection", move, "is left out, being deleted or already moving")
        self._sources(move)
        self._destinations(move)
        self._factor(move)
        self._racks_kept(move)
        self._intent(move)

    def _sources(self, move: Move) -> None:
        """Brokers that the selection leaves out stay as they are, unless they are dead or to be emptied."""
        select = self.intent.selection
        for b in move.removing:
            if not select.broker(b) and b not in self.emptied and self.brokers[b].alive:
                self._report("selection", move, f"would leave broker {b}, which the selection leaves out")

    def _destinations(self, move: Move) -> None:
        for b in set(move.new) - set(move.old):
            broker = self.brokers.get(b)
            if broker is None or not broker.alive:
                self._report("dead", move, f"would be put on broker {b}, which is not alive")
            elif b in self.closed:
                self._report("closed", move, f"would be put on broker {b}, which takes no replica here")
        first = move.new[0] if move.new else -1
        if first != move.old[0] and first in self.barred:
            self._report("leader", move, f"would be led by broker {first}, which must not lead")

    def _factor(self, move: Move) -> None:
        wanted = self.intent.to if isinstance(self.intent, ChangeReplicationFactor) else len(move.old)
        short = len(move.new) != wanted
        # A plan that cannot find every replica a broker must leave that partition as it is.
        if short:
            self._report("factor", move, f"would have {len(move.new)} replicas instead of {wanted}")

    def _racks_kept(self, move: Move) -> None:
        if not self.racked:
            return
        limit = -(-len(move.new) // self.racks)
        before = Counter(self._rack(b) for b in move.old)
        after = Counter(self._rack(b) for b in move.new)
        for rack, count in after.items():
            if count > limit and count > before[rack]:
                self._report("rack", move, f"would have {count} replicas in rack {rack}, at most {limit} are right")

    def _crowding(self, members: tuple[int, ...]) -> int:
        """Replicas beyond what each rack should hold."""
        limit = -(-len(members) // self.racks)
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
            case Swap():
                if adding != {intent.new} or removing != {intent.old}:
                    wrong = f"does more than put {intent.new} in the place of {intent.old}"
            case Racks():
                if self._crowding(move.new) >= self._crowding(move.old):
                    wrong = "moves, though that repairs no rack"
            case ChangeReplicationFactor() | Level():
                pass
            case _:
                wrong = "belongs to an intent that the checker does not know"
        if wrong:
            self._report("intent", move, wrong)

    def _disks(self) -> None:
        """What is held now and all that arrives must fit, whatever leaves and when."""
        arriving: Counter[int] = Counter()
        for move in self.plan.moves:
            row = self.rows.get(move.name)
            if row is not None:
                for b in move.adding:
                    arriving[b] += int(self.loads.size_bytes[row])
        if not arriving:
            return
        held = self._held()
        for b, more in sorted(arriving.items()):
            override = self.policy.capacities.get(b)
            broker = self.brokers.get(b)
            capacity = (
                override.disk_bytes if override and override.disk_bytes else broker.capacity_bytes if broker else -1
            )
            if capacity > 0 and held.get(b, 0) + more > capacity * self.policy.disk_limit * (1 + 1e-6):
                full = 100 * (held.get(b, 0) + more) / capacity
                self._report("disk", f"broker {b}", f"would fill its disk to {full:.1f} % while the plan runs")

    def _held(self) -> dict[int, int]:
        p = self.state.partitions
        kept = ~p.removing
        rows = np.repeat(np.arange(len(p)), np.diff(p.start))[kept]
        ids, inverse = np.unique(p.replica[kept], return_inverse=True)
        sums = np.zeros(len(ids), np.int64)
        np.add.at(sums, inverse, self.loads.size_bytes[rows])
        return dict(zip(ids.tolist(), sums.tolist(), strict=True))


def _emptied(state: ClusterState, intent: Intent) -> set[int]:
    """Brokers that the intent wants empty."""
    match intent:
        case Decommission():
            return set(intent.brokers)
        case Evacuate():
            return set(intent.brokers) | {b.id for b in state.brokers if b.rack in intent.racks}
        case Swap():
            return {intent.old}
        case _:
            return set()

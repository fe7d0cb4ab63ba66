"""Turns the searched assignment into ordered moves, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, Ints, SmallInts
from ballast.core.plan import Move, Reason
from ballast.core.planner.intents import (
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Swap,
)
from ballast.core.planner.loads import DISK, Loads
from ballast.core.planner.problem import Problem

REPAIRS = ("dead-broker", "decommission", "evacuate", "draining", "swap", "racks", "replication-factor")
"""Reasons that come before any wish for level."""


def moves_of(
    state: ClusterState, intent: Intent, problem: Problem, loads: Loads, cur: SmallInts, before: Ints
) -> tuple[tuple[Move, ...], Ints]:
    """Moves in the order in which they should be made, and the scaled loads when all are made.

    Reorders come first, since they are free; then repairs; then what relieves the worst brokers most.
    """
    after = before.copy()
    reasons = _Reasons(state, intent, problem, before)
    ids = problem.ids.tolist()
    known = DISK in loads.known
    ranked: list[tuple[tuple[int, float, int], Move]] = []
    changes: list[tuple[int, list[int], list[int]]] = []
    for row in _changed(problem, cur).tolist():
        old = problem.old[problem.old_start[row] : problem.old_start[row + 1]].tolist()
        new = _in_order(old, cur[problem.start[row] : problem.start[row + 1]].tolist())
        if new == old:
            continue
        changes.append((row, old, new))
        name = state.name(row)
        reason, rank = reasons.of(row, old, new)
        move = Move(
            topic=name.topic,
            partition=name.partition,
            old=tuple(ids[b] for b in old),
            new=tuple(ids[b] for b in new),
            size_bytes=int(loads.size_bytes[row]) if known else UNKNOWN,
            reason=reason,
        )
        place = 0 if move.is_reorder else 1 if reason.code in REPAIRS else 2
        ranked.append(((place, -rank, row), move))
    _carry(problem, after, changes)
    ranked.sort(key=lambda pair: pair[0])
    return tuple(move for _, move in ranked), after


def _changed(problem: Problem, cur: SmallInts) -> Ints:
    """Rows whose list differs; a list that lacks a broker stays as it was."""
    counts, old_counts = np.diff(problem.start), np.diff(problem.old_start)
    if bool((counts == old_counts).all()):
        row = np.repeat(np.arange(len(counts)), counts)
        return np.unique(row[cur != problem.old])
    out = []
    for p in range(len(counts)):
        new = cur[problem.start[p] : problem.start[p + 1]]
        old = problem.old[problem.old_start[p] : problem.old_start[p + 1]]
        if not bool((new < 0).any()) and (len(new) != len(old) or bool((new != old).any())):
            out.append(p)
    return np.array(out, np.int64)


def _in_order(old: list[int], new: list[int]) -> list[int]:
    """The leader first, then those who stay in the order they had, then those who come."""
    stay = [b for b in old if b in new[1:]]
    return [new[0], *stay, *(b for b in new[1:] if b not in old)]


def _carry(problem: Problem, load: Ints, changes: list[tuple[int, list[int], list[int]]]) -> None:
    """Take the old lists' loads away and put the new ones' on."""
    flat = [
        (row, b, sign, j == 0)
        for row, old, new in changes
        for sign, m in ((-1, old), (1, new))
        for j, b in enumerate(m)
    ]
    if not flat:
        return
    row, broker, sign, first = np.array(flat, np.int64).T
    figures = np.where(first[:, None] == 1, problem.lead[row], problem.follow[row])
    np.add.at(load, broker, sign[:, None] * figures)


@dataclass(slots=True)
class _Reasons:
    """Why a partition changes, told from what its brokers were short of or had too much of before."""

    state: ClusterState
    intent: Intent
    problem: Problem
    before: Ints
    pairs: dict[tuple[int, int, bool], tuple[Reason, float]] = field(default_factory=dict)

    def of(self, row: int, old: list[int], new: list[int]) -> tuple[Reason, float]:
        """The reason, and how much the move relieves (for ordering)."""
        gone = [b for b in old if b not in new]
        come = [b for b in new if b not in old]
        forced = self._forced(row, old, gone, come)
        if forced is not None:
            # Leaders that must go are moved before followers, so that leadership is away first.
            return forced, 1.0 if old[0] in gone else 0.0
        if come and gone:
            return self._pair(gone[0], come[0], reorder=False)
        return self._pair(old[0], new[0], reorder=True)

    def _forced(self, row: int, old: list[int], gone: list[int], come: list[int]) -> Reason | None:  # noqa: PLR0911 — a table of causes
        brokers, intent = self.state.brokers, self.intent
        names = [brokers[b].id for b in gone]
        if isinstance(intent, Demote) and not gone and not come:
            return Reason("demote", f"broker {brokers[old[0]].id} is to lead nothing")
        if isinstance(intent, ChangeReplicationFactor) and len(gone) != len(come):
            return Reason("replication-factor", f"from {len(old)} to {intent.to} replicas")
        leaving = [b for b in gone if self.problem.scope.leave[b]]
        if isinstance(intent, Swap) and leaving:
            return Reason("swap", f"broker {intent.new} takes the place of broker {intent.old}")
        if isinstance(intent, Decommission) and leaving:
            return Reason("decommission", f"broker {brokers[leaving[0]].id} is to be emptied")
        if isinstance(intent, Evacuate) and leaving:
            return Reason("evacuate", f"broker {brokers[leaving[0]].id} is to be emptied")
        if leaving:
            b = brokers[leaving[0]]
            return (
                Reason("draining", f"broker {b.id} is draining")
                if b.alive
                else Reason("dead-broker", f"broker {b.id} is dead")
            )
        if gone and self._shared_rack(row, old, gone):
            return Reason("racks", f"broker {names[0]} shares rack {brokers[gone[0]].rack} with another replica")
        if isinstance(intent, Expand) and come:
            return Reason("expand", f"broker {brokers[come[0]].id} is to be filled")
        return None

    def _shared_rack(self, row: int, old: list[int], gone: list[int]) -> bool:
        rack = self.problem.rack
        return any(sum(rack[b] == rack[g] for b in old) > self.problem.rack_limit[row] for g in gone)

    def _pair(self, source: int, target: int, *, reorder: bool) -> tuple[Reason, float]:
        key = (source, target, reorder)
        if key not in self.pairs:
            self.pairs[key] = self._explain(source, target, reorder=reorder)
        return self.pairs[key]

    def _explain(self, source: int, target: int, *, reorder: bool) -> tuple[Reason, float]:
        best, code, text = 0.0, "make-room", "it makes room for other moves"
        relief = 0.0
        for k, r in enumerate(self.problem.resources):
            if reorder and not bool((r.lead != r.follow).any()):
                continue
            over, under = self._off(source, k), self._off(target, k)
            relief += max(over, 0) + max(-under, 0)
            for b, off, worth in ((source, over, over), (target, under, -under)):
                if worth > best + 1e-12:
                    side = "over" if off > 0 else "under"
                    best, code = worth, r.name
                    text = f"broker {self.state.brokers[b].id} is {abs(off):.0%} {side} its share of {r.label}"
        return Reason(code, text), relief

    def _off(self, broker: int, k: int) -> float:
        """How far outside its share the broker was, 0 inside the band."""
        p = self.problem
        load, share = float(self.before[broker, k]), float(p.share[broker, k] * p.unit[k])
        if p.low[broker, k] <= self.before[broker, k] <= p.high[broker, k] or share <= 0:
            return 0.0
        return (load - share) / share

"""Turns the searched assignment into ordered moves, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import ClusterState, Ints, SmallInts
from ballast.core.plan import Move, Reason
from ballast.core.planner.intents import (
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    ReplaceBroker,
)
from ballast.core.planner.problem.problem import Problem, loads_before
from ballast.core.planner.problem.question import Question
from ballast.core.wording import human_many, human_percent

REPAIRS = (
    "broker-down",
    "decommission",
    "evacuate",
    "draining",
    "replace",
    "racks",
    "topic-rule",
    "replication-factor",
)
"""Reasons that come before balance."""
NOTHING = 1e-12
"""A part of a share that is no reason."""

Change = tuple[int, list[int], list[int]]
"""A row, and its broker indices before and after."""


def moves_of(question: Question, problem: Problem, cur: SmallInts) -> tuple[tuple[Move, ...], Ints]:
    """Moves in the order in which they should be made, and the scaled loads when all are made.

    Replica list changes come first, since they copy nothing; then repairs; then what relieves the worst brokers most.
    """
    state, intent, before = question.state, question.intent, loads_before(problem)
    changes = _changes(problem, cur, in_place=isinstance(intent, ReplaceBroker))
    reasons = _reasons(state, intent, problem, before, changes)
    ids = problem.ids.tolist()
    sizes = question.loads.known_bytes
    topics = [t.name for t in state.topics]
    topic, number = state.partitions.topic.tolist(), state.partitions.number.tolist()
    ranked: list[tuple[tuple[int, float, int], Move]] = []
    for (row, old, new), (reason, rank) in zip(changes, reasons, strict=True):
        move = Move(
            topic=topics[topic[row]],
            partition=number[row],
            old=tuple([ids[b] for b in old]),
            new=tuple([ids[b] for b in new]),
            size_bytes=sizes[row],
            reason=reason,
        )
        place = 0 if set(old) == set(new) else 1 if reason.code in REPAIRS else 2
        ranked.append(((place, -rank, row), move))
    ranked.sort(key=lambda pair: pair[0])
    return tuple(move for _, move in ranked), _compute_loads_after(problem, before, changes, cur)


def least_known(bound_bytes: int, moves: tuple[Move, ...]) -> int:
    """A bound that counts assumed sizes may be more than is known to be copied, which then bounds it in turn."""
    return min(bound_bytes, sum(m.bytes_moved for m in moves)) if any(m.size_unknown for m in moves) else bound_bytes


def _changes(problem: Problem, cur: SmallInts, *, in_place: bool) -> list[Change]:
    """Rows whose list differs; ``in_place`` leaves each place of the list to the broker that takes it over."""
    out = []
    rows = _changed_rows(problem, cur)
    runs = [a[i].tolist() for a in (problem.old_start, problem.start) for i in (rows, rows + 1)]
    before, after = problem.old.tolist(), cur.tolist()
    for row, old_from, old_to, new_from, new_to in zip(rows.tolist(), *runs, strict=True):
        old = before[old_from:old_to]
        new = after[new_from:new_to] if in_place else _in_order(old, after[new_from:new_to])
        if new != old:
            out.append((row, old, new))
    return out


def _changed_rows(problem: Problem, cur: SmallInts) -> Ints:
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
    """The leader first, then the brokers that stay in the order they had, then the new ones."""
    stay = [b for b in old if b in new[1:]]
    return [new[0], *stay, *(b for b in new[1:] if b not in old)]


def _compute_loads_after(problem: Problem, before: Ints, changes: list[Change], cur: SmallInts) -> Ints:
    """Loads by broker after these changes: without those of the old replica lists, with those of the new ones."""
    load = before.copy()
    rows = np.array([row for row, _, _ in changes], np.int64)
    for sign, start, members in ((-1, problem.old_start, problem.old), (1, problem.start, cur)):
        counts = start[rows + 1] - start[rows]
        ends = np.cumsum(counts)
        slot = np.arange(int(counts.sum())) + np.repeat(start[rows] - ends + counts, counts)
        row = np.repeat(rows, counts)
        first = slot == start[row]
        for k in range(load.shape[1]):
            np.add.at(load[:, k], members[slot], sign * np.where(first, problem.lead[row, k], problem.follow[row, k]))
    return load


def _reasons(
    state: ClusterState, intent: Intent, problem: Problem, before: Ints, changes: list[Change]
) -> list[tuple[Reason, float]]:
    """For each change its reason, and how much it relieves (for ordering)."""
    forced = _Forced(state, intent, problem)
    pairs: list[tuple[int, int, bool]] = []
    found: list[tuple[Reason, float] | None] = []
    for row, old, new in changes:
        gone = [b for b in old if b not in new]
        come = [b for b in new if b not in old]
        reason = forced.reason(row, old, gone, come)
        if reason is not None:
            # Leaders that must go are moved before followers, so that leadership is away first.
            found.append((reason, 1.0 if old[0] in gone else 0.0))
            continue
        found.append(None)
        pairs.append((gone[0], come[0], False) if come and gone else (old[0], new[0], True))
    reasons = iter(_balance_reasons(state, problem, before, pairs))
    return [reason if reason is not None else next(reasons) for reason in found]


@dataclass(slots=True)
class _Forced:
    """Why a partition must change, whatever the bands."""

    state: ClusterState
    intent: Intent
    problem: Problem
    leave: list[bool] = field(init=False)
    rack: list[int] = field(init=False)
    crowded: set[tuple[int, int]] = field(init=False)
    """Counted topics and brokers that hold too many of their replicas."""

    def __post_init__(self) -> None:
        self.leave = self.problem.scope.leave.tolist()
        self.rack = self.problem.rack.tolist()
        self.crowded = _find_crowded(self.problem) if self.problem.scope.repair_rules else set()

    def reason(self, row: int, old: list[int], gone: list[int], come: list[int]) -> Reason | None:
        """The cause, or None where balance is the only reason."""
        brokers, intent = self.state.brokers, self.intent
        if isinstance(intent, Demote) and not gone and not come:
            return Reason("demote", f"broker {brokers[old[0]].id} is to lead nothing")
        if isinstance(intent, ChangeReplicationFactor) and len(gone) != len(come):
            return Reason("replication-factor", f"from {len(old)} to {human_many(intent.to, 'replica')}")
        leaving = [b for b in gone if self.leave[b]]
        repaired = self._leaving(leaving[0]) if leaving else self._rule_reason(row, old, gone)
        if repaired is not None:
            return repaired
        if gone and self._shared_rack(row, old, gone):
            b = brokers[gone[0]]
            return Reason("racks", f"broker {b.id} shares rack {b.rack} with another replica")
        if isinstance(intent, Expand) and come:
            return Reason("expand", f"broker {brokers[come[0]].id} is to be filled")
        return None

    def _leaving(self, broker: int) -> Reason:
        b = self.state.brokers[broker]
        match self.intent:
            case ReplaceBroker():
                return Reason("replace", f"broker {self.intent.new} replaces broker {self.intent.old}")
            case Decommission():
                return Reason("decommission", f"broker {b.id} is to be emptied")
            case Evacuate(offline_only=True):
                return Reason("evacuate", f"its replica on broker {b.id} is offline")
            case Evacuate():
                return Reason("evacuate", f"broker {b.id} is to be emptied")
            case _:
                word, what = ("draining", "is draining") if b.alive else ("broker-down", "is down")
                return Reason(word, f"broker {b.id} {what}")

    def _rule_reason(self, row: int, old: list[int], gone: list[int]) -> Reason | None:
        """The rule of its own topic that it broke."""
        classes, brokers = self.problem.scope.classes, self.state.brokers
        c = int(classes.of[row])
        if not c:
            return None
        topic = self.state.name(row).topic
        for b in gone:
            if classes.expelled[c, b]:
                return Reason("topic-rule", f"topic {topic} may not be on broker {brokers[b].id}")
            if (int(classes.counted[row]), b) in self.crowded:
                return Reason("topic-rule", f"broker {brokers[b].id} has more replicas of {topic} than its rule allows")
        if classes.must_step_down[c, old[0]]:
            return Reason("topic-rule", f"broker {brokers[old[0]].id} may not lead topic {topic}")
        return None

    def _shared_rack(self, row: int, old: list[int], gone: list[int]) -> bool:
        racks = [self.rack[b] for b in old]
        if len(set(racks)) == len(racks):
            return False
        limit = int(self.problem.rack_limit[row])
        return any(racks.count(self.rack[b]) > limit for b in gone)


def _find_crowded(problem: Problem) -> set[tuple[int, int]]:
    classes = problem.scope.classes
    row = np.repeat(np.arange(len(problem.old_start) - 1), np.diff(problem.old_start))
    topic = classes.counted[row].astype(np.int64)
    keys, count = np.unique(topic[topic >= 0] * len(problem.ids) + problem.old[topic >= 0], return_counts=True)
    over = keys[count > classes.most[keys // len(problem.ids)]].tolist()
    return {divmod(key, len(problem.ids)) for key in over}


def _balance_reasons(
    state: ClusterState, problem: Problem, before: Ints, pairs: list[tuple[int, int, bool]]
) -> list[tuple[Reason, float]]:
    """Of what its two ends were most short, or had most too much: the reason of a move from one broker to another."""
    if not pairs:
        return []
    source, target, list_change = np.array(pairs, np.int64).T
    off = _off(problem, before)
    shifts = np.array([bool((r.lead != r.follow).any()) for r in problem.resources], np.bool_)
    counts = (shifts[None, :] | (list_change[:, None] == 0)).astype(np.float64)
    # Source and target take turns, resource by resource: of equals the first gives the reason.
    worth = np.stack((off[source] * counts, -off[target] * counts), axis=2).reshape(len(pairs), -1)
    best = worth.argmax(axis=1)
    relief = np.maximum(worth, 0).sum(axis=1).tolist()
    most = worth[np.arange(len(pairs)), best].tolist()
    reasons: dict[tuple[int, int], Reason] = {}
    out = []
    for (a, b, _), at, figure, rank in zip(pairs, best.tolist(), most, relief, strict=True):
        key = (a if at % 2 == 0 else b, at // 2) if figure > NOTHING else (-1, -1)
        reason = reasons.get(key)
        if reason is None:
            reason = reasons[key] = _balance_reason(state, problem, off, *key)
        out.append((reason, rank))
    return out


def _balance_reason(state: ClusterState, problem: Problem, off: npt.NDArray[np.float64], broker: int, k: int) -> Reason:
    if broker < 0:
        return Reason("make-room", "it makes room for other moves")
    r, figure = problem.resources[k], float(off[broker, k])
    side = "over" if figure > 0 else "under"
    return Reason(
        r.name, f"broker {state.brokers[broker].id} is {human_percent(abs(figure), 0)} {side} its share of {r.label}"
    )


def _off(problem: Problem, before: Ints) -> npt.NDArray[np.float64]:
    """How far from its share each broker was, 0 inside the band."""
    share = problem.share * problem.unit
    inside = (problem.low <= before) & (before <= problem.high) | (share <= 0)
    return np.where(inside, 0.0, (before - share) / np.where(share > 0, share, 1.0))

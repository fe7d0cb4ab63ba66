"""Why a plan stops short: which obstacles there are; ``sentences`` says them and what would remove each."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from ballast.core.cluster import ClusterState, Flags, SmallInts
from ballast.core.plan import Move, Obstacle
from ballast.core.plan.model import Value
from ballast.core.planner.intents import Balance, ChangeReplicationFactor, Leaders
from ballast.core.planner.loads import DISK, Loads
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.problem import Problem
from ballast.core.planner.problem.question import Question
from ballast.core.planner.problem.scope import Scope
from ballast.core.planner.report.sentences import FEW_REPLICAS, MORE_REPLICAS, NAMED, more, obstacle
from ballast.core.planner.search.found import Found
from ballast.core.wording import human_many

if TYPE_CHECKING:  # it loads compiled code
    from ballast.core.planner.bound.reach import Reach

Spent = dict[str, Value]
"""The limit that was reached; empty where none was."""
BELOW_MIN_ISR: Final = "replicas-below-min-isr"
MOST: Final = 20
"""Obstacles of one kind that are listed; the rest are counted."""


def obstacles_of(
    question: Question, problem: Problem, found: Found, moves: tuple[Move, ...], reach: Reach | None
) -> tuple[Obstacle, ...]:
    """Every obstacle, the hard ones first; ``problem`` has the ranges that were asked for."""
    state, intent, policy = question.state, question.intent, question.policy
    spent = _budget_spent(policy, moves, question.loads)
    out, hopeless = _impossible(state, problem)
    cur, unplaced = (
        found.world.cur,
        found.unplaced & ~hopeless[np.repeat(np.arange(len(problem.start) - 1), np.diff(problem.start))],
    )
    out += _find_unplaced(state, problem, unplaced, spent)
    out += stuck_below_min_isr(state, problem)
    if isinstance(intent, ChangeReplicationFactor):
        out += _find_unshrunk(state, problem, intent.to)
    out += _leaders(state, problem, cur)
    out += _list_sole_leaders(state, problem, policy, moves)
    out += _find_crowded(state, problem, cur, hopeless, spent)
    if isinstance(intent, Balance | Leaders):
        out += _bands(question, problem, found, spent, reach)
        out += _room(found.later)
    return tuple(out)


def _find_unplaced(state: ClusterState, problem: Problem, unplaced: Flags, spent: Spent) -> list[Obstacle]:
    of_slot = np.repeat(np.arange(len(problem.start) - 1), np.diff(problem.start))
    rows = np.unique(of_slot[unplaced])
    scope, classes = problem.scope, problem.scope.classes
    home = problem.home
    must_go = scope.leave[home] | classes.expelled[classes.of[of_slot], home]
    kept = np.unique(of_slot[unplaced & (home >= 0) & ~scope.gives[home] & ~must_go])

    def usable(row: int) -> int:
        c = classes.of[row]
        takes, leave = scope.takes & ~classes.barred[c], scope.leave | classes.expelled[c]
        holders = problem.old[problem.old_start[row] : problem.old_start[row + 1]]
        return len(set(np.flatnonzero(takes & ~leave).tolist()) | set(holders[~leave[holders]].tolist()))

    def lacks_leader(row: int) -> bool:
        """Is it the leader's place, and no broker that takes replicas may lead?"""
        c = classes.of[row]
        able = scope.takes & ~classes.barred[c] & scope.leads & ~classes.unled[c]
        return bool(unplaced[problem.start[row]]) and not bool(able.any())

    def explain(row: int) -> Obstacle:
        because = partial(obstacle, "no-broker", state.name(row))
        wanted = int(problem.start[row + 1] - problem.start[row])
        if spent:
            return because("limit", **spent)
        if row in kept:
            return because("selection")
        if (able := usable(row)) < wanted:
            return because("too-few-by-rule" if classes.of[row] else "too-few", replicas=wanted, brokers=able)
        if lacks_leader(row):
            return because("leader")
        if classes.counted[row] >= 0:
            return because("max-per-broker", allowed=int(classes.most[classes.counted[row]]))
        return because()

    return [*map(explain, rows[:MOST].tolist()), *more("no-broker", len(rows), MOST)]


def explain_left_rows(state: ClusterState, scope: Scope) -> tuple[str, ...]:
    """How many partitions the plan leaves where they are since brokers would refuse writes while a replica is copied."""
    rows = np.flatnonzero(scope.left_rows)
    if not len(rows):
        return ()
    named = ", ".join(str(state.name(row)) for row in rows[:NAMED].tolist()) + (", …" if len(rows) > NAMED else "")
    return (f"{human_many(len(rows), 'partition')} left in place ({named}): {FEW_REPLICAS}. {MORE_REPLICAS}",)


def stuck_below_min_isr(state: ClusterState, problem: Problem) -> list[Obstacle]:
    """Those among them of which a replica must leave its broker."""
    scope, home = problem.scope, problem.home
    row = np.repeat(np.arange(len(problem.start) - 1), np.diff(problem.start))
    must_go = scope.leave[home] | scope.classes.expelled[scope.classes.of[row], home]
    rows = np.unique(row[must_go & scope.left_rows[row]])
    named = [obstacle(BELOW_MIN_ISR, state.name(r)) for r in rows[:MOST].tolist()]
    return [*named, *more(BELOW_MIN_ISR, len(rows), MOST)]


def _find_unshrunk(state: ClusterState, problem: Problem, to: int) -> list[Obstacle]:
    """Partitions that keep their replicas, since brokers that take no part hold more of them than are asked for."""
    rows = np.flatnonzero(problem.scope.open_rows & (problem.scope.factor > to))
    out = []
    for row in rows[:MOST].tolist():
        stay = [b for b in state.target(row) if not problem.scope.gives[state.broker_index[b]]]
        factor = int(problem.scope.factor[row])
        out.append(obstacle("selection", state.name(row), replicas=factor, brokers=tuple(stay)))
    return [*out, *more("selection", len(rows), MOST)]


def _leaders(state: ClusterState, problem: Problem, cur: SmallInts) -> list[Obstacle]:
    s, classes = problem.scope, problem.scope.classes
    if not (bool(s.unlead.any()) or bool(classes.must_step_down.any())) or not len(cur):
        return []
    first = cur[np.minimum(problem.start[:-1], len(cur) - 1)]
    barred = s.unlead[first] | classes.must_step_down[classes.of, first]
    stuck = np.flatnonzero((first >= 0) & barred & s.open_rows & (np.diff(problem.start) > 0))
    out = []
    for row in stuck[:MOST].tolist():
        cause = ""
        if classes.must_step_down[classes.of[row], first[row]]:
            cause = "rule-in-balance" if problem.scope.roam else "rule"
        elif classes.unled[classes.of[row]].any():
            cause = "barred-others"
        out.append(obstacle("sole-leader", state.name(row), cause, broker=state.brokers[int(first[row])].id))
    return [*out, *more("sole-leader", len(stuck), MOST)]


def _list_sole_leaders(
    state: ClusterState, problem: Problem, policy: PlannerPolicy, moves: tuple[Move, ...]
) -> list[Obstacle]:
    """Partitions whose replica list shrinks to brokers of which none should lead."""
    classes, barred = problem.scope.classes, policy.demoted | policy.draining
    out = []
    for m in moves:
        first = m.new[0]
        unled = classes.unled[classes.of[state.index[m.name]], state.broker_index[first]]
        if len(m.new) < len(m.old) and first != m.old[0] and (first in barred or unled):
            out.append(obstacle("sole-leader", m.name, "remaining-replica", broker=first))
    return [*out[:MOST], *more("sole-leader", len(out), MOST)]


def _impossible(state: ClusterState, problem: Problem) -> tuple[list[Obstacle], Flags]:
    """Topics whose own rules cannot be kept on this cluster whatever moves, one sentence each; and their rows."""
    classes, rows = problem.scope.classes, problem.scope.open_rows
    out: list[Obstacle] = []
    hopeless = np.zeros(len(rows), np.bool_)
    count = np.diff(problem.start)
    for c in range(1, len(classes.rules)):
        free = np.flatnonzero(~classes.barred[c])
        mine = (classes.of == c) & rows
        for t in np.unique(state.partitions.topic[mine]).tolist() if problem.scope.repair_rules else ():
            row = mine & (state.partitions.topic == t)
            factor, replicas = int(count[row].max()), int(count[row].sum())
            limits = classes.most[classes.topics == t].tolist()
            figures: dict[str, Value]
            if factor > len(free):
                cause, figures = "replicas", {"replicas": factor}
            elif limits and replicas > limits[0] * len(free):
                cause, figures = "max-per-broker", {"replicas": replicas, "allowed": int(limits[0])}
            else:
                continue
            hopeless |= row
            topic, brokers = state.topics[t].name, _ids(state, free.tolist())
            out.append(obstacle("topic-rule", f"topic {topic}", cause, topic=topic, brokers=brokers, **figures))
    return out, hopeless


def find_waived(state: ClusterState, problem: Problem) -> tuple[Obstacle, ...]:
    """Topics whose rules for leaders are not kept, since none of the brokers that they want is alive."""
    classes, p = problem.scope.classes, state.partitions
    out = []
    for c in np.flatnonzero(classes.waived).tolist():
        rules = classes.rules[c]
        wanted = [
            i
            for i, b in enumerate(state.brokers)
            if all(r.allows(b.id) and r.allows_leader(b.id, b.rack) for r in rules)
        ]
        cause = ("no-leader", "leader-down", "leaders-down")[min(len(wanted), 2)]
        for t in np.unique(p.topic[(classes.of == c) & problem.scope.open_rows]).tolist():
            topic = state.topics[t].name
            out.append(obstacle("topic-rule", f"topic {topic}", cause, topic=topic, brokers=_ids(state, wanted)))
    return tuple(out)


def _ids(state: ClusterState, brokers: list[int]) -> tuple[int, ...]:
    return tuple(state.brokers[b].id for b in brokers)


def _find_crowded(
    state: ClusterState, problem: Problem, cur: SmallInts, hopeless: Flags, spent: Spent
) -> list[Obstacle]:
    """Brokers that go on holding more replicas of a topic than its rules allow."""
    classes = problem.scope.classes
    if not problem.scope.repair_rules or not len(classes.most):
        return []
    row = np.repeat(np.arange(len(problem.start) - 1), np.diff(problem.start))
    topic = classes.counted[row]
    keep = (topic >= 0) & (cur >= 0) & ~hopeless[row]
    tally = np.zeros((len(classes.most), len(problem.ids)), np.int64)
    np.add.at(tally, (topic[keep], cur[keep]), 1)
    movable = np.zeros(tally.shape, np.bool_)
    free = keep & problem.scope.open_rows[row]
    movable[topic[free], cur[free]] = True
    out = []
    over = np.argwhere((tally > classes.most[:, None]) & movable & problem.scope.gives[None, :]).tolist()
    for t, b in over[:MOST]:
        named = state.topics[int(classes.topics[t])].name
        figures: Spent = {"broker": state.brokers[b].id, "replicas": int(tally[t, b]), "allowed": int(classes.most[t])}
        cause = "crowded-limit" if spent else "crowded"
        out.append(obstacle("topic-rule", f"topic {named}", cause, topic=named, **figures, **spent))
    return [*out, *more("topic-rule", len(over), MOST, "of the kind")]


def _bands(question: Question, problem: Problem, found: Found, spent: Spent, reach: Reach | None) -> list[Obstacle]:
    state, policy = question.state, question.policy
    out: list[Obstacle] = []
    after, later = found.after, found.later
    for k, r in enumerate(problem.resources):
        if isinstance(question.intent, Leaders) and not bool((r.lead != r.follow).any()):
            continue
        over = np.maximum(after[:, k] - problem.high[:, k], 0)
        under = np.maximum(problem.low[:, k] - after[:, k], 0)
        off = np.flatnonzero((over + under) > 0)
        if len(off):
            worst = int(off[np.argmax((over + under)[off])])
            share = float(problem.share[worst, k] * problem.unit[k])
            away = (float(after[worst, k]) - share) / share if share else None
            cause, figures = _cause(question, problem, k, worst, spent, reach)
            if later is not None and bool(later[off, k].any()):
                cause, figures = "next-plan", {}
            out.append(
                obstacle(
                    "band",
                    r.label,
                    cause,
                    resource=r.label,
                    brokers=_ids(state, off.tolist()),
                    of=int(problem.scope.shares.sum()),
                    band=r.aim(policy),
                    furthest=state.brokers[worst].id,
                    away=away,
                    **figures,
                )
            )
        out += _find_uneven(state, problem, policy, k)
    return out


def _room(later: Flags | None) -> list[Obstacle]:
    """The next plan, where disks have no room for all of it while this one runs."""
    if later is None:
        return []
    return [obstacle("disk-space", "disks", ranges=int(later.sum()))]


def _cause(  # noqa: PLR0911 — a table of causes, the likeliest first
    question: Question, problem: Problem, k: int, worst: int, spent: Spent, reach: Reach | None
) -> tuple[str, dict[str, Value]]:
    if spent:
        return "limit", spent
    if isinstance(question.intent, Leaders):
        return "replica-list-changes", {}
    r = problem.resources[k]
    largest = int(np.argmax(r.lead)) if len(r.lead) else 0
    fair = float(problem.share[worst, k])
    if fair and not r.counted and len(r.lead) and float(r.lead[largest]) > 2 * question.policy.band_of(r.name) * fair:
        name = question.state.name(largest)
        share = float(r.lead[largest]) / max(fair, 1.0)
        return "one-replica", {"partition": str(name), "topic": name.topic, "share": share}
    if not question.intent.selection.is_everything:
        return "selection", {}
    if not bool(problem.scope.open_rows.all()):
        return "held", {}
    if r.name == DISK and bool((problem.room[problem.scope.takes] < problem.high[problem.scope.takes, k]).any()):
        return "disk", {}
    if reach is not None and (reach.low < problem.low)[:, k].any() | (reach.high > problem.high)[:, k].any():
        return _unreachable(problem, reach, k)
    return "topic-rules" if problem.scope.classes.any else "", {}


def _unreachable(problem: Problem, reach: Reach, k: int) -> tuple[str, dict[str, Value]]:
    """How far at least, for brokers as unlike as these; as a proof where there is one."""
    past = np.maximum(reach.high - problem.high, problem.low - reach.low)[:, k] / np.maximum(
        problem.share[:, k] * problem.unit[k], 1.0
    )
    outside = float(past.max())
    if reach.proven > 0:
        return "unlike-proven", {"outside": outside, "missed": float(reach.proven)}
    return "unlike", {"outside": outside}


def _find_uneven(state: ClusterState, problem: Problem, policy: PlannerPolicy, k: int) -> list[Obstacle]:
    """Racks of unlike size: what a rack holds of each partition is limited, however many brokers it has, and however few."""
    r = problem.resources[k]
    s = problem.scope
    # Where topics may not be everywhere, shares are unlike for that reason already.
    if r.leaders_only or r.name != DISK or not bool(s.shares.any()) or bool(s.classes.barred.any()):
        return []
    even = r.capacity * float(problem.share[s.shares, k].sum()) / float(r.capacity[s.shares].sum())
    off = np.abs(problem.share[:, k] - even) > policy.band_of(r.name) * even
    off &= s.shares & s.takes
    if not bool(off.any()):
        return []
    alone = len(np.unique(problem.rack)) == len(problem.rack)
    away = problem.share[:, k] / np.maximum(even, 1) - 1
    worst = int(np.argmax(np.where(off, -away if alone else np.abs(away), -np.inf)))
    share = float(problem.share[worst, k] / even[worst])
    b = state.brokers[worst]
    on = partial(obstacle, "uneven-racks", broker=b.id, share=share)
    if alone:
        return [on(f"broker {b.id}", "own-rack")]
    shared = bool((problem.rack_least > 0).any())
    return [on(f"rack {b.rack}", "fewer-racks" if shared else "every-rack")]


def _budget_spent(policy: PlannerPolicy, moves: tuple[Move, ...], loads: Loads) -> Spent:
    if policy.max_bytes is not None:
        largest = int(loads.size_bytes.max()) if len(loads) else 0
        if sum(m.bytes_moved for m in moves) + largest > policy.max_bytes:
            return {"limit": policy.max_bytes, "limits": "bytes"}
    if policy.max_replica_moves is not None and sum(len(m.adding) for m in moves) >= policy.max_replica_moves:
        return {"limit": policy.max_replica_moves, "limits": "replica moves"}
    return {}

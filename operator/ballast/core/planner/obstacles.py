"""Why a plan stops short, and what would remove the obstacle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ballast.core.cluster import ClusterState, Flags, SmallInts
from ballast.core.plan import Move, Obstacle
from ballast.core.planner.found import Found
from ballast.core.planner.intents import Balance, ChangeReplicationFactor, Intent, Leaders
from ballast.core.planner.loads import DISK, Loads
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem import Problem
from ballast.core.planner.scope import Scope
from ballast.core.wording import human_many, human_percent

if TYPE_CHECKING:  # it loads compiled code
    from ballast.core.planner.reach import Reach

NAMED: Final = 8
"""Brokers that a sentence names."""
PLAN_AGAIN: Final = "Run ballast plan balance again when this plan is done."
BELOW_MIN_ISR: Final = "replicas-below-min-isr"
FEW_REPLICAS: Final = (
    "fewer replicas than min.insync.replicas, and brokers refuse writes with acks=all while one is added"
)
MORE_REPLICAS: Final = (
    "Lower min.insync.replicas, or raise the replication factor in a planned window (ballast plan change-rf)."
)
MOST: Final = 20
"""Obstacles of one kind that are listed; the rest are counted."""


def obstacles_of(
    state: ClusterState,
    intent: Intent,
    problem: Problem,
    policy: PlannerPolicy,
    loads: Loads,
    found: Found,
    moves: tuple[Move, ...],
    reach: Reach | None,
) -> tuple[Obstacle, ...]:
    """Every obstacle, the hard ones first; ``problem`` has the ranges that were asked for."""
    spent = _budget_spent(policy, moves, loads)
    out, hopeless = _impossible(state, problem)
    cur, unplaced = (
        found.world.cur,
        found.unplaced & ~hopeless[np.repeat(np.arange(len(problem.start) - 1), np.diff(problem.start))],
    )
    out += _unplaced(state, problem, unplaced, spent)
    out += stuck_below_min_isr(state, problem)
    if isinstance(intent, ChangeReplicationFactor):
        out += _unshrunk(state, problem, intent.to)
    out += _leaders(state, problem, cur)
    out += _heirs(state, problem, policy, moves)
    out += _crowded(state, problem, cur, hopeless, spent)
    if isinstance(intent, Balance | Leaders):
        out += _bands(state, intent, problem, policy, found, spent, reach)
        out += _room(found.later)
    return tuple(out)


def _more(code: str, total: int, reasons: str = "for the same reason", of: str = "partitions") -> list[Obstacle]:
    """What is not named one by one, counted."""
    rest = total - MOST
    return [Obstacle(code, f"{rest} more {of}", reasons)] if rest > 0 else []


def _unplaced(state: ClusterState, problem: Problem, unplaced: Flags, spent: str) -> list[Obstacle]:
    of_slot = np.repeat(np.arange(len(problem.start) - 1), np.diff(problem.start))
    rows = np.unique(of_slot[unplaced])
    out: list[Obstacle] = []
    scope, classes = problem.scope, problem.scope.classes
    home = problem.home
    must_go = scope.leave[home] | classes.expelled[classes.of[of_slot], home]
    kept = np.unique(of_slot[unplaced & (home >= 0) & ~scope.gives[home] & ~must_go])

    def usable(row: int) -> int:
        c = classes.of[row]
        takes, leave = scope.takes & ~classes.barred[c], scope.leave | classes.expelled[c]
        holders = problem.old[problem.old_start[row] : problem.old_start[row + 1]]
        return len(set(np.flatnonzero(takes & ~leave).tolist()) | set(holders[~leave[holders]].tolist()))

    def heirless(row: int) -> bool:
        """Is it the leader's place, and nobody who takes replicas may lead?"""
        c = classes.of[row]
        able = scope.takes & ~classes.barred[c] & scope.leads & ~classes.unled[c]
        return bool(unplaced[problem.start[row]]) and not bool(able.any())

    for row in rows[:MOST].tolist():
        name = str(state.name(row))
        wanted = int(problem.start[row + 1] - problem.start[row])
        if spent:
            detail, remedy = f"a replica must move, but {spent}", "Allow more bytes or moves."
        elif row in kept:
            detail = "its replicas that share a rack sit on brokers that the selection leaves out"
            remedy = "Let those brokers take part."
        elif usable(row) < wanted:
            detail = f"it shall have {human_many(wanted, 'replica')}, but only {human_many(usable(row), 'broker')} may hold one"
            remedy = "Add brokers, or uncordon some."
            if classes.of[row]:
                remedy = "Add brokers, uncordon some, or let the rule for its topic allow more."
        elif heirless(row):
            detail = "its leader must go, and no broker that takes replicas may lead it"
            remedy = "Let another broker lead it: demote fewer, or allow more in the rules for its topic."
        elif classes.counted[row] >= 0:
            most = int(classes.most[classes.counted[row]])
            detail = f"no broker that takes replicas has a free rack, enough disk and fewer than {most} of its topic, as many as its rules allow"
            remedy = "Let the rules for its topic allow more, add a broker in another rack, or add disk."
        else:
            detail = "no broker that takes replicas has a free rack and enough disk for it"
            remedy = "Add a broker in another rack, add disk, or raise the disk limit."
        out.append(Obstacle("no-broker", name, detail, remedy))
    return out + _more("no-broker", len(rows), "for the same reasons")


def left_as_they_are(state: ClusterState, scope: Scope) -> tuple[str, ...]:
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
    named = [
        Obstacle(BELOW_MIN_ISR, str(state.name(r)), f"a replica must move, but it has {FEW_REPLICAS}", MORE_REPLICAS)
        for r in rows[:MOST].tolist()
    ]
    return named + _more(BELOW_MIN_ISR, len(rows))


def _unshrunk(state: ClusterState, problem: Problem, to: int) -> list[Obstacle]:
    """Partitions that keep their replicas, since brokers that take no part hold more of them than are asked for."""
    rows = np.flatnonzero(problem.scope.open_rows & (problem.scope.factor > to))
    out = []
    for row in rows[:MOST].tolist():
        stay = [b for b in state.target(row) if not problem.scope.gives[state.broker_index[b]]]
        detail = f"it keeps its {human_many(int(problem.scope.factor[row]), 'replica')}: {len(stay)} of them are on brokers that the selection leaves out ({', '.join(map(str, stay))})"
        out.append(
            Obstacle(
                "selection", str(state.name(row)), detail, "Let those brokers take part, or ask for more replicas."
            )
        )
    return out + _more("selection", len(rows))


def _leaders(state: ClusterState, problem: Problem, cur: SmallInts) -> list[Obstacle]:
    s, classes = problem.scope, problem.scope.classes
    if not (bool(s.unlead.any()) or bool(classes.must_step_down.any())) or not len(cur):
        return []
    first = cur[np.minimum(problem.start[:-1], len(cur) - 1)]
    barred = s.unlead[first] | classes.must_step_down[classes.of, first]
    stuck = np.flatnonzero((first >= 0) & barred & s.open_rows & (np.diff(problem.start) > 0))
    out = []
    for row in stuck[:MOST].tolist():
        broker = state.brokers[int(first[row])].id
        detail = f"broker {broker} stays its leader: it has no other replica that may lead"
        remedy = "Raise its replication factor first."
        if classes.must_step_down[classes.of[row], first[row]]:
            remedy = "Let the rule for its topic allow more leaders"
            remedy += "." if problem.scope.roam else ", or use ballast plan balance, which may move data."
        elif classes.unled[classes.of[row]].any():
            remedy = "Raise its replication factor first, or let the rules for its topic allow more leaders."
        out.append(Obstacle("sole-leader", str(state.name(row)), detail, remedy))
    return out + _more("sole-leader", len(stuck))


def _heirs(state: ClusterState, problem: Problem, policy: PlannerPolicy, moves: tuple[Move, ...]) -> list[Obstacle]:
    """Partitions whose list shrinks to replicas of which none should lead."""
    classes, barred = problem.scope.classes, policy.demoted | policy.draining
    out = []
    for m in moves:
        first = m.new[0]
        unled = classes.unled[classes.of[state.index[m.name]], state.broker_index[first]]
        if len(m.new) < len(m.old) and first != m.old[0] and (first in barred or unled):
            detail = f"broker {first} becomes its leader, though it should not lead it: no replica that stays may"
            out.append(Obstacle("sole-leader", str(m.name), detail, "Keep more replicas, or change what may lead."))
    return out[:MOST] + _more("sole-leader", len(out))


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
            said = f"allow {_ids(state, free.tolist())}"
            if factor > len(free):
                detail = f"its rules {said} and its partitions have {factor} replicas"
            elif limits and replicas > limits[0] * len(free):
                detail = f"its rules {said} with {limits[0]} replicas each, and it has {replicas} replicas"
            else:
                continue
            hopeless |= row
            remedy = "Allow more in balance.topic_rules, or give the topic fewer replicas."
            out.append(Obstacle("topic-rule", f"topic {state.topics[t].name}", detail, remedy))
    return out, hopeless


class Waiver(NamedTuple):
    """A topic whose rules for leaders are not kept, since none of the brokers that they want is alive."""

    topic: str
    detail: str
    remedy: str

    @property
    def obstacle(self) -> Obstacle:
        """For a plan that was to keep the rules."""
        return Obstacle("topic-rule", f"topic {self.topic}", self.detail, self.remedy)

    @property
    def assumption(self) -> str:
        """For a plan that was asked for something else."""
        return f"Topic {self.topic}: {self.detail}."


def waived(state: ClusterState, problem: Problem) -> tuple[Waiver, ...]:
    """Topics whose rules want leaders of which none is alive."""
    classes, p = problem.scope.classes, state.partitions
    out = []
    for c in np.flatnonzero(classes.waived).tolist():
        rules = classes.rules[c]
        wanted = [
            i
            for i, b in enumerate(state.brokers)
            if all(r.allows(b.id) and r.allows_leader(b.id, b.rack) for r in rules)
        ]
        gone = (", and it is not alive", ", and none of them is alive")[len(wanted) > 1] if wanted else ""
        detail = f"its rules let {_ids(state, wanted)} lead it{gone}"
        for t in np.unique(p.topic[(classes.of == c) & problem.scope.open_rows]).tolist():
            start = "" if not wanted else "Start it, or allow" if len(wanted) == 1 else "Start one of them, or allow"
            remedy = f"{start or 'Allow'} more in balance.topic_rules."
            out.append(Waiver(state.topics[t].name, f"{detail}: others lead it", remedy))
    return tuple(out)


def _ids(state: ClusterState, brokers: list[int]) -> str:
    if not brokers:
        return "none of the brokers that there are"
    named = ", ".join(str(state.brokers[b].id) for b in brokers[:NAMED])
    more = f" and {len(brokers) - NAMED} more" if len(brokers) > NAMED else ""
    return f"only broker{'s' if len(brokers) > 1 else ''} {named}{more}"


def _crowded(state: ClusterState, problem: Problem, cur: SmallInts, hopeless: Flags, spent: str) -> list[Obstacle]:
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
        name, most = state.topics[int(classes.topics[t])].name, int(classes.most[t])
        detail = f"broker {state.brokers[b].id} keeps {int(tally[t, b])} of its replicas, and its rules allow {most}"
        why = spent or "no other broker that may hold them has room for one in its rack and on its disk"
        out.append(Obstacle("topic-rule", f"topic {name}", f"{detail}: {why}", "Allow more, or add brokers."))
    return out + _more("topic-rule", len(over), "for the same reasons", "of the kind")


def _bands(
    state: ClusterState,
    intent: Intent,
    problem: Problem,
    policy: PlannerPolicy,
    found: Found,
    spent: str,
    reach: Reach | None,
) -> list[Obstacle]:
    out: list[Obstacle] = []
    after, later = found.after, found.later
    for k, r in enumerate(problem.resources):
        if isinstance(intent, Leaders) and not bool((r.lead != r.follow).any()):
            continue
        over = np.maximum(after[:, k] - problem.high[:, k], 0)
        under = np.maximum(problem.low[:, k] - after[:, k], 0)
        off = np.flatnonzero((over + under) > 0)
        if len(off):
            worst = int(off[np.argmax((over + under)[off])])
            share = float(problem.share[worst, k] * problem.unit[k])
            away = (float(after[worst, k]) - share) / share if share else 0.0
            how = (
                f"is {human_percent(abs(away))} {'over' if away > 0 else 'under'} its share"
                if share
                else "should have none"
            )
            names = ", ".join(str(state.brokers[b].id) for b in off[:8].tolist()) + (", …" if len(off) > 8 else "")
            detail = (
                f"{len(off)} of {int(problem.scope.shares.sum())} brokers stay outside ±{human_percent(r.aimed_at(policy), 0)} "
                f"({names}); the furthest, broker {state.brokers[worst].id}, {how}"
            )
            cause, remedy = _cause(state, intent, problem, policy, k, worst, spent, reach)
            if later is not None and bool(later[off, k].any()):
                cause, remedy = "disks have no room for what it takes until this plan has run", PLAN_AGAIN
            out.append(Obstacle("band", r.label, f"{detail}: {cause}", remedy))
        out += _uneven(state, problem, policy, k)
    return out


def _room(later: Flags | None) -> list[Obstacle]:
    """The next plan, where disks have no room for all of it while this one runs."""
    if later is None:
        return []
    count = human_many(int(later.sum()), "range")
    detail = f"what has not left yet takes room while this plan runs; the next plan can meet {count} more"
    return [Obstacle("room", "disks", detail, PLAN_AGAIN)]


def _cause(  # noqa: PLR0911 — a table of causes, the likeliest first
    state: ClusterState,
    intent: Intent,
    problem: Problem,
    policy: PlannerPolicy,
    k: int,
    worst: int,
    spent: str,
    reach: Reach | None,
) -> tuple[str, str]:
    if spent:
        return spent, "Allow more bytes, or plan again when this plan is done."
    if isinstance(intent, Leaders):
        return "reorders alone do not reach it", "Use ballast plan balance, which may move data."
    r = problem.resources[k]
    largest = int(np.argmax(r.lead)) if len(r.lead) else 0
    fair = float(problem.share[worst, k])
    if fair and not r.counted and len(r.lead) and float(r.lead[largest]) > 2 * policy.band_of(r.name) * fair:
        share = float(r.lead[largest]) / max(fair, 1.0)
        return (
            f"one replica of {state.name(largest)} alone is {human_percent(share, 0)} of a broker's share",
            f"Give topic {state.name(largest).topic} more partitions, or a wider band for {r.label}.",
        )
    if not intent.selection.is_everything:
        return "the selection leaves out what would have to move", "Select more topics or brokers."
    if not bool(problem.scope.open_rows.all()):
        return (
            "some partitions are pinned, moving, being deleted or have fewer replicas than min.insync.replicas",
            "Plan again when they are free.",
        )
    if r.name == DISK and bool((problem.room[problem.scope.takes] < problem.high[problem.scope.takes, k]).any()):
        return "disks would be too full while the plan runs", "Add disk or brokers, or raise the disk limit."
    if reach is not None and (reach.low < problem.low)[:, k].any() | (reach.high > problem.high)[:, k].any():
        return _unreachable(problem, reach, k), f"Allow a wider band for {r.label}, or brokers that are more alike."
    if problem.scope.classes.any:
        return (
            "no plan was found within racks, replica counts, the topics' own rules and the other bands",
            f"Allow a wider band for {r.label}, or more brokers in balance.topic_rules.",
        )
    return "no plan was found within racks, replica counts and the other bands", f"Allow a wider band for {r.label}."


def _unreachable(problem: Problem, reach: Reach, k: int) -> str:
    """How far at least, for brokers as unlike as these; as a proof where there is one."""
    past = np.maximum(reach.high - problem.high, problem.low - reach.low)[:, k] / np.maximum(
        problem.share[:, k] * problem.unit[k], 1.0
    )
    figure = f"some broker stays about {human_percent(float(past.max()))} of its share outside"
    if reach.proven > 0:
        total = human_percent(reach.proven)
        return f"brokers are too unlike: {figure}; it is proven that all ranges together are missed by {total} of an average share"
    return f"brokers are too unlike, as far as is known: {figure}"


def _uneven(state: ClusterState, problem: Problem, policy: PlannerPolicy, k: int) -> list[Obstacle]:
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
    if alone:
        return [
            Obstacle(
                "racks-of-unlike-size",
                f"broker {b.id}",
                f"it holds at most one replica of each partition, so broker {b.id} can carry {human_percent(share, 0)} of its part by capacity",
                "Give the others more capacity, or add brokers.",
            )
        ]
    shared = bool((problem.rack_least > 0).any())
    why = "no partition may go to fewer racks" if shared else "each partition needs a rack for every replica"
    return [
        Obstacle(
            "racks-of-unlike-size",
            f"rack {b.rack}",
            f"{why}, so broker {b.id} must carry {human_percent(share, 0)} of an even share",
            "Give every rack the same capacity, or use more racks than replicas.",
        )
    ]


def _budget_spent(policy: PlannerPolicy, moves: tuple[Move, ...], loads: Loads) -> str:
    if policy.max_bytes is not None:
        largest = int(loads.size_bytes.max()) if len(loads) else 0
        if sum(m.bytes_moved for m in moves) + largest > policy.max_bytes:
            return f"the limit of {policy.max_bytes} bytes is spent"
    if policy.max_moves is not None and sum(len(m.adding) for m in moves) >= policy.max_moves:
        return f"the limit of {policy.max_moves} moves is spent"
    return ""

"""Makes a plan: scope, arrays, search, moves, bound, and the checker's verdict before anything leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, Ints, SmallInts, TopicPartition
from ballast.core.plan import Move, Obstacle, Plan
from ballast.core.plan.fingerprint import fingerprint, with_topic_ids
from ballast.core.planner.checker.checker import demand_sound
from ballast.core.planner.cross_rack import traffic as cross_rack
from ballast.core.planner.dirs import with_dirs
from ballast.core.planner.intents import Balance, Demote, Intent, Leaders, ReplaceBroker
from ballast.core.planner.loads import DISK, Loads
from ballast.core.planner.moves import least_known, moves_of
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.problem import Problem, loads_before, problem_of
from ballast.core.planner.problem.question import Question
from ballast.core.planner.problem.scope import Scope, scope_of
from ballast.core.planner.report.obstacles import explain_left_rows, find_waived, obstacles_of, stuck_below_min_isr
from ballast.core.planner.report.summary import summary_of
from ballast.core.planner.request import dump_request
from ballast.core.planner.search.found import Found
from ballast.core.planner.search.freed_room import in_order
from ballast.core.planner.search.world import World
from ballast.errors import NoPlanFound

if TYPE_CHECKING:
    from ballast.core.planner.bound.reach import Reach

RANGES: Final = frozenset({"band", "uneven-racks"})
"""Obstacles that name ranges which are not met: alone, they call for nothing."""
MOST_TAKEN_IN: Final = 4
"""Further plans that one plan takes in."""
WAITS: Final = "Disks have no space for all moves at once: some wait until moves before them have freed it."


def make(state: ClusterState, intent: Intent, *, loads: Loads | None, policy: PlannerPolicy | None, seed: int) -> Plan:
    """``ballast.core.planner.plan``, with everything imported."""
    policy = policy or PlannerPolicy()
    loads = loads if loads is not None else Loads.from_state(state)
    assert len(loads) == len(state.partitions), "the loads belong to another reading of the cluster"
    if policy.max_bytes is not None and len(loads) and DISK not in loads.known:
        raise NoPlanFound(
            "No size of a partition is known, so no plan can keep to a limit of bytes.",
            hint="It requires Describe on the cluster (DescribeLogDirs). Limit replicas instead (--max-replica-moves), or leave max_bytes out.",
        )
    question = Question(state, intent, loads, policy, seed)
    searched = _search_best(question)
    asked, problem, reach = searched.asked, searched.problem, searched.reach
    found, at_rest = searched.found, searched.at_rest
    scope, before = asked.scope, loads_before(asked)
    cur, after = found.world.cur, found.after
    cheap = policy.cross_rack.leaders and isinstance(intent, Balance | Leaders)
    if cheap:
        from ballast.core.planner.cross_rack.cheaper import with_reasons  # noqa: PLC0415

        found = replace(found, moves=with_reasons(state, found.moves, loads, policy.cross_rack))
    elections = _elections(state, intent, scope, found.moves)
    moves, tight = with_dirs(state, found.moves)
    # At rest nothing was tried, so nothing stood in the way, but for ranges that nothing can reach.
    obstacles = (
        tuple(stuck_below_min_isr(state, asked))
        if at_rest and reach is None
        else obstacles_of(question, asked, found, moves, reach) + tight
    )
    waiving, told = find_waived(state, problem), isinstance(intent, Balance | Leaders)
    if told:
        obstacles = waiving + obstacles
    bound_bytes, bound_method = _bound(problem, policy, scope, moves, after, cur)
    bounded = policy.is_limited or not isinstance(intent, Balance)
    made = Plan(
        intent=intent.words,
        purpose=intent.purpose,
        cluster_id=state.cluster_id,
        fingerprint=fingerprint(state),
        moves=moves,
        elections=elections,
        status=_status(bool(moves or elections), obstacles, bounded=bounded),
        obstacles=obstacles,
        in_order=found.in_order,
        assumptions=loads.assumptions
        + problem.assumptions
        + explain_left_rows(state, scope)
        + (cross_rack.notes(state, loads, policy.cross_rack) if cheap else ())
        + ((WAITS,) if found.in_order else ())
        + tuple(f"Topic {w.values['topic']}: {w.detail}." for w in waiving if not told),
        seed=seed,
        bound_bytes=bound_bytes,
        bound_method=bound_method,
        allow_replication_factor_change=any(m.changes_replication_factor for m in moves),
        request=dump_request(intent, policy, seed),
        summary=summary_of(question, asked, moves, before, after) | {"search_ended_early": found.ended_early},
    )
    if traffic := cross_rack.summary_of_plan(state, made, loads, policy.cross_rack):
        made.summary["cross_rack"] = traffic
    demand_sound(state, made, intent, loads=loads, policy=policy)
    return with_topic_ids(made, state)


@dataclass(frozen=True, slots=True, eq=False)
class _Searched:
    """What was asked of the search, and what it found."""

    asked: Problem
    problem: Problem
    """The ranges asked for, as far as they can be reached."""
    reach: Reach | None
    at_rest: bool
    """Nothing called for a search."""
    found: Found


def _search_best(question: Question) -> _Searched:
    """The best that was found, with what plans on its result would add.

    Where a search ends with ranges missed, another that begins from its result may still find something.  A plan must not leave that to
    the next one: it is made on, until the next one would be empty.
    """
    intent, policy = question.intent, question.policy
    first = _search_once(question)
    goes_on = isinstance(intent, Balance) or (isinstance(intent, Leaders) and policy.cross_rack.leaders)
    if not goes_on or first.at_rest:
        return first
    found = first.found
    for _ in range(MOST_TAKEN_IN):
        if not _is_unfinished(found, first.problem, policy):
            break
        state = state_after(question.state, found.moves)
        following = _search_once(replace(question, state=state)).found
        both = following.moves and _take_in(question, first.asked, first.problem, found, following)
        if not both:
            break
        found = both
    return replace(first, found=found)


def _search_once(question: Question) -> _Searched:
    """One search, and leaders where less traffic crosses racks as far as the ranges that it met allow."""
    found = _search(question)
    if not question.policy.cross_rack.leaders or not isinstance(question.intent, Balance | Leaders):
        return found
    from ballast.core.planner.cross_rack.cheaper import with_cheaper_leaders  # noqa: PLC0415

    return replace(found, found=with_cheaper_leaders(question, found.asked, found.found))


def _search(question: Question) -> _Searched:
    state, intent, policy = question.state, question.intent, question.policy
    asked = problem_of(state, question.loads, policy, scope_of(state, intent, policy), bands="target")
    problem, reach, world = asked, None, World.of(asked, policy)
    at_rest = _at_rest(question, world)
    if not at_rest and isinstance(intent, Balance):
        # Compiled code takes more than a second to load, which a cluster that needs no plan must not pay.
        from ballast.core.planner.bound.reach import reach_of  # noqa: PLC0415

        reach = reach_of(asked)
        if reach is not None:
            problem = replace(asked, low=reach.low, high=reach.high)
            world = World.of(problem, policy)
            at_rest = _at_rest(question, world)
    if at_rest:
        moves, after = moves_of(question, asked, world.cur)
        return _Searched(asked, problem, reach, at_rest, Found(world, moves, after, np.zeros(len(world.cur), np.bool_)))
    from ballast.core.planner.search.find import find  # noqa: PLC0415

    return _Searched(asked, problem, reach, at_rest, find(question, asked, problem))


def _at_rest(question: Question, world: World) -> bool:
    """Is everything within the wider band that triggers a plan, with nothing that must be repaired?"""
    state, policy, p = question.state, question.policy, world.problem
    if not len(state.partitions):
        return True
    if not isinstance(question.intent, Balance | Leaders) or world.must_act():
        return False
    wide = problem_of(state, question.loads, policy, p.scope, bands="trigger")
    wide = replace(wide, low=np.minimum(wide.low, p.low), high=np.maximum(wide.high, p.high))
    return World.of(wide, policy).excess == 0


def _bound(
    problem: Problem, policy: PlannerPolicy, scope: Scope, moves: tuple[Move, ...], after: Ints, placement: SmallInts
) -> tuple[int, str]:
    """The least bytes that any plan could copy, and how that is known; with sizes assumed, no more than is known to be copied."""
    if not any(m.adding for m in moves):
        return 0, "no byte moves"
    from ballast.core.planner.bound.bound import bound_of  # noqa: PLC0415

    found = bound_of(problem, after, placement, prove=policy.prove and scope.roam)
    return least_known(found.bytes, moves), found.method


def _status(anything: bool, obstacles: tuple[Obstacle, ...], *, bounded: bool) -> str:  # noqa: FBT001
    """A cluster that no plan brings nearer to its ranges is at rest, unless a limit of moves or bytes kept it there."""
    if obstacles and not (anything or bounded or any(o.code not in RANGES for o in obstacles)):
        return "nothing-to-do"
    if obstacles:
        return "misses-some-goals" if anything else "no-plan-found"
    return "meets-all-goals" if anything else "nothing-to-do"


def _elections(
    state: ClusterState, intent: Intent, scope: Scope, moves: tuple[Move, ...]
) -> tuple[TopicPartition, ...]:
    """Where another broker leads than the first of the list after the plan, and that first one can lead."""
    p = state.partitions
    first = state.preferred.copy()
    changed = {state.index[m.name]: m for m in moves}
    wanted = np.zeros(len(p), np.bool_)
    if isinstance(intent, Balance | Leaders):
        wanted |= scope.open_rows | scope.left_rows
    elif isinstance(intent, Demote):
        wanted |= scope.open_rows & np.isin(p.leader, sorted(intent.brokers))
    for row, move in changed.items():
        first[row] = move.new[0]
        wanted[row] = True
    if isinstance(intent, ReplaceBroker):
        wanted &= np.isin(np.arange(len(p)), list(changed))
    differs = wanted & (p.leader != first) & np.isin(first, sorted(state.alive))
    out = []
    for row in np.flatnonzero(differs).tolist():
        planned = changed.get(row)
        copied = planned is not None and int(first[row]) in planned.adding
        if copied or int(first[row]) in state.isr(row):
            out.append(state.name(row))
    return tuple(out)


def _is_unfinished(found: Found, problem: Problem, policy: PlannerPolicy) -> bool:
    """May a plan made on the result find a broker for what has none, or come nearer to the ranges that can be reached?"""
    missed = (found.after > problem.high) | (found.after < problem.low)
    return bool(found.moves) and not policy.is_limited and bool(missed.any() or found.unplaced.any())


def state_after(state: ClusterState, moves: Sequence[Move]) -> ClusterState:
    """The cluster with these moves made, none of which changes a number of replicas: all in sync and led by their first."""
    p = state.partitions
    replica, in_sync, log_dir, offline = p.replica.copy(), p.in_sync.copy(), p.log_dir.copy(), p.offline.copy()
    leader = p.leader.copy()
    for m in moves:
        row = state.index[m.name]
        run = slice(int(p.start[row]), int(p.start[row + 1]))
        replica[run], in_sync[run], log_dir[run], offline[run] = m.new, True, UNKNOWN, False
        leader[row] = m.new[0]
    columns = replace(p, replica=replica, in_sync=in_sync, log_dir=log_dir, offline=offline, leader=leader)
    return replace(state, partitions=columns)


def _take_in(question: Question, asked: Problem, problem: Problem, found: Found, following: Found) -> Found | None:
    """Both as one plan, a replica that moves twice copied once; None where disks have no room for that, or by the first shares it is worse."""
    from ballast.core.planner.search.find import is_worse  # noqa: PLC0415 — compiled code, which the search has loaded

    policy = question.policy
    world = World.of(problem, policy)
    held = world.held.copy()
    world.place(following.world.cur)
    if is_worse(asked, loads_before(asked), found.world.load, world.load):
        return None
    moves, after = moves_of(question, asked, world.cur)
    ended_early = found.ended_early or following.ended_early
    both = Found(world, moves, after, following.unplaced, later=following.later, ended_early=ended_early)
    if not found.in_order and not following.in_order and bool((world.held <= np.maximum(held, problem.room)).all()):
        return both
    if policy.at_once:
        return None
    order = in_order(question.state, asked, held, moves)
    return None if order.stuck else replace(both, moves=order.moves, in_order=True)

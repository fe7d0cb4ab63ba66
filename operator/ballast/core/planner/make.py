"""Makes a plan: scope, arrays, search, moves, bound, and the checker's verdict before anything leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from ballast.core.cluster import ClusterState, Flags, Ints, SmallInts, TopicPartition
from ballast.core.cluster.fingerprint import fingerprint, with_topic_ids
from ballast.core.plan import Move, Obstacle, Plan
from ballast.core.planner.checker import demand_sound
from ballast.core.planner.dirs import with_dirs
from ballast.core.planner.intents import Demote, Intent, Leaders, Level, Swap
from ballast.core.planner.loads import DISK, Loads
from ballast.core.planner.moves import moves_of
from ballast.core.planner.obstacles import obstacles_of, waived
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem import LOWER, UPPER, Problem, is_uniform, loads_before, problem_of
from ballast.core.planner.request import dump_request
from ballast.core.planner.scope import Scope, scope_of
from ballast.core.planner.search.world import World
from ballast.core.planner.summary import summary_of
from ballast.errors import Infeasible

RANGES: Final = frozenset({"band", "racks-of-unlike-size"})
"""Obstacles that name ranges which are not met: alone, they call for nothing."""
WORSE: Final = 10_000
"""A plan that adds more than one part in so many of an average share to what lies outside its ranges is none."""


def make(state: ClusterState, intent: Intent, *, loads: Loads | None, policy: PlannerPolicy | None, seed: int) -> Plan:
    """``ballast.core.planner.plan``, with everything imported."""
    policy = policy or PlannerPolicy()
    loads = loads if loads is not None else Loads.from_state(state)
    assert len(loads) == len(state.partitions), "the loads belong to another reading of the cluster"
    if policy.max_bytes is not None and len(loads) and DISK not in loads.known:
        raise Infeasible(
            "No size of a partition is known, so no plan can keep to a limit of bytes.",
            hint="It takes Describe on the cluster (DescribeLogDirs). Limit replicas instead (--max-moves, max_moves), or leave max_bytes out.",
        )
    scope = scope_of(state, intent, policy)
    asked = problem_of(state, loads, policy, scope, bands="target")
    problem, reach, world = asked, None, World.of(asked, policy)
    homeless = np.zeros(len(world.cur), np.bool_)
    at_rest = _at_rest(state, intent, loads, policy, scope, world)
    before, later, whole = loads_before(problem), None, True
    if not at_rest and isinstance(intent, Level):
        # Compiled code takes more than a second to load, which a cluster that needs no plan must not pay.
        from ballast.core.planner.reach import reach_of  # noqa: PLC0415

        reach = reach_of(asked)
        if reach is not None:
            problem = replace(asked, low=reach.low, high=reach.high)
            world = World.of(problem, policy)
            at_rest = _at_rest(state, intent, loads, policy, scope, world)
    if not at_rest:
        from ballast.core.planner.search.run import search  # noqa: PLC0415

        homeless = search(world, seed=seed)
        if isinstance(intent, Level | Leaders) and bool(_broken(asked, before, world.load).any()):
            world = World.of(_kept(asked, problem, before), policy)
            homeless = search(world, seed=seed)
        if isinstance(intent, Level) and (world.excess or not is_uniform(asked)):
            world, whole = _refined(world, _kept(asked, problem, before), policy, seed)
        start = World.of(problem, policy)
        worse = _excess(asked, world.load) > _excess(asked, before) + asked.average // WORSE
        if isinstance(intent, Level | Leaders) and worse and not start.must_act():
            # Nearer to the ranges that can be reached is no reason to go further from those asked for.
            world, homeless = start, np.zeros(len(world.cur), np.bool_)
        from ballast.core.planner.search.shorten import shorten  # noqa: PLC0415

        shorten(world, asked, _senders(state))
        if isinstance(intent, Level) and world.copied:
            from ballast.core.planner.afterwards import met_afterwards  # noqa: PLC0415

            later = met_afterwards(world, asked, policy, seed=seed)
    moves, after = moves_of(state, intent, asked, loads, world.cur, before)
    elections = _elections(state, intent, scope, moves)
    moves, tight = with_dirs(state, moves)
    # At rest nothing was tried, so nothing stood in the way, but for ranges that nothing can reach.
    obstacles = (
        ()
        if at_rest and reach is None
        else obstacles_of(state, intent, asked, policy, loads, homeless, world.cur, after, moves, reach, later) + tight
    )
    waiving, told = waived(state, problem), isinstance(intent, Level | Leaders)
    if told:
        obstacles = waiving + obstacles
    bound_bytes, bound_method = _bound(problem, policy, scope, moves, after, world.cur)
    bounded = policy.max_bytes is not None or policy.max_moves is not None or not isinstance(intent, Level)
    made = Plan(
        intent=intent.words,
        cluster_id=state.cluster_id,
        fingerprint=fingerprint(state),
        moves=moves,
        elections=elections,
        status=_status(bool(moves or elections), obstacles, bounded=bounded),
        obstacles=obstacles,
        assumptions=loads.assumptions
        + problem.assumptions
        + tuple(f"{o.subject.replace('t', 'T', 1)}: {o.detail}." for o in waiving if not told),
        seed=seed,
        bound_bytes=bound_bytes,
        bound_method=bound_method,
        allow_replication_factor_change=any(m.changes_replication_factor for m in moves),
        request=dump_request(intent, policy, seed),
        summary=summary_of(state, intent, asked, loads, policy, moves, before, after)
        | {"search_ended_early": not whole},
    )
    demand_sound(state, made, intent, loads=loads, policy=policy)
    return with_topic_ids(made, state)


def _at_rest(
    state: ClusterState, intent: Intent, loads: Loads, policy: PlannerPolicy, scope: Scope, world: World
) -> bool:
    """Is everything within the wider band that triggers a plan, with nothing that must be repaired?"""
    if not len(state.partitions):
        return True
    if not isinstance(intent, Level | Leaders) or world.must_act():
        return False
    wide = problem_of(state, loads, policy, scope, bands="trigger")
    p = world.problem
    wide = replace(wide, low=np.minimum(wide.low, p.low), high=np.maximum(wide.high, p.high))
    return World.of(wide, policy).excess == 0


def _excess(asked: Problem, load: Ints) -> int:
    """How far all brokers together are outside the ranges asked for."""
    return int((np.maximum(load - asked.high, 0) + np.maximum(asked.low - load, 0)).sum())


def _broken(asked: Problem, before: Ints, after: Ints) -> Flags:
    """B x K: ranges that were met and are no more."""
    met = (before >= asked.low) & (before <= asked.high)
    return met & ((after < asked.low) | (after > asked.high))


def _kept(asked: Problem, problem: Problem, before: Ints) -> Problem:
    """The problem with every range that is met as a hard limit at both ends."""
    met = (before >= asked.low) & (before <= asked.high)
    return replace(
        problem,
        low=np.where(met, asked.low, problem.low),
        high=np.where(met, asked.high, problem.high),
        hard=np.where(met, UPPER | LOWER, problem.hard).astype(np.int8),
    )


def _senders(state: ClusterState) -> SmallInts:
    """By partition the broker that copies are fetched from: its leader, -1 where none is alive."""
    leader = state.partitions.leader
    ids = np.array([b.id for b in state.brokers], np.int64)
    at = np.minimum(np.searchsorted(ids, leader), max(len(ids) - 1, 0))
    alive = np.array([b.alive for b in state.brokers], np.bool_)
    return np.where((ids[at] == leader) & alive[at], at, -1).astype(np.int32)


def _refined(world: World, problem: Problem, policy: PlannerPolicy, seed: int) -> tuple[World, bool]:
    """The same placement, made better a few brokers at a time; False where that ended at its limit of work."""
    from ballast.core.planner.search.exact import refine  # noqa: PLC0415

    better = World.of(problem, policy)
    better.place(world.cur)
    whole = refine(better, seed=seed)
    return better, whole


def _bound(
    problem: Problem, policy: PlannerPolicy, scope: Scope, moves: tuple[Move, ...], after: Ints, placement: SmallInts
) -> tuple[int, str]:
    """The least bytes that any plan could copy, and how that is known."""
    if not any(m.adding for m in moves):
        return 0, "no byte moves"
    from ballast.core.planner.bound import bound_of  # noqa: PLC0415

    found = bound_of(problem, after, placement, prove=policy.prove and scope.roam)
    return found.bytes, found.method


def _status(anything: bool, obstacles: tuple[Obstacle, ...], *, bounded: bool) -> str:  # noqa: FBT001
    """A cluster that no plan brings nearer to its ranges is at rest, unless a limit of moves or bytes kept it there."""
    if obstacles and not (anything or bounded or any(o.code not in RANGES for o in obstacles)):
        return "nothing-to-do"
    if obstacles:
        return "partial" if anything else "infeasible"
    return "complete" if anything else "nothing-to-do"


def _elections(
    state: ClusterState, intent: Intent, scope: Scope, moves: tuple[Move, ...]
) -> tuple[TopicPartition, ...]:
    """Where somebody else leads than the list will say, and the first of the list can lead."""
    p = state.partitions
    first = state.preferred.copy()
    changed = {state.index[m.name]: m for m in moves}
    wanted = np.zeros(len(p), np.bool_)
    if isinstance(intent, Level | Leaders):
        wanted |= scope.open_rows
    elif isinstance(intent, Demote):
        wanted |= scope.open_rows & np.isin(p.leader, sorted(intent.brokers))
    for row, move in changed.items():
        first[row] = move.new[0]
        wanted[row] = True
    if isinstance(intent, Swap):
        wanted &= np.isin(np.arange(len(p)), list(changed))
    differs = wanted & (p.leader != first) & np.isin(first, sorted(state.alive))
    out = []
    for row in np.flatnonzero(differs).tolist():
        planned = changed.get(row)
        copied = planned is not None and int(first[row]) in planned.adding
        if copied or int(first[row]) in state.isr(row):
            out.append(state.name(row))
    return tuple(out)

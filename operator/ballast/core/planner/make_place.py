"""The plan to the replica lists that Kafka's own algorithm gives topics: ``ballast plan place`` and the topic rule.

No search: the lists are computed, and the plan tells what reaching them costs.  It shows beside it what balancing the same topics
would have moved instead, and how the lists fare when brokers are lost.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from ballast.core.cluster import ClusterState, Ints, TopicPartition
from ballast.core.placement.colocation import colocation
from ballast.core.placement.naive import naive_layout
from ballast.core.plan import Move, Plan, Reason
from ballast.core.plan.fingerprint import fingerprint, with_topic_ids
from ballast.core.planner.bound.bound import bound_of
from ballast.core.planner.checker.checker import demand_possible
from ballast.core.planner.intents import Balance, Place
from ballast.core.planner.loads import Loads
from ballast.core.planner.make import make
from ballast.core.planner.moves import least_known
from ballast.core.planner.place import Lists, kafka_placements, usable_brokers
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.problem import loads_before, problem_of
from ballast.core.planner.problem.question import Question
from ballast.core.planner.problem.scope import scope_of
from ballast.core.planner.report.summary import summary_of
from ballast.core.planner.request import dump_request


def make_place(
    state: ClusterState, intent: Place, *, loads: Loads | None, policy: PlannerPolicy | None, seed: int
) -> Plan:
    """The plan to the lists that the algorithm gives."""
    policy = policy or PlannerPolicy()
    loads = loads if loads is not None else Loads.from_state(state)
    lists = kafka_placements(state, intent, policy, seed)
    moves = _moves(state, loads, lists, intent)
    problem = problem_of(state, loads, policy, scope_of(state, intent, policy), bands="target")
    before = loads_before(problem)
    index = state.broker_index
    after, slots = _after(state, problem, before, moves)
    copies = any(m.adding for m in moves)
    bound = bound_of(problem, after, slots, prove=False) if copies else None
    made = Plan(
        intent=intent.words,
        purpose=intent.purpose,
        cluster_id=state.cluster_id,
        fingerprint=fingerprint(state),
        moves=moves,
        elections=_elections(state, lists),
        status="meets-all-goals",
        assumptions=loads.assumptions + problem.assumptions,
        seed=seed,
        bound_bytes=least_known(bound.bytes, moves) if bound is not None else 0,
        bound_method=bound.method if bound is not None else "no byte moves",
        allow_replication_factor_change=any(m.changes_replication_factor for m in moves),
        request=dump_request(intent, policy, seed),
        summary=summary_of(Question(state, intent, loads, policy, seed), problem, moves, before, after),
    )
    if made.is_empty:
        made = replace(made, status="nothing-to-do")
    demand_possible(state, made, intent, loads=loads, policy=policy)
    topics = replace(intent.selection, brokers=None, exclude_brokers=None)
    instead = make(state, Balance(selection=topics), loads=loads, policy=replace(policy, prove=False), seed=seed)
    brokers = [b.id for b in usable_brokers(state, intent, policy) if b.id in index]
    summary = {
        **made.summary,
        "placement": _compare_colocation(state, intent, lists, brokers),
        "instead": _summarise_balance(instead),
    }
    return with_topic_ids(replace(made, summary=summary), state)


def _moves(state: ClusterState, loads: Loads, lists: Lists, intent: Place) -> tuple[Move, ...]:
    """The moves to these lists, those first that copy nothing."""
    reason = Reason(
        "placement", f"Kafka's {intent.algorithm} placement" if intent.algorithm != "naive" else "naive layout"
    )
    moves = []
    for name, new in lists.items():
        row = state.index[name]
        size = loads.known_bytes[row]
        if (old := state.target(row)) != new:
            moves.append(Move(name.topic, name.partition, old, new, size, reason))
    return tuple(sorted(moves, key=lambda m: bool(m.adding)))


def _after(state: ClusterState, problem: Any, before: Ints, moves: tuple[Move, ...]) -> tuple[Ints, Any]:
    """The loads by broker when every move is made, and the broker of each slot."""
    load, index = before.copy(), state.broker_index
    slots = problem.home.copy()
    for m in moves:
        row = state.index[m.name]
        for sign, members in ((-1, m.old), (1, m.new)):
            for at, b in enumerate(members):
                load[index[b]] += sign * (problem.lead[row] if at == 0 else problem.follow[row])
        slots[problem.start[row] : problem.start[row + 1]] = [index[b] for b in m.new]
    return load, slots


def _elections(state: ClusterState, lists: Lists) -> tuple[TopicPartition, ...]:
    """Where another broker leads than the list will say, and the first of the list can lead when it is there."""
    out = []
    for name, new in lists.items():
        row = state.index[name]
        copied = new[0] not in state.target(row)
        if int(state.partitions.leader[row]) != new[0] and (copied or new[0] in state.isr(row)):
            out.append(name)
    return tuple(out)


def _compare_colocation(state: ClusterState, intent: Place, lists: Lists, brokers: list[int]) -> dict[str, Any]:
    """What is lost with one broker or two: by the present lists, by the new ones, and by the naive layout of the same topics."""
    sizes = Counter(name.topic for name in lists)
    factors = {name.topic: len(new) for name, new in lists.items()}
    usable = [b for b in state.brokers if b.id in brokers]
    naive = [m for t, n in sizes.items() for m in naive_layout(usable, n, factors[t]).values()]
    now = [state.target(state.index[name]) for name in lists]
    return {
        "algorithm": intent.algorithm,
        "now": colocation(now, brokers).as_json(),
        "placed": colocation(list(lists.values()), brokers).as_json(),
        "naive": colocation(naive, brokers).as_json(),
    }


def _summarise_balance(balance: Plan) -> dict[str, Any]:
    return {
        "intent": balance.intent,
        "status": balance.status,
        "moves": len(balance.moves),
        "bytes_moved": balance.known_bytes,
        "elections": len(balance.elections),
    }

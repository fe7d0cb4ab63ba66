"""The checker: it lets every plan of the search pass, and catches each way in which a plan can be wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.planner.clusters import cluster, clusters
from tests.unit.core.planner.demands import demand_at_rest, demand_done

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.copying import copying_of, leader_in
from ballast.core.plan import Move, Obstacle, Plan
from ballast.core.planner import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Loads,
    PlannerPolicy,
    Racks,
    ReplaceBroker,
    Selection,
    plan,
)
from ballast.core.planner.checker.bands import pour
from ballast.core.planner.checker.checker import check, demand_sound
from ballast.errors import PlanRejected

POLICY = PlannerPolicy(band=0.1, trigger=0.1, slack_bytes=0, prove=False)


@st.composite
def policies(draw: st.DrawFn, state: ClusterState) -> PlannerPolicy:
    """Cordons, drains, demotions, pins, budgets and bands of every kind."""
    some = st.frozensets(st.sampled_from([b.id for b in state.brokers]), max_size=1)
    return PlannerPolicy(
        band=draw(st.sampled_from([0.02, 0.1, 0.3])),
        trigger=draw(st.sampled_from([0.1, 0.4])),
        bands=draw(st.sampled_from([{}, {"disk": 0.5}, {"preferred-leaders": 0.01}])),
        slack_bytes=draw(st.sampled_from([0, 1 << 20])),
        cordoned=draw(some),
        draining=draw(some),
        demoted=draw(some),
        pinned_topics=draw(st.sampled_from([None, "t1"])),
        max_bytes=draw(st.sampled_from([None, 0, 150])),
        max_replica_moves=draw(st.sampled_from([None, 2])),
        prove=False,
    )


def test_a_broker_that_the_selection_leaves_out_keeps_what_it_has_wherever_the_search_begins() -> None:
    """Two replicas on three brokers can never be balanced: the search begins again from where a linear program places all."""
    rows = [PartitionRow("t", n, b, (b,), (b,), sizes=(size,)) for n, (b, size) in enumerate([(1, 7), (2, 1)])]
    state = build("c", tuple(Broker(b) for b in (1, 2, 3)), (Topic("t"),), rows)
    policy = PlannerPolicy(band=0.02, trigger=0.1, slack_bytes=0, prove=False)
    made = plan(state, Balance(selection=Selection(exclude_brokers="2")), policy=policy)
    assert all(m.old == (1,) for m in made.moves)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_every_plan_of_the_search_passes(data: st.DataObject) -> None:
    """Whatever the policy: ``plan`` raises when its checker refuses what the search found.

    Complete means that it is done, whatever the intent; less than that names its obstacles.
    """
    state = data.draw(clusters())
    policy = data.draw(policies(state))
    ids = [b.id for b in state.brokers]
    some = frozenset(data.draw(st.sets(st.sampled_from(ids), min_size=1, max_size=2)))
    live = frozenset(data.draw(st.sets(st.sampled_from(sorted(state.alive)), min_size=1, max_size=2)))
    selection = data.draw(st.sampled_from([Selection(), Selection(topics="t0"), Selection(exclude_brokers="2")]))
    intents: list[Intent] = [
        Balance(selection=selection), Leaders(selection=selection), Racks(selection=selection),
        Expand(brokers=live, selection=selection), Decommission(brokers=some, selection=selection),
        Evacuate(brokers=some), Demote(brokers=some), ChangeReplicationFactor(to=data.draw(st.integers(1, 3))),
    ]  # fmt: skip
    intent = data.draw(st.sampled_from(intents))
    made = plan(state, intent, policy=policy)
    if policy.pinned_topics is None and selection.exclude_brokers is None:
        demand_done(state, made, intent, policy.draining | policy.cordoned)
    elif made.status in {"misses-some-goals", "no-plan-found"}:
        assert made.obstacles
    else:
        demand_at_rest(made, intent)


def scene() -> tuple[ClusterState, Loads]:
    """Five brokers in three racks, the fifth empty; the first carries too much."""
    brokers = tuple(
        Broker(i, rack=f"r{i % 3}", log_dirs=(LogDir("/d", 100_000, 50_000),), log_dirs_known=True) for i in range(1, 6)
    )
    rows = [
        PartitionRow(t, n, m[0], m, m, sizes=(100 + 10 * n,) * 2)
        for t in ("a", "b")
        for n, m in enumerate([(1, 2), (1, 3), (2, 3), (2, 1), (4, 3), (1, 2), (3, 4), (1, 3), (2, 4), (4, 2)])
    ]
    state = build("c", brokers, (Topic("a"), Topic("b")), rows)
    return state, Loads.from_state(state)


Change = Callable[[Plan], Plan]


def first(made: Plan, **fields: Any) -> Plan:
    """The plan with its first copying move changed."""
    at = next(i for i, m in enumerate(made.moves) if m.adding)
    moves = list(made.moves)
    moves[at] = replace(moves[at], **fields)
    return replace(made, moves=tuple(moves))


def told(made: Plan, change: Callable[[dict[str, Any]], None]) -> Plan:
    """The plan with another summary."""
    import copy

    summary = copy.deepcopy(made.summary)
    change(summary)
    return replace(made, summary=summary)


def moved(made: Plan) -> Move:
    """The first move that copies."""
    return next(m for m in made.moves if m.adding)


def fewer(made: Plan, count: int) -> Plan:
    """Without its last moves, and with sums that say so: only the bands can tell."""
    state, loads = scene()
    kept = made.moves[: len(made.moves) - count]
    return true_to_itself(replace(made, moves=kept), state, loads)


def true_to_itself(made: Plan, state: ClusterState, loads: Loads) -> Plan:
    """The same moves with a summary that tells them as they are."""
    lists = {state.name(r): state.target(r) for r in range(len(state.partitions))}
    new = lists | {m.name: m.new for m in made.moves}
    size = {state.name(r): int(loads.size_bytes[r]) for r in range(len(state.partitions))}

    def change(s: dict[str, Any]) -> None:
        s["replica_moves"] = sum(len(m.adding) for m in made.moves)
        s["replica_list_changes"] = sum(m.is_list_change for m in made.moves)
        s["leader_changes"] = sum(m.old[0] != m.new[0] for m in made.moves)
        s["bytes_moved"] = made.bytes_moved
        s["busiest_bytes"] = copying_of(made.moves, leader_in(state)).busiest
        for b in s["brokers"]:
            for side, assignment in (("before", lists), ("after", new)):
                held = [n for n, members in assignment.items() if b["broker"] in members]
                b[side] = {
                    "disk": sum(size[n] for n in held),
                    "replicas": len(held),
                    "preferred-leaders": sum(assignment[n][0] == b["broker"] for n in held),
                }

    return replace(told(made, change), bound_bytes=0)


MUTATIONS: dict[str, tuple[str, Change]] = {
    "a partition twice": ("repeat", lambda p: replace(p, moves=(*p.moves, p.moves[0]))),
    "another assignment before": ("stale", lambda p: first(p, old=moved(p).old[::-1])),
    "a partition that is not there": ("stale", lambda p: first(p, partition=99)),
    "twice on a broker": ("duplicate", lambda p: first(p, new=(moved(p).new[0],) * 2)),
    "onto a broker that is not there": ("down", lambda p: first(p, new=(moved(p).new[0], 77))),
    "a replica fewer": ("factor", lambda p: first(p, new=moved(p).new[:1])),
    "two in a rack": ("rack", lambda p: replace(p, moves=(Move("a", 0, (1, 2), (1, 4), 100),))),
    "log dirs that do not match": ("log-dirs", lambda p: first(p, log_dirs=("any",))),
    "an election twice": ("election", lambda p: replace(p, elections=(TopicPartition("a", 0),) * 2)),
    "an election of nothing": ("stale", lambda p: replace(p, elections=(TopicPartition("z", 0),))),
    "bytes that are not": ("sum", lambda p: first(p, size_bytes=1)),
    "a cost that is not": ("sum", lambda p: told(p, lambda s: s.update(bytes_moved=1))),
    "moves left uncounted": ("sum", lambda p: told(p, lambda s: s.update(replica_moves=0))),
    "a rosy before": ("sum", lambda p: told(p, lambda s: s["brokers"][0]["before"].update(disk=1))),
    "a byte that is not there": ("sum", lambda p: told(p, lambda s: s["brokers"][0]["after"].update(disk=s["brokers"][0]["after"]["disk"] + 1))),
    "a rosy after": ("sum", lambda p: told(p, lambda s: s["brokers"][0]["after"].update({"preferred-leaders": 1}))),
    "a broker hushed up": ("sum", lambda p: told(p, lambda s: s["brokers"].pop())),
    "a bound above the plan": ("bound", lambda p: replace(p, bound_bytes=p.bytes_moved + 1)),
    "a status too good": ("status", lambda p: replace(p, status="nothing-to-do")),
    "an obstacle hushed up": ("status", lambda p: replace(p, status="misses-some-goals")),
    "half of the work": ("band", lambda p: fewer(p, len(p.moves) // 2)),
    "nearly all of the work": ("band", lambda p: fewer(p, 1)),
}  # fmt: skip


@pytest.mark.parametrize("what", MUTATIONS)
def test_a_plan_that_was_tampered_with_is_found_out(what: str) -> None:
    """Each kind of damage has its own finding; the untouched plan has none."""
    state, loads = scene()
    made = plan(state, Balance(), policy=POLICY)
    assert made.status == "meets-all-goals"
    assert check(state, made, Balance(), loads=loads, policy=POLICY) == []
    code, change = MUTATIONS[what]
    found = check(state, change(made), Balance(), loads=loads, policy=POLICY)
    assert code in {f.code for f in found}, found


def findings(intent: Intent, *moves: Move, policy: PlannerPolicy = POLICY, **fields: Any) -> list[str]:
    """What is found in these moves, as sentences."""
    state, loads = scene()
    made = plan(state, Balance(), policy=POLICY)
    wrong = true_to_itself(replace(made, moves=moves, elections=(), status="meets-all-goals", **fields), state, loads)
    return [str(f) for f in check(state, wrong, intent, loads=loads, policy=policy)]


@pytest.mark.parametrize(
    ("intent", "move", "sentence"),
    [
        (Expand(brokers=frozenset({5})), Move("a", 0, (1, 2), (1, 3), 100), "broker 3, which takes no replica"),
        (Expand(brokers=frozenset({5})), Move("a", 0, (1, 2), (2, 1), 100), "is led by another old broker"),
        (Expand(brokers=frozenset({4, 5})), Move("a", 4, (4, 3), (5, 3), 140), "leaves a new broker"),
        (Leaders(), Move("a", 0, (1, 2), (3, 2), 100), "moves data"),
        (Demote(brokers=frozenset({1})), Move("a", 2, (2, 3), (3, 2), 120), "its leader is not demoted"),
        (Decommission(brokers=frozenset({4})), Move("a", 0, (1, 2), (3, 2), 100), "need not leave"),
        (Decommission(brokers=frozenset({1})), Move("a", 0, (1, 2), (3, 2), 100), "stays on broker 1"),
        (Evacuate(racks=frozenset({"r2"})), Move("a", 8, (2, 4), (3, 4), 180), "stays on broker 2"),
        (ReplaceBroker(old=1, new=5), Move("a", 0, (1, 2), (3, 2), 100), "does more than put 5"),
        (ReplaceBroker(old=2, new=5), Move("a", 2, (2, 3), (5, 3), 120), "stays on broker 2"),
        (Racks(), Move("a", 0, (1, 2), (3, 2), 100), "repairs no rack"),
        (ChangeReplicationFactor(to=1), Move("a", 0, (1, 2), (1,), 100), "has 2 replicas instead of 1"),
        (Demote(brokers=frozenset({1})), Move("a", 0, (1, 2), (2, 1), 100), "stays led by broker 1"),
        (Balance(selection=Selection(topics="b")), Move("a", 0, (1, 2), (3, 2), 100), "is left out"),
    ],
)
def test_each_intent_keeps_its_word(intent: Intent, move: Move, sentence: str) -> None:
    """A move that the intent does not allow, or a promise that is not kept, is named with its place."""
    assert any(sentence in found for found in findings(intent, move))


def test_pinned_topics_are_not_touched() -> None:
    """The pin is part of the policy that the checker judges by."""
    pinned = replace(POLICY, pinned_topics="a")
    found = findings(Balance(), Move("a", 0, (1, 2), (3, 2), 100), policy=pinned)
    assert any("pinned" in text for text in found)


def test_a_full_disk_is_found() -> None:
    """What arrives counts before anything has left."""
    state, loads = scene()
    small = replace(POLICY, disk_limit=0.001)
    made = plan(state, Balance(), policy=POLICY)
    assert {f.code for f in check(state, made, Balance(), loads=loads, policy=small)} == {"disk"}


@pytest.mark.parametrize(("over", "found"), [(0, set()), (1, {"disk"})])
def test_a_disk_may_be_filled_to_its_limit_and_not_a_byte_further(over: int, found: set[str]) -> None:
    """On a disk of 100 TB a millionth would be 90 MB."""
    capacity = 100_000_000_000_000
    brokers = tuple(Broker(b, log_dirs=(LogDir("/d", capacity),), log_dirs_known=True) for b in (1, 2))
    sizes = capacity * 9 // 10 - 1_000, 1_000 + over
    rows = [PartitionRow("t", n, b, (b,), (b,), sizes=(sizes[n],)) for n, b in enumerate((1, 2))]
    state = build("c", brokers, (Topic("t"),), rows)
    made = Plan("balance", "c", "", moves=(Move("t", 1, (2,), (1,), sizes[1]),))
    told = check(state, made, Balance(), loads=Loads.from_state(state), policy=POLICY)
    assert {f.code for f in told if f.code == "disk"} == found


def test_making_things_worse_is_a_regression_even_when_admitted() -> None:
    """Obstacles excuse what was not reached, not what was broken."""
    state = cluster(*[(1, 2), (2, 1)] * 4, brokers=4)
    loads = Loads.from_state(state)
    balance = plan(state, Balance(), policy=POLICY)
    assert balance.status == "meets-all-goals"
    rows = [(1, 2), (2, 3), (3, 4), (4, 1)] * 2
    even = cluster(*rows, brokers=4)
    made = plan(even, Balance(), policy=POLICY)
    moves = (Move("t", 2, (3, 4), (1, 4), 100), Move("t", 6, (3, 4), (1, 4), 100))
    obstacles = tuple(Obstacle("band", label, "so they say") for label in ("disk", "replicas", "preferred leaders"))
    worse = replace(made, moves=moves, status="misses-some-goals", obstacles=obstacles)
    assert [f.code for f in check(even, tell(worse, even), Balance(), loads=Loads.from_state(even), policy=POLICY)] == [
        "regression"
    ]
    assert len(loads) == 8


def tell(made: Plan, state: ClusterState) -> Plan:
    """True sums for a drawn cluster."""
    return true_to_itself(made, state, Loads.from_state(state))


def test_a_plan_that_fails_is_refused_with_what_and_where() -> None:
    """The error names the place, the damage and what to do."""
    state, loads = scene()
    made = plan(state, Balance(), policy=POLICY)
    broken = first(made, new=(moved(made).new[0],) * 2)
    with pytest.raises(PlanRejected, match=f"{moved(made).name}: would sit twice on a broker") as refused:
        demand_sound(state, broken, Balance(), loads=loads, policy=POLICY)
    assert "Nothing was changed" in str(refused.value)


def test_a_cluster_within_the_trigger_is_left_alone_without_obstacles() -> None:
    """Between the band that plans aim at and the one that triggers them there is nothing to do, and nothing is in the way."""
    state = cluster(*[(1,)] * 109, *[(2,)] * 91, brokers=2, sizes=(1 << 24,) * 200)
    made = plan(state, Balance(), policy=PlannerPolicy(prove=False))
    assert (made.status, made.obstacles, made.moves) == ("nothing-to-do", (), ())
    assert plan(state, Balance(), policy=PlannerPolicy(trigger=0.08, prove=False)).moves


@settings(max_examples=100)
@given(
    st.floats(0, 100),
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.5]), st.sampled_from([0.0, 3.0, 20.0, np.inf])), max_size=6),
)
def test_pouring_fills_every_vessel_to_one_level_or_to_the_brim(
    total: float, vessels: list[tuple[float, float]]
) -> None:
    """The total is handed out as far as there is room, and those with room left get the same by their weight."""
    weight, most = (np.array(c, np.float64) for c in zip(*vessels, strict=True)) if vessels else (np.zeros(0),) * 2
    out = pour(total, weight, most)
    assert bool((out <= most + 1e-9).all())
    room = float(most[weight > 0].sum()) if len(most) else 0.0
    assert out.sum() == pytest.approx(min(total, room))
    open_ = (weight > 0) & (out < most - 1e-9)
    balances = out[open_] / weight[open_]
    if len(balances):
        assert balances.max() - balances.min() < 1e-6
        full = (weight > 0) & ~open_
        assert bool((out[full] / weight[full] <= balances.max() + 1e-6).all())


def test_leader_bytes_are_balanced_where_a_band_is_named() -> None:
    """Equal counts of leaders, unequal bytes: replica list changes repair it, and without the band nothing is done."""
    sizes = tuple(n << 24 for n in (9, 9, 9, 9, 1, 1, 1, 1))
    state = cluster(*[(1, 2)] * 4, *[(2, 1)] * 4, brokers=2, sizes=sizes)
    assert plan(state, Balance(), policy=POLICY).is_empty
    made = plan(state, Balance(), policy=replace(POLICY, bands={"leader-bytes": 0.1}))
    assert (made.status, made.bytes_moved) == ("meets-all-goals", 0)
    led = {b["broker"]: b["after"]["leader-bytes"] for b in made.summary["brokers"]}
    assert led == {1: 20 << 24, 2: 20 << 24}

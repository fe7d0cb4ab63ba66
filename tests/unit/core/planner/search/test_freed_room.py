"""Plans whose moves need room that other moves free: an order for them, and a checker that walks it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.plan import Move, Plan
from ballast.core.planner import Balance, Loads, PlannerPolicy, plan
from ballast.core.planner.checker.checker import check
from ballast.core.planner.problem.problem import Problem, problem_of
from ballast.core.planner.problem.question import Question
from ballast.core.planner.problem.scope import scope_of
from ballast.core.planner.search import find as search
from ballast.core.planner.search.found import Found
from ballast.core.planner.search.freed_room import Order, in_order, waits_for_room, with_room_freed
from ballast.core.planner.search.world import World

POLICY = PlannerPolicy(band=0.3, trigger=0.3, bands={"disk": 0.5}, slack_bytes=0, prove=False, disk_limit=1.0)
FEW = {1: (40, 40, 10), 2: (10,) * 9, 3: (10,) * 9}


def disks(sizes: dict[int, tuple[int, ...]], capacity: dict[int, int], *, dirs: int = 1) -> ClusterState:
    """Brokers that hold partitions of these sizes with one replica each, numbered in the order in which they are named."""
    brokers = tuple(
        Broker(b, log_dirs=tuple(LogDir(f"/d{n}", capacity[b] // dirs) for n in range(dirs)), log_dirs_known=True)
        for b in sizes
    )
    held = [(b, size) for b, those in sizes.items() for size in those]
    rows = [PartitionRow("t", n, b, (b,), (b,), sizes=(size,)) for n, (b, size) in enumerate(held)]
    return build("c", brokers, (Topic("t"),), rows)


def asked_of(state: ClusterState) -> Problem:
    """What a balance of it is about."""
    return problem_of(state, Loads.from_state(state), POLICY, scope_of(state, Balance(), POLICY), bands="target")


def order_of(state: ClusterState, *moves: Move) -> Order:
    """What is found for these moves."""
    asked = asked_of(state)
    return in_order(state, asked, World.of(asked, POLICY).held, moves)


def ordered(state: ClusterState, *moves: Move) -> tuple[Move, ...] | None:
    """The order that is found for all of these moves."""
    order = order_of(state, *moves)
    return None if order.stuck else order.moves


def move(number: int, source: int, target: int, size: int) -> Move:
    """One replica from broker to broker."""
    return Move("t", number, (source,), (target,), size)


def test_only_a_range_that_can_be_reached_waits_for_room() -> None:
    """Broker 1 is full and above its range of disk; where no plan can bring it there, no room is waited for."""
    state = disks(FEW, dict.fromkeys(FEW, 100))
    asked = asked_of(state)
    world = World.of(asked, POLICY)
    assert waits_for_room(world, asked)
    assert not waits_for_room(world, replace(asked, low=np.minimum(asked.low, world.load), high=world.load))


def test_what_makes_room_goes_before_what_takes_it() -> None:
    """Broker 1 is full until its replica has gone to broker 2."""
    state = disks({1: (50, 50), 2: (30,)}, {1: 100, 2: 100})
    comes, goes = move(2, 2, 1, 30), move(0, 1, 2, 50)
    assert ordered(state, comes, goes) == (goes, comes)


def test_two_replicas_that_wait_for_each_other_have_no_order() -> None:
    """Neither disk has room for both at any moment."""
    state = disks({1: (60, 30), 2: (60, 30)}, {1: 100, 2: 100})
    assert ordered(state, move(0, 1, 2, 60), move(2, 2, 1, 60)) is None


def test_brokers_that_wait_for_each_other_are_told_and_the_others_have_their_order() -> None:
    """The search goes again without room to come on these two; the third one's is freed as before."""
    state = disks({1: (60, 30), 2: (60, 30), 3: (50, 50), 4: (30,)}, dict.fromkeys((1, 2, 3, 4), 100))
    stuck = move(0, 1, 2, 60), move(2, 2, 1, 60)
    comes, goes = move(6, 4, 3, 30), move(4, 3, 4, 50)
    assert order_of(state, comes, *stuck, goes) == Order((goes, comes), frozenset({1, 2}))
    asked = asked_of(state)
    room = with_room_freed(state, asked, frozenset({1, 2})).room
    assert room[:2].tolist() == asked.room[:2].tolist()
    assert room[2:].tolist() == with_room_freed(state, asked).room[2:].tolist() != asked.room[2:].tolist()


def test_nothing_takes_the_room_that_lets_others_go() -> None:
    """Broker 3's replica would fit on broker 2 at once, and 1 and 2 could exchange theirs no more."""
    state = disks({1: (30, 60), 2: (30, 35), 3: (30,)}, {1: 95, 2: 95, 3: 1000})
    moves = move(4, 3, 2, 30), move(2, 2, 1, 30), move(0, 1, 2, 30)
    assert ordered(state, *moves) == moves[::-1]


def walk(state: ClusterState, moves: tuple[Move, ...]) -> bool:
    """Does each fit when all before it have ended?"""
    p = state.partitions
    rows = np.repeat(np.arange(len(p)), np.diff(p.start))
    held: Counter[int] = Counter()
    for b, row in zip(p.replica.tolist(), rows.tolist(), strict=True):
        held[b] += int(p.size_bytes[p.start[row]])
    for m in moves:
        held.update(dict.fromkeys(m.adding, m.size_bytes))
        if any(held[b.id] > b.capacity_bytes for b in state.brokers if b.id in m.adding):
            return False
        held.subtract(dict.fromkeys(m.removing, m.size_bytes))
    return True


def full_disks() -> ClusterState:
    """Broker 1 has few replicas, and no room for more until a large one has left it."""
    return disks(FEW, {1: 92, 2: 140, 3: 140})


@pytest.fixture(name="made", scope="module")
def plan_in_order() -> Plan:
    """A plan that needs room that it frees."""
    return plan(full_disks(), Balance(), policy=POLICY)


def findings(state: ClusterState, made: Plan) -> set[str]:
    """What the checker finds."""
    return {f.code for f in check(state, made, Balance(), loads=Loads.from_state(state), policy=POLICY)}


def test_a_plan_meets_ranges_with_room_that_it_frees_itself(made: Plan) -> None:
    """It says so, each move fits at its turn, and the next plan is empty."""
    assert (made.status, made.in_order) == ("meets-all-goals", True)
    assert any("some wait until moves before them" in a for a in made.assumptions)
    assert walk(full_disks(), made.moves)


def test_the_checker_walks_the_moves_in_their_order(made: Plan) -> None:
    """The same moves in another order, or in none, overfill a disk."""
    assert findings(full_disks(), made) == set()
    assert findings(full_disks(), replace(made, moves=made.moves[::-1])) == {"disk"}
    assert findings(full_disks(), replace(made, in_order=False)) == {"disk"}


def find_with(orders: list[bool], monkeypatch: pytest.MonkeyPatch) -> tuple[Found, int]:
    """What the search finds where moves have an order as these say, then never; and how often a placement was made quicker to reach."""
    state, left, shortened = full_disks(), iter(orders), []

    def order_as_told(*given: Any) -> Order:
        return in_order(*given) if next(left, False) else Order((), frozenset({1}))

    monkeypatch.setattr(search, "in_order", order_as_told)
    monkeypatch.setattr(search, "shorten", lambda *_, **__: shortened.append(1))
    asked = asked_of(state)
    question = Question(state, Balance(), Loads.from_state(state), POLICY, 0)
    return search.find(question, asked, asked), len(shortened)


def test_what_has_no_order_is_not_made_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no plan: only the one with room for all moves at once is."""
    found, shortened = find_with([], monkeypatch)
    assert (found.in_order, shortened) == (False, 1)


def test_a_plan_that_loses_its_order_by_being_made_quicker_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every range is met in an order that was found before, where no further search finds another."""
    found, _ = find_with([True, False], monkeypatch)
    assert found.in_order
    assert walk(full_disks(), found.moves)


def test_a_plan_for_a_tool_that_starts_all_at_once_frees_no_room_for_itself() -> None:
    """It stops short of a range, and says that the next plan goes on."""
    made = plan(full_disks(), Balance(), policy=replace(POLICY, at_once=True))
    assert not made.in_order
    assert "disk-space" in {o.code for o in made.obstacles}
    assert findings(full_disks(), made) == set()


def test_which_of_several_log_dirs_gets_room_is_not_guessed() -> None:
    """A broker with two disks is given only what fits beside all that it holds."""
    state = disks(FEW, {1: 92, 2: 140, 3: 140}, dirs=2)
    made = plan(state, Balance(), policy=POLICY)
    assert not made.in_order
    assert findings(state, replace(made, in_order=True)) == set()


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=8), min_size=3, max_size=6),
    st.sampled_from([0, 3, 20]),
)
@example([[6], [6, 8, 19], [18, 8, 8, 28, 8, 16, 19, 21], [34], [4, 8, 8, 15, 30]], 3)
def test_no_plan_on_full_disks_overfills_one(sizes: list[list[int]], spare: int) -> None:
    """Whatever the disks hold: all fits at once, or each move at its turn; the search and the checker agree."""
    held = {b: tuple(those) for b, those in enumerate(sizes, 1)}
    state = disks(held, {b: sum(those) + spare for b, those in held.items()})
    made = plan(state, Balance(), policy=replace(POLICY, capacities={}))
    if made.in_order:
        assert walk(state, made.moves)
    else:
        assert walk(state, tuple(replace(m, old=(), new=m.adding) for m in made.moves if m.adding))


def test_a_broker_with_several_log_dirs_gives_no_room_back() -> None:
    """Which of its disks a move frees is not the plan's choice, so nothing waits for it."""
    comes, goes = move(2, 2, 1, 30), move(0, 1, 2, 50)
    assert ordered(disks({1: (50, 50), 2: (30,)}, {1: 100, 2: 100}, dirs=2), comes, goes) is None

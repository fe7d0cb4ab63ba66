"""No plan takes a partition to fewer racks: four replicas in three racks leave room for a step that would.

Each means of the search is tried alone on clusters on which it would once have merged racks, and the checker by itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.planner.demands import lists_after

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, SmallInts, Topic, build
from ballast.core.plan import Move, Plan
from ballast.core.planner import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Evacuate,
    Expand,
    Intent,
    Loads,
    PlannerPolicy,
    Racks,
    ReplaceBroker,
    Selection,
    TopicRule,
    plan,
)
from ballast.core.planner.checker.checker import check
from ballast.core.planner.problem.problem import problem_of
from ballast.core.planner.problem.scope import scope_of
from ballast.core.planner.rules import Setup, judge
from ballast.core.planner.search.placements import placements
from ballast.core.planner.search.rounding import starts
from ballast.core.planner.search.search import _Search
from ballast.core.planner.search.shorten import shorten
from ballast.core.planner.search.world import World

POLICY = PlannerPolicy(band=0.05, trigger=0.05, slack_bytes=0, prove=False)
EVEN = ("a", "a", "b", "b", "c", "c")


def cluster(
    *lists: tuple[int, ...],
    racks: Sequence[str],
    sizes: Sequence[int] = (),
    down: Sequence[int] = (),
    disks: dict[int, int] | None = None,
    beside: Sequence[int] = (),
) -> ClusterState:
    """One topic with these replica lists; broker 1 stands in the first of the racks.  ``beside`` hold another topic's."""
    brokers = tuple(
        Broker(b, rack=r, alive=b not in down, log_dirs=(LogDir("/d", (disks or {}).get(b, -1)),), log_dirs_known=True)
        for b, r in enumerate(racks, 1)
    )
    rows = [
        PartitionRow(
            "t", n, m[0], m, tuple(b for b in m if b not in down), sizes=((sizes or [100] * len(lists))[n],) * len(m)
        )
        for n, m in enumerate(lists)
    ]
    rows += [PartitionRow("u", n, b, (b,), (b,), sizes=(100,)) for n, b in enumerate(beside)]
    return build("c", brokers, (Topic("t"), Topic("u")) if beside else (Topic("t"),), rows)


def drawn(seed: int) -> ClusterState:
    """Twelve partitions of four replicas in three racks of two; the last rack carries more than its share."""
    dice = np.random.default_rng(seed)
    lists: list[tuple[int, ...]] = []
    while len(lists) < 12:
        members = tuple(int(b) + 1 for b in dice.permutation(6)[:4])
        if len({EVEN[b - 1] for b in members}) == 3:
            lists.append(members)
    return cluster(*lists, racks=EVEN, sizes=dice.integers(1, 400, 12).tolist())


def world_of(state: ClusterState, intent: Intent | None = None) -> World:
    """Everything at home, before the search."""
    scope = scope_of(state, intent or Balance(), POLICY)
    problem = problem_of(state, Loads.from_state(state), POLICY, scope, bands="target")
    return World.of(problem, POLICY)


def racks_held(world: World, cur: SmallInts) -> list[int]:
    """By partition."""
    p = world.problem
    return [len(set(p.rack[run].tolist())) for run in np.split(cur, p.start[1:-1])]


def copies(world: World) -> list[SmallInts]:
    """Sweeps at no price."""
    _Search(world, seed=0).descend((0, 0, 0))
    return [world.cur]


def swaps(world: World) -> list[SmallInts]:
    """Exchanges with any replica of any broker, at no price."""
    run = _Search(world, seed=0)
    for seed in range(4):
        run.swap(np.arange(len(world.cur), dtype=np.int32), price=0, partners=4, samples=64, seed=seed)
    return [world.cur]


def roundings(world: World) -> list[SmallInts]:
    """What the linear program places, made whole."""
    return list(starts(world))


def shortenings(world: World) -> list[SmallInts]:
    """Copies go elsewhere for the sake of the plan's time."""
    _Search(world, seed=0).descend((0, 0, 0))
    asked = replace(world.problem, low=np.zeros_like(world.problem.low), high=np.full_like(world.problem.high, 1 << 60))
    shorten(world, asked, world.problem.home[world.problem.start[:-1]], unlike=False, seed=0)
    return [world.cur]


@pytest.mark.parametrize("means", [copies, swaps, roundings, shortenings])
def test_no_means_of_the_search_takes_a_partition_to_fewer_racks(means: Callable[[World], list[SmallInts]]) -> None:
    """Though each finds something to do."""
    changed = 0
    for seed in range(8):
        world = world_of(drawn(seed))
        before = world.problem.home.copy()
        for cur in means(world):
            changed += int((cur != before).any())
            assert racks_held(world, cur) == [3] * 12
    assert changed


def test_no_exact_placement_takes_a_partition_to_fewer_racks() -> None:
    """A replica that is alone in its rack may go to the rack's other broker, and not to one whose rack holds another."""
    world = world_of(cluster((1, 3, 4, 5), racks=EVEN))

    def shapes(*brokers: int) -> set[tuple[int, ...]]:
        among = np.array(brokers, np.int32) - 1
        found = placements(world, among)
        return {tuple((among[m] + 1).tolist()) for block in found for m in block.members}

    assert shapes(2, 5) == {(5,)}
    assert shapes(2, 5, 6) == {(5,), (6,)}
    assert shapes(2, 3, 5) == {(2, 5), (3, 5)}


def merged(state: ClusterState, made: Plan) -> list[Move]:
    """Moves to fewer racks."""
    rack = {b.id: b.rack for b in state.brokers}
    return [m for m in made.moves if len({rack[b] for b in m.new}) < len({rack[b] for b in m.old})]


@pytest.mark.parametrize("seed", range(6))
def test_a_whole_plan_keeps_the_racks(seed: int) -> None:
    """Balanced, and every partition in all three."""
    state = drawn(seed)
    made = plan(state, Balance(), policy=POLICY)
    assert made.moves
    assert not merged(state, made)


def test_a_small_rack_has_a_replica_of_each_partition() -> None:
    """Its broker's share is what it must carry, and the plan says why; the others are balanced among themselves."""
    first = [(1, 2, 4), (2, 4, 5), (1, 4, 6), (1, 2, 5), (1, 3, 4), (1, 4, 5)]
    state = cluster(*[(*m, 7) for m in first * 4], racks="aaabbbc")
    made = plan(state, Balance(), policy=POLICY)
    share = {b["broker"]: b["share"]["replicas"] for b in made.summary["brokers"]}
    after = {b["broker"]: b["after"]["replicas"] for b in made.summary["brokers"]}
    assert share == dict.fromkeys(range(1, 7), 12) | {7: 24}
    assert after == share
    assert {(o.code, o.subject) for o in made.obstacles} == {("uneven-racks", "rack c")}


def test_what_must_go_stays_in_its_rack_or_is_named() -> None:
    """To the other broker of the rack; where that one's disk is full the plan says so, and merges nothing."""
    lists = [(1, 2, 3, 5), (1, 3, 4, 5)]
    for disks, status, moved in (({}, "meets-all-goals", 2), ({6: 50}, "no-plan-found", 0)):
        for intent in (
            Decommission(brokers=frozenset({5})),
            Evacuate(brokers=frozenset({5})),
            ReplaceBroker(old=5, new=6),
        ):
            state = cluster(*lists, racks=EVEN, disks=disks)
            made = plan(state, intent, policy=POLICY)
            assert (made.status, len(made.moves)) == (status, moved), intent
            assert not merged(state, made)
            assert {o.code for o in made.obstacles} == ({"no-broker"} if disks else set())


@pytest.mark.parametrize(
    "intent", [Balance(), Evacuate(brokers=frozenset({5})), Evacuate(brokers=frozenset({5}), keep_racks=True)]
)
def test_a_rack_without_a_living_broker_holds_nothing_any_more(intent: Intent) -> None:
    """What was there is rebuilt in the others, two in each."""
    state = cluster((1, 2, 3, 5), racks="aabbc", down=[5])
    made = plan(state, intent, policy=POLICY)
    assert made.status == "meets-all-goals"
    assert [set(m.new) for m in made.moves] == [{1, 2, 3, 4}]


def racks_of(state: ClusterState, members: tuple[int, ...]) -> set[str | None]:
    """The racks of these brokers."""
    return {b.rack for b in state.brokers if b.id in members}


@pytest.mark.parametrize(
    ("members", "to", "disks", "cordoned", "expected"),
    [
        # Broker 6 is the fullest of all, and alone in the rack that lacks the partition.
        ((1, 3, 4), 4, {}, (5,), {1, 3, 4, 6}),
        ((1, 2), 3, {}, (3, 4, 5), {1, 2, 6}),
        ((1, 2), 4, {}, (5,), {1, 2, 3, 6}),
        ((1,), 5, {}, (5,), {1, 2, 3, 4, 6}),
        # Where no broker in that rack may have it, another replica of a rack is better than none.
        ((1, 3, 4), 4, {5: 90, 6: 90}, (), {1, 2, 3, 4}),
        ((1, 3, 4), 4, {}, (5, 6), {1, 2, 3, 4}),
    ],
)
def test_added_replicas_go_to_racks_that_lack_the_partition(
    members: tuple[int, ...],
    to: int,
    disks: dict[int, int],
    cordoned: tuple[int, ...],
    expected: set[int],
) -> None:
    """However full their brokers are beside others, as long as there is room."""
    state = cluster(members, racks=EVEN, disks=disks, beside=[6] * 9)
    intent = ChangeReplicationFactor(to=to, selection=Selection(topics="t"))
    made = plan(state, intent, policy=replace(POLICY, cordoned=frozenset(cordoned)))
    assert made.status == "meets-all-goals"
    assert set(lists_after(state, made)["t", 0]) == expected


@pytest.mark.parametrize("seed", range(20))
def test_another_replication_factor_leaves_as_many_racks_as_there_can_be(seed: int) -> None:
    """Up: each added replica a rack that lacks the partition, while there is one.  Down: of all lists left, one in the most racks."""
    dice = np.random.default_rng(seed)
    racks = (*EVEN, "a")
    factor, to = (int(n) for n in dice.choice([2, 3, 4, 5], 2, replace=False))
    lists = [tuple(int(b) + 1 for b in dice.permutation(7)[:factor]) for _ in range(8)]
    state = cluster(*lists, racks=racks, sizes=dice.integers(1, 400, 8).tolist())
    made = plan(state, ChangeReplicationFactor(to=to), policy=POLICY)
    assert made.status == "meets-all-goals"
    new_lists = lists_after(state, made)
    for n, old in enumerate(lists):
        new = new_lists["t", n]
        held = len(racks_of(state, old))
        assert len(racks_of(state, new)) == min(held + max(to - factor, 0), to, 3)
        assert set(new) <= set(old) or set(old) <= set(new)


def test_a_new_broker_does_not_take_the_replica_that_is_alone_in_its_rack() -> None:
    """It is filled with others."""
    state = cluster(*[(1, 3, 4, 5), (2, 3, 4, 6)] * 6, racks="aabbcca")
    made = plan(state, Expand(brokers=frozenset({7})), policy=POLICY)
    assert made.moves
    assert not merged(state, made)


def test_where_racks_do_not_matter_nothing_is_kept() -> None:
    """A topic that may share racks may be in fewer of them."""
    loose = replace(POLICY, topic_rules=(TopicRule(topics="t", ignore_racks=True),))
    state = cluster((1, 2, 3, 5), racks=EVEN, disks={6: 50})
    made = plan(state, Decommission(brokers=frozenset({5})), policy=loose)
    assert [set(m.new) for m in made.moves] == [{1, 2, 3, 4}]


@pytest.mark.parametrize(
    ("intent", "policy", "down", "wrong"),
    [
        (Balance(), POLICY, (), True),
        (Balance(), POLICY, (5,), True),
        (Balance(), POLICY, (5, 6), False),
        (Balance(), replace(POLICY, draining=frozenset({5, 6})), (), False),
        (Balance(), replace(POLICY, topic_rules=(TopicRule(topics="t", ignore_racks=True),)), (), False),
        (Balance(), replace(POLICY, topic_rules=(TopicRule(topics="t", not_brokers=frozenset({5, 6})),)), (), False),
        (Balance(selection=Selection(exclude_brokers="5,6")), POLICY, (), True),
        (Evacuate(brokers=frozenset({5})), POLICY, (), True),
        (Evacuate(racks=frozenset({"c"})), POLICY, (), False),
        (Evacuate(racks=frozenset({"c"}), keep_racks=True), POLICY, (), False),
        (ReplaceBroker(old=5, new=4), POLICY, (), True),
    ],
)
def test_the_checker_knows_how_many_racks_are_wanted(
    intent: Intent, policy: PlannerPolicy, down: tuple[int, ...], *, wrong: bool
) -> None:
    """From the lists and the intent alone: as many as held it, as far as racks remain for it."""
    state = cluster((1, 2, 3, 5), racks=EVEN, down=down)
    made = plan(cluster((1, 2, 3, 6), racks=EVEN), Balance(), policy=POLICY)
    made = replace(made, moves=(Move("t", 0, (1, 2, 3, 5), (1, 2, 3, 4), 100),), elections=())
    found = check(state, made, intent, loads=Loads.from_state(state), policy=policy)
    assert any(f.code == "rack" for f in found) == wrong, found


def test_a_broker_that_would_merge_racks_is_told_why_it_is_none() -> None:
    """The rack has room; but the replica that would go in exchange is alone in its own."""
    state = cluster((1, 3, 4, 5), racks=EVEN)
    loads = Loads.from_state(state)
    leaving = Setup.of(state, Decommission(brokers=frozenset({5})), loads, POLICY)
    refused = judge(leaving, 0, 2)
    assert refused is not None
    assert refused.code == "racks-kept"
    assert judge(leaving, 0, 6) is None
    assert judge(Setup.of(state, Balance(), loads, POLICY), 0, 2) is None


@st.composite
def crowded(draw: st.DrawFn) -> ClusterState:
    """More replicas than racks: five to eight brokers in three or four racks, a few down, some disks nearly full."""
    count, racks = draw(st.integers(5, 8)), draw(st.integers(3, 4))
    names = [f"r{b}" if b < racks else f"r{draw(st.integers(0, racks - 1))}" for b in range(count)]
    down = draw(st.sets(st.integers(1, count), max_size=count - 4))
    room = draw(st.sampled_from([-1, 3_000]))
    brokers = tuple(
        Broker(b, rack=r, alive=b not in down, log_dirs=(LogDir("/d", room),), log_dirs_known=True)
        for b, r in enumerate(names, 1)
    )
    rows = []
    for t in range(2):
        factor = draw(st.integers(3, min(count, racks + 2)))
        for n in range(draw(st.integers(1, 6))):
            members = tuple(draw(st.permutations(range(1, count + 1)))[:factor])
            alive = tuple(b for b in members if b not in down)
            size = draw(st.sampled_from([0, 7, 100, 400]))
            rows.append(PartitionRow(f"t{t}", n, alive[0] if alive else -1, members, alive, sizes=(size,) * factor))
    return build("c", brokers, (Topic("t0"), Topic("t1")), rows)


@pytest.mark.slow
@settings(max_examples=int(os.environ.get("BALLAST_EXAMPLES", "80")))
@given(st.data())
def test_whatever_is_asked_racks_are_kept(data: st.DataObject) -> None:
    """Draining, cordoned and left-out brokers and topics' rules besides: the checker agrees with every plan."""
    state = data.draw(crowded())
    ids = [b.id for b in state.brokers]
    some = st.frozensets(st.sampled_from(ids), max_size=2)
    rule = TopicRule(topics="t0", not_brokers=data.draw(some) or frozenset({99}), ignore_racks=data.draw(st.booleans()))
    policy = replace(
        POLICY,
        draining=data.draw(some),
        cordoned=data.draw(some),
        topic_rules=(rule,) if data.draw(st.booleans()) else (),
    )
    selection = data.draw(st.sampled_from([Selection(), Selection(exclude_brokers="2"), Selection(topics="t0")]))
    named = data.draw(st.frozensets(st.sampled_from(ids), min_size=1, max_size=2))
    live = data.draw(st.frozensets(st.sampled_from(sorted(state.alive)), min_size=1, max_size=2))
    intents: list[Intent] = [
        Balance(selection=selection), Balance(), Racks(selection=selection), Expand(brokers=live, selection=selection),
        Decommission(brokers=named), Evacuate(brokers=named, keep_racks=data.draw(st.booleans())),
        ChangeReplicationFactor(to=data.draw(st.integers(2, 5))), ReplaceBroker(old=min(set(ids) - live), new=max(live)),
    ]  # fmt: skip
    intent = data.draw(st.sampled_from(intents))
    made = plan(state, intent, policy=policy)
    loose = {t.name for t in state.topics if policy.topic_rules and rule.matches(t.name)}
    rack = {b.id: b.rack for b in state.brokers}
    gone = (
        (set(ids) - state.alive)
        | policy.draining
        | named
        | ({intent.old} if isinstance(intent, ReplaceBroker) else set())
    )
    for move in made.moves:
        if move.topic not in loose and not set(move.old) & gone and len(move.new) >= len(move.old):
            assert len({rack[b] for b in move.new}) >= len({rack[b] for b in move.old})

"""Promises of the planner, held over many small clusters and shown on a few drawn by hand.

``BALLAST_EXAMPLES=5000`` holds the rules over so many clusters.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.planner.bound.test_bound import bound, searched
from tests.unit.core.planner.clusters import cluster, clusters
from tests.unit.core.planner.demands import demand_done, spread
from tests.unit.core.planner.demands import lists_after as after

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, build
from ballast.core.plan import Move, Plan
from ballast.core.plan.file import dumps
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
from ballast.core.planner.checker.checker import check
from ballast.core.planner.report.sentences import obstacle
from ballast.errors import NoPlanFound, UsageError

TIGHT = PlannerPolicy(band=0.1, trigger=0.1, slack_bytes=0)
QUICK = PlannerPolicy(band=0.1, trigger=0.1, slack_bytes=0, prove=False)
many = settings(max_examples=int(os.environ.get("BALLAST_EXAMPLES", "120")))


@st.composite
def intents(draw: st.DrawFn, state: ClusterState) -> Intent:
    """Any intent that can be put to this cluster."""
    alive = sorted(state.alive)
    ids = [b.id for b in state.brokers]
    some = frozenset(draw(st.sets(st.sampled_from(ids), min_size=1, max_size=2)))
    live = frozenset(draw(st.sets(st.sampled_from(alive), min_size=1, max_size=2)))
    old, new = draw(st.sampled_from(ids)), draw(st.sampled_from(alive))
    choices: list[Intent] = [
        Balance(), Balance(selection=Selection(topics="t0")), Leaders(), Racks(), Demote(brokers=some),
        Decommission(brokers=some), Evacuate(brokers=some), Expand(brokers=live),
        ChangeReplicationFactor(to=draw(st.integers(1, 4)), selection=Selection(topics="t0")),
    ]  # fmt: skip
    if old != new:
        choices.append(ReplaceBroker(old=old, new=new))
    return draw(st.sampled_from(choices))


@pytest.mark.slow
@many
@given(st.data())
def test_no_plan_breaks_a_rule(data: st.DataObject) -> None:
    """Whatever the cluster and the intent: no twins, no down broker gains, counts and racks are kept, others stay."""
    state = data.draw(clusters())
    intent = data.draw(intents(state))
    made = plan(state, intent, policy=QUICK)
    assert check(state, made, intent, loads=Loads.from_state(state), policy=QUICK) == []
    demand_done(state, made, intent)
    rack = {b.id: b.rack for b in state.brokers}
    racked = all(b.rack for b in state.brokers if b.alive)
    for move in made.moves:
        assert move.old != move.new
        assert len(set(move.new)) == len(move.new)
        assert set(move.adding) <= state.alive
        if not isinstance(intent, ChangeReplicationFactor):
            assert len(move.new) == len(move.old)
        if racked and len(move.new) >= len(move.old):
            assert len({rack[b] for b in move.new}) >= racks_wanted(state, intent, move)
        if isinstance(intent, Leaders | Demote):
            assert not move.adding
        if isinstance(intent, Expand):
            assert set(move.adding) <= intent.brokers
        assert intent.selection.topic(move.topic)


def racks_wanted(state: ClusterState, intent: Intent, move: Move) -> int:
    """As many as hold the partition, as far as racks remain for it when what must go has gone."""
    rack = {b.id: b.rack for b in state.brokers}
    match intent:
        case Balance():
            gone = set(rack) - state.alive
        case Decommission(brokers=named) | Evacuate(brokers=named):
            gone = set(named)
        case ReplaceBroker(old=old):
            gone = {old}
        case _:
            gone = set()
    remain = {rack[b] for b in {*move.old, *state.alive} - gone}
    return min(len({rack[b] for b in move.old}), len(remain))


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.permutations([1, 2, 3, 4]), min_size=20, max_size=40))
def test_a_complete_plan_is_not_followed_by_another(rows: list[list[int]]) -> None:
    """Partitions of one size can always be balanced: it is so afterwards, and nothing is left to do."""
    state = cluster(*[tuple(r[:2]) for r in rows], brokers=4)
    made = plan(state, Balance(), policy=QUICK)
    assert made.status in {"meets-all-goals", "nothing-to-do"}
    for held, share in zip(spread(after(state, made)), (len(rows) / 2, len(rows) / 4), strict=True):
        assert all(abs(held[b] - share) <= max(share * QUICK.band, 1) for b in (1, 2, 3, 4)), (held, share)
    assert plan(cluster_like(state, after(state, made)), Balance(), policy=QUICK).moves == ()


@pytest.mark.slow
@settings(max_examples=60)
@given(clusters())
def test_no_plan_moves_less_than_the_bound(state: ClusterState) -> None:
    """The bound is never above the bytes of the plan itself."""
    made = plan(state, Balance(), policy=TIGHT)
    assert made.bound_bytes is not None
    assert made.bound_bytes <= made.bytes_moved


def cluster_like(state: ClusterState, lists: dict[tuple[str, int], tuple[int, ...]]) -> ClusterState:
    """The same cluster with other replica lists, led by the first of each."""
    from ballast.core.cluster import PartitionRow, build

    rows = []
    for row in range(len(state.partitions)):
        name = state.name(row)
        members = lists[tuple(name)]  # type: ignore[index]
        size = int(state.partitions.size_bytes[state.partitions.start[row]])
        alive = tuple(b for b in members if b in state.alive)
        rows.append(PartitionRow(name.topic, name.partition, members[0], members, alive, sizes=(size,) * len(members)))
    return build(state.cluster_id, state.brokers, state.topics, rows)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.tuples(st.permutations([1, 2, 3, 4]), st.integers(1, 9)), min_size=1, max_size=4))
def test_the_bound_is_below_the_best_of_all_assignments(rows: list[tuple[list[int], int]]) -> None:
    """Of every assignment that is as balanced as the plan's, none copies fewer bytes than the bound."""
    state = cluster(*[tuple(r[:2]) for r, _ in rows], brokers=4, sizes=tuple(s * 1000 for _, s in rows))
    made = plan(state, Balance(), policy=TIGHT)
    lists = list(after(state, made).values())
    sizes = [s * 1000 for _, s in rows]
    share = 2 * sum(sizes) / 4
    shares = {"size": share, "count": 2 * len(rows) / 4, "lead": len(rows) / 4}
    limits = reached(figures(lists, sizes), shares)
    before = [tuple(r[:2]) for r, _ in rows]
    best = min(
        sum(size * len(set(n) - set(o)) for o, n, size in zip(before, choice, sizes, strict=True))
        for choice in itertools.product(itertools.permutations([1, 2, 3, 4], 2), repeat=len(rows))
        if inside(figures(choice, sizes), limits)
    )
    assert made.bound_bytes is not None
    world = searched(state, Balance(), TIGHT)
    world.place(np.array([b - 1 for members in lists for b in members], np.int32))
    assert max(made.bound_bytes, bound(world, pairs=0).bytes) <= best


def figures(lists: object, sizes: list[int]) -> dict[str, Counter[int]]:
    """Bytes, replicas and leaders by broker."""
    out: dict[str, Counter[int]] = {"size": Counter(), "count": Counter(), "lead": Counter()}
    for members, size in zip(lists, sizes, strict=True):  # type: ignore[call-overload]
        out["lead"][members[0]] += 1
        for b in members:
            out["size"][b] += size
            out["count"][b] += 1
    return out


def reached(made: dict[str, Counter[int]], shares: dict[str, float]) -> dict[tuple[str, int], tuple[float, float]]:
    """By resource and broker: the band, widened to what the plan reached."""
    limits = {}
    for name, share in shares.items():
        low, high = share * 0.9, share * 1.1
        if name != "size":
            low, high = min(np.ceil(low), np.floor(share)), max(np.floor(high), np.ceil(share))
        for b in (1, 2, 3, 4):
            limits[name, b] = (min(low, made[name][b]), max(high, made[name][b]))
    return limits


def inside(found: dict[str, Counter[int]], limits: dict[tuple[str, int], tuple[float, float]]) -> bool:
    """Is every figure within its limits?"""
    return all(low <= found[name][b] <= high for (name, b), (low, high) in limits.items())


@pytest.mark.slow
@settings(max_examples=25)
@given(clusters(), st.integers(0, 3))
def test_same_input_same_plan(state: ClusterState, seed: int) -> None:
    """The plan file is the same to the byte."""
    first, second = (plan(state, Balance(), policy=TIGHT, seed=seed) for _ in range(2))
    assert dumps(first) == dumps(second)


def test_leaders_are_balanced_for_free() -> None:
    """Leaders that piled up on one broker are spread without a byte moved."""
    state = cluster(*[(1, 2, 3)] * 9, brokers=3)
    made = plan(state, Balance(), policy=TIGHT)
    assert made.bytes_moved == 0
    assert Counter(m[0] for m in after(state, made).values()) == {1: 3, 2: 3, 3: 3}


def test_a_new_broker_is_filled_and_nothing_else_moves() -> None:
    """``expand`` copies to the new broker alone and takes its share in one pass."""
    state = cluster(*[(1, 2), (2, 3), (3, 1)] * 8, brokers=4)
    made = plan(state, Expand(brokers=frozenset({4})), policy=TIGHT)
    assert made.status == "meets-all-goals"
    assert {b for m in made.moves for b in m.adding} == {4}
    assert Counter(b for m in after(state, made).values() for b in m)[4] >= 11


def test_a_decommissioned_broker_is_emptied_and_only_it() -> None:
    """Every replica of the leaving broker goes; partitions that it does not hold stay."""
    state = cluster(*[(1, 2), (2, 3), (3, 4), (4, 1)] * 3, brokers=4)
    made = plan(state, Decommission(brokers=frozenset({4})))
    assert all(4 in m.old and 4 not in m.new for m in made.moves)
    assert made.summary["empty_afterwards"] == [4]
    assert made.bound_bytes == made.bytes_moved


def test_the_obstacle_is_named_when_a_broker_cannot_be_emptied() -> None:
    """Three replicas cannot live on two brokers, and the plan says what would help."""
    state = cluster((1, 2, 3), brokers=3)
    made = plan(state, Decommission(brokers=frozenset({3})))
    assert made.status == "no-plan-found"
    assert made.moves == ()
    first = made.obstacles[0]
    assert (first.code, first.cause, first.values) == ("no-broker", "too-few", {"replicas": 3, "brokers": 2})


def test_one_partition_larger_than_the_band_is_named() -> None:
    """Nothing can balance two brokers that hold one large partition between them."""
    state = cluster((1,), (2,), brokers=2, sizes=(1000, 10))
    made = plan(state, Balance(), policy=TIGHT)
    first = made.obstacles[0]
    assert (first.code, first.cause, first.values["partition"]) == ("band", "one-replica", "t-0")


def test_fewer_replicas_stay_where_the_selection_leaves_them() -> None:
    """The replica on a broker that takes no part is not the one that goes, be it the last of the list or the first."""
    state = cluster((1, 2, 3), (3, 1, 2), (1, 3), (1, 2), brokers=3)
    selection = Selection(exclude_brokers="3")
    made = plan(state, ChangeReplicationFactor(to=1, selection=selection))
    assert made.status == "meets-all-goals"
    assert {str(m.name): m.new for m in made.moves} == {"t-0": (3,), "t-1": (3,), "t-2": (3,), "t-3": (1,)}


def test_a_new_broker_leads_its_share_and_no_more() -> None:
    """Expanding fills the newcomer with leaders too, up to each broker's share; no old one is drained of them."""
    state = cluster(*[(1, 2), (2, 3), (3, 2), (2, 1)] * 12, brokers=4, racks=2)
    made = plan(state, Expand(brokers=frozenset({4})), policy=QUICK)
    leads = Counter(members[0] for members in after(state, made).values())
    assert leads[4] <= 13
    assert leads[4] >= 11
    assert min(leads[b] for b in (1, 2, 3)) >= 8


def test_replicas_that_may_not_go_are_an_obstacle() -> None:
    """Brokers that take no part hold more than are to stay: such a list is left whole and named, the others shrink."""
    state = cluster((1, 2, 3), (2, 1, 4), (3, 2, 4), brokers=4)
    made = plan(state, ChangeReplicationFactor(to=1, selection=Selection(exclude_brokers="2|3")))
    assert made.status == "misses-some-goals"
    assert {str(m.name): m.new for m in made.moves} == {"t-1": (2,)}
    assert made.obstacles == (
        obstacle("selection", "t-0", replicas=3, brokers=(2, 3)),
        obstacle("selection", "t-2", replicas=3, brokers=(3, 2)),
    )


def test_a_rack_that_cannot_be_parted_is_named_whatever_the_order() -> None:
    """Two replicas in one rack on brokers that take no part: the third goes, and that the two stay together is said."""
    racks = ("a", "a", "a", "b", "c")
    brokers = tuple(Broker(i, rack=rack, log_dirs_known=True) for i, rack in enumerate(racks, 1))
    for lists in ((1, 2, 3), (3, 2, 1), (1, 3, 2)):
        state = build("c", brokers, (Topic("t"),), [PartitionRow("t", 0, lists[0], lists, lists, sizes=(1, 1, 1))])
        made = plan(state, Racks(selection=Selection(exclude_brokers="1|2")))
        assert [m.removing for m in made.moves] == [(3,)]
        assert [(o.code, o.cause) for o in made.obstacles] == [("no-broker", "selection")]


def test_a_left_out_broker_that_cannot_be_emptied_is_not_told_about_racks() -> None:
    """What must leave a broker and has nowhere to go says that, also where the selection leaves the broker out."""
    intent = Decommission(brokers=frozenset({1}), selection=Selection(exclude_brokers="1"))
    (found,) = plan(cluster((1, 2), brokers=2), intent).obstacles
    assert (found.cause, found.values) == ("too-few", {"replicas": 2, "brokers": 1})


def test_heirs_that_should_not_lead_are_counted_after_the_first_twenty() -> None:
    """Each of the first is named, the rest is a number, and the checker agrees that all were admitted."""
    state = cluster(*[(1, 2, 3)] * 25, brokers=4)
    policy = PlannerPolicy(draining=frozenset({3}), demoted=frozenset({2}))
    made = plan(state, ChangeReplicationFactor(to=1, selection=Selection(exclude_brokers="2")), policy=policy)
    assert {m.new for m in made.moves} == {(2,)}
    assert len(made.obstacles) == 21
    assert (made.obstacles[-1].cause, made.obstacles[-1].values) == ("more", {"count": 5})


def test_replication_factor_changes_up_and_down_with_racks_kept() -> None:
    """New replicas go to racks that have none; of surplus ones the leader and distinct racks stay."""
    state = cluster(*[(1, 2), (2, 3), (3, 1)] * 2, brokers=6, racks=3)
    up = plan(state, ChangeReplicationFactor(to=3, selection=Selection(topics="t")))
    assert all({b % 3 for b in m.new} == {0, 1, 2} and m.new[0] == m.old[0] for m in up.moves)
    assert up.allow_replication_factor_change
    down = plan(state, ChangeReplicationFactor(to=1, selection=Selection(topics="t")))
    assert all(m.new == m.old[:1] for m in down.moves)
    assert down.bytes_moved == 0


def test_a_budget_buys_what_it_can() -> None:
    """With few bytes allowed the plan stays under them and says that it stops short."""
    state = cluster(*[(1, 2)] * 12, brokers=4)
    made = plan(state, Balance(), policy=PlannerPolicy(band=0.1, trigger=0.1, slack_bytes=0, max_bytes=350))
    assert 0 < made.bytes_moved <= 350
    assert made.status == "misses-some-goals"
    limited = [o.values for o in made.obstacles if o.cause == "limit"]
    assert {(values["limit"], values["limits"]) for values in limited} == {(350, "bytes")}


def test_a_limit_of_bytes_is_refused_where_no_size_is_known() -> None:
    """Every plan would be within it, and copy any number of bytes."""
    state = cluster(*[(1, 2)] * 12, brokers=4)
    blind = replace(
        state, partitions=replace(state.partitions, size_bytes=np.full_like(state.partitions.size_bytes, -1))
    )
    policy = PlannerPolicy(band=0.1, trigger=0.1, slack_bytes=0)
    assert plan(blind, Balance(), policy=policy).known_bytes is None
    with pytest.raises(NoPlanFound, match="No size"):
        plan(blind, Balance(), policy=replace(policy, max_bytes=350))
    limited = plan(blind, Balance(), policy=replace(policy, max_replica_moves=2))
    assert sum(len(m.adding) for m in limited.moves) <= 2


def test_a_wider_trigger_leaves_small_drift_alone() -> None:
    """Within the trigger nothing is done, even outside the inner band."""
    state = cluster(*[(1,)] * 11, *[(2,)] * 9, brokers=2)
    assert plan(state, Balance(), policy=PlannerPolicy(band=0.05, trigger=0.2, slack_bytes=0)).is_empty
    assert not plan(state, Balance(), policy=PlannerPolicy(band=0.05, trigger=0.05, slack_bytes=0)).is_empty


@pytest.mark.parametrize(("step", "idle"), [(1.2, True), (1.3, False)], ids=["a little more", "more than that"])
def test_a_nearly_empty_cluster_is_left_alone_a_little_beyond_where_a_plan_ends(step: float, idle: bool) -> None:  # noqa: FBT001
    """What is written after a plan that ended at the edge of ``slack_bytes`` does not call for the next one at once."""
    size = 1 << 18
    rows = [PartitionRow("t", n, 1 + n % 2, (1 + n % 2,), (1 + n % 2,), sizes=(size,)) for n in range(16)]
    rows[0] = replace(rows[0], sizes=(size + round(2 * step * (1 << 20)),))
    state = build("c", tuple(Broker(b) for b in (1, 2)), (Topic("t"),), rows)
    assert (
        plan(
            state,
            Balance(),
            policy=PlannerPolicy(slack_bytes=1 << 20, bands={"preferred-leaders": 0.9, "replicas": 0.9}),
        ).is_empty
        is idle
    )


def test_larger_brokers_carry_more() -> None:
    """Shares follow disk sizes where the brokers tell them."""
    from ballast.core.planner import Capacity

    state = cluster(*[(1,), (2,)] * 15, brokers=2)
    sizes = {1: Capacity(disk_bytes=100_000), 2: Capacity(disk_bytes=200_000)}
    made = plan(state, Balance(), policy=PlannerPolicy(band=0.05, trigger=0.05, slack_bytes=0, capacities=sizes))
    assert Counter(m[0] for m in after(state, made).values()) == {1: 10, 2: 20}


def test_swap_keeps_places_in_the_list() -> None:
    """The newcomer takes over the place of the old broker, leadership included."""
    state = cluster((1, 2), (2, 1), brokers=3)
    made = plan(state, ReplaceBroker(old=1, new=3))
    assert {m.new for m in made.moves} == {(3, 2), (2, 3)}


@pytest.mark.parametrize(
    "intent", [Demote(brokers=frozenset({9})), ReplaceBroker(old=1, new=9), Evacuate(racks=frozenset({"x"}))]
)
def test_what_is_not_there_is_named(intent: Intent) -> None:
    """Unknown brokers and racks are refused with what there is."""
    with pytest.raises(UsageError, match=r"There is no (broker 9|rack 'x')"):
        plan(cluster((1, 2), brokers=2), intent)


def test_the_checker_finds_what_a_search_could_break() -> None:
    """Each broken rule has its finding; the checker does not simply agree."""
    state = cluster((1, 2), (2, 3), brokers=4, racks=2)
    loads = Loads.from_state(state)

    def codes(*moves: Move, intent: Intent | None = None) -> set[str]:
        wrong = Plan("balance", "c", "f", tuple(moves))
        found = check(state, wrong, intent or Balance(), loads=loads, policy=PlannerPolicy(cordoned=frozenset({4})))
        return {f.code for f in found}

    assert codes(Move("t", 0, (1, 2), (3, 3))) >= {"duplicate"}
    assert codes(Move("t", 0, (1, 2), (1, 9))) >= {"down"}
    assert codes(Move("t", 0, (1, 2), (1, 4))) == {"closed"}
    assert codes(Move("t", 0, (1, 2), (1,))) == {"factor"}
    assert codes(Move("t", 0, (1, 2), (1, 3))) == {"rack"}
    assert codes(Move("t", 0, (2, 1), (2, 3))) >= {"stale"}
    assert codes(Move("t", 7, (2, 1), (2, 3))) == {"stale"}
    assert codes(Move("t", 0, (1, 2), (3, 2)), intent=Leaders()) == {"intent"}
    assert codes(Move("t", 0, (1, 2), (3, 2)), intent=Expand(brokers=frozenset({2}))) >= {"intent", "closed"}
    # Nothing is wrong with the move; what a plan tells of its moves is judged in test_checker.
    assert codes(Move("t", 0, (1, 2), (2, 1))) <= {"sum", "band", "regression"}


def test_a_shared_rack_is_repaired_by_the_replica_that_takes_part() -> None:
    """Of two replicas in one rack the one on a broker that is left out stays; where both are, the plan says so."""
    state = cluster((3, 1), brokers=5, racks=2)
    made = plan(state, Racks(selection=Selection(exclude_brokers="3")), policy=QUICK)
    assert [(m.removing, len(m.adding)) for m in made.moves] == [((1,), 1)]
    made = plan(state, Racks(selection=Selection(exclude_brokers="[13]")), policy=QUICK)
    assert [(o.code, o.cause) for o in made.obstacles] == [("no-broker", "selection")]

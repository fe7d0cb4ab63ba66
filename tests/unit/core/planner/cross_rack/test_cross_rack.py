"""Traffic between racks: figures with known answers, and leaders where less of it crosses."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.planner.clusters import clusters

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, PartitionRow, Topic, build
from ballast.core.cluster.state import ConfigValue
from ballast.core.plan import Plan
from ballast.core.plan.file import dumps
from ballast.core.plan.file import loads as read_plan
from ballast.core.planner import (
    Balance,
    ClientRacks,
    CrossRackPolicy,
    Intent,
    Leaders,
    Loads,
    PlannerPolicy,
    plan,
)
from ballast.core.planner.cross_rack.traffic import (
    SELECTOR,
    Crossing,
    Slots,
    cost_per_day,
    figures_now,
    leaders_of,
    traffic_now,
    why_unknown,
)
from ballast.core.planner.make import state_after
from ballast.core.planner.problem.problem import problem_of
from ballast.core.planner.problem.ranges import ranges_of
from ballast.core.planner.problem.scope import scope_of
from ballast.core.planner.report.page import page
from ballast.core.planner.request import dump_request, load_request
from ballast.core.planner.search.cheaper_leaders import GAP, WORTH, lead_cheaply
from ballast.core.planner.search.world import World
from ballast.core.snapshot import file as snapshot_file
from ballast.core.snapshot.anonymise import anonymise_snapshot
from ballast.core.status import cluster_status
from ballast.daemon.context.figures import measure
from ballast.daemon.context.view import View
from ballast.daemon.metrics.catalog import CATALOG
from ballast.errors import UsageError
from ballast.settings.load import normalise, validate

MIB = 1 << 20
NEAREST = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def a_cluster(
    *lists: tuple[int, ...], racks: str = "abc", isr: Mapping[int, tuple[int, ...]] | None = None
) -> ClusterState:
    """One topic ``t`` with these replica lists, on a broker for each character of ``racks``."""
    brokers = tuple(Broker(i, rack=rack, log_dirs_known=True) for i, rack in enumerate(racks, 1))
    rows = [PartitionRow("t", n, r[0], r, (isr or {}).get(n, r), sizes=(MIB,) * len(r)) for n, r in enumerate(lists)]
    return build("c", brokers, (Topic("t", min_isr=1),), rows)


def the_loads(written: list[int], read: list[int] | None = None, factor: int = 1) -> Loads:
    """Known traffic by partition; what leaders send to ``factor`` replicas counts as bytes out."""
    zero = np.zeros(len(written), np.int64)
    into = np.array(written, np.int64)
    sent = zero if read is None else np.maximum(np.array(read, np.int64), 0)
    return Loads(
        size_bytes=np.full(len(written), MIB, np.int64),
        bytes_in_per_s=into,
        bytes_out_per_s=into * (factor - 1) + sent,
        bytes_read_per_s=np.zeros(0, np.int64) if read is None else np.array(read, np.int64),
        cpu_leader=zero,
        cpu_follower=zero,
        known=frozenset({"disk", "bytes-in", "bytes-out"}),
    )


def clients(
    producers: Mapping[str, float] | None = None, consumers: Mapping[str, float] | None = None
) -> CrossRackPolicy:
    """Where the clients of topic ``t`` are."""
    return CrossRackPolicy(clients=(ClientRacks(topics="t", producers=producers or {}, consumers=consumers or {}),))


@pytest.mark.parametrize(
    ("policy", "producers", "followers", "consumers"),
    [
        # Evenly over three racks: two thirds of what clients send and read, and the one follower's fetches.
        (CrossRackPolicy(), 600, 900, 200),
        (clients({"a": 1.0}, {"a": 0.5, "b": 0.5}), 0, 900, 150),
        (clients({"b": 1.0}, {"c": 1.0}), 900, 900, 300),
        # A rack without a broker: its clients are always elsewhere.
        (clients({"a": 0.25, "elsewhere": 0.75}), 675, 900, 200),
        # The nearest replica: only racks without a replica read from another one.  Brokers tell what the leader sends, here to the
        # consumers of its own rack and of c: 300 of 450 in all.
        (replace(CrossRackPolicy(), nearest_replica=True), 600, 900, 150),
        (replace(clients({"a": 1.0}, {"a": 0.5, "b": 0.5}), nearest_replica=True), 0, 900, 0),
    ],
)
def test_what_crosses_racks_is_what_each_kind_of_client_sends_or_fetches_there(
    policy: CrossRackPolicy, producers: int, followers: int, consumers: int
) -> None:
    """One partition led in rack a with a follower in b: 900 bytes per second written, 300 read from the leader."""
    found = traffic_now(a_cluster((1, 2)), the_loads([900], [300]), policy)
    assert found is not None
    assert (found.producers, found.followers, found.consumers) == (producers, followers, consumers)
    assert found.unknown_reads == 0


def test_a_follower_in_the_leaders_rack_or_out_of_reach_sends_nothing_across() -> None:
    """Followers on brokers that are down fetch nothing; a replica that is not in sync serves no consumer."""
    state = a_cluster((1, 2, 4), racks="abca", isr={0: (1, 4)})
    found = traffic_now(state, the_loads([100], [60]), replace(clients({"a": 1.0}, {"b": 1.0}), nearest_replica=True))
    assert found is not None
    assert (found.producers, found.followers, found.consumers) == (0, 100, 60)
    down = replace(state, brokers=tuple(replace(b, alive=b.id != 2, rack=b.rack) for b in state.brokers))
    found = traffic_now(down, the_loads([100], [60]), clients({"a": 1.0}, {"a": 1.0}))
    assert found is not None
    assert (found.producers, found.followers, found.consumers) == (0, 0, 0)


def test_what_consumers_read_is_unknown_and_never_zero() -> None:
    """Without a figure for some partitions they are counted; where nothing can cross, nothing is unknown."""
    state = a_cluster((1, 2), (2, 1), racks="ab")
    some = figures_now(state, the_loads([100, 100], [50, UNKNOWN]), CrossRackPolicy())
    assert some is not None
    assert (some["consumers"], some["unknown_reads"]) == (25, 1)
    none = figures_now(state, the_loads([100, 100]), CrossRackPolicy())
    assert none is not None
    assert (none["consumers"], none["unknown_reads"]) == (None, 2)
    near = figures_now(state, the_loads([100, 100]), CrossRackPolicy(nearest_replica=True))
    assert near is not None
    assert (near["consumers"], near["unknown_reads"]) == (0, 0)


def test_where_racks_or_traffic_are_not_known_nothing_is_said() -> None:
    """A broker without a rack, one rack alone, and a cluster whose producers were not measured."""
    loads = the_loads([100])
    assert why_unknown(a_cluster((1, 2)), loads) is None
    nameless = a_cluster((1, 2))
    nameless = replace(nameless, brokers=(*nameless.brokers[:2], replace(nameless.brokers[2], rack=None)))
    for state, known in (
        (nameless, loads),
        (a_cluster((1, 2), racks="aa"), loads),
        (a_cluster((1, 2)), Loads.from_state(a_cluster((1, 2)))),
    ):
        assert why_unknown(state, known) is not None
        assert traffic_now(state, known, CrossRackPolicy()) is None
        assert "cross_rack" not in plan(state, Balance(), loads=known).summary


def test_a_price_is_for_a_gib_and_a_day_has_86400_seconds() -> None:
    """One GiB a second at 0.02 is 1,728 a day; without a price there is no cost."""
    assert cost_per_day(1 << 30, 0.02) == 1728.0
    assert cost_per_day(1 << 30, None) is None


@pytest.mark.parametrize(
    ("selectors", "nearest"),
    [((NEAREST, NEAREST), True), ((NEAREST, None), False), ((None, None), False), ((), False)],
)
def test_brokers_tell_whether_consumers_read_from_the_nearest_replica(
    *, selectors: tuple[str | None, ...], nearest: bool
) -> None:
    """All of them must; a setting wins over what they tell."""
    configs = {b: {SELECTOR: ConfigValue(s, "STATIC_BROKER_CONFIG")} for b, s in enumerate(selectors, 1)}
    state = replace(a_cluster((1, 2), racks="ab"), broker_configs=configs)
    loads = the_loads([100], [40])
    assert Crossing(state, loads, CrossRackPolicy()).nearest is nearest
    assert Crossing(state, loads, CrossRackPolicy(nearest_replica=not nearest)).nearest is not nearest


def counted(state: ClusterState, loads: Loads, policy: CrossRackPolicy) -> tuple[float, float, float]:
    """The same from its definition, a partition at a time, consumers reading from the leader."""
    rack = {b.id: b.rack for b in state.brokers}
    alive = sorted({b.rack or "" for b in state.brokers if b.alive})
    producers = followers = consumers = 0.0
    for row in range(len(state.partitions)):
        topic, leader = state.name(row).topic, int(state.partitions.leader[row])
        leader = leader if leader >= 0 else int(state.preferred[row])
        said = next((c for c in policy.clients if c.matches(topic)), None)
        even = {r: 1 / len(alive) for r in alive}
        writes = (said.producers if said else {}) or even
        reads = (said.consumers if said else {}) or even
        into, out = int(loads.bytes_in_per_s[row]), int(loads.bytes_read_per_s[row])
        producers += sum(into * share for r, share in writes.items() if r != rack[leader])
        followers += sum(into for b in state.replicas(row) if b in state.alive and rack[b] != rack[leader])
        consumers += sum(out * share for r, share in reads.items() if r != rack[leader])
    return producers, followers, consumers


POLICIES = st.sampled_from(
    [
        CrossRackPolicy(leaders=True, min_saving_bytes_per_s=1),
        CrossRackPolicy(
            leaders=True,
            min_saving_bytes_per_s=50,
            clients=(
                ClientRacks(topics="t0", producers={"r0": 1.0}),
                ClientRacks(topics="t[01]", producers={"r1": 0.5, "r2": 0.5}, consumers={"r3": 1.0}),
            ),
        ),
    ]
)


@st.composite
def loaded(draw: st.DrawFn) -> tuple[ClusterState, Loads, CrossRackPolicy]:
    """A small cluster with traffic."""
    state = draw(clusters())
    count = len(state.partitions)
    rates = st.lists(st.integers(0, 5000), min_size=count, max_size=count)
    loads = the_loads(draw(rates), draw(rates), 2)
    return state, replace(loads, size_bytes=Loads.from_state(state).size_bytes), draw(POLICIES)


@settings(max_examples=60, deadline=None)
@given(loaded())
def test_figures_are_those_of_their_definition(case: tuple[ClusterState, Loads, CrossRackPolicy]) -> None:
    """Any cluster, down brokers and offline partitions included."""
    state, loads, policy = case
    found = traffic_now(state, loads, policy)
    if found is None or not all(state.brokers[i].alive for i in leaders_of(state).tolist()):
        return
    assert (found.producers, found.followers, found.consumers) == pytest.approx(counted(state, loads, policy), abs=0.51)


def outside(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> set[tuple[str, int]]:
    """Brokers out of range, by resource."""
    return {(r.resource, b) for r in ranges_of(state, loads, policy) for b in r.outside}


def excess(state: ClusterState, loads: Loads, policy: PlannerPolicy) -> float:
    """How far all brokers are out of range together, in average shares."""
    return sum(
        max(s.load - s.high, s.low - s.load, 0.0) / max(s.fair, 1.0)
        for r in ranges_of(state, loads, policy)
        for s in r.shares.values()
    )


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(loaded(), st.sampled_from([Leaders(), Balance()]))
def test_ranges_stay_met_cost_never_rises_and_a_second_plan_is_empty(
    case: tuple[ClusterState, Loads, CrossRackPolicy], intent: Intent
) -> None:
    """Where a plan without regard to racks finds nothing more, every change is there for less traffic, or brings a range nearer."""
    state, loads, cross_rack = case
    plain = PlannerPolicy(prove=False, band=0.3)
    before = plan(state, intent, loads=loads, policy=plain)
    policy = replace(plain, cross_rack=cross_rack)
    if any(m.adding for m in before.moves) or not all(b.alive for b in state.brokers):
        return
    balanced = state_after(state, before.moves)
    if plan(balanced, intent, loads=loads, policy=plain).moves:
        return
    made = plan(balanced, intent, loads=loads, policy=policy)
    assert not any(m.adding for m in made.moves)
    after = state_after(balanced, made.moves)
    assert outside(after, loads, policy) <= outside(balanced, loads, policy)
    now, then = traffic_now(balanced, loads, cross_rack), traffic_now(after, loads, cross_rack)
    if now is not None and then is not None:
        saved, changes = now.bytes_per_s - then.bytes_per_s, len(made.moves)
        # From other leaders the search may reach what it missed from these: a range comes before traffic.
        if excess(after, loads, policy) >= excess(balanced, loads, policy) - 1e-9:
            assert saved >= changes * cross_rack.min_saving_bytes_per_s - 3
            assert changes == 0 or saved > 0
        told = made.summary["cross_rack"]
        assert told["after"]["bytes_per_s"] == then.bytes_per_s
    else:
        assert not made.moves
    assert not plan(after, intent, loads=loads, policy=policy).moves


def small(seed: int) -> tuple[ClusterState, Loads, CrossRackPolicy]:
    """Six brokers in three racks, eight partitions of three replicas, producers in one rack each."""
    draw = np.random.default_rng(seed)
    brokers = tuple(Broker(i, rack="abc"[i % 3]) for i in range(6))
    rows = []
    for n in range(8):
        replicas = tuple(int(r + 3 * draw.integers(2)) for r in draw.permutation(3))
        rows.append(PartitionRow(f"t{n % 3}", n // 3, replicas[0], replicas, replicas, sizes=(MIB,) * 3))
    state = build("c", brokers, tuple(Topic(f"t{n}", min_isr=1) for n in range(3)), rows)
    loads = the_loads(draw.integers(20_000, 90_000, 8).tolist(), draw.integers(0, 200_000, 8).tolist(), 3)
    racks = tuple(
        ClientRacks(topics=f"t{n}", producers={"abc"[int(draw.integers(3))]: 1.0}, consumers={"a": 0.7, "c": 0.3})
        for n in range(3)
    )
    return state, loads, CrossRackPolicy(leaders=True, clients=racks)


def best(world: World, cost: np.ndarray, low: np.ndarray, high: np.ndarray, least: int) -> float:
    """The most that any choice of leaders within these limits saves, changes paid for: all of them tried."""
    p = world.problem
    runs = [range(int(p.start[r]), int(p.start[r + 1])) for r in range(len(p.size))]
    found = 0.0
    shift = p.lead - p.follow
    for choice in itertools.product(*runs):
        saved = sum(cost[run[0]] - cost[s] - least * (s != run[0]) for run, s in zip(runs, choice, strict=True))
        if saved <= found:
            continue
        load = world.load.copy()
        for r, s in enumerate(choice):
            load[world.cur[p.start[r]]] -= shift[r]
            load[world.cur[s]] += shift[r]
        if not ((load > high) | (load < low)).any():
            found = saved
    return found


@pytest.mark.parametrize("band", [0.2, 0.6])
def test_leaders_are_the_best_there_are_on_small_clusters(band: float) -> None:
    """Against every choice of leaders within the same limits; what is left is too little to change a leader for."""
    changed = 0
    for seed in range(4):
        state, loads, cross_rack = small(seed)
        policy = PlannerPolicy(band=band, trigger=band, cross_rack=cross_rack)
        asked = problem_of(state, loads, policy, scope_of(state, Leaders(), policy), bands="target")
        world = World.of(asked, policy)
        crossing = Crossing(state, loads, cross_rack)
        slots = Slots(world.row.astype(np.int64), world.cur.astype(np.int64), np.ones(len(world.cur), np.bool_))
        cost, total = sum(crossing.by_slot(slots), np.zeros(len(world.cur))), crossing.total(slots)
        low, high = np.minimum(asked.low, world.load), np.maximum(asked.high, world.load)
        least = cross_rack.min_saving_bytes_per_s
        most = best(world, cost, low, high, least)
        before = world.cur.copy()
        changed += lead_cheaply(world, asked, cost, least=least, total=total)
        first = asked.start[:-1]
        at = [int(f + np.flatnonzero(before[f : f + 3] == world.cur[f])[0]) for f in first.tolist()]
        saved = float((cost[first] - cost[at]).sum()) - least * int((before[first] != world.cur[first]).sum())
        assert saved <= most + 1
        assert saved >= most - (GAP if saved else WORTH) * total - 1
        assert not ((world.load > high) | (world.load < low)).any()
    assert changed


def in_the_producers_rack(*, leaders: bool = True, least: int = 10_000) -> tuple[ClusterState, Loads, PlannerPolicy]:
    """Twelve partitions whose replicas are in all three racks, led in c, written from a; leaders have wide ranges."""
    state = a_cluster(*[(3, 1, 2)] * 12)
    cross_rack = replace(clients({"a": 1.0}, {"a": 1.0}), leaders=leaders, price_per_gib=0.02, currency="USD")
    cross_rack = replace(cross_rack, min_saving_bytes_per_s=least)
    wide = {"preferred-leaders": 0.99, "bytes-out": 0.99}
    return state, the_loads([MIB] * 12, [MIB] * 12, 3), PlannerPolicy(bands=wide, trigger=0.99, cross_rack=cross_rack)


def test_leaders_go_to_the_producers_rack_as_far_as_ranges_allow() -> None:
    """Each broker may lead at most 1.99 times its four: seven in rack a.  The plan says what is saved, in bytes and money."""
    state, loads, policy = in_the_producers_rack()
    made = plan(state, Leaders(), loads=loads, policy=policy)
    led = [int(b) for b in state_after(state, made.moves).preferred]
    assert led.count(1) == 7
    assert all(m.is_list_change for m in made.moves)
    told = made.summary["cross_rack"]
    assert told["before"]["bytes_per_s"] - told["after"]["bytes_per_s"] == 2 * MIB * 7
    assert told["before"]["cost_per_day"] == pytest.approx(48 / 1024 * 86_400 * 0.02)
    assert {m.reason.code for m in made.moves if m.new[0] == 1} <= {"cross-rack", "preferred-leaders", "bytes-out"}
    assert read_plan(dumps(made)).summary["cross_rack"] == told
    assert "USD" in page(made, rate_bytes_per_s=MIB)
    assert load_request(dump_request(Leaders(), policy, 0))[1] == policy


def test_it_is_off_by_default_and_small_savings_change_nothing() -> None:
    """Without the goal leaders are only balanced; with a least saving above what one change saves, too."""
    state, loads, off = in_the_producers_rack(leaders=False)
    by_ranges = plan(state, Leaders(), loads=loads, policy=off)
    state, loads, dear = in_the_producers_rack(least=3 * MIB)
    assert plan(state, Leaders(), loads=loads, policy=dear).moves == by_ranges.moves


def test_a_plan_that_knows_no_traffic_says_so() -> None:
    """The goal is on, and what producers write was not measured."""
    state, _, policy = in_the_producers_rack()
    made = plan(state, Balance(), loads=Loads.from_state(state), policy=policy)
    assert any("less traffic between racks" in line for line in made.assumptions)


def test_a_snapshot_keeps_what_consumers_read_and_the_selector() -> None:
    """Some reads known and some not, one broker that told; names made up as well."""
    state = a_cluster((1, 2), (2, 3))
    state = replace(state, broker_configs={1: {SELECTOR: ConfigValue(NEAREST, "STATIC_BROKER_CONFIG")}})
    taken = snapshot_file.Snapshot(state, the_loads([10, 20], [UNKNOWN, 7]))
    for kept in (taken, anonymise_snapshot(taken)):
        back = snapshot_file.loads(snapshot_file.dumps(kept))
        assert sorted(back.loads.bytes_read_per_s.tolist()) == [UNKNOWN, 7]
        assert back.state.broker_configs[1][SELECTOR].value == NEAREST


def test_a_bill_is_of_the_mean_whatever_the_brokers_are_balanced_by() -> None:
    """A model says both; a snapshot keeps both; what is not known of reads stays unknown."""
    state = a_cluster((1, 2), (2, 3))
    columns = {
        "topic": np.array(["t", "t"]),
        "partition": np.array([0, 1]),
        "bytes_in_per_s": np.array([900.0, 900.0]),
        "bytes_read_per_s": np.array([30.0, np.nan]),
        "bytes_written_per_s": np.array([300.0, 300.0]),
    }
    loads = Loads.from_model(state, columns)
    back = snapshot_file.loads(snapshot_file.dumps(snapshot_file.Snapshot(state, loads)))
    for kept in (loads, back.loads):
        found = traffic_now(state, kept, CrossRackPolicy())
        assert found is not None
        assert (found.producers, found.followers, found.consumers, found.unknown_reads) == (400, 600, 20, 1)
    assert back.loads.bytes_in_per_s.tolist() == [900, 900]


@pytest.mark.parametrize(("reads", "labels"), [([300], 3), (None, 2)])
def test_the_metric_leaves_out_what_is_not_known(reads: list[int] | None, labels: int) -> None:
    """A series for each kind of client, none for consumers of whom nothing is known."""
    view = View(figures=measure(a_cluster((1, 2)), threshold_percent=10, loads=the_loads([900], reads)))
    (spec,) = [s for s in CATALOG if s.name == "ballast_cross_rack_bytes_per_second"]
    assert len(list(spec.samples(view))) == labels


def test_status_and_figures_tell_the_same() -> None:
    """One count for the command, the page and the metric; unknown where the traffic is."""
    state, loads = a_cluster((1, 2)), the_loads([900], [300])
    priced = CrossRackPolicy(price_per_gib=0.02)
    policy = PlannerPolicy(cross_rack=priced)
    told = cluster_status(state, policy=policy, loads=loads).cross_rack
    found = measure(state, threshold_percent=10, policy=policy, loads=loads).cross_rack
    assert told is not None
    assert found is not None
    assert told["bytes_per_s"] == found.bytes_per_s == 1700
    silent = cluster_status(state, policy=policy)
    assert silent.cross_rack is None
    assert silent.cross_rack_unknown
    assert measure(state, threshold_percent=10, policy=policy).cross_rack is None


def test_settings_name_racks_and_shares() -> None:
    """As in a file of settings."""
    tree = {
        "leaders": True,
        "price_per_gib": 0.01,
        "currency": "EUR",
        "clients": [{"topics": "eu-a-.*", "producers": {"a": 1.0}, "consumers": {"a": 0.5, "b": 0.5}}],
    }
    found = validate({"balance": {"cross_rack": tree}}).balance.cross_rack
    assert found.leaders
    assert found.clients[0].consumers == {"a": 0.5, "b": 0.5}
    assert found.clients[0].matches("eu-a-1")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"clients": [{"topics": "t", "producers": {"a": 0.5}}]}, "0.5"),
        ({"clients": [{"topics": "t", "producers": {"a": 1.5, "b": -0.5}}]}, "'a'"),
        ({"clients": [{"topics": "(", "producers": {"a": 1}}]}, "regular expression"),
        ({"clients": [{"topics": "t"}]}, "neither"),
        ({"min_saving_bytes_per_s": 0}, "min_saving_bytes_per_s"),
        ({"price_per_gib": -1}, "price_per_gib"),
        ({"currency": "USD"}, "currency"),
        ({"prize_per_gib": 1}, "price_per_gib"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(wrong: dict[str, object], named: str) -> None:
    """With what is wrong in the sentence or its hint."""
    with pytest.raises(UsageError) as refused:
        validate(normalise({"balance": {"cross_rack": wrong}}, "a file"))
    assert named in f"{refused.value.message} {refused.value.hint}"


def test_an_empty_cluster_has_no_traffic() -> None:
    """No partition, nothing that crosses, nothing to plan."""
    state = build("c", tuple(Broker(i, rack=r) for i, r in enumerate("ab")), (), [])
    policy = PlannerPolicy(cross_rack=CrossRackPolicy(leaders=True))
    made: Plan = plan(state, Balance(), loads=the_loads([]), policy=policy)
    assert made.is_empty
    assert made.summary["cross_rack"]["after"]["bytes_per_s"] == 0

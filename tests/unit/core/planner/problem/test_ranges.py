"""One count of brokers out of range, wherever it is read."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.unit.core.planner.search.test_hard_clusters import moved

from ballast.cli.commands.plan.view import cost_lines
from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.planner import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Loads,
    Place,
    PlannerPolicy,
    Racks,
    ReplaceBroker,
    Selection,
    plan,
)
from ballast.core.planner.problem.ranges import ranges_of
from ballast.core.planner.report.page import page
from ballast.core.planner.report.summary import notes
from ballast.core.status import cluster_status
from ballast.core.wording import human_time
from ballast.daemon.context.figures import measure

GIB = 1 << 30
DISKS = (1.09, 0.91, 1.12, 0.88)
"""Disks as parts of the fair share: two between the range a plan aims at and the one that calls for a plan, two beyond."""


def a_cluster() -> ClusterState:
    """Four brokers, each with a hundred partitions of its own of one replica; sizes make the disks uneven."""
    brokers = tuple(
        Broker(i, rack="r", host="h", log_dirs=(LogDir("/d", 10_000 * GIB, 9_000 * GIB),), log_dirs_known=True)
        for i in (1, 2, 3, 4)
    )
    rows = [
        PartitionRow("t", (b - 1) * 100 + n, b, (b,), (b,), sizes=(round(part * GIB),))
        for b, part in enumerate(DISKS, 1)
        for n in range(100)
    ]
    return build("c", brokers, (Topic("t", min_isr=1),), rows)


@pytest.mark.parametrize("intent", [Balance(), Leaders()], ids=lambda i: i.words)
def test_the_page_the_plan_and_the_report_count_the_same_brokers(intent: Intent) -> None:
    """Out of range is out of the range that calls for a plan: not of the narrower one that a plan aims at; whatever a plan may move."""
    state, policy = a_cluster(), PlannerPolicy()
    found = {r.resource: r.outside for r in ranges_of(state, Loads.from_state(state), policy)}
    assert found["disk"] == (3, 4)
    shown = {r.resource: r.brokers_out_of_range for r in measure(state, threshold_percent=10).ranges}
    assert shown == found
    made = plan(state, intent, policy=policy)
    told = {r["name"]: r["before"]["out_of_range"] for r in made.summary["resources"]}
    assert told == {name: len(brokers) for name, brokers in found.items()}


def with_a_new_broker() -> ClusterState:
    """The same, and a fifth broker that holds nothing; broker 4 holds a third of before, less than its share with five."""
    state = a_cluster()
    fifth = Broker(5, rack="r", host="h", log_dirs=state.brokers[0].log_dirs, log_dirs_known=True)
    led = zip(state.partitions.leader.tolist(), state.partitions.size_bytes.tolist(), strict=True)
    kept = [(b, size) for n, (b, size) in enumerate(led) if b != 4 or n % 3 == 0]
    rows = [PartitionRow("t", n, b, (b,), (b,), sizes=(size,)) for n, (b, size) in enumerate(kept)]
    return build("c", (*state.brokers, fifth), state.topics, rows)


@pytest.mark.parametrize(
    "intent",
    [
        Balance(),
        Expand(brokers=frozenset({5})),
        Decommission(brokers=frozenset({1})),
        Evacuate(brokers=frozenset({2})),
        ReplaceBroker(old=3, new=5),
        ChangeReplicationFactor(to=2, selection=Selection(topics="t")),
        Place(selection=Selection(topics="t")),
        Racks(),
    ],
    ids=lambda i: i.words,
)
def test_a_plan_tells_of_now_what_status_tells(intent: Intent) -> None:
    """Whatever the plan will change of the brokers' shares: the same brokers are out of range in the same moment."""
    state, policy = with_a_new_broker(), PlannerPolicy()
    found = {r.resource: r for r in cluster_status(state).ranges}
    assert {4, 5} <= set(found["disk"].outside)
    told = {r["name"]: r for r in plan(state, intent, policy=policy).summary["resources"]}
    assert {name: r["before"]["out_of_range"] for name, r in told.items()} == {
        n: len(r.outside) for n, r in found.items()
    }


def test_a_filled_broker_is_in_range_by_what_status_shows_then() -> None:
    """Its share is that of ``status``, so that nothing that it was given would have to leave it again."""
    state = with_a_new_broker()
    made = plan(state, Expand(brokers=frozenset({5})))
    (told,) = (b for b in made.summary["brokers"] if b["broker"] == 5)
    found = {r.resource: r for r in ranges_of(moved(state, made), Loads.from_state(state), PlannerPolicy())}
    after = {r["name"]: r["after"]["out_of_range"] for r in made.summary["resources"]}
    assert after == {name: len(r.outside) for name, r in found.items()}
    for name, r in found.items():
        assert not r.shares[5].outside, name
        assert (told["after"][name], told["share"][name]) == (r.shares[5].load, round(r.shares[5].fair))


def test_only_shares_that_a_plan_changes_are_told_apart() -> None:
    """A broker that is emptied leaves its share to the others; one that is filled had its own all the time."""
    state = with_a_new_broker()
    for intent, change in (
        (Balance(), False),
        (Expand(brokers=frozenset({5})), False),
        (Decommission(brokers=frozenset({1})), True),
    ):
        resources = plan(state, intent).summary["resources"]
        assert {r["shares_change"] for r in resources} == {change}
        assert any("Before" in line for line in notes(resources)) == change


def test_the_report_paints_what_its_table_counts() -> None:
    """As many bars in the colour of warning as brokers in the column out of range, resource by resource."""
    state = a_cluster()
    stays = plan(state, Balance(), policy=PlannerPolicy(max_bytes=0))
    html = page(stays, rate_bytes_per_s=1)
    counted = [r["after"]["out_of_range"] for r in stays.summary["resources"]]
    charts = re.findall(r"<figure.*?</figure>", html, re.DOTALL)
    assert sum(counted) > 0
    assert [chart.count('class="out"') for chart in charts] == counted


def test_the_report_and_the_command_tell_the_same_time() -> None:
    """A few bytes take about a second in both, and never none at all."""
    made = plan(a_cluster(), Balance(), policy=PlannerPolicy())
    rate = 1 << 50
    assert human_time(0.2) == "1 s"
    assert f"<b>{human_time(0.2)}</b>" in page(made, rate_bytes_per_s=rate)
    assert any(human_time(0.2) in line for line in cost_lines(made, rate))


def test_an_empty_cluster_needs_no_plan_of_any_kind() -> None:
    """Without a partition there is nothing to move, to repair or to lead."""
    empty = build("c", a_cluster().brokers, (), [])
    for intent in (Balance(), Leaders(), Racks(), Evacuate(brokers=frozenset({3}))):
        assert plan(empty, intent).status == "nothing-to-do"
    assert measure(empty, threshold_percent=10).ranges == ()


def with_internal_topics(*, size: int) -> ClusterState:
    """Five brokers that share 60 partitions of data evenly, and ten of Kafka's own, all on three of them."""
    brokers = tuple(Broker(i, rack="r", host="h") for i in (1, 2, 3, 4, 5))
    data = [
        PartitionRow("orders", n, a := 1 + n % 5, (a, b := 1 + (n + 1) % 5), (a, b), sizes=(GIB,) * 2)
        for n in range(60)
    ]
    own = [
        PartitionRow(
            "__consumer_offsets", n, a := 1 + n % 3, (a, 1 + (n + 1) % 3, 1 + (n + 2) % 3), (1, 2, 3), sizes=(size,) * 3
        )
        for n in range(10)
    ]
    return build("c", brokers, (Topic("__consumer_offsets", internal=True), Topic("orders")), own + data)


def test_empty_partitions_are_worth_no_move() -> None:
    """A cluster whose data is even is balanced, wherever Kafka has put its empty partitions; with data in them it is not."""
    state = with_internal_topics(size=0)
    assert [r.outside for r in ranges_of(state, Loads.from_state(state), PlannerPolicy())] == [(), (), ()]
    assert plan(state, Balance()).is_empty
    assert not plan(with_internal_topics(size=GIB // 2), Balance()).is_empty


def test_wider_ranges_are_told_as_they_are() -> None:
    """One tolerance in the page, the plan and the report: that of data, and the part of the count that is empty."""
    state = with_internal_topics(size=0)
    found = {r.resource: r.tolerance for r in ranges_of(state, Loads.from_state(state), PlannerPolicy())}
    assert found["disk"] == PlannerPolicy().trigger
    assert found["replicas"] == PlannerPolicy().trigger + 30 / 150
    told = {r["name"]: r["range"] for r in plan(state, Balance()).summary["resources"]}
    assert told == found


def test_a_cluster_without_data_is_balanced_by_counts() -> None:
    """Where everything is empty nothing weighs less than the rest, and the usual range holds."""
    state = a_cluster()
    empty = Loads.from_state(state)
    nothing = replace(empty, size_bytes=empty.size_bytes * 0)
    assert {r.tolerance for r in ranges_of(state, nothing, PlannerPolicy()) if not r.unit} == {PlannerPolicy().trigger}


def test_a_plan_names_the_brokers_that_do_not_answer() -> None:
    """Killed a moment ago, and still alive to the cluster: the plan counts on it, and says so."""
    state = a_cluster()
    silent = replace(state, brokers=tuple(replace(b, reachable=b.id != 3) for b in state.brokers))
    assert not [a for a in plan(state, Balance()).assumptions if "roker 3" in a]
    assert [a for a in plan(silent, Balance()).assumptions if a.startswith("Broker 3 does not answer")]

"""Clusters as rows, and what-ifs planned from rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.fleets import member

from ballast.adapters.samples.store import table_url
from ballast.cli.commands.fleet.page import page
from ballast.cli.commands.fleet.view import document, show
from ballast.core.cluster import (
    NO_LEADERSHIP_RECORD,
    STORAGE_ERROR,
    UNKNOWN,
    Broker,
    LogDir,
    PartitionRow,
    Topic,
    build,
)
from ballast.core.plan.fingerprint import fingerprint
from ballast.core.planner import Balance, plan
from ballast.core.what_if import (
    POLICY,
    Member,
    Traffic,
    days_to_full,
    digest,
    lose_brokers,
    offline,
    room,
    under_min_isr,
    with_brokers,
)
from ballast.errors import UsageError
from ballast.pipeline.fleet_job import plans
from ballast.pipeline.fleet_rows import from_row, plan_row, to_batch
from ballast.pipeline.fleet_store import FleetReport, append_snapshots, maintain_readings
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.schemas import FLEET_SNAPSHOT


def answers(members: Iterable[Member], scenarios: dict[str, str]) -> list[dict[str, Any]]:
    """The rows that a worker makes of a batch of questions."""
    asked = [(to_batch(m), kind, subject) for m in members for kind, subject in scenarios.items()]
    batches = [
        pa.RecordBatch.from_arrays(
            [*row.columns, pa.array([kind]), pa.array([subject])], names=[*row.schema.names, "scenario", "subject"]
        )
        for row, kind, subject in asked
    ]
    return [found for part in plans(batches) for found in part.to_pylist()]


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.booleans())
def test_a_cluster_survives_its_row(seed: int, traffic: bool) -> None:  # noqa: FBT001
    """What a plan depends on is the same after a round trip: the same fingerprint, loads and plan."""
    before = member(seed, traffic=traffic)
    after = from_row(to_batch(before), 0)
    assert fingerprint(after.state) == fingerprint(before.state)
    assert after.name == before.name
    assert after.state.brokers == tuple(
        Broker(b.id, rack=b.rack, log_dirs=b.log_dirs, log_dirs_known=True) for b in before.state.brokers
    )
    np.testing.assert_array_equal(after.loads.size_bytes, before.loads.size_bytes)
    np.testing.assert_array_equal(after.loads.bytes_in_per_s, before.loads.bytes_in_per_s)


def test_what_a_cluster_did_not_tell_is_null_in_its_row_and_unknown_behind_it() -> None:
    """As in every table: a query that sums sizes must not subtract a byte for each of them."""
    brokers = (Broker(1, log_dirs=(LogDir("/d", UNKNOWN, UNKNOWN),), log_dirs_known=True),)
    row = PartitionRow("t", 0, NO_LEADERSHIP_RECORD, (1,), (1,), sizes=(UNKNOWN,), log_dirs=(0,))
    state = build("c", brokers, (Topic("t", min_isr=UNKNOWN),), [row], taken_at_ms=5)
    batch = to_batch(Member("c", state, None))
    (found,) = batch.to_pylist()
    assert [found[name] for name in ("min_isr", "leader", "size_bytes")] == [[None]] * 3
    assert found["brokers"][0]["dirs"][0]["total_bytes"] is None
    again = from_row(batch, 0).state
    assert (again.topics, again.brokers[0].log_dirs) == (state.topics, state.brokers[0].log_dirs)
    assert (again.partitions.leader.tolist(), again.partitions.size_bytes.tolist()) == (
        [NO_LEADERSHIP_RECORD],
        [UNKNOWN],
    )


def test_a_failed_log_dir_is_in_the_row_of_its_cluster_its_plan_and_the_report() -> None:
    """With Kafka's error and what is offline for it; the disks that work are counted, and new brokers have none that failed."""
    whole, m = member(8), member(8)
    first, *others = m.state.brokers
    failed = LogDir("/failed", error=STORAGE_ERROR)
    brokers = (replace(first, log_dirs=(*first.log_dirs, failed)), *others)
    lost = (m.state.partitions.replica == first.id) & (np.arange(len(m.state.partitions.replica)) % 2 == 0)
    state = replace(m.state, brokers=brokers, partitions=replace(m.state.partitions, offline=lost))
    again = from_row(to_batch(Member(m.name, state)), 0).state
    assert again.brokers[0].log_dirs == brokers[0].log_dirs
    np.testing.assert_array_equal(again.partitions.offline, lost)
    rows = answers([Member(m.name, state), replace(whole, name="whole")], {"balance": "", "add-brokers": "1"})
    error = {"broker": first.id, "path": "/failed", "error": STORAGE_ERROR, "offline_replicas": int(lost.sum())}
    assert [r["log_dir_errors"] for r in rows] == [[error]] * 2 + [[]] * 2
    assert [r["disk_full_before"] for r in rows[:2]] == [r["disk_full_before"] for r in rows[2:]] != [None, None]
    report = FleetReport(rows)
    text = page(report, made_at="2026-11-21")
    assert section(text, "Log dirs with errors") == [
        [m.name, str(first.id), "/failed", STORAGE_ERROR, f"{lost.sum():,}"]
    ]
    assert [line[0] for line in section(text, "Clusters")] == [m.name, "whole"], "the worse one comes first"
    told: list[str] = []
    show(report, told.append)
    assert [m.name in line for line in told if "/failed" in line] == [True]
    assert [asdict(e) for e in document(report).plans[0].log_dir_errors] == [error]
    grown, new = with_brokers(state, 1)
    assert all(d.error is None for b in grown.brokers if b.id in new for d in b.log_dirs)


def test_a_plan_s_status_says_what_it_would_do_and_not_that_it_was_executed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The same words for people and for programs."""
    row = plan_row(member(3), "balance", "")
    assert row["status"] == "meets-all-goals"
    report = FleetReport([row])
    assert section(page(report, made_at="2026-11-21"), "Clusters")[0][-1] == "meets all goals"
    show(report, print)
    assert "meets all goals" in " ".join(capsys.readouterr().out.split())


def test_plans_of_a_worker_are_the_plans_made_one_by_one() -> None:
    """A row's plan is the core planner's own for that cluster."""
    members = [member(seed, traffic=seed % 2 == 0) for seed in range(4)]
    found = answers(members, {"balance": ""})
    alone = {m.name: digest(plan(m.state, Balance(), loads=m.loads, policy=POLICY)) for m in members}
    assert {r["name"]: r["digest"] for r in found} == alone
    assert any(r["moves"] > 0 for r in found)


def test_old_readings_are_forgotten_but_each_cluster_s_newest_stays(tmp_path: Path) -> None:
    """Whatever a cluster is called; and what stays is a row group of its own, as it was written."""
    now = datetime(2026, 11, 21, tzinfo=UTC)

    def reading(name: str, days_ago: int) -> Member:
        taken_at_ms = int((now - timedelta(days=days_ago)).timestamp() * 1000)
        return Member(name, replace(member(1).state, taken_at_ms=taken_at_ms), None)

    append_snapshots(str(tmp_path), [reading("alive", 41), reading("ali's", 50), reading("gone", 40)])
    append_snapshots(str(tmp_path), [reading("alive", 34), reading("alive", 0), reading("ali's", 44)])
    url, policy = table_url(str(tmp_path), FLEET_SNAPSHOT.name), PipelinePolicy(readings_retention_days=35)
    for _ in range(2):
        maintain_readings(str(tmp_path), policy, now=now)
        left = DeltaTable(url).to_pyarrow_table(columns=["name", "taken_at"]).to_pylist()
        days = sorted((r["name"], (now - r["taken_at"]).days) for r in left)
        assert days == [("ali's", 44), ("alive", 0), ("alive", 34), ("gone", 40)]
    groups = [pq.ParquetFile(file).num_row_groups for file in DeltaTable(url).file_uris()]
    assert sum(groups) == 4


def test_a_lost_broker_shows_what_it_takes_along() -> None:
    """A partition whose only replica was there is offline; one below its min ISR is counted; the plan restores copies."""
    brokers = tuple(Broker(i, rack=f"r{i}", host="h", port=1) for i in (1, 2, 3))
    rows = [
        PartitionRow("t", 0, 1, (1,), (1,), sizes=(100,)),
        PartitionRow("t", 1, 1, (1, 2), (1, 2), sizes=(100, 100)),
        PartitionRow("t", 2, 2, (2, 3), (2, 3), sizes=(100, 100)),
    ]
    state = build("c", brokers, (Topic("t", min_isr=2),), rows)
    lost = lose_brokers(state, frozenset({1}))
    assert (offline(lost), under_min_isr(lost)) == (1, 2)
    assert lost.partitions.leader.tolist() == [-1, 2, 2]
    row = plan_row(Member("c", state), "lose-broker", "1")
    assert row["offline"] == 1
    assert row["bytes_moved"] == 100, "the copy of partition 1 is restored; nothing is left of partition 0 to copy"


def test_new_brokers_are_spread_over_racks_and_filled() -> None:
    """Three more brokers go one to a rack, and the plan moves data onto them alone."""
    m = member(3)
    state, new = with_brokers(m.state, 3)
    assert sorted(new) == [7, 8, 9]
    assert {state.broker(b).rack for b in new} == {"r0", "r1", "r2"}  # type: ignore[union-attr]
    row = plan_row(m, "add-brokers", "3")
    assert row["status"] in {"meets-all-goals", "misses-some-goals"}
    assert row["bytes_moved"] > 0


def test_growth_and_days_to_full_come_from_the_history() -> None:
    """600 GB free and 100 GB a day on the fastest broker last six days; without a history nothing is claimed."""
    m = member(5, brokers=3, partitions=3)
    p = m.state.partitions
    growth = np.zeros(3)
    growth[0] = 10**11
    known = Member(m.name, m.state, Traffic(np.zeros(3, np.int64), np.zeros(3, np.int64), growth))
    assert days_to_full(known) == pytest.approx(6.0)
    assert days_to_full(m) is None
    assert len(p) == 3


def test_the_room_of_a_cluster_is_that_of_its_live_brokers_and_growth_counts_each_replica() -> None:
    """Three disks of a terabyte, 600 GB free on each; a gigabyte a day of a partition with two replicas is two."""
    m = member(5, brokers=3, partitions=3)
    growth = np.array([10.0**9, 0, -(10**8)])
    known = Member(m.name, m.state, Traffic(np.zeros(3, np.int64), np.zeros(3, np.int64), growth))
    assert room(known) == {
        "disk_bytes": 3 * 10**12,
        "disk_free_bytes": 18 * 10**11,
        "growth_bytes_per_day": 2 * 9 * 10**8,
        "growth_unknown": 0,
    }
    assert room(Member(m.name, lose_brokers(m.state, frozenset({1}))))["disk_bytes"] == 2 * 10**12
    assert room(m)["growth_bytes_per_day"] is None
    assert room(m)["growth_unknown"] == 3


def test_unknown_growth_is_told_and_never_zero() -> None:
    """One cluster has no load model, one lacks the growth of two partitions, one shrinks: no cell says 0 B for want of a figure."""
    zero = np.zeros(3, np.int64)
    bare, part, less = (member(seed, brokers=3, partitions=3) for seed in (5, 6, 7))
    part = Member(part.name, part.state, Traffic(zero, zero, np.array([10**9, np.nan, np.nan])))
    less = Member(less.name, less.state, Traffic(zero, zero, np.array([-(10.0**9), 0, 0])))
    text = page(FleetReport([plan_row(m, "balance", "") for m in (bare, part, less)]), made_at="2026-11-21")
    gained = {line[0]: line[2] for line in section(text, "Capacity by quarter")}
    assert gained == {"cluster-5": "-", "cluster-6": "169.5 GiB", "cluster-7": "-169.5 GiB", "all 3": "0 B"}
    assert "cluster-6 (2 of 3 partitions)" in text
    alone = page(FleetReport([plan_row(bare, "balance", "")]), made_at="2026-11-21")
    assert [line[2] for line in section(alone, "Capacity by quarter")] == ["-", "-"]
    assert {tuple(line[4:]) for line in section(alone, "Capacity by quarter")} == {("-",) * 4}, "nothing is foretold"
    lines = {line[0]: line[4:] for line in section(text, "Capacity by quarter")}
    assert [all(c.startswith("≥ ") for c in lines[name]) for name in ("cluster-6", "cluster-7", "all 3")] == [1, 0, 1]
    grow = page(FleetReport([plan_row(bare, kind, "90") for kind in ("balance", "grow")]), made_at="2026-11-21")
    assert section(grow, "Looking ahead")[0][3:] == ["-"] * 4


def test_a_cluster_that_could_not_be_planned_keeps_what_is_known_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is offline is told, what a plan would move is not, and no figure is a zero for want of a plan."""

    def fail(*_: Any, **__: Any) -> Any:
        raise UsageError("no plan")

    m = member(8)
    lost = Member(m.name, lose_brokers(lose_brokers(m.state, frozenset({1})), frozenset({2})))
    found = plan_row(lost, "balance", "")
    monkeypatch.setattr("ballast.core.what_if.scenarios.make_plan", fail)
    failed = plan_row(lost, "balance", "")
    assert failed["status"] == "not-planned"
    assert failed["offline"] == found["offline"] > 0
    assert failed["under_min_isr"] == found["under_min_isr"]
    assert failed["moves"] is failed["bytes_moved"] is None
    text = page(FleetReport([failed]), made_at="2026-11-21")
    assert section(text, "Clusters")[0][10:13] == ["-", "-", "-"]
    assert plan_row(m, "add-brokers", "0")["offline"] is None, "there is no such cluster to count in"


def test_a_min_isr_that_one_topic_does_not_tell_is_not_zero() -> None:
    """As soon as a partition of it lacks a replica the count is unknown; before, none of it can be under its minimum."""
    brokers = tuple(Broker(i, host="h", port=1) for i in (1, 2, 3))
    rows = [PartitionRow("told", 0, 1, (1, 2), (1, 2)), PartitionRow("untold", 0, 3, (2, 3), (2, 3))]
    state = build("c", brokers, (Topic("told", min_isr=2), Topic("untold")), rows)
    assert under_min_isr(state) == 0
    assert under_min_isr(lose_brokers(state, frozenset({1}))) == 1
    assert under_min_isr(lose_brokers(state, frozenset({2}))) is None


def test_a_min_isr_that_no_topic_tells_is_not_kept() -> None:
    """Settings that may not be read: nothing is said to be above or under its min ISR."""
    m = member(8)
    silent = replace(m.state, topics=tuple(replace(t, min_isr=UNKNOWN) for t in m.state.topics))
    row = plan_row(Member(m.name, silent), "balance", "")
    assert row["under_min_isr"] is None
    assert section(page(FleetReport([row]), made_at="2026-11-21"), "Clusters")[0][4] == "-"


def rows_of_a_fleet() -> list[dict[str, Any]]:
    """Two clusters planned under every scenario; only one has a history, and is full in two quarters."""
    growth = np.full(40, 10.0**8)
    slow, grown = member(1, brokers=3), member(2, brokers=3)
    grown = Member("<b>grown</b>", grown.state, Traffic(np.zeros(40, np.int64), np.zeros(40, np.int64), growth))
    asked = {"balance": "", "lose-broker": "", "lose-rack": "", "grow": "90", "add-brokers": "1", "change-rf": "3"}
    return [
        plan_row(m, kind, subject)
        for m in (slow, grown)
        for kind, argument in asked.items()
        for subject in (
            [str(b.id) for b in m.state.brokers]
            if kind == "lose-broker"
            else ["r0", "r1", "r2"]
            if kind == "lose-rack"
            else [argument]
        )
    ]


def section(text: str, title: str) -> list[list[str]]:
    """The cells of a section's table, line by line, as a reader sees them."""
    part = text.partition(f"<h2>{title}</h2>")[2].partition("</table>")[0].partition("<tbody>")[2]
    return [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall("<td>(.*?)</td>", line)]
        for line in part.split("</tr>")[:-1]
    ]


def test_the_report_ranks_tells_losses_and_capacity_by_quarter() -> None:
    """Everything that a fleet's owner asks, from rows alone; names are text and never markup."""
    text = page(FleetReport(rows_of_a_fleet()), made_at="2026-11-21")
    assert [line[0] for line in section(text, "Clusters")] == ["&lt;b&gt;grown&lt;/b&gt;", "cluster-1"], (
        "full soonest first"
    )
    losses = section(text, "Failure scenarios")
    assert {line[1] for line in losses} == {f"broker {n}" for n in (1, 2, 3)} | {f"rack r{n}" for n in (0, 1, 2)}
    assert len(losses) == 12
    # 80 replicas at 100 MB a day are 728 GB a quarter, on three terabytes that are 40 % full.
    grown, still, both = section(text, "Capacity by quarter")
    assert grown[3:] == ["40 %", "64 %", "89 %", "113 %", "137 %"]
    assert still[2:] == ["-", "40 %", *["-"] * 4]
    assert both[0] == "all 2"
    assert both[3:] == ["40 %", "≥ 52 %", "≥ 64 %", "≥ 76 %", "≥ 89 %"]
    assert section(text, "Looking ahead")[0][0].endswith("grown&lt;/b&gt;")
    assert {line[1] for line in section(text, "What if")} == {"1 more brokers", "replication factor 3"}


def test_the_fullest_disk_is_per_cent_of_the_disk() -> None:
    """Of 1,000 bytes the fullest broker uses 900, other data included; the plan takes some of it; unknown is not zero."""
    brokers = tuple(
        Broker(i, host="h", port=1, log_dirs=(LogDir("/d", 1000, 1000 - used),), log_dirs_known=True)
        for i, used in ((1, 900), (2, 100))
    )
    rows = [PartitionRow("t", n, 1, (1,), (1,), sizes=(100,), log_dirs=(0,)) for n in range(8)]
    state = build("c", brokers, (Topic("t", min_isr=1),), rows)
    row = plan_row(Member("c", state), "balance", "")
    assert row["disk_full_before"] == 0.9
    assert row["bytes_moved"] > 0
    assert row["disk_full_after"] == max(900 - row["bytes_moved"], 100 + row["bytes_moved"]) / 1000
    text = page(FleetReport([row]), made_at="2026-11-21")
    assert section(text, "Clusters")[0][6] == "90 %"
    assert (row["bytes_stored"], row["sizes_unknown"]) == (800, 0)
    assert ", 800 B stored." in text
    rows[0].sizes = (UNKNOWN,)
    untold = plan_row(Member("c", build("c", brokers, (Topic("t", min_isr=1),), rows)), "balance", "")
    assert (untold["bytes_stored"], untold["sizes_unknown"]) == (700, 1)
    assert ", at least 700 B stored." in page(FleetReport([untold]), made_at="2026-11-21")
    grown = Member("c", state, Traffic(np.zeros(8, np.int64), np.zeros(8, np.int64), np.ones(8)))
    assert plan_row(grown, "grow", "10")["disk_full_before"] == 0.98
    silent = replace(state, brokers=tuple(replace(b, log_dirs=(LogDir("/d"),)) for b in brokers))
    assert plan_row(Member("c", silent), "balance", "")["disk_full_before"] is None


def test_a_scenario_that_cannot_be_is_a_row_that_says_so() -> None:
    """More replicas than brokers: the row failed or is infeasible, with the reason, and the others are planned."""
    found = answers([member(1), member(2)], {"change-rf": "9", "balance": ""})
    assert [r["status"] in {"not-planned", "no-plan-found"} for r in found] == [True, False, True, False]
    assert all(r["detail"] for r in found if r["scenario"] == "change-rf")

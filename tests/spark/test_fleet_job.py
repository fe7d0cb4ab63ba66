"""Fleets through Spark: the plans are those that the planner makes one by one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.spark.fleets import member

from ballast.cli.commands.fleet.page import page
from ballast.core.planner import Balance, plan
from ballast.core.what_if import POLICY, Member, digest
from ballast.errors import Refused, UsageError
from ballast.pipeline.fleet_job import parse_scenarios, plan_fleet
from ballast.pipeline.fleet_rows import moment
from ballast.pipeline.fleet_store import FleetReport, append_snapshots, read_plans
from ballast.pipeline.tables import SparkTables

pytestmark = pytest.mark.spark


def test_a_fleet_planned_in_spark_is_the_fleet_planned_one_by_one(spark: Any, store: str) -> None:
    """Every cluster's newest reading under every scenario, in one job, with the digests of the plans made alone."""
    members = [member(seed, traffic=seed % 2 == 0) for seed in range(5)]
    older = Member(members[0].name, replace(member(99).state, taken_at_ms=1))
    append_snapshots(store, [older])
    append_snapshots(store, members)
    rows = plan_fleet(
        SparkTables(lambda: spark, store), parse_scenarios(("balance", "lose-broker", "lose-rack", "add-brokers=2"))
    )
    found = read_plans(store)
    assert rows == len(found) == 5 * (1 + 6 + 3 + 1)
    asked = [(r["scenario"], r["subject"]) for r in found if r["name"] == members[0].name]
    lost = [("lose-broker", str(b)) for b in range(1, 7)] + [("lose-rack", f"r{n}") for n in range(3)]
    assert sorted(asked) == sorted([("balance", ""), ("add-brokers", "2"), *lost])
    assert {r["taken_at"] for r in found} == {moment(members[0].state.taken_at_ms)}, "the newest reading of each"
    balance = {r["name"]: r["digest"] for r in found if r["scenario"] == "balance"}
    assert balance == {m.name: digest(plan(m.state, Balance(), loads=m.loads, policy=POLICY)) for m in members}
    text = page(FleetReport(found), made_at="2026-11-21")
    assert all(m.name in text for m in members)
    assert "<script" not in text
    assert "http" not in text


def test_two_first_plans_at_once_leave_every_plan_once(spark: Any, store: str) -> None:
    """Neither finds a table: each ends well or is refused in a sentence, and no row is there twice."""
    append_snapshots(store, [member(seed) for seed in range(2)])

    def one(_: int) -> object:
        try:
            return plan_fleet(SparkTables(lambda: spark, store), {"balance": ""})
        except Refused as refused:
            return refused

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(one, range(2)))
    assert 2 in ends, ends
    assert sorted(r["name"] for r in read_plans(store)) == sorted(member(seed).name for seed in range(2))


def test_an_empty_store_says_what_to_do(spark: Any, tmp_path: Path) -> None:
    """Planning before collecting is a sentence."""
    with pytest.raises(UsageError, match="collect"):
        plan_fleet(SparkTables(lambda: spark, str(tmp_path)), {"balance": ""})


@pytest.mark.parametrize("text", ["lose-brokers", "add-brokers", "add-brokers=x", "grow=0", "balance=3"])
def test_scenarios_that_mean_nothing_are_refused(text: str) -> None:
    """Each with one sentence."""
    with pytest.raises(UsageError):
        parse_scenarios((text,))

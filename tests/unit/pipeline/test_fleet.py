"""Clusters as rows, and what-ifs planned from rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.fleets import member

from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.fingerprint import fingerprint
from ballast.core.planner import Level, plan
from ballast.pipeline.fleet_rows import Member, Traffic, from_row, to_batch
from ballast.pipeline.scenarios import (
    POLICY,
    days_to_full,
    digest,
    fold_fleet,
    offline,
    planned,
    subjects,
    under_min_isr,
    with_brokers,
    without,
)


def with_scenarios(members: list[Member], scenarios: list[tuple[str, str]]) -> Any:
    """Rows as the transform hands them to the fold."""
    table = pa.Table.from_batches([to_batch(m) for m in members for _ in scenarios])
    table = table.append_column("scenario", pa.array([k for _ in members for k, _ in scenarios]))
    return table.append_column("subject", pa.array([s for _ in members for _, s in scenarios]))


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


def test_plans_from_rows_are_the_plans_made_one_by_one() -> None:
    """Whatever the batch, each row's plan is the core planner's own for that cluster."""
    members = [member(seed, traffic=seed % 2 == 0) for seed in range(4)]
    rows = with_scenarios(members, [("level", "")])
    for size in (1, 3, 10):
        found = [r for part in fold_fleet(rows.to_batches(size)) for r in part.to_pylist()]
        alone = [digest(plan(m.state, Level(), loads=m.loads, policy=POLICY)) for m in members]
        assert [r["digest"] for r in found] == alone
        assert any(r["moves"] > 0 for r in found)


def test_a_lost_broker_shows_what_it_takes_along() -> None:
    """A partition whose only replica was there is offline; one below its min ISR is counted; the plan restores copies."""
    brokers = tuple(Broker(i, rack=f"r{i}", host="h", port=1) for i in (1, 2, 3))
    rows = [
        PartitionRow("t", 0, 1, (1,), (1,), sizes=(100,)),
        PartitionRow("t", 1, 1, (1, 2), (1, 2), sizes=(100, 100)),
        PartitionRow("t", 2, 2, (2, 3), (2, 3), sizes=(100, 100)),
    ]
    state = build("c", brokers, (Topic("t", min_isr=2),), rows)
    lost = without(state, frozenset({1}))
    assert (offline(lost), under_min_isr(lost)) == (1, 2)
    assert lost.partitions.leader.tolist() == [-1, 2, 2]
    row = planned(Member("c", state), "lose-broker", "1")
    assert row["offline"] == 1
    assert row["bytes_moved"] == 100, "the copy of partition 1 is restored; nothing is left of partition 0 to copy"


def test_new_brokers_are_spread_over_racks_and_filled() -> None:
    """Three more brokers go one to a rack, and the plan moves data onto them alone."""
    m = member(3)
    state, new = with_brokers(m.state, 3)
    assert sorted(new) == [7, 8, 9]
    assert {state.broker(b).rack for b in new} == {"r0", "r1", "r2"}  # type: ignore[union-attr]
    row = planned(m, "add-brokers", "3")
    assert row["status"] in {"complete", "partial"}
    assert row["bytes_moved"] > 0


def test_growth_and_days_to_full_come_from_the_history() -> None:
    """600 GB free and 100 GB a day on the fastest broker last six days; without a history nothing is claimed."""
    m = member(5, brokers=3, partitions=3)
    p = m.state.partitions
    growth = np.zeros(3, np.int64)
    growth[0] = 10**11
    known = Member(m.name, m.state, Traffic(np.zeros(3, np.int64), np.zeros(3, np.int64), growth))
    assert days_to_full(known) == pytest.approx(6.0)
    assert days_to_full(m) is None
    assert len(p) == 3


def test_a_scenario_that_cannot_be_is_a_row_that_says_so() -> None:
    """More replicas than brokers: the row failed or is infeasible, with the reason, and the others are planned."""
    rows = with_scenarios([member(1), member(2)], [("change-rf", "9"), ("level", "")])
    found = [r for part in fold_fleet(rows.to_batches(2)) for r in part.to_pylist()]
    assert [r["status"] in {"failed", "infeasible"} for r in found] == [True, False, True, False]
    assert all(r["detail"] for r in found if r["scenario"] == "change-rf")


def test_each_broker_and_each_rack_is_a_subject() -> None:
    """Scenarios that lose something are asked once for each thing that can be lost."""
    assert subjects(member(1), "lose-broker") == ["1", "2", "3", "4", "5", "6"]
    assert subjects(member(1), "lose-rack") == ["r0", "r1", "r2"]
    assert subjects(member(1), "grow", "90") == ["90"]

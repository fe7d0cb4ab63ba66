"""A plan that copies a partition of unknown size: its bytes are unknown wherever they are told or judged by."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.plan import Move, Plan, file
from ballast.core.wording import human_bytes, human_total
from ballast.daemon.acting.run_views import run_view
from ballast.daemon.context.view import View
from ballast.daemon.metrics.gauges import GAUGES
from ballast.daemon.planning.bounds import list_objections
from ballast.daemon.policy import RepairPolicy
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, new_run

KNOWN, UNKNOWN = Move("t", 0, (1,), (2,), 70), Move("t", 1, (1,), (2,))
STATE = build(
    "c",
    tuple(Broker(b, host="h") for b in (1, 2)),
    (Topic("t"),),
    [PartitionRow("t", n, 1, (1,), (1,)) for n in (0, 1)],
)


def plan(*moves: Move) -> Plan:
    """A plan of these moves."""
    return Plan("repair", "c", "", moves)


@pytest.mark.parametrize(
    ("moves", "most", "codes"),
    [
        pytest.param((KNOWN,), 100, [], id="within"),
        pytest.param((KNOWN,), 50, ["bytes"], id="over"),
        pytest.param((KNOWN, UNKNOWN), 100, ["unknown-bytes"], id="perhaps-over"),
        pytest.param((KNOWN, UNKNOWN), 50, ["bytes"], id="over-in-any-case"),
        pytest.param((KNOWN, UNKNOWN), None, [], id="no-bound"),
        pytest.param((replace(UNKNOWN, old=(2, 1), new=(1, 2)), KNOWN), 100, [], id="nothing-unknown-is-copied"),
    ],
)
def test_repair_of_unknown_size_is_not_within_a_bound_of_bytes(
    moves: tuple[Move, ...], most: int | None, codes: list[str]
) -> None:
    """It waits for a person, as one that copies more does."""
    found = list_objections(RepairPolicy(max_bytes=most), STATE, (), plan(*moves))
    assert [o.code for o in found] == codes


def test_the_bytes_of_a_plan_are_known_or_null() -> None:
    """In the plan's file and to programs; people read the least that they are."""
    both = plan(KNOWN, UNKNOWN)
    assert (both.known_bytes, both.unknown_sizes, plan(KNOWN).known_bytes) == (None, 1, 70)
    assert json.loads(file.dumps(both))["bytesMoved"] is None
    assert (human_total(70, 0), human_total(70, 1)) == ("70 B", "at least 70 B")
    assert "0" not in human_total(0, 1)
    assert human_bytes(None) == human_bytes(-1)


def test_bytes_left_of_a_run_are_absent_from_the_metrics_while_a_size_is_unknown() -> None:
    """0 would say that it is done."""
    (spec,) = (s for s in GAUGES if s.name == "ballast_run_bytes_left")
    runs = [new_run("r", plan(*moves), ExecutionPolicy(), Now(0, 0.0)) for moves in ((KNOWN,), (KNOWN, UNKNOWN))]
    assert [list(spec.samples(View(run=run_view(run)))) for run in runs] == [[((), 70.0)], []]

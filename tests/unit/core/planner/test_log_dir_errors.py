"""A plan for a cluster with failed log dirs names them, whatever was asked for and however it is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tests.unit.core.planner.clusters import cluster

from ballast.cli.commands.plan.command import plan as command
from ballast.core.cluster import ClusterState, LogDir
from ballast.core.leadership.plan import balance, leader_plan
from ballast.core.plan import LogDirError
from ballast.core.plan.file import loads
from ballast.core.plan.log_dirs import NAMED, warnings
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
from ballast.core.planner.report.page import page
from ballast.core.planner.request import dump_request, load_request
from ballast.core.snapshot.file import Snapshot
from ballast.core.snapshot.file import dumps as dump_snapshot

WHOLE = LogDir("/whole", 100_000, 50_000)
FAILED = LogDir("/failed", error="KAFKA_STORAGE_ERROR")
OTHER = LogDir("/other", error="UNKNOWN_SERVER_ERROR")
EXIT_PENDING = 3
OFFLINE_OF_3 = Evacuate(brokers=frozenset({3}), offline_only=True)


def even(*dirs: LogDir) -> ClusterState:
    """Four brokers with the same of everything; broker 3 has these log dirs, and its replicas are offline if one failed."""
    state = cluster(*[(1, 2), (2, 3), (3, 4), (4, 1)] * 6, brokers=4)
    p = state.partitions
    brokers = tuple(replace(b, log_dirs=dirs if b.id == 3 else (WHOLE,)) for b in state.brokers)
    offline = (p.replica == 3) & any(d.failed for d in dirs)
    return replace(state, brokers=brokers, partitions=replace(p, offline=offline))


@pytest.mark.parametrize(
    "intent",
    [
        Balance(),
        Leaders(),
        Decommission(brokers=frozenset({1})),
        Evacuate(brokers=frozenset({4})),
        Expand(brokers=frozenset({2})),
        ReplaceBroker(old=1, new=2),
        ChangeReplicationFactor(to=2, selection=Selection(topics="t")),
        Place(selection=Selection(topics="t")),
        Racks(),
    ],
    ids=lambda i: i.words,
)
def test_every_plan_names_the_broker_the_log_dir_and_the_error(intent: Intent) -> None:
    """Those of a disk and those of another kind, with the replicas that are offline; the status stays that of what was asked."""
    made, well = (plan(even(*dirs), intent) for dirs in ((WHOLE, FAILED, OTHER), (WHOLE,)))
    assert made.log_dir_errors == (
        LogDirError(3, "/failed", "KAFKA_STORAGE_ERROR", 12),
        LogDirError(3, "/other", "UNKNOWN_SERVER_ERROR", 12),
    )
    assert well.log_dir_errors == ()
    assert (made.status, made.obstacles) == (well.status, well.obstacles)


def test_what_can_be_done_goes_by_the_error_and_the_plan() -> None:
    """A disk is replaced or its broker emptied, which needs no naming where the plan does it; any other error is looked up."""
    unhealthy = even(WHOLE, FAILED, OTHER)
    (disk, unknown) = (w.remedy for w in warnings(plan(unhealthy, Balance())))
    assert "ballast plan evacuate 3 --offline-only" in disk
    assert "evacuate" not in unknown
    for intent in (Decommission(brokers=frozenset({3})), OFFLINE_OF_3):
        done = [w.remedy for w in warnings(plan(unhealthy, intent))]
        assert not any("evacuate" in remedy for remedy in done)


def test_what_is_offline_is_rebuilt_and_the_other_replicas_of_the_broker_stay() -> None:
    """The broker takes no replica, since any of its disks may fail next; its plan can be made again from its file."""
    whole = even(WHOLE, FAILED)
    p = whole.partitions
    row = np.repeat(np.arange(len(p)), np.diff(p.start))
    state = replace(whole, partitions=replace(p, offline=p.offline & (row % 2 == 0)))
    lost = {str(state.name(r)) for r in row[state.partitions.offline].tolist()}
    made = plan(state, OFFLINE_OF_3)
    assert {str(m.name) for m in made.moves} == lost
    assert all(m.removing == (3,) and 3 not in m.new for m in made.moves)
    assert 0 < len(lost) < int((p.replica == 3).sum())
    assert made.status == "meets-all-goals"
    intent, policy, seed = load_request(json.loads(json.dumps(dump_request(OFFLINE_OF_3, PlannerPolicy(), 0))))
    assert plan(state, intent, policy=policy, seed=seed).moves == made.moves
    assert plan(even(WHOLE), OFFLINE_OF_3).status == "nothing-to-do"


def test_replica_list_changes_alone_name_them_too() -> None:
    """The plan of ``ballast plan leaders --minimize`` is executed like any other."""
    state = even(WHOLE, FAILED)
    assert leader_plan(state, balance(state, "counts")).log_dir_errors


def test_a_whole_shelf_of_failed_disks_is_counted() -> None:
    """The first ones by name, the others by number; the plan file has all."""
    made = plan(even(WHOLE, *(replace(FAILED, path=f"/d{n}") for n in range(NAMED + 5))), Balance())
    assert len(made.log_dir_errors) == NAMED + 5
    assert len(list(warnings(made))) == NAMED + 1


def asked(state: ClusterState, folder: Path, *words: str) -> Result:
    """The command, for this cluster."""
    file = folder / "snapshot.json"
    file.write_text(dump_snapshot(Snapshot(state, Loads.from_state(state))))
    return CliRunner().invoke(command, [*words, "--snapshot", str(file)], standalone_mode=False)


def test_the_command_tells_it_in_every_form_and_needs_attention(tmp_path: Path) -> None:
    """Also where nothing would move: text, JSON, report, Kafka's JSON, and 3 with ``--check``."""
    unhealthy, well = even(WHOLE, FAILED), even(WHOLE)
    html = tmp_path / "report.html"
    table = asked(unhealthy, tmp_path, "balance", "--check", "--report", str(html))
    assert table.return_value == EXIT_PENDING
    assert all(
        word in table.stdout for word in ("roker 3", "/failed", "KAFKA_STORAGE_ERROR", "evacuate 3 --offline-only")
    )
    assert all(
        word in html.read_text() for word in ("roker 3", "/failed", "KAFKA_STORAGE_ERROR", "evacuate 3 --offline-only")
    )
    document = asked(unhealthy, tmp_path, "balance", "--output", "json")
    assert loads(document.stdout).log_dir_errors == (LogDirError(3, "/failed", "KAFKA_STORAGE_ERROR", 12),)
    stock = asked(unhealthy, tmp_path, "balance", "--format", "kafka")
    assert json.loads(stock.stdout)["partitions"] == []
    assert "/failed" in stock.stderr
    assert "/failed" in asked(unhealthy, tmp_path, "balance", "--why", "t-0").stderr
    assert asked(well, tmp_path, "balance", "--check").return_value == 0
    assert page(plan(well, Balance()), rate_bytes_per_s=1).count("failed") == 0

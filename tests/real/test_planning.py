"""Plans made by the command from a real cluster, carried out there, and judged by what the cluster then says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.plan_file import loads
from ballast.sandbox import Sandbox, SandboxSpec
from ballast.sandbox.fill import Filling, fill
from ballast.wiring.cluster import OpenCluster, open_cluster

pytestmark = pytest.mark.kafka

DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple[Sandbox, OpenCluster]]:
    """Five brokers in three racks; the fifth is new and empty, and leaders have piled up on the first ones."""
    with Sandbox.up(SandboxSpec(brokers=5, racks=3)) as sandbox:
        fill(sandbox, Filling(topics=4, partitions=9, shape="newcomer", megabytes=12, prefix="orders"))
        fill(sandbox, Filling(topics=1, partitions=6, shape="one-rack", megabytes=3, prefix="cramped"))
        with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
            yield sandbox, opened


def planned(sandbox: Sandbox, *words: str) -> Plan:
    """``ballast plan …`` as a person runs it."""
    line = [sys.executable, "-m", "ballast", "plan", *words, "--output", "json", "-b", sandbox.bootstrap_server]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return loads(done.stdout)


def carried_out(opened: OpenCluster, plan: Plan) -> ClusterState:
    """Submit every move and election, and wait until the cluster shows it."""
    cluster = opened.cluster
    targets = {m.name: m.new for m in plan.moves}
    answers = cluster.alter_reassignments(targets, allow_replication_factor_change=plan.allow_replication_factor_change)
    assert all(a.ok for a in answers.values()), answers
    until = time.monotonic() + DEADLINE_S
    while cluster.reassignments() and time.monotonic() < until:
        time.sleep(0.2)
    cluster.elect_leaders([*plan.elections])
    while time.monotonic() < until:
        state = cluster.snapshot()
        placed = all(state.target(state.index[name]) == new for name, new in targets.items())
        led = all(state.partitions.leader[state.index[n]] == state.preferred[state.index[n]] for n in plan.elections)
        synced = bool((state.partitions.in_sync).all())
        if placed and led and synced and not state.moving.any():
            return state
        time.sleep(0.2)
    raise AssertionError("the cluster did not take the plan on in time")


def test_every_intent_ends_as_it_promised(scene: tuple[Sandbox, OpenCluster]) -> None:
    """One cluster through its life: racks repaired, levelled, a replica added, a broker demoted and taken away."""
    sandbox, opened = scene

    state = carried_out(opened, planned(sandbox, "racks"))
    rack = {b.id: b.rack for b in state.brokers}
    rows = range(len(state.partitions))
    assert all(len({rack[b] for b in state.target(r)}) == len(state.target(r)) for r in rows)

    state = carried_out(opened, planned(sandbox, "expand", "5"))
    assert Counter(state.partitions.replica.tolist())[5] > 0

    plan = planned(sandbox, "level", "--band", "0.15")
    state = carried_out(opened, plan)
    assert planned(sandbox, "level", "--band", "0.15").is_empty

    state = carried_out(opened, planned(sandbox, "change-rf", "orders-1", "--to", "3"))
    wide = [r for r in rows if state.name(r).topic == "orders-1"]
    assert all(len({rack[b] for b in state.target(r)}) == 3 for r in wide)

    state = carried_out(opened, planned(sandbox, "demote", "1"))
    assert 1 not in set(state.partitions.leader.tolist())

    plan = planned(sandbox, "decommission", "4")
    state = carried_out(opened, plan)
    assert 4 not in set(state.partitions.replica.tolist())
    assert plan.summary["empty_afterwards"] == [4]
    assert planned(sandbox, "decommission", "4").is_empty


def test_stock_json_is_what_the_stock_tool_takes(scene: tuple[Sandbox, OpenCluster]) -> None:
    """``--format kafka`` prints version 1 with partitions, replicas and log dirs, and nothing else on stdout."""
    sandbox, _ = scene
    line = [sys.executable, "-m", "ballast", "plan", "demote", "2", "--format", "kafka", "-b", sandbox.bootstrap_server]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=True)
    document = json.loads(done.stdout)
    assert document["version"] == 1
    assert {"topic", "partition", "replicas", "log_dirs"} == set(document["partitions"][0])

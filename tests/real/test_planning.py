"""Plans made by the command from a real cluster, executed there, and judged by what the cluster then says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.leash import leashed
from tests.waiting import becomes

from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.plan.file import loads
from ballast.sandbox import Sandbox, SandboxSpec
from ballast.sandbox.fill import Filling, fill
from ballast.wiring.cluster import OpenCluster, open_cluster

pytestmark = pytest.mark.kafka

DEADLINE_S = 240.0


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple[Sandbox, OpenCluster]]:
    """Five brokers of two disks in three racks; the fifth is new and empty, and leaders have piled up on the first ones."""
    with Sandbox.up(SandboxSpec(brokers=5, racks=3, log_dirs=2)) as sandbox:
        fill(sandbox, Filling(topics=4, partitions=9, shape="empty-broker", megabytes=12, prefix="orders"))
        fill(sandbox, Filling(topics=1, partitions=6, shape="one-rack", megabytes=3, prefix="cramped"))
        with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
            yield sandbox, opened


def planned(sandbox: Sandbox, *words: str) -> Plan:
    """``ballast plan …`` as a person runs it."""
    line = [sys.executable, "-m", "ballast", "plan", *words, "--output", "json", "-b", sandbox.bootstrap_server]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return loads(done.stdout)


def executed(opened: OpenCluster, plan: Plan) -> ClusterState:
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
    """One cluster through its life: racks repaired, balanced, a replica added, a broker demoted and taken away."""
    sandbox, opened = scene

    state = executed(opened, planned(sandbox, "racks"))
    rack = {b.id: b.rack for b in state.brokers}
    rows = range(len(state.partitions))
    assert all(len({rack[b] for b in state.target(r)}) == len(state.target(r)) for r in rows)

    state = executed(opened, planned(sandbox, "expand", "5"))
    assert Counter(state.partitions.replica.tolist())[5] > 0

    executed(opened, planned(sandbox, "balance", "--band", "0.15"))
    assert planned(sandbox, "balance", "--band", "0.15").is_empty

    state = executed(opened, planned(sandbox, "change-rf", "orders-1", "--replication-factor", "3"))
    wide = [r for r in rows if state.name(r).topic == "orders-1"]
    assert all(len({rack[b] for b in state.target(r)}) == 3 for r in wide)

    state = executed(opened, planned(sandbox, "demote", "1"))
    assert 1 not in set(state.partitions.leader.tolist())

    assert planned(sandbox, "decommission", "4").summary["empty_afterwards"] == [4]


def test_a_broker_is_taken_away_in_phases(scene: tuple[Sandbox, OpenCluster], tmp_path: Path) -> None:
    """Leadership, data, the word; killed in the middle it goes on where it was; what lands on the broker is followed."""
    sandbox, opened = scene
    line = [sys.executable, "-m", "ballast", "decommission", "4", "--yes", "-b", sandbox.bootstrap_server]

    # The first life dies as soon as data moves, slowly enough to be in the middle.
    with (tmp_path / "first").open("w+") as told:
        first = subprocess.Popen(leashed(*line, "--throttle", "500kB"), stdout=told, stderr=told)
        wait_until(lambda: bool(opened.cluster.reassignments()), "data moves")
        first.kill()
        first.wait()
        told.seek(0)
        story = told.read()
    assert "leadership of" in story
    assert story.index("leadership of") < story.index("replicas move to other brokers")
    state = opened.cluster.snapshot()
    held = {r for r in range(len(state.partitions)) if 4 in state.replicas(r)}
    assert held
    led = [state.name(r) for r in held if state.partitions.leader[r] == 4]
    assert led == [], "data moved before leadership was away"

    # Another process goes on, and follows what lands on the broker after it is empty.
    with (tmp_path / "second").open("w+") as told:
        second = subprocess.Popen(leashed(*line, "--follow", "30s"), stdout=told, stderr=told, text=True)

        def says(words: str) -> bool:
            return words in (tmp_path / "second").read_text()

        wait_until(lambda: says("Following what lands on it"), "the broker is empty", second)
        opened.cluster.create_topic("late", {0: (4, 1), 1: (2, 4)})
        assert second.wait(timeout=DEADLINE_S) == 0, (tmp_path / "second").read_text()
    text = (tmp_path / "second").read_text()
    assert text.index("resumed") < text.index("replicas move to other brokers"), "it planned beside a run that was left"
    assert text.rstrip().endswith("it can be stopped safely.")
    # The process has ended; brokers that it did not ask hear of its last steps a moment later.
    becomes(lambda: 4 in set(opened.cluster.snapshot().partitions.replica.tolist()), wanted=False)
    state = opened.cluster.snapshot()
    assert len([r for r in range(len(state.partitions)) if state.name(r).topic == "late"]) == 2
    assert planned(sandbox, "decommission", "4").is_empty
    becomes(lambda: rates_of(opened.cluster.snapshot()), [])


def rates_of(state: ClusterState) -> list[str]:
    """Throttle rates that stand on brokers."""
    return [k for values in state.broker_configs.values() for k in values if "throttled.rate" in k]


def test_a_real_cluster_is_written_to_a_file_without_its_names(
    scene: tuple[Sandbox, OpenCluster], tmp_path: Path
) -> None:
    """The file plans and plays as the cluster would, and nothing of its names is in it."""
    sandbox, opened = scene
    file, story = tmp_path / "case.json", tmp_path / "case.txt"
    ballast("snapshot", "--anonymise", "--measure", "1", "-o", str(file), "--scenario", str(story), sandbox=sandbox)
    text = file.read_text()
    state = opened.cluster.snapshot()
    # The sandbox's own racks have the names that would be made up.
    names = [*(t.name for t in state.topics), *(d.path for b in state.brokers for d in b.log_dirs), state.cluster_id]
    assert [n for n in names if n in text] == []
    assert "127.0.0.1" not in text
    lost = json.loads(ballast("simulate", "--kill-broker", "1", "--snapshot", str(file), "--output", "json"))
    live = json.loads(ballast("simulate", "--kill-broker", "1", "--output", "json", sandbox=sandbox))
    assert (len(lost["offline"]), lost["leadersMoved"]) == (len(live["offline"]), live["leadersMoved"])
    assert "case.txt: " in ballast("simulate", "--scenario", str(story))


def ballast(*words: str, sandbox: Sandbox | None = None) -> str:
    """``ballast …`` as a person runs it; what it prints on stdout."""
    where = ["-b", sandbox.bootstrap_server] if sandbox is not None else []
    line = [sys.executable, "-m", "ballast", *words, *where]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_until(holds: Callable[[], bool], what: str, process: subprocess.Popen[str] | None = None) -> None:
    """Poll until it holds; a process that ends before that is an answer as well."""
    until = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < until, f"in vain: {what}"
        assert process is None or process.poll() is None, f"the process ended before: {what}"
        time.sleep(0.2)


def test_stock_json_is_what_the_stock_tool_takes(scene: tuple[Sandbox, OpenCluster]) -> None:
    """``--format kafka`` prints version 1 with partitions, replicas and log dirs, and nothing else on stdout."""
    sandbox, _ = scene
    line = [sys.executable, "-m", "ballast", "plan", "demote", "2", "--format", "kafka", "-b", sandbox.bootstrap_server]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=True)
    document = json.loads(done.stdout)
    assert document["version"] == 1
    assert {"topic", "partition", "replicas", "log_dirs"} == set(document["partitions"][0])

"""Leaders of a real cluster go to the rack of their producers; brokers say whether consumers fetch from the nearest replica."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.documents import validated

from ballast.core.cluster import ClusterState
from ballast.core.planner import Loads
from ballast.core.planner.cross_rack.traffic import is_nearest
from ballast.core.snapshot import file as snapshot_file
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.kafka

NEAREST = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
MIB = 1 << 20
SETTINGS = """
balance:
  bands: {preferred-leaders: 0.99, bytes-out: 0.99}
  pinned_topics: "__.*"
  cross_rack:
    price_per_gib: 0.02
    currency: USD
    clients:
      - topics: eu
        producers: {rack-2: 1.0}
"""


def ballast(*words: str) -> str:
    """A command's answer."""
    done = subprocess.run(
        [sys.executable, "-m", "ballast", *words], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(state: ClusterState) -> list[int]:
    """The partitions of the topic."""
    return [row for name, row in state.index.items() if name.topic == "eu"]


def measured_loads(state: ClusterState) -> Loads:
    """What producers write to the topic; the cluster may have topics of Ballast's own by now."""
    mine = np.isin(np.arange(len(state.partitions)), rows_of(state))
    written = np.where(mine, MIB, 0).astype(np.int64)
    known = frozenset({"disk", "bytes-in", "bytes-out"})
    return replace(Loads.from_state(state), bytes_in_per_s=written, bytes_out_per_s=2 * written, known=known)


def test_leaders_go_to_the_producers_rack(own_cluster: Callable[..., Sandbox], tmp_path: Path) -> None:
    """Nine partitions led in rack-1 and written from rack-2: a plan from what was measured, executed, saves what it foretold."""
    sandbox = own_cluster(broker_configs={"replica.selector.class": NEAREST})
    server, settings = sandbox.bootstrap_server, tmp_path / "ballast.yaml"
    settings.write_text(SETTINGS)
    with open_cluster(bootstrap_server=server) as opened:
        cluster = opened.cluster
        cluster.create_topic("eu", dict.fromkeys(range(9), (1, 2, 3)))
        deadline = time.monotonic() + 60
        while True:
            state = cluster.snapshot()
            if len(rows_of(state)) == 9 and all(len(state.isr(row)) == 3 for row in rows_of(state)):
                break
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert is_nearest(state)
        measured = tmp_path / "cluster.json"
        measured.write_text(snapshot_file.dumps(snapshot_file.Snapshot(state, measured_loads(state))))
        saved = tmp_path / "plan.json"
        words = ["--snapshot", str(measured), "--config", str(settings), "--save", str(saved), "--output", "json"]
        (made,) = validated(ballast("plan", "leaders", "--cross-rack", *words))
        told = made["summary"]["crossRack"]
        assert told["nearestReplica"]
        # Every rack has a replica in sync of each partition: nothing of what consumers read crosses, known or not.
        assert (told["before"]["consumers"], told["before"]["unknownReads"]) == (0, 0)
        assert told["before"]["producers"] == 9 * MIB
        led = 9 - told["after"]["producers"] // MIB
        assert led >= 5
        assert told["before"]["costPerDay"] > told["after"]["costPerDay"]
        assert not any(set(m["old"]) != set(m["new"]) for m in made["moves"])
        ballast("apply", str(saved), "--yes", "-b", server)
        deadline = time.monotonic() + 60
        while True:
            after = cluster.snapshot()
            if sum(int(after.partitions.leader[row]) == 2 for row in rows_of(after)) == led:
                break
            assert time.monotonic() < deadline
            time.sleep(0.2)
        measured.write_text(snapshot_file.dumps(snapshot_file.Snapshot(after, measured_loads(after))))
        (again,) = validated(ballast("plan", "leaders", "--cross-rack", *words))
        assert not [m for m in again["moves"] if m["topic"] == "eu"]

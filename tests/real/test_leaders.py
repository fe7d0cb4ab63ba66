"""``ballast plan leaders --minimize counts`` on a real cluster: what it foretells is what comes of it, and no byte moves."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from tests.documents import validated

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.leadership import imbalance
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.kafka


def test_replica_list_changes_and_elections_bring_what_was_foretold(own_cluster: Callable[..., Sandbox]) -> None:
    """Twelve partitions on broker 1; afterwards its leaders are balanced and every partition has the brokers it had."""
    sandbox = own_cluster()  # its own: on a shared one, others' leaders may happen to balance these
    command = [
        sys.executable,
        "-m",
        "ballast",
        "plan",
        "leaders",
        "--minimize",
        "counts",
        "--topics",
        "crooked",
        "--output",
        "json",
    ]
    command += ["--bootstrap-server", sandbox.bootstrap_server]
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
        cluster = opened.cluster
        cluster.create_topic("crooked", dict.fromkeys(range(12), (1, 2, 3)))
        deadline = time.monotonic() + 60
        while not (state := cluster.snapshot(configs=False)).topic_index.get("crooked", -1) >= 0 or not all(
            len(state.isr(row)) == 3 for name, row in state.index.items() if name.topic == "crooked"
        ):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        result = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
        (made,) = validated(result.stdout)
        found = made["summary"]["leaderBalance"]
        assert found["maxAfter"] == found["bound"]
        new = {TopicPartition(r["topic"], r["partition"]): tuple(r["new"]) for r in made["moves"]}
        assert {name.topic for name in new} == {"crooked"}
        assert all(o.ok for o in cluster.alter_reassignments(new).values())
        assert not cluster.reassignments()
        assert all(o.ok for o in cluster.elect_leaders(list(new)).values())
        foretold = {b["broker"]: b["after"] for b in found["brokers"]}

        def crooked(state: ClusterState) -> list[int]:
            return [row for name, row in state.index.items() if name.topic == "crooked"]

        def led_as_preferred(state: ClusterState) -> bool:
            return all(int(state.partitions.leader[row]) == state.target(row)[0] for row in crooked(state))

        # Brokers hear of new orders and of elections a moment after the controller has answered, and not together.
        deadline = time.monotonic() + 60
        while True:
            after = cluster.snapshot(configs=False)
            preferred = {b.broker: b.preferred for b in imbalance(after)}
            if preferred == foretold and led_as_preferred(after):
                break
            assert time.monotonic() < deadline, (preferred, foretold, after.partitions.leader[crooked(after)])
            time.sleep(0.2)
        assert all(sorted(after.replicas(row)) == [1, 2, 3] for row in crooked(after))

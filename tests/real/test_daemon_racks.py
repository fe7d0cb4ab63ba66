"""A rack that goes down as a whole evacuates nobody: automatic repair is bounded, on real brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.real.daemon_process import IMPATIENT, Daemon, start, until

from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

GRACE_S = 5
QUIET_S = 30
"""Longer than one broker of the rack may come back after the other: one alone that stays away is rebuilt, rightly."""
LOST = (3, 6)
"""Both brokers of the third rack."""
CHECKS = 5


def placement(sandbox: Sandbox, topics: tuple[str, ...]) -> dict[str, frozenset[int]]:
    """The brokers of each partition."""
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
        state = opened.cluster.snapshot(log_dirs=False, configs=False)
        names = [str(state.name(row)) for row in range(len(state.partitions))]
        return {
            name: frozenset(map(int, state.replicas(row)))
            for row, name in enumerate(names)
            if name.rpartition("-")[0] in topics
        }


def test_a_rack_that_is_down_is_neither_evacuated_nor_squeezed_into_the_others(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """Of three replicas none moves; of two, which have a rack to go to, a plan waits for a person and says why."""
    sandbox = own_cluster(brokers=6, racks=3)
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    three = [[1 + (p + k) % 6 for k in range(3)] for p in range(6)]
    two = [[1 + (p + k) % 6 for k in range(2)] for p in range(6)]
    made = admin.create_topics(
        [NewTopic("three", 6, replica_assignment=three), NewTopic("two", 6, replica_assignment=two)]
    )
    for done in made.values():
        done.result()
    topics = ("three", "two")
    settings = {
        "mode": "auto",
        "caution": IMPATIENT["caution"] | {"dead_broker_grace_s": GRACE_S, "quiet_after_return_s": QUIET_S},
        "actions": {"elections": {"mode": "observe"}, "reorders": {"mode": "observe"}, "moves": {"mode": "observe"}},
    }
    daemon = start("pod-0", tmp_path, sandbox.bootstrap_server, settings)
    daemons.append(daemon)
    until("a leader that has read", lambda: daemon.role == "leader" and daemon.get("/healthz")[0] == 200, daemons)
    before = placement(sandbox, topics)
    for broker in LOST:
        sandbox.kill_broker(broker)
    until("the loss", lambda: daemon.metrics["ballast_brokers_alive"] == 4, daemons)

    def waiting() -> list[str]:
        plans = [p for p in daemon.status.get("plans", ()) if p["kind"] == "repair" and p["waiting"]]
        return [str(o) for p in plans for o in p["obstacles"]]

    told = until("a repair that waits", waiting, daemons)
    assert any("rack-3" in o and "repair.whole_racks" in o for o in told)

    def checks() -> float:
        return daemon.metrics['ballast_ticks_total{result="ok",tick="repair"}']

    seen = checks()
    until("further checks", lambda: checks() >= seen + CHECKS, daemons)
    assert placement(sandbox, topics) == before
    assert daemon.status["run"] is None

    for broker in LOST:
        sandbox.start_broker(broker, wait=False)
    sandbox.wait_until_ready(LOST)

    def settled() -> bool:
        """The journal's own partitions, placed by the brokers, may still give a plan that nobody is asked to approve."""
        plans = daemon.status["plans"]
        return daemon.role == "leader" and not [p for p in plans if p["kind"] == "repair" or p["waiting"]]

    until("nothing that waits", settled, daemons)
    assert placement(sandbox, topics) == before
    assert daemon.stop() == 0

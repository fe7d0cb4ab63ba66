"""A rack that goes down as a whole evacuates no broker: automatic repair is bounded, on real brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.real.daemon_process import IMPATIENT, Daemon, start, until

from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

GRACE_S = 12
"""Longer than the deaths of two brokers that are killed together may be noticed apart: their sessions last 4 s."""
COOL_DOWN_S = 120
"""Longer than one broker of the rack may come back after the other: one alone that stays away is rebuilt, rightly. Nothing here waits for its end."""
LOST = (3, 6)
"""Both brokers of the third rack."""
CHECKS = 5
TOPICS = ("three", "two")
"""By their replicas."""


def placement(sandbox: Sandbox) -> dict[str, frozenset[int]]:
    """The brokers of each partition."""
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
        state = opened.cluster.snapshot(log_dirs=False, configs=False)
        names = [str(state.name(row)) for row in range(len(state.partitions))]
        return {
            name: frozenset(map(int, state.replicas(row)))
            for row, name in enumerate(names)
            if name.rpartition("-")[0] in TOPICS
        }


def a_cluster(own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path) -> tuple[Sandbox, Daemon]:
    """Six brokers in three racks with both topics, and a daemon that repairs by itself and has read them."""
    sandbox = own_cluster(brokers=6, racks=3)
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    lists = {
        name: [[1 + (p + k) % 6 for k in range(width)] for p in range(6)] for name, width in (("three", 3), ("two", 2))
    }
    made = admin.create_topics([NewTopic(name, 6, replica_assignment=lists[name]) for name in TOPICS])
    for done in made.values():
        done.result()
    settings = {
        "mode": "auto",
        "guards": IMPATIENT["guards"] | {"down_broker_grace_s": GRACE_S, "membership_cool_down_s": COOL_DOWN_S},
        "actions": {
            "elections": {"mode": "observe"},
            "replica_list_changes": {"mode": "observe"},
            "moves": {"mode": "observe"},
        },
    }
    daemon = start("pod-0", tmp_path, sandbox.bootstrap_server, settings)
    daemons.append(daemon)
    until("a leader that has read", lambda: daemon.role == "active" and daemon.get("/healthz")[0] == 200, daemons)
    return sandbox, daemon


def checks(daemon: Daemon) -> float:
    """How often repair has looked."""
    return daemon.metrics['ballast_checks_total{check="repair",result="ok"}']


def said(daemon: Daemon) -> str:
    """What repair said last."""
    return str(((daemon.status.get("checks") or {}).get("repair") or {}).get("detail", ""))


def is_settled(daemon: Daemon) -> bool:
    """The journal's own partitions, placed by the brokers, may still give a plan that needs no approval."""
    status = daemon.status
    return status.get("role") == "active" and not [
        p for p in status["plans"] if p["action"] == "repair" or p["pendingApproval"]
    ]


def test_a_rack_that_is_down_is_neither_evacuated_nor_squeezed_into_the_others(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """Of three replicas none moves; of two, which have a rack to go to, a plan waits for a person and says why.

    Then it comes back broker by broker: the one past its grace could be rebuilt by now and is not, and the log says until when.
    """
    sandbox, daemon = a_cluster(own_cluster, daemons, tmp_path)
    before = placement(sandbox)
    for broker in LOST:
        sandbox.kill_broker(broker)
    until("the loss", lambda: daemon.metrics["ballast_brokers_alive"] == 4, daemons)

    def waiting() -> list[str]:
        plans = [p for p in daemon.status.get("plans", ()) if p["action"] == "repair" and p["pendingApproval"]]
        return [o["detail"] for p in plans for o in p["objections"]]

    told = until("a repair that waits", waiting, daemons)
    assert any("rack-3" in o and "repair.whole_racks" in o for o in told)

    seen = checks(daemon)
    until("further checks", lambda: checks(daemon) >= seen + CHECKS, daemons)
    assert placement(sandbox) == before
    assert daemon.status["run"] is None

    for broker in LOST:
        sandbox.start_broker(broker, wait=False)
    sandbox.wait_until_ready(LOST)

    until("nothing that waits", lambda: is_settled(daemon), daemons)
    assert placement(sandbox) == before

    for broker in LOST:
        sandbox.kill_broker(broker)
    until("both past their grace", lambda: "have been down for longer" in said(daemon), daemons)
    first, second = LOST
    sandbox.start_broker(first)
    until("the wait", lambda: f"Broker {second} waits until" in said(daemon), daemons)
    seen = checks(daemon)
    until("further checks", lambda: checks(daemon) >= seen + CHECKS, daemons)
    sandbox.start_broker(second)
    until("nothing that waits", lambda: is_settled(daemon) and "Nothing needs repair" in said(daemon), daemons)
    assert placement(sandbox) == before
    assert not [m for m in daemon.messages() if m.startswith("Started:")]
    assert daemon.stop() == 0

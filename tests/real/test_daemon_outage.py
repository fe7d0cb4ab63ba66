"""All brokers down, or frozen: the daemon says so and offers nothing, until they answer again; so does ``ballast status``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.real.daemon_process import Daemon, start, until

from ballast.sandbox import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

UNAVAILABLE = 6
GRACE_S = 15
LATE_S = 45
"""For a busy machine; without an end to its grace the daemon took 84 s."""


def test_while_no_broker_answers_nothing_is_offered(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """A plan that waited is gone, the figures are those of before, and once brokers answer it is planned anew."""
    sandbox = own_cluster(brokers=3, racks=1)
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    crowded = [[1 + p % 2] for p in range(12)]
    admin.create_topics([NewTopic("orders", 12, replica_assignment=crowded)])["orders"].result()
    daemon = start("watcher", tmp_path, sandbox.bootstrap_server, {"mode": "approve", "stop": {"grace_s": GRACE_S}})
    daemons.append(daemon)

    def a_plan() -> Any:
        status = daemon.status
        return status and status["outage"] is None and [p for p in status["plans"] if p["pendingApproval"]]

    def nothing_allowed() -> Any:
        status = daemon.status
        return status.get("outage") and not any(s["allowed"] for s in status["permissions"]) and status

    until("a plan that waits", a_plan, daemons)
    for end, begin in (
        (sandbox.kill_broker, lambda b: sandbox.start_broker(b, wait=False)),
        (sandbox.pause_broker, sandbox.resume_broker),
    ):
        for broker in sandbox.broker_ids:
            end(broker)
        seen = until("the outage", lambda: (s := daemon.status).get("outage") and s, daemons)
        assert seen["outage"]["code"] == "unreachable"
        assert seen["plans"] == []
        # Permissions go one moment after the outage is told.
        seen = until("nothing allowed", nothing_allowed, daemons)
        assert seen["cluster"]["brokers"]
        assert daemon.get("/livez")[0] == 200
        line = [sys.executable, "-m", "ballast", "status", "--check", "-b", sandbox.bootstrap_server]
        asked = subprocess.run([*line, "--output", "json"], capture_output=True, text=True, timeout=300, check=False)
        assert asked.returncode == UNAVAILABLE, asked.stderr
        assert asked.stdout == ""
        for broker in sandbox.broker_ids:
            begin(broker)
        sandbox.wait_until_ready(sandbox.broker_ids)
        until("a plan again", a_plan, daemons)
    healthy = subprocess.run([*line, "--output", "json"], capture_output=True, text=True, timeout=300, check=False)
    assert json.loads(healthy.stdout)["brokers"][0]["reachable"] is True
    assert not [m for m in daemon.messages() if m.startswith("A bug")]
    for broker in sandbox.broker_ids:
        sandbox.kill_broker(broker)
    until("the last outage", lambda: daemon.status.get("outage"), daemons)
    daemon.process.terminate()
    assert daemon.process.wait(GRACE_S + LATE_S) == 0

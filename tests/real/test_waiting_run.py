"""What other processes are told of a run that waits, and of one whose process was killed, on real brokers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.real.execution_scene import Scene, shared_scene
from tests.waiting import until

from ballast.sandbox import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]
TOPIC = "waits"


@pytest.fixture
def at(own_cluster: Callable[..., Sandbox], tmp_path: Path) -> Iterator[Scene]:
    """A cluster of its own, since a broker is killed on it."""
    sandbox = own_cluster(brokers=4)
    with shared_scene(sandbox, tmp_path) as opened:
        yield opened


def test_runs_show_tells_what_a_run_waits_for_and_that_its_process_is_gone(at: Scene) -> None:
    """A broker that is to receive a replica is down: said by name from another shell; then the command is killed."""
    sandbox = at.sandbox
    assert isinstance(sandbox, Sandbox)
    at.topic(TOPIC, {0: (1, 2)})
    sandbox.kill_broker(4)
    until(lambda: 4 not in at.cluster.snapshot(log_dirs=False).alive, "broker 4 is fenced")
    plan = at.plan(TOPIC, {0: (4, 2)})
    command = at.ballast("apply", str(plan), "--yes", "--no-throttle")
    run = until(lambda: at.run_of(TOPIC), "the run has begun")

    def shown() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(at.finish("runs", "show", run.id, "--output", "json"))
        return found

    held = until(lambda: (h := shown()["holder"]) and "waiting" in h["doing"] and h, "the lock's holder says why")
    assert held["doing"].startswith(
        f"run {run.id}: test {TOPIC}, 0 of 1 move ended; waiting: Broker 4, where {TOPIC}-0 is to go, is not alive."
    )
    assert held["leaseExpired"] is False
    assert "(ballast apply) has held the lock since" in (told := at.told("runs", "show", run.id))
    assert held["doing"] in told
    command.kill()
    command.communicate()
    # Its name stays until another process takes the lock, which goes on with the run.
    assert shown()["holder"]["description"] == held["description"]
    sandbox.start_broker(4)
    at.finish("runs", "resume")
    ended = shown()
    assert (ended["run"]["status"], ended["holder"]) == ("done", None)
    assert "lock" not in at.told("runs", "show", run.id)

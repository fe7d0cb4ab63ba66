"""A process starts where the journal was deleted: it knows nothing of what was before, says so, and starts nothing by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.real.daemon_process import Daemon, start, until
from tests.real.execution_scene import RATES, scene
from tests.real.test_daemon_drains import TOKEN, fill, post
from tests.waiting import until as eventually

from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.ports.journal import JOURNAL_TOPIC
from ballast.sandbox import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

LEFT = "1500000"
"""A stale rate of an earlier run."""


def test_a_daemon_that_starts_without_its_journal_waits_for_a_person(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """In auto mode on an uneven cluster: paused, with what stands there told by name; resumed, it balances."""
    sandbox = own_cluster(brokers=3, racks=1)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    page = {"BALLAST__WEB__TOKEN_FILE": str(token)}
    with scene(sandbox, tmp_path) as at:
        assert json.loads(at.finish("status", "--output", "json"))["journal"] == {"state": "none", "recreatedAt": None}
        daemons.append(start("pod-0", tmp_path, sandbox.bootstrap_server, {"mode": "auto"}, environment=page))
        until("a leader", lambda: daemons[0].role == "active", daemons)
        # The broker that a command asks may be the last to hear of the journal's topic.
        eventually(
            lambda: json.loads(at.finish("status", "--output", "json"))["journal"]["state"] == "present", "it is kept"
        )
        daemons[0].kill()

        admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
        admin.delete_topics([JOURNAL_TOPIC])[JOURNAL_TOPIC].result(30)
        at.change(ConfigChange(ConfigResource("broker", "1"), RATES[0], "set", LEFT))

        def missed() -> dict[str, object] | None:
            process = at.ballast("status", "--check", "--output", "json")
            out, story = process.communicate(timeout=240)
            # Until the broker that it asks has heard of the deletion, all may still be well.
            assert process.returncode == 3 or not deleted(out), story
            return deleted(out)

        found = eventually(missed, "it is missed")
        assert found["needsAttention"]
        fill(sandbox, brokers=2)

        daemons.append(start("pod-1", tmp_path, sandbox.bootstrap_server, {"mode": "auto"}, environment=page))
        second = daemons[-1]
        pause = until("a pause", lambda: second.role == "active" and second.status.get("pause"), [second])
        assert pause["by"] == "ballast"
        until("a plan that may not start", lambda: second.status.get("plans"), [second])
        assert second.metrics["ballast_run_active"] == 0

        # Another one that takes over knows it as well.
        second.kill()
        daemons.append(start("pod-2", tmp_path, sandbox.bootstrap_server, {"mode": "auto"}, environment=page))
        third = daemons[-1]
        until("a pause", lambda: third.role == "active" and third.status.get("pause"), [third])
        told = json.loads(at.finish("status", "--output", "json"))
        assert told["journal"]["state"] == "recreated-empty"
        assert [t["value"] for t in told["throttles"] if t["stale"]] == [LEFT]
        assert told["skew"]

        post(third, "resume")
        until("no pause", lambda: third.status.get("pause", "unknown") is None, [third])
        until("a balanced cluster", lambda: third.status.get("balance", {}).get("verdict") == "balanced", [third])
        assert json.loads(at.finish("status", "--output", "json"))["journal"] == {
            "state": "present",
            "recreatedAt": None,
        }
        assert third.stop() == 0
    assert not [m for d in daemons for m in d.messages() if m.startswith("A bug")]


def deleted(status: str) -> dict[str, object] | None:
    """The status, once it tells that the journal is gone."""
    told: dict[str, object] = json.loads(status)
    return told if told["journal"] == {"state": "deleted", "recreatedAt": None} else None


def test_what_a_lost_journal_leaves_is_cleaned_by_hand(own_cluster: Callable[..., Sandbox], tmp_path: Path) -> None:
    """Without any daemon: a command begins an empty journal, and cleaning up acknowledges it."""
    sandbox = own_cluster(brokers=1)
    with scene(sandbox, tmp_path) as at:
        at.topic("t", {0: (1,)})
        at.finish("throttles", "set", "--leader-rate", "20MB", "--brokers", "1")
        admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
        admin.delete_topics([JOURNAL_TOPIC])[JOURNAL_TOPIC].result(30)
        eventually(lambda: deleted(at.finish("status", "--output", "json")), "it is missed")
        at.finish("throttles", "set", "--follower-rate", "20MB", "--brokers", "1")
        told = json.loads(at.finish("status", "--output", "json"))
        assert told["journal"]["state"] == "recreated-empty"
        assert told["needsAttention"]
        at.finish("throttles", "--clean", "--yes", "--brokers", "1")
        told = json.loads(at.finish("status", "--output", "json"))
        assert told["journal"]["state"] == "present"
        assert told["throttles"] == []

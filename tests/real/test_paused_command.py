"""A pause from a daemon's page while a command on a shell holds the lock, on real brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.real.daemon_process import start
from tests.real.execution_scene import Scene, shared_scene
from tests.real.test_daemon_drains import TOKEN, post
from tests.waiting import until

from ballast.executor.machine.run import Phase
from ballast.sandbox import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]
ENDS_WITHIN_S = 240.0


@pytest.fixture
def at(own_cluster: Callable[..., Sandbox], tmp_path: Path) -> Iterator[Scene]:
    """A cluster of its own, since a daemon is killed on it."""
    with shared_scene(own_cluster(brokers=3), tmp_path) as opened:
        yield opened


def test_a_command_obeys_the_page_of_a_standby_which_tells_what_it_answered(at: Scene, tmp_path: Path) -> None:
    """Paused, refused a plan, resumed: each is answered by the command and shown by the page; then the run is executed."""
    topic = "held"
    at.topic(topic, {0: (1, 2), 1: (1, 2)}, mib=5)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    command = at.ballast(
        "apply", str(at.plan(topic, {0: (3, 2), 1: (3, 2)})), "--yes", "--throttle", "250KB", "--moves-in", "1"
    )
    until(lambda: (run := at.run_of(topic)) and run.phase is Phase.RUNNING, "the run has begun")
    daemon = start(
        "pod-0",
        tmp_path,
        at.sandbox.bootstrap_server,
        {"mode": "approve"},
        environment={"BALLAST__WEB__TOKEN_FILE": str(token)},
    )
    try:

        def answered(request: str) -> tuple[bool, str]:
            said = until(
                lambda: [a for a in daemon.status.get("answers", []) if a["request"] == request], f"answer to {request}"
            )
            return said[0]["ok"], said[0]["detail"]

        until(lambda: daemon.role == "standby", "the daemon stands by")
        assert answered(post(daemon, "pause")) == (
            True,
            "Paused by Ada: nothing new starts, moves in progress go on.",
        )
        until(lambda: (run := at.run_of(topic)) and run.phase is Phase.PAUSED, "the run is paused")
        until(lambda: daemon.status.get("pause"), "the page shows the pause")
        ok, said = answered(post(daemon, "plan", intent="elect"))
        assert not ok
        assert "(ballast apply) holds the lock and executes run" in said
        assert answered(post(daemon, "resume")) == (True, "Resumed by Ada.")
        _, story = command.communicate(timeout=ENDS_WITHIN_S)
        assert command.returncode == 0, story
        assert "Paused by Ada: nothing new starts until it is resumed on the page" in story
        assert "Resumed by Ada." in story
    finally:
        daemon.kill()
        command.kill()

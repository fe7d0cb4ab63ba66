"""A journal in a file: a daemon and a command with the same settings meet at its lock, and nothing of it is in the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.real.daemon_process import IMPATIENT, start
from tests.real.execution_scene import Scene, shared_scene
from tests.waiting import until

from ballast.core.cluster import TopicPartition
from ballast.sandbox import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]
REFUSED = 5


@pytest.fixture
def at(own_cluster: Callable[..., Sandbox], tmp_path: Path) -> Iterator[Scene]:
    """A cluster of its own, that has no journal."""
    with shared_scene(own_cluster(brokers=3), tmp_path) as opened:
        yield opened


def test_a_command_meets_the_lock_of_a_daemon_in_the_file_of_their_settings(at: Scene, tmp_path: Path) -> None:
    """It is refused while the daemon holds it, and acts once the daemon has ended, in the same file."""
    topic, file = "filed", tmp_path / "journal"
    at.topic(topic, {0: (1, 2)})
    plan = at.plan(topic, {0: (3, 2)})
    settings = {"mode": "approve", "journal": {**IMPATIENT["journal"], "file": str(file)}}
    daemon = start("pod-0", tmp_path, at.sandbox.bootstrap_server, settings)
    apply = ("apply", str(plan), "--yes", "--config", str(daemon.file))
    try:
        until(lambda: daemon.role == "active", "the daemon holds the lock")
        command = at.ballast(*apply)
        _, story = command.communicate(timeout=240)
        assert command.returncode == REFUSED, story
        assert "pod-0" in story
        assert at.replicas(TopicPartition(topic, 0)) == (1, 2)
        assert daemon.stop() == 0
    finally:
        daemon.kill()
    at.finish(*apply)
    assert at.replicas(TopicPartition(topic, 0)) == (3, 2)
    assert "filed" in file.read_text()
    assert not [name for name in at.cluster.snapshot().topic_index if name.startswith("__ballast")]

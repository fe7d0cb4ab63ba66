"""An open run that nobody carries out is found by the daemon that acts, however it came to be left."""

from __future__ import annotations

import pytest
from tests.daemon.conftest import give_hands, holder

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Plan
from ballast.daemon.books import read_books
from ballast.daemon.lock import keep_lock
from ballast.daemon.policy import DaemonPolicy, Mode
from ballast.daemon.scene import Scene
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.records import dump_run
from ballast.executor.run import Now, new_run
from ballast.sim.journal import JournalStore


@pytest.mark.parametrize("idle", [True, False])
def test_a_leader_with_idle_hands_takes_an_open_run_up(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, *, idle: bool
) -> None:
    """And leaves it alone while it gives the lock to a person."""
    give_hands(scene, JournalStore())
    scene.policy = DaemonPolicy(mode=Mode.AUTO)
    keep_lock(scene, holder())
    assert scene.hands is not None
    assert scene.journal is not None
    plan = Plan("test", "c", "", (), elections=(TopicPartition("t", 0),))
    scene.journal.append(dump_run(new_run("left", plan, ExecutionPolicy(), Now(scene.clock.now_ms(), 0.0))))
    taken: list[str] = []

    def adopt() -> str:
        taken.append("left")
        return "left"

    monkeypatch.setattr(scene.hands, "adopt", adopt)
    scene.give_way = "" if idle else "Ada"
    read_books(scene)
    assert taken == (["left"] if idle else [])

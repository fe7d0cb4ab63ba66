"""A replica has arrived, belongs in a certain log dir, and its broker is gone: the run says so, and a cancel ends it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.unit.executor.machine.test_relocation import two_dirs_scene
from tests.unit.executor.scenes import MB, Scene, T

from ballast.core.plan import Move
from ballast.executor.driver.events import MoveChanged, RunEvent
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.stages import Moved
from ballast.executor.machine.step import Command

MOVE = Move(T, 0, (1, 2), (3, 2), 50 * MB, log_dirs=("/data/1", "any"))
POLICY = ExecutionPolicy(throttle=5 * MB, stall_after_s=30)


@dataclass
class KillsOnArrival:
    """The destination dies in the look in which the move has arrived."""

    scene: Scene

    def on_event(self, event: RunEvent) -> None:
        """Keep it, and kill the broker when it is time."""
        self.scene.ears.on_event(event)
        if isinstance(event, MoveChanged) and isinstance(event.after, Moved) and self.scene.world.brokers[3].up:
            self.scene.world.kill(3)


def arrived_and_down() -> Scene:
    """The scene of all tests here; a run that never ends is left after half an hour."""
    s = two_dirs_scene()
    s.driver.listen(KillsOnArrival(s))
    s.world.clock.after(1800, s.driver.leave)
    return s


def causes(s: Scene) -> list[str]:
    """What was said of the move on the way."""
    return [h.detail for h in s.ears.heard if isinstance(h, MoveChanged) and h.detail]


def test_a_cancel_does_not_wait_for_a_down_broker() -> None:
    """What the broker holds cannot be asked any more: the outcome says what may still happen there."""
    s = arrived_and_down()
    s.world.clock.after(120, lambda: s.driver.ask(Command.CANCEL))
    result = s.driver.execute(s.plan(MOVE), POLICY, run_id="r")
    assert result.status == "cancelled"
    assert [e.outcome for e in result.endings] == ["log-dir"]
    assert result.seconds < 180


def test_the_down_broker_is_named_and_the_run_goes_on_when_it_returns() -> None:
    """Why a move whose bytes have arrived does not end is told as its cause."""
    s = arrived_and_down()
    s.world.clock.after(300, lambda: s.world.start(3))
    result = s.driver.execute(s.plan(MOVE), POLICY, run_id="r")
    assert result.status == "done"
    assert any("Broker 3, which is to copy it to /data/1, is not alive" in said for said in causes(s))
    assert [r.log_dir for r in s.cluster.log_dirs([3])[3].replicas[MOVE.name]] == ["/data/1"]
    assert s.throttles() == {}

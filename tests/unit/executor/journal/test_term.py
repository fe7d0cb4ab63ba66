"""A driver belongs to one acquisition of the lock."""

from __future__ import annotations

import pytest
from tests.unit.executor.scenes import MB, T, holder, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.errors import Fenced
from ballast.executor.driver.events import MoveChanged, RunEvent
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now
from ballast.executor.machine.stages import Moving
from ballast.sim.journal import MemoryJournal

T0 = TopicPartition(T, 0)


def test_a_driver_that_slept_through_a_change_of_hands_writes_nothing() -> None:
    """Its own process has the lock again, and another one has ended the run in between."""
    s = scene({0: (1, 2)})

    class Sleeper:
        """While it sleeps the lock goes to another process, which ends the run, and comes back."""

        def on_event(self, event: RunEvent) -> None:
            """Sleep once."""
            if not (isinstance(event, MoveChanged) and isinstance(event.after, Moving)) or ended:
                return
            s.journal.release()
            other = MemoryJournal(s.store, s.world.clock)
            other.acquire(holder("other"))
            records = [r for r in other.read() if r.key.startswith(("move/", "run/"))]
            ended.extend(r.key for r in records)
            other.release()
            s.journal.acquire(holder("first"))
            before.append(s.store.view.records())

    ended: list[str] = []
    before: list[object] = []
    s.driver.listen(Sleeper())
    plan = s.plan(Move(T, 0, (1, 2), (3, 2)))
    with pytest.raises(Fenced):
        s.driver.execute(plan, ExecutionPolicy(throttle=5 * MB, measure_s=0), run_id="r")
    assert s.store.view.records() == before[0]
    (run,) = load_runs(s.journal.read(), Now(0, 0.0)).values()
    assert s.driver.resume(run).status == "done", "the next one takes it up from the journal"

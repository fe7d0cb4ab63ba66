"""Who stopped a run stands in the journal."""

from __future__ import annotations

from tests.unit.executor.scenes import MB, T, scene

from ballast.core.plan import Move
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now
from ballast.executor.machine.step import Command
from ballast.ports.journal import Request


def test_the_first_who_cancels_is_named() -> None:
    """With the reason, also when the request came through the journal; a pause stops nothing."""
    s = scene({0: (1, 2)}, size_bytes=500 * MB)

    def ask() -> None:
        s.store.requests.clear()
        s.journal.request(Request("p", "pause", "Eve", s.world.clock.now_ms(), {"run": "r"}))
        s.journal.request(Request("c", "cancel", "Ada", s.world.clock.now_ms() + 1, {"run": "r", "reason": "release"}))

    s.world.clock.at(s.world.clock.monotonic_s() + 15, ask)
    plan = s.plan(Move(T, 0, (1, 2), (3, 2)))
    result = s.driver.execute(plan, ExecutionPolicy(throttle="none", measure_s=0), run_id="r")
    assert result.status == "cancelled"
    assert load_runs(s.journal.read(), Now(0, 0.0))["r"].stopped_by == "Ada: release"


def test_a_second_person_who_cancels_is_not_named() -> None:
    """A person who asks for its end after that is not; a run that was not cancelled names none."""
    s = scene({0: (1, 2)})
    result = s.driver.execute(
        s.plan(Move(T, 0, (1, 2), (3, 2))), ExecutionPolicy(throttle="none", measure_s=0), run_id="r"
    )
    assert result.status == "done"
    assert load_runs(s.journal.read(), Now(0, 0.0))["r"].stopped_by == ""
    s.driver.ask(Command.CANCEL, run="s", by="Ada")
    s.driver.ask(Command.ROLLBACK, run="s", by="Eve")
    s.driver.execute(s.plan(Move(T, 0, (3, 2), (4, 2))), ExecutionPolicy(throttle="none", measure_s=0), run_id="s")
    assert load_runs(s.journal.read(), Now(0, 0.0))["s"].stopped_by == "Ada"

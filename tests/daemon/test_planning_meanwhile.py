"""A plan that takes its time: the cluster is read, metrics and probes answer, and nothing is offered that no longer holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.daemon.conftest import Running, make_world
from tests.daemon.rig import Rig, check_balance, check_repair, give_run_controller, holder, keep_lock, observe
from tests.waiting import until

from ballast.core.planner import plan
from ballast.daemon.context.health import STUCK_IN_PLAN_AFTER_S, alive
from ballast.daemon.context.view import CheckResult, Role
from ballast.daemon.planning import plans
from ballast.daemon.policy import ActionKind, DaemonPolicy, Intervals, Mode
from ballast.errors import Unavailable
from ballast.sim.clock import SimClock
from ballast.sim.journal import JournalStore
from ballast.sim.model import SimBroker
from ballast.sim.world import SimWorld

WITHIN_S = 60
QUICK = DaemonPolicy(intervals=Intervals(observe_s=0.2))


@dataclass
class SlowPlanner:
    """Plans once it may."""

    begun: threading.Event = field(default_factory=threading.Event)
    may: threading.Event = field(default_factory=threading.Event)
    fails: list[BaseException] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """A plan, or what it is to fail with."""
        self.threads.add(threading.current_thread().name)
        self.begun.set()
        assert self.may.wait(WITHIN_S)
        if self.fails:
            raise self.fails.pop()
        return plan(*arguments, **keywords)


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowPlanner]:
    """Every plan of the daemon waits for this one's word."""
    slow = SlowPlanner()
    monkeypatch.setattr(plans, "plan", slow)
    yield slow
    slow.may.set()


def uneven() -> SimWorld:
    """An empty fourth broker: there is something to plan."""
    world = make_world(SimClock(start_ms=time.time_ns() // 1_000_000))
    world.add_broker(SimBroker(id=4, rack="a"))
    return world


def count(daemon: Running, check: str, result: CheckResult = CheckResult.OK) -> int:
    """How often a check ended so, as the metrics tell."""
    wanted = f'ballast_checks_total{{check="{check}",result="{result.value}"}}'
    lines = [line for line in daemon.get("/metrics")[1].splitlines() if line.startswith(wanted)]
    return sum(int(float(line.split()[-1])) for line in lines)


def test_the_cluster_is_read_and_probes_answer_while_a_plan_is_made(
    serve: Callable[..., Running], planner: SlowPlanner
) -> None:
    """Observations, metrics, page and probes go on; then the plan is offered."""
    daemon = serve(QUICK, world=uneven())
    assert planner.begun.wait(WITHIN_S)
    before = count(daemon, "observe")
    until(lambda: count(daemon, "observe") >= before + 3, "readings while a plan is made", within_s=WITHIN_S)
    for path in ("/livez", "/readyz", "/healthz", "/api/v1/status"):
        assert daemon.get(path)[0] == 200, path
    daemon.world.kill(2)
    daemon.until(lambda v: v.figures is not None and v.figures.alive == 3)
    daemon.world.start(2)
    daemon.until(lambda v: v.figures is not None and v.figures.alive == 4)
    assert not daemon.board.view.plans
    assert planner.threads == {"plan"}
    planner.may.set()
    daemon.until(lambda v: bool(v.plans))


@pytest.mark.parametrize("failure", [Unavailable("no history"), MemoryError(), ValueError("a bug")])
def test_a_planner_that_fails_is_told_and_tried_again(
    serve: Callable[..., Running], planner: SlowPlanner, failure: BaseException
) -> None:
    """As the check that asked for the plan; the loop lives on."""
    planner.fails.append(failure)
    planner.may.set()
    daemon = serve(DaemonPolicy(intervals=Intervals(observe_s=0.2, repair_s=0.2)), world=uneven())
    expected = CheckResult.FAILED if isinstance(failure, Unavailable) else CheckResult.BUG
    until(lambda: count(daemon, "repair", expected) == 1, "the failure", within_s=WITHIN_S)
    until(lambda: count(daemon, "repair") >= 1, "another attempt", within_s=WITHIN_S)


def test_a_process_that_stops_does_not_wait_for_its_plan(serve: Callable[..., Running], planner: SlowPlanner) -> None:
    """It leaves in its grace, whatever the planner does."""
    daemon = serve(QUICK, world=uneven())
    assert planner.begun.wait(WITHIN_S)
    daemon.stop()
    view = daemon.until(lambda v: v.role is Role.STOPPING and "repair" in v.checks)
    assert view.checks["repair"].result is CheckResult.FAILED


def test_a_plan_without_an_end_is_found(serve: Callable[..., Running], planner: SlowPlanner) -> None:
    """The loop that waits for it does not hide it; between plans there is no such sign of life."""
    daemon = serve(QUICK, world=uneven())
    assert planner.begun.wait(WITHIN_S)
    until(lambda: "plan" in daemon.service.heartbeats, "a plan in progress", within_s=WITHIN_S)
    heartbeat = daemon.service.heartbeats["plan"]
    assert alive({"plan": heartbeat}, heartbeat.at_s + STUCK_IN_PLAN_AFTER_S - 1).ok
    assert not alive({"plan": heartbeat}, heartbeat.at_s + STUCK_IN_PLAN_AFTER_S + 1).ok
    planner.may.set()
    until(lambda: "plan" not in daemon.service.heartbeats, "the end of the plans", within_s=WITHIN_S)


@pytest.fixture
def leader(context: Rig, world: SimWorld) -> Rig:
    """A daemon that may act by itself, and has read a cluster whose fourth broker is empty."""
    world.add_broker(SimBroker(id=4, rack="a"))
    context.policy = DaemonPolicy(mode=Mode.AUTO)
    give_run_controller(context, JournalStore(), spawn=lambda _: None)
    context.board.set_role(Role.STARTING)
    keep_lock(context, holder())
    observe(context)
    return context


def meanwhile(context: Rig, happens: Callable[[], object]) -> None:
    """While the next plans are made, something happens and the cluster is read."""

    def make_it(compute: Callable[[], Any]) -> Any:
        made = compute()
        happens()
        with suppress(Unavailable):
            observe(context)
        return made

    context.in_background = make_it


def test_a_plan_for_another_assignment_is_not_begun(leader: Rig, world: SimWorld) -> None:
    """It is planned anew: what a topic that came meanwhile wants was not known."""
    numbers = iter(range(100))
    meanwhile(leader, lambda: world.add_topic(f"new-{next(numbers)}", {0: (1, 2, 3)}, size_bytes=1e6))
    check_balance(leader)
    assert leader.run_controller is not None
    assert leader.run_controller.current() is None
    assert ActionKind.MOVES not in leader.parts.proposals.by_kind


def test_a_plan_of_a_cluster_that_was_lost_is_not_offered(leader: Rig, world: SimWorld) -> None:
    """Nor begun."""

    def outage() -> None:
        for broker in (1, 2, 3, 4):
            world.kill(broker)

    meanwhile(leader, outage)
    with pytest.raises(Unavailable):
        check_balance(leader)
    assert not leader.board.view.plans


def test_a_broker_that_returns_while_its_repair_is_planned_keeps_its_replicas(leader: Rig, world: SimWorld) -> None:
    """The plan is dropped, and the checks are due at once."""
    again: list[str] = []
    leader.look_again = lambda: again.append("look")
    world.kill(2)
    world.clock.sleep(60)
    observe(leader)
    world.clock.sleep(leader.policy.guards.down_broker_grace_s)
    observe(leader)
    meanwhile(leader, lambda: world.start(2))
    with pytest.raises(Unavailable):
        check_repair(leader)
    assert again
    assert leader.run_controller is not None
    assert leader.run_controller.current() is None


def test_a_plan_that_still_holds_begins(leader: Rig, world: SimWorld) -> None:
    """Time alone changes nothing."""
    meanwhile(leader, lambda: world.clock.sleep(1))
    check_balance(leader)
    assert leader.run_controller is not None
    assert leader.run_controller.current() is not None

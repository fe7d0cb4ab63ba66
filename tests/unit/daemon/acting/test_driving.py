"""A run that fails on the way: it is resumed, requests made meanwhile hold, and leaving changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.core.throttles import LEADER_RATE, LedgerEntry, Setting
from ballast.daemon.acting import driving
from ballast.daemon.acting.driving import DriverParts, DriverRunController
from ballast.daemon.context.view import CheckResult
from ballast.errors import AuthorizationFailed, Refused, Unavailable, WrongCluster
from ballast.executor.driver.driver import Driver
from ballast.executor.journal.ledger import dump_held
from ballast.executor.journal.records import dump_run, load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Run, new_run
from ballast.executor.machine.stages import Verified
from ballast.executor.machine.step import Command
from ballast.ports.cluster import Outcome, Reassignment
from ballast.sim import SimCluster

T0, T1 = TopicPartition(T, 0), TopicPartition(T, 1)
MOVES = (Move(T, 0, (1, 2), (3, 2), 50 * MB), Move(T, 1, (2, 1), (4, 1), 50 * MB))
ONE_BY_ONE = ExecutionPolicy(throttle=5 * MB, moves_at_once=1)


class Failing(SimCluster):
    """Asked what is in flight, it fails as long as it is told to."""

    failure: Exception | None = None

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Answer, or not."""
        if self.failure is not None:
            raise self.failure
        return super().reassignments()

    refuses: Refused | None = None

    def alter_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], *, allow_replication_factor_change: bool = False
    ) -> Mapping[TopicPartition, Outcome]:
        """Refuse the first partition for good, where it is told to."""
        if self.refuses is not None and T0 in targets:
            raise self.refuses
        return super().alter_reassignments(targets, allow_replication_factor_change=allow_replication_factor_change)

    def elect_leaders(
        self, names: Collection[TopicPartition], *, unclean: bool = False
    ) -> Mapping[TopicPartition, Outcome]:
        """Refuse every election for good, where it is told to."""
        if self.refuses is not None:
            raise self.refuses
        return super().elect_leaders(names, unclean=unclean)


class Acting:
    """RunController that execute runs on the spot, in simulated time."""

    def __init__(self) -> None:
        self.scene: Scene = scene({0: (1, 2), 1: (2, 1)}, size_bytes=50 * MB)
        self.clock = self.scene.world.clock
        self.cluster = Failing(self.scene.world)
        self.ended: list[tuple[str, str]] = []
        self.failures: list[CheckResult] = []
        self.run_controller = DriverRunController(
            DriverParts(
                cluster=self.cluster,
                journal=self.scene.journal,
                clock=self.clock,
                policy=lambda: ONE_BY_ONE,
                new_id=lambda: "r",
                ended=lambda result: self.ended.append((result.run_id, result.status)),
                failed=self.failures.append,
                spawn=lambda body: body(),
            )
        )

    def fail(self, after_s: float, failure: Exception | None) -> None:
        """From then on the cluster fails like this."""
        self.at(after_s, lambda: setattr(self.cluster, "failure", failure))

    def start(self) -> None:
        """Execute the plan; returns when no run is in progress."""
        self.run_controller.start(self.scene.plan(*MOVES))

    def runs(self) -> dict[str, Run]:
        """The journal's runs."""
        return load_runs(self.scene.journal.read(), Now(self.clock.now_ms(), self.clock.monotonic_s()))

    def replicas(self) -> list[tuple[int, ...]]:
        """Where the partitions are."""
        return [tuple(self.scene.world.partition(T, n).replicas) for n in (0, 1)]

    def at(self, after_s: float, act: Callable[[], object]) -> None:
        """Do this then, as another user would."""

        def do() -> None:
            act()

        self.clock.after(after_s, do)


@pytest.fixture
def acting(monkeypatch: pytest.MonkeyPatch) -> Acting:
    """A run controller in this thread alone; ``stop`` does not wait for the end of its run."""
    monkeypatch.setattr(driving, "LEAVE_S", 0.0)
    return Acting()


@pytest.mark.parametrize(
    ("failure", "counted"),
    [
        (AuthorizationFailed("not any more"), CheckResult.FAILED),
        (WrongCluster("another"), CheckResult.FAILED),
        (RuntimeError("a bug"), CheckResult.BUG),
    ],
)
def test_a_run_that_fails_is_resumed(acting: Acting, failure: Exception, counted: CheckResult) -> None:
    """Whatever failed, named or not: moves in flight and their throttles are not left until the next start, and it is counted."""
    acting.fail(10, failure)
    acting.fail(30, None)
    acting.start()
    assert acting.ended == [("r", "done")]
    assert acting.scene.throttles() == {}
    assert len(acting.failures) > 1
    assert set(acting.failures) == {counted}


@pytest.mark.parametrize("after_s", [3, 5, 10, 20])
def test_a_brokers_own_failure_orphans_no_run(acting: Acting, after_s: float) -> None:
    """UNKNOWN_SERVER_ERROR or STALE_BROKER_EPOCH looks like a refusal for good: the same run goes on when it is over."""
    acting.fail(after_s, Refused("Request for metadata failed: broker 1 answered UNKNOWN_SERVER_ERROR."))
    acting.fail(after_s + 60, None)
    acting.start()
    assert acting.ended == [("r", "done")]
    assert acting.scene.throttles() == {}


@pytest.mark.parametrize("of", ["moves", "elections"])
def test_a_run_that_the_cluster_refuses_for_good_keeps_no_other_from_being_resumed(acting: Acting, of: str) -> None:
    """Its moves and elections end after a few tries; the next run is resumed, and throttles of runs that ended are removed."""
    refused = acting.scene.plan(MOVES[0]) if of == "moves" else acting.scene.plan(elections=(T0,))
    policy = ExecutionPolicy(throttle="none", measure_s=0)
    for name, plan in (("first", refused), ("second", acting.scene.plan(MOVES[1]))):
        run = new_run(name, plan, policy, Now(acting.clock.now_ms(), 0.0))
        acting.scene.journal.append(dump_run(run))
        acting.clock.sleep(1)
    rate = Setting("broker", "1", LEADER_RATE)
    acting.scene.world.brokers[1].configs[LEADER_RATE] = "5"
    acting.scene.journal.append([dump_held(rate, LedgerEntry(None, frozenset({"5"})))])
    acting.cluster.refuses = Refused("Not on this cluster.")
    assert acting.run_controller.adopt() == "first"
    assert acting.ended == [("first", "incomplete"), ("second", "done")]
    assert acting.scene.throttles() == {}


def test_a_cancel_between_two_attempts_is_not_lost(acting: Acting) -> None:
    """The person was told that it is done."""
    acting.fail(5, AuthorizationFailed("not any more"))
    acting.fail(30, None)
    told: list[bool] = []
    acting.at(20, lambda: told.append(acting.run_controller.cancel("r")))
    acting.start()
    assert told == [True]
    assert acting.ended == [("r", "cancelled")]


def test_a_cancel_meant_for_another_run_is_not_heard_by_this_one(acting: Acting) -> None:
    """The person saw a run that has ended since, and whose place another has taken."""
    acting.at(5, lambda: acting.run_controller.cancel("before"))
    acting.start()
    assert acting.ended == [("r", "done")]


def test_leaving_between_two_attempts_leaves_the_journal_as_it_is(acting: Acting) -> None:
    """A run that is left to others is neither begun anew nor asked for once more."""
    acting.fail(20, AuthorizationFailed("not any more"))
    acting.at(21, lambda: acting.fail(0, None))
    acting.at(21, lambda: acting.run_controller.stop(wait_s=0.0))
    acting.start()
    assert acting.ended == []
    (run,) = acting.runs().values()
    assert isinstance(run.moves[T0].stage, Verified)


def test_nothing_is_begun_by_leaving(acting: Acting) -> None:
    """A run that had not reached the journal when it failed is not written there on the way out."""
    acting.cluster.failure = Unavailable("silence")
    acting.at(1, lambda: acting.fail(0, None))
    acting.at(1, lambda: acting.run_controller.stop(wait_s=0.0))
    acting.start()
    assert acting.runs() == {}


def test_a_rollback_waits_for_the_end_of_a_pause_as_well(acting: Acting) -> None:
    """While Ballast is paused no new move starts, whichever run it belongs to."""
    acting.at(15, lambda: acting.run_controller.pause(paused=True))
    acting.at(16, lambda: acting.run_controller.cancel("r", rollback=True))
    seen: list[list[tuple[int, ...]]] = []

    def resume() -> None:
        seen.append(acting.replicas())
        acting.run_controller.pause(paused=False)

    acting.at(200, resume)
    acting.start()
    assert seen == [[(3, 2), (2, 1)]]
    assert acting.replicas() == [(1, 2), (2, 1)]
    assert acting.ended == [("r", "cancelled"), ("r-back", "done")]


@pytest.mark.parametrize("before_s", [0, 8])
def test_a_paused_run_names_who_paused_it(acting: Acting, before_s: float) -> None:
    """Whether it was paused on its way or began under the pause: in its own words, and in what the lock says of its holder."""
    told: list[tuple[str, str]] = []
    controller = acting.run_controller

    def look() -> None:
        run, held = controller.current(), acting.scene.journal.holder()
        assert run is not None
        assert held is not None
        told.append((run.detail, held.doing))

    def resume() -> None:
        look()
        controller.pause(paused=False)
        acting.at(10, look)

    if before_s:
        acting.at(before_s, lambda: controller.pause(paused=True, by="Ada: lunch"))
    else:
        controller.pause(paused=True, by="Ada: lunch")
    acting.at(200, resume)
    acting.start()
    (detail, doing), after = told
    assert "Paused by Ada: lunch" in detail
    assert "paused by Ada: lunch" in doing
    assert "aused" not in "".join(after)
    assert acting.ended == [("r", "done")]


def test_a_cancel_that_meets_the_change_of_attempts_is_not_lost(
    acting: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver of the failed attempt is told of it after what it had not heard was handed to the next one."""
    acting.fail(5, AuthorizationFailed("not any more"))
    acting.fail(30, None)
    controller, ask, replaced = acting.run_controller, Driver.ask, list[bool]()

    def late(driver: Driver, command: Command, *, run: str | None = None, by: str = "") -> None:
        if not replaced:
            replaced.append(True)
            controller._replace_driver()  # as the run's thread does at this moment
        ask(driver, command, run=run, by=by)

    monkeypatch.setattr(Driver, "ask", late)
    acting.at(6, lambda: controller.cancel("r"))
    acting.start()
    assert acting.ended == [("r", "cancelled")]


def test_who_leaves_while_attempts_change_leaves_the_next_one_too(
    acting: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said to the one before, it would be carried on without the lock."""
    acting.fail(5, AuthorizationFailed("not any more"))
    acting.fail(6, None)
    monkeypatch.setattr(driving, "LEAVE_S", 0.0)
    made = list[Driver]()

    def driver(*given: Any, **more: Any) -> Driver:
        if len(made) == 1:
            # It still sees the one before.
            acting.run_controller.stop(wait_s=0)
        made.append(Driver(*given, **more))
        return made[-1]

    monkeypatch.setattr(driving, "Driver", driver)
    acting.start()
    assert len(made) > 1
    assert [status for _, status in acting.ended] != ["done"]

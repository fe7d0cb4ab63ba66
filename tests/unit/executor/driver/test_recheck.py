"""Between the judging of a move and its sending the world may change, and a throttle may not stand: then nothing is sent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import pytest
from tests.unit.executor.scenes import MB, Ears, Scene, T, performed, reasons, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.errors import AuthorizationFailed
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import MoveChanged, Performing, Refusing, RunEvent
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.stages import Throttled
from ballast.executor.machine.step import Command
from ballast.executor.machine.transitions import EffectKind
from ballast.ports.cluster import ConfigChange, ConfigResource, Outcome, PartitionState, Reassignment
from ballast.sim import SimCluster, SimWorld
from ballast.sim.crash import ProcessKilled

T0 = TopicPartition(T, 0)
THROTTLED = ExecutionPolicy(throttle=5 * MB)


class Meanwhile(SimCluster):
    """Something happens right after throttles were set for the first time, before the caller hears of it."""

    def __init__(self, world: SimWorld, act: Callable[[], object]) -> None:
        super().__init__(world)
        self._act: Callable[[], object] | None = act

    def alter_configs(self, changes: Collection[ConfigChange]) -> Mapping[ConfigResource, Outcome]:
        """Set them, then let it happen."""
        outcomes = super().alter_configs(changes)
        act, self._act = self._act, None
        if act is not None:
            act()
        return outcomes


def with_driver(s: Scene, act: Callable[[], object]) -> None:
    """Give the scene a process in whose throttle settings something happens."""
    s.cluster = Meanwhile(s.world, act)
    s.driver = Driver(s.cluster, s.journal, s.world.clock, s.ears)


def die() -> None:
    """The process is gone."""
    raise ProcessKilled("after the throttles were set")


def codes(ears: Ears) -> set[str]:
    """What guards have said."""
    return {v.code for h in ears.heard if isinstance(h, Refusing) for v in h.verdicts}


def test_a_move_that_another_user_starts_while_throttles_are_set_is_not_overridden() -> None:
    """It is named and waited for; then the plan no longer fits, and that is the outcome."""
    s = scene()
    with_driver(s, lambda: s.world.controller.alter(T0, (1, 4), allow_rf_change=False))
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB)), THROTTLED, run_id="r")
    assert [e.outcome for e in result.endings] == ["modified-externally"]
    assert "foreign-reassignment" in codes(s.ears)
    assert tuple(s.world.partition(T, 0).replicas) == (1, 4)
    assert s.throttles() == {}


def test_a_move_that_another_user_starts_after_a_death_is_not_overridden() -> None:
    """The next process judges a move anew whose throttle stood already, and sends nothing while the other one goes on."""
    s = scene()
    with_driver(s, die)
    with pytest.raises(ProcessKilled):
        s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB)), THROTTLED, run_id="r")
    s.world.controller.alter(T0, (1, 4), allow_rf_change=False)
    driver = s.process()
    (run,) = driver.open_runs()
    assert isinstance(run.moves[T0].stage, Throttled)
    result = driver.resume(run)
    assert [e.outcome for e in result.endings] == ["modified-externally"]
    assert EffectKind.SUBMIT not in performed(s.ears)
    assert tuple(s.world.partition(T, 0).replicas) == (1, 4)
    assert s.throttles() == {}


def test_a_destination_that_died_with_the_process_holds_the_move() -> None:
    """Every guard is asked again, not only the one for moves of others."""
    s = scene()
    with_driver(s, die)
    with pytest.raises(ProcessKilled):
        s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB)), THROTTLED, run_id="r")
    s.world.kill(3)
    s.world.clock.sleep(30)
    driver = s.process()
    s.world.clock.after(120, lambda: s.world.start(3))
    result = driver.resume(driver.open_runs()[0])
    assert result.status == "done"
    assert "destination-down" in codes(s.ears)
    assert s.throttles() == {}


def test_nothing_is_sent_unthrottled_when_we_may_not_set_the_throttle() -> None:
    """A right that was taken away is an answer: the move waits, and ends as what it is when that does not change."""
    s = scene()
    cluster = Forbidden(s.world)
    s.cluster, s.driver = cluster, Driver(cluster, s.journal, s.world.clock, s.ears)
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB)), THROTTLED, run_id="r")
    assert EffectKind.SUBMIT not in performed(s.ears)
    (ending,) = result.endings
    assert ending.outcome == "throttle-not-set"
    ((code, figures),) = reasons(result)
    assert (code, figures["answer"]["code"]) == ("throttle-refused", "CLUSTER_AUTHORIZATION_FAILED")
    assert tuple(s.world.partition(T, 0).replicas) == (1, 2)


def test_an_older_answer_after_the_arrival_is_not_another_users_change() -> None:
    """Brokers do not learn of the end at the same moment: one that still shows the union contradicts nothing yet."""
    s = scene()
    cluster = OneLags(s.world)
    s.cluster, s.driver = cluster, Driver(cluster, s.journal, s.world.clock, s.ears)
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 10 * MB)), THROTTLED, run_id="r")
    assert cluster.told_late
    assert (result.status, result.endings) == ("done", ())


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_count_that_another_user_changes_in_the_last_moment_stays_theirs(moment: str) -> None:
    """Without the flag of KIP-860 the controller would change it back: looked at right before the send, and right after."""
    s = scene()
    cluster = ShrinksMeanwhile(s.world, moment)
    s.cluster, s.driver = cluster, Driver(cluster, s.journal, s.world.clock, s.ears)
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB)), THROTTLED, run_id="r")
    assert cluster.happened
    assert [e.outcome for e in result.endings] == ["modified-externally"]
    assert tuple(s.world.partition(T, 0).replicas) == (1,)
    assert (EffectKind.CANCEL in performed(s.ears)) is (moment == "after")
    assert s.throttles() == {}


@pytest.mark.parametrize("sent", [False, True])
def test_what_met_another_list_is_cancelled_also_after_a_death(*, sent: bool) -> None:
    """Whether the cancel had gone out or not: the next process knows why it was wanted, and what its end is called."""
    s = scene()
    cluster = DiesCancelling(s.world, sent=sent)
    s.cluster, s.driver = cluster, Driver(cluster, s.journal, s.world.clock, s.ears)
    with pytest.raises(ProcessKilled):
        s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB)), THROTTLED, run_id="r")
    driver = s.process()
    s.world.clock.after(600, driver.leave)
    result = driver.resume(driver.open_runs()[0])
    assert [e.outcome for e in result.endings] == ["modified-externally"]
    assert tuple(s.world.partition(T, 0).replicas) == (1,)
    assert s.throttles() == {}


class ShrinksMeanwhile(SimCluster):
    """Brokers that do not know the flag; a user removes a replica before our last look, or between it and the send."""

    def __init__(self, world: SimWorld, moment: str) -> None:
        super().__init__(world, api=frozenset({"reassign"}))
        self.happened = False
        self._moment = moment

    def alter_configs(self, changes: Collection[ConfigChange]) -> Mapping[ConfigResource, Outcome]:
        """The throttle is set; now it happens, or not yet."""
        outcomes = super().alter_configs(changes)
        if self._moment == "before":
            self._happen()
            self.world.clock.sleep(2)
        return outcomes

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> Mapping[TopicPartition, Outcome]:
        """It happens in the last moment."""
        self._happen()
        return super().alter_reassignments(targets, allow_replication_factor_change=allow_replication_factor_change)

    def _happen(self) -> None:
        if not self.happened:
            self.happened = self.world.controller.alter(T0, (1,), allow_rf_change=True).ok


class DiesCancelling(ShrinksMeanwhile):
    """The process ends at its first cancel: right before that is sent, or right after."""

    def __init__(self, world: SimWorld, *, sent: bool) -> None:
        super().__init__(world, "after")
        self._sent: bool | None = sent

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> Mapping[TopicPartition, Outcome]:
        """Die once."""
        dies = None in targets.values() and self._sent is not None
        outcomes: Mapping[TopicPartition, Outcome] = {}
        if not dies or self._sent:
            outcomes = super().alter_reassignments(
                targets, allow_replication_factor_change=allow_replication_factor_change
            )
        if dies:
            self._sent = None
            raise ProcessKilled("at the cancel")
        return outcomes


def test_a_cancel_that_brokers_do_not_know_is_not_asked_for_every_moment() -> None:
    """The reason is told once, the move is followed to its end, and its stall would still be found."""
    s = scene()
    cluster = KnowsNoCancel(s.world)
    s.cluster, s.driver = cluster, Driver(cluster, s.journal, s.world.clock, s.ears)
    s.world.clock.after(5, lambda: s.driver.ask(Command.CANCEL))
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 400 * MB)), THROTTLED, run_id="r")
    assert (result.status, result.verified) == ("cancelled", 1)
    assert performed(s.ears).count(EffectKind.CANCEL) == 1
    assert any(isinstance(h, MoveChanged) and "cannot cancel" in h.detail for h in s.ears.heard)
    assert s.throttles() == {}


class KnowsNoCancel(SimCluster):
    """Brokers before Kafka 2.4."""

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> Mapping[TopicPartition, Outcome]:
        """Refuse cancels."""
        if None in targets.values():
            return dict.fromkeys(
                targets, Outcome(ok=False, code="UNSUPPORTED_VERSION", message="These brokers cannot cancel.")
            )
        return super().alter_reassignments(targets, allow_replication_factor_change=allow_replication_factor_change)


class OneLags(SimCluster):
    """The first answer after the end was seen comes from a broker that has not seen it."""

    def __init__(self, world: SimWorld) -> None:
        super().__init__(world)
        self.told_late = False
        self._shown = 0

    def partitions(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
        """The second time that the new list is shown, the union is."""
        seen = dict(super().partitions(names))
        if T0 in seen and seen[T0].replicas == (3, 2):
            self._shown += 1
            if self._shown == 2:
                self.told_late = True
                seen[T0] = PartitionState(1, (3, 2, 1), (1, 2))
        return seen


class Forbidden(SimCluster):
    """Changes of configs are refused as a whole."""

    def alter_configs(self, changes: Collection[ConfigChange]) -> Mapping[ConfigResource, Outcome]:
        """Refuse."""
        raise AuthorizationFailed(f"This user may not change configs of {len(changes)} resources.")


class CancelsAndFails(SimCluster):
    """The first cancel takes effect, and its answer is an error."""

    code = "REQUEST_TIMED_OUT"

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> Mapping[TopicPartition, Outcome]:
        """Do what is asked, and say otherwise once."""
        outcomes = super().alter_reassignments(targets, allow_replication_factor_change=allow_replication_factor_change)
        code, self.code = (self.code, "") if None in targets.values() else ("", self.code)
        return {n: Outcome(ok=False, code=code) for n in outcomes} if code else outcomes


def test_a_cancel_that_took_effect_and_was_answered_with_an_error_is_ours() -> None:
    """The order that it left is put back, and no other user is said to have cancelled."""
    s = scene({0: (3, 1)})
    cluster = CancelsAndFails(s.world)
    s.cluster, s.driver = cluster, Driver(cluster, s.journal, s.world.clock, s.ears)
    s.world.clock.after(5, lambda: s.driver.ask(Command.CANCEL))
    result = s.driver.execute(s.plan(Move(T, 0, (3, 1), (1, 2), 400 * MB)), THROTTLED, run_id="r")
    assert [e.outcome for e in result.endings] == ["rolled-back"]
    assert tuple(s.world.partition(T, 0).replicas) == (3, 1)
    assert s.throttles() == {}


class MovesAndFails(SimCluster):
    """The first submissions take effect, and their answers are errors."""

    failing = 1
    code = "STALE_BROKER_EPOCH"

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> Mapping[TopicPartition, Outcome]:
        """Do what is asked, and say otherwise."""
        outcomes = super().alter_reassignments(targets, allow_replication_factor_change=allow_replication_factor_change)
        if None in targets.values() or not self.failing:
            return outcomes
        self.failing -= 1
        return {n: Outcome(ok=False, code=self.code) for n in outcomes}


@pytest.mark.parametrize("failing", [1, 10])
def test_a_submission_that_took_effect_and_was_answered_with_an_error_is_ours(failing: int) -> None:
    """It is followed to its end under its throttle, however often the cluster says that it failed."""
    s = scene({0: (1, 2)})
    cluster = MovesAndFails(s.world)
    cluster.failing = failing
    s.cluster, s.driver = cluster, Driver(cluster, s.journal, s.world.clock, s.ears)
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB)), THROTTLED, run_id="r")
    assert (result.status, result.verified) == ("done", 1)
    kinds = performed(s.ears)
    assert kinds.count(EffectKind.SUBMIT) == 1
    assert kinds.index(EffectKind.UNTHROTTLE) > kinds.index(EffectKind.SUBMIT)
    assert s.throttles() == {}


def test_a_submission_that_took_effect_behind_an_error_is_cancelled_with_its_run() -> None:
    """The user cancels in the moment after the error: nothing goes on behind their back."""
    s = scene({0: (1, 2)})
    cluster = MovesAndFails(s.world)
    s.cluster, s.driver = cluster, Driver(cluster, s.journal, s.world.clock, s.ears)
    s.driver.listen(AskOnce(s.driver, EffectKind.SUBMIT, Command.CANCEL))
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 400 * MB)), THROTTLED, run_id="r")
    assert [e.outcome for e in result.endings] == ["rolled-back"]
    assert not s.cluster.reassignments()
    assert tuple(s.world.partition(T, 0).replicas) == (1, 2)


@dataclass
class AskOnce:
    """Asks for something when an effect is about to be sent."""

    driver: Driver
    kind: EffectKind
    command: Command | None

    def on_event(self, event: RunEvent) -> None:
        """Ask once."""
        if self.command is not None and isinstance(event, Performing) and event.effect.kind is self.kind:
            self.driver.ask(self.command)
            self.command = None


class StartedByOthers(SimCluster):
    """Another user starts a move of their own right before the first submission is looked at for the last time."""

    started = False

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Start it once throttles stand."""
        if not self.started and self.world.topics[T].configs:
            self.started = True
            self.world.controller.alter(T0, (3, 2), allow_rf_change=False)
        return super().reassignments()


def test_the_very_move_that_another_user_starts_meanwhile_is_followed_and_not_sent_again() -> None:
    """Asking for what is under way already would be refused for ever as another user's."""
    s = scene({0: (1, 2)})
    cluster = StartedByOthers(s.world)
    s.cluster, s.driver = cluster, Driver(cluster, s.journal, s.world.clock, s.ears)
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB)), THROTTLED, run_id="r")
    assert (result.status, result.verified) == ("done", 1)
    assert s.throttles() == {}

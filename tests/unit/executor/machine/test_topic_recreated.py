"""A topic is deleted and recreated under its name while a run moves it: the run leaves the new one alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import pytest
from tests.unit.executor.scenes import MB, T, holder, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.core.plan.fingerprint import with_topic_ids
from ballast.core.throttles import LISTS
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import MoveChanged, RunEvent, RunResult
from ballast.executor.journal.ledger import load_ledger, load_topic_ids
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.rollback import rollback_plan
from ballast.executor.machine.run import Now
from ballast.executor.machine.stages import Moving, Stage, Throttled, Unthrottled
from ballast.executor.machine.step import Command
from ballast.ports.cluster import ConfigChange, ConfigResource, Outcome, Reassignment
from ballast.ports.journal import Record
from ballast.sim import MemoryJournal, SimCluster, SimWorld

T0 = TopicPartition(T, 0)
THEIRS = dict.fromkeys(LISTS, "0:1,0:3")


@dataclass
class At:
    """Does something once, when a move enters a stage."""

    stage: type[Stage]
    act: Callable[[], None] | None

    def on_event(self, event: RunEvent) -> None:
        """Act once."""
        if self.act is not None and isinstance(event, MoveChanged) and type(event.after) is self.stage:
            act, self.act = self.act, None
            act()


def test_moves_end_and_nothing_of_the_new_topic_is_touched() -> None:
    """Neither its replicas nor its throttle lists, whose entries look like ours."""
    s = scene({0: (1, 2)})

    def recreate() -> None:
        s.world.delete_topic(T)
        s.world.add_topic(T, {0: (1, 4)}, size_bytes=MB, configs=dict(THEIRS))

    s.driver.listen(At(Moving, recreate))
    policy = ExecutionPolicy(throttle=3 * MB, measure_s=0)
    result: RunResult = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2))), policy, run_id="r")
    assert [(e.subject, e.outcome) for e in result.endings] == [(f"{T}-0", "topic-recreated")]
    assert s.world.topics[T].configs == THEIRS
    assert s.cluster.partitions([T0])[T0].replicas == (1, 4)
    assert result.throttles_to_restore == ()
    assert not load_ledger(s.journal.read())


def test_a_plan_made_before_is_not_executed_on_the_new_topic() -> None:
    """Between the plan and the run: not a byte is copied to what has taken the place of the topic that was planned."""
    s = scene({0: (1, 2)})
    plan = with_topic_ids(s.plan(Move(T, 0, (1, 2), (3, 2))), s.cluster.snapshot())
    s.world.delete_topic(T)
    s.world.add_topic(T, {0: (1, 2)}, size_bytes=MB, configs=dict(THEIRS))
    result = s.driver.execute(plan, ExecutionPolicy(throttle=3 * MB, measure_s=0), run_id="r")
    assert [(e.subject, e.outcome) for e in result.endings] == [(f"{T}-0", "topic-recreated")]
    assert s.world.topics[T].configs == THEIRS
    assert s.cluster.partitions([T0])[T0].replicas == (1, 2)


def test_a_run_is_not_rolled_back_on_the_new_topic() -> None:
    """The way back is for the topic that was moved."""
    s = scene({0: (1, 2)})
    s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2))), ExecutionPolicy(measure_s=0), run_id="r")
    back = rollback_plan(load_runs(s.journal.read(), Now(0, 0.0))["r"])
    assert back.topic_ids == {T: s.world.topics[T].topic_id}
    s.world.delete_topic(T)
    s.world.add_topic(T, {0: (3, 2)}, size_bytes=MB)
    result = s.driver.execute(back, ExecutionPolicy(measure_s=0), run_id="back")
    assert [e.outcome for e in result.endings] == ["topic-recreated"]
    assert s.cluster.partitions([T0])[T0].replicas == (3, 2)


def test_a_successor_knows_which_topic_it_was() -> None:
    """The ids stand in the journal, with the move and with the ledger's line."""
    s = scene({0: (1, 2)})
    s.driver.listen(At(Moving, s.driver.leave))
    policy = ExecutionPolicy(throttle=3 * MB, measure_s=0)
    s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2))), policy, run_id="r")
    assert load_topic_ids(s.journal.read()) == {T: s.world.topics[T].topic_id}
    s.world.delete_topic(T)
    s.world.add_topic(T, {0: (1, 4)}, size_bytes=MB, configs=dict(THEIRS))
    s.journal.release()
    second = s.process()
    (run,) = second.open_runs()
    assert run.moves[T0].topic_id != s.world.topics[T].topic_id
    result = second.resume(run)
    assert [e.outcome for e in result.endings] == ["topic-recreated"]
    assert s.world.topics[T].configs == THEIRS


class Replaced(SimCluster):
    """Another topic of the name is made while a call is on its way, before or after what it does; the process hears late."""

    def __init__(self, world: SimWorld, call: str) -> None:
        super().__init__(world)
        self._call: str | None = call
        self.is_armed = False

    def alter_configs(self, changes: Collection[ConfigChange]) -> Mapping[ConfigResource, Outcome]:
        """The throttle is set on the old topic."""
        outcomes = super().alter_configs(changes)
        self._replace("alter_configs")
        return outcomes

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """The move of the old topic, when another one has its name."""
        listed = super().reassignments()
        if self.is_armed:
            self._replace("reassignments")
        return listed

    def _replace(self, call: str) -> None:
        if call == self._call:
            self._call = None
            self.world.delete_topic(T)
            self.world.add_topic(T, {0: (1, 2)}, size_bytes=100 * MB, configs=dict(THEIRS))
            if call == "reassignments":
                self.world.controller.alter(T0, (1, 4), allow_rf_change=False)
            # Its metadata is there a moment later.
            self.world.clock.sleep(2)


def test_what_was_judged_on_the_old_topic_is_not_sent_to_the_new_one() -> None:
    """Its replicas are those that the plan was made for, and its throttle is being set: nothing moves it."""
    s = scene({0: (1, 2)})
    s.cluster = Replaced(s.world, "alter_configs")
    s.driver = Driver(s.cluster, s.journal, s.world.clock, s.ears)
    policy = ExecutionPolicy(throttle=3 * MB, measure_s=0)
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2))), policy, run_id="r")
    assert [e.outcome for e in result.endings] == ["topic-recreated"]
    assert tuple(s.world.partition(T, 0).replicas) == (1, 2)
    assert s.world.topics[T].configs == THEIRS


def test_a_cancel_is_not_sent_to_a_move_of_the_new_topic() -> None:
    """Asked for on the old one, in the moment in which the new one's move begins."""
    s = scene({0: (1, 2)})
    s.cluster = cluster = Replaced(s.world, "reassignments")
    s.driver = Driver(s.cluster, s.journal, s.world.clock, s.ears)

    def cancel() -> None:
        s.driver.ask(Command.CANCEL)
        cluster.is_armed = True

    s.driver.listen(At(Moving, cancel))
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2))), ExecutionPolicy(throttle="none"), run_id="r")
    assert [e.outcome for e in result.endings] == ["topic-recreated"]
    s.world.clock.sleep(60)
    assert tuple(s.world.partition(T, 0).replicas) == (1, 4)


@pytest.mark.parametrize("stands_s", [60.0, 600.0])
def test_a_process_that_stood_still_sets_nothing_on_what_it_read_before(stands_s: float) -> None:
    """Between reading the settings and changing them it was stopped; what it woke up to is another topic."""
    s = scene({0: (1, 2)})
    journal = StandsStill(s.store, s.world.clock)
    s.journal.release()
    journal.acquire(holder("slow"))

    def recreate() -> None:
        s.world.delete_topic(T)
        s.world.add_topic(T, {0: (1, 4)}, size_bytes=MB, configs=dict(THEIRS))

    s.driver = Driver(s.cluster, journal, s.world.clock, s.ears)

    def sleep() -> None:
        journal.stands_s = stands_s
        s.world.clock.after(stands_s / 2, recreate)

    s.driver.listen(At(Throttled, sleep))
    policy = ExecutionPolicy(throttle=3 * MB, measure_s=0)
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2))), policy, run_id="r")
    assert [e.outcome for e in result.endings] == ["topic-recreated"]
    assert s.world.topics[T].configs == THEIRS
    assert tuple(s.world.partition(T, 0).replicas) == (1, 4)
    assert s.throttles() == {f"topic {T} {key}": value for key, value in THEIRS.items()}


def test_a_topic_that_is_made_again_while_its_settings_are_awaited_gets_none() -> None:
    """What this process has set a moment ago does not show on the new one; that is not waited for, nor set again."""
    s = scene({0: (1, 2), 1: (1, 2)}, size_bytes=10 * MB)

    def recreate() -> None:
        s.world.delete_topic(T)
        # Seen as another one only after the next throttle has begun to be set.
        s.world.add_topic(T, {0: (1, 2), 1: (1, 2)}, size_bytes=MB, configs={}, lag_s=0.6)

    moves = Move(T, 0, (1, 2), (3, 2)), Move(T, 1, (1, 2), (3, 2))
    policy = ExecutionPolicy(throttle=30 * MB, measure_s=0, moves_at_once=1, poll_s=1.0)
    s.driver.listen(At(Unthrottled, recreate))
    result = s.driver.execute(s.plan(*moves), policy, run_id="r")
    assert {e.outcome for e in result.endings} == {"topic-recreated"}
    assert s.world.topics[T].configs == {}
    assert s.throttles() == {}
    assert not load_ledger(s.journal.read())


class StandsStill(MemoryJournal):
    """The process is stopped right after an append."""

    stands_s = 0.0

    def append(self, records: Sequence[Record]) -> None:
        """Write, then stand still once."""
        super().append(records)
        if any(r.key.startswith("throttle/") for r in records):
            stands_s, self.stands_s = self.stands_s, 0.0
            self._clock.sleep(stands_s)

"""A topic is deleted and another one of its name is made while a run moves it: that one is nobody's to move or to change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.unit.executor.scenes import MB, T, scene

from ballast.core.cluster import TopicPartition
from ballast.core.fingerprint import with_topic_ids
from ballast.core.plan import Move
from ballast.core.throttles import LISTS
from ballast.executor.events import Happening, MoveChanged, RunResult
from ballast.executor.ledger import load_ledger, load_topic_ids
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.records import load_runs
from ballast.executor.rollback import rollback_plan
from ballast.executor.run import Now, Stage

T0 = TopicPartition(T, 0)
THEIRS = dict.fromkeys(LISTS, "0:1,0:3")


@dataclass
class At:
    """Does something once, when a move enters a stage."""

    stage: Stage
    act: Callable[[], None] | None

    def hear(self, happening: Happening) -> None:
        """Act once."""
        if self.act is not None and isinstance(happening, MoveChanged) and happening.after is self.stage:
            act, self.act = self.act, None
            act()


def test_moves_end_and_nothing_of_the_new_topic_is_touched() -> None:
    """Neither its replicas nor its throttle lists, whose entries look like ours."""
    s = scene({0: (1, 2)})

    def recreate() -> None:
        s.world.delete_topic(T)
        s.world.add_topic(T, {0: (1, 4)}, size_bytes=MB, configs=dict(THEIRS))

    s.driver.listen(At(Stage.MOVING, recreate))
    policy = ExecutionPolicy(throttle=3 * MB, measure_s=0)
    result: RunResult = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2))), policy, run_id="r")
    assert [(e.subject, e.outcome) for e in result.endings] == [(f"{T}-0", "topic-recreated")]
    assert s.world.topics[T].configs == THEIRS
    assert s.cluster.partitions([T0])[T0].replicas == (1, 4)
    assert result.debts == ()
    assert not load_ledger(s.journal.read())


def test_a_plan_made_before_is_not_carried_out_on_the_new_topic() -> None:
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
    s.driver.listen(At(Stage.MOVING, s.driver.leave))
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

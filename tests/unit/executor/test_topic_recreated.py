"""A topic is deleted and another one of its name is made while a run moves it: that one is nobody's to move or to change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.unit.executor.scenes import MB, T, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.core.throttles import LISTS
from ballast.executor.events import Happening, MoveChanged, RunResult
from ballast.executor.ledger import load_ledger, load_topic_ids
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.run import Stage

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

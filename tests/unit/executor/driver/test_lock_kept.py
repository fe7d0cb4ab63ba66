"""Before its first move a run waits for the journal's replicas, while others move partitions: it keeps the lock, and begins."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tests.unit.executor.scenes import MB, T, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.journal_replication import COPIED_WITHIN_S
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.cluster import PartitionState, Reassignment
from ballast.ports.journal import JOURNAL_TOPIC
from ballast.ports.journal_lease import LeaseWatch
from ballast.sim import SimCluster, SimWorld

JOURNAL = TopicPartition(JOURNAL_TOPIC, 0)
MOVE = Move(T, 0, (1, 2), (3, 2), 20 * MB)


class Restless(SimCluster):
    """Another tool starts a move with every listing."""

    def __init__(self, world: SimWorld) -> None:
        super().__init__(world)
        self._listings = 0

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Ours, and one more of theirs each time."""
        self._listings += 1
        theirs = TopicPartition("theirs", self._listings)
        return {**super().reassignments(), theirs: Reassignment((1, 2, 4), (4,), (2,))}


def test_moves_that_others_start_all_the_time_do_not_hold_up_the_start() -> None:
    """A late write of a predecessor can only repeat the journal; what is not in there is not waited for."""
    s = scene()
    s.cluster = Restless(s.world)
    s.driver = Driver(s.cluster, s.journal, s.world.clock, s.ears)
    s.world.clock.after(300, s.driver.leave)
    result = s.driver.execute(s.plan(MOVE), ExecutionPolicy(), run_id="r")
    assert (result.status, result.verified) == ("done", 1)
    assert result.seconds < 60


class SlowJournal(SimCluster):
    """The journal's new replicas never come into sync."""

    def partitions(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
        """Of the journal, one in sync."""
        seen = dict(super().partitions(names))
        if JOURNAL in names:
            seen[JOURNAL] = PartitionState(1, (1,), (1,))
        return seen


def test_the_lock_is_kept_while_the_journal_gets_its_replicas() -> None:
    """That wait is longer than a lease: a process that waits for the lock does not get it."""
    s = scene()
    s.world.add_topic(JOURNAL_TOPIC, {0: (1,)}, size_bytes=1000.0)
    s.cluster = SlowJournal(s.world)
    s.driver = Driver(s.cluster, s.journal, s.world.clock, s.ears)
    watch, lapsed = LeaseWatch(s.world.clock.monotonic_s()), []

    def look() -> None:
        lapsed.append(watch.may_take(s.store.view.lease(), s.world.clock.monotonic_s()))
        s.world.clock.after(1, look)

    look()
    began_s = s.world.clock.monotonic_s()
    assert s.driver.execute(s.plan(MOVE), ExecutionPolicy(), run_id="r").status == "done"
    assert s.world.clock.monotonic_s() - began_s > COPIED_WITHIN_S
    assert len(lapsed) > COPIED_WITHIN_S
    assert not any(lapsed)

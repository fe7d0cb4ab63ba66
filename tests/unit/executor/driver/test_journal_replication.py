"""What a run does with the journal's own topics: it moves them last and keeps enough copies of them."""

from __future__ import annotations

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Move, Plan
from ballast.executor.driver.events import MoveChanged, RunEvent
from ballast.executor.driver.journal_replication import KEY, MIN_ISR, emptied_brokers, lacking
from ballast.executor.journal.notes import RunNote
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.stages import Planned
from ballast.ports.cluster import ConfigResource
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC, Record

JOURNAL = TopicPartition(JOURNAL_TOPIC, 0)


def moving_order(heard: list[RunEvent]) -> list[TopicPartition]:
    """Partitions in the order in which their moves left the waiting line."""
    return [h.name for h in heard if isinstance(h, MoveChanged) and isinstance(h.before, Planned)]


def with_journal(replicas: tuple[int, ...] = (1, 2, 3), *, brokers: int = 4) -> Scene:
    """Three partitions of a topic and the journal."""
    s = scene(dict.fromkeys(range(3), (1, 2)), brokers=brokers, size_bytes=20 * MB)
    for topic in (JOURNAL_TOPIC, REQUESTS_TOPIC):
        s.world.add_topic(topic, {0: replicas}, size_bytes=MB)
    return s


def journal_first(s: Scene, *, wanted: tuple[int, ...] = (4, 2, 3)) -> Plan:
    """A plan that names the journal before anything else."""
    moves = [Move(T, p, (1, 2), (3, 2), 20 * MB) for p in range(3)]
    return s.plan(Move(JOURNAL_TOPIC, 0, (1, 2, 3), wanted, MB), *moves)


@pytest.mark.parametrize("wanted", [(4, 2, 3), (2, 1, 3)])
def test_the_journal_moves_when_all_others_have_arrived(wanted: tuple[int, ...]) -> None:
    """Whatever the plan's order, and also where its list is only turned round."""
    s = with_journal()
    arrived: dict[TopicPartition, bool] = {}

    class Watch:
        def on_event(self, event: RunEvent) -> None:
            s.ears.on_event(event)
            if isinstance(event, MoveChanged) and isinstance(event.before, Planned):
                others = [TopicPartition(T, p) for p in range(3)]
                arrived[event.name] = all(s.cluster.partitions([n])[n].replicas == (3, 2) for n in others)

    s.driver.listen(Watch())
    policy = ExecutionPolicy(moves_in_per_broker=1)
    assert s.driver.execute(journal_first(s, wanted=wanted), policy, run_id="r").status == "done"
    assert moving_order(s.ears.heard)[-1] == JOURNAL
    assert arrived[JOURNAL]
    assert s.cluster.partitions([JOURNAL])[JOURNAL].replicas == wanted


def test_a_move_that_cannot_begin_does_not_keep_the_journal_from_its_repair() -> None:
    """One partition has no leader to be copied from; the journal is moved away from the down broker all the same."""
    s = with_journal()
    s.world.add_topic("lost", {0: (1,)}, size_bytes=MB)
    s.world.kill(1)
    s.world.clock.sleep(30)
    plan = s.plan(Move("lost", 0, (1,), (2,), MB), Move(JOURNAL_TOPIC, 0, (1, 2, 3), (4, 2, 3), MB))
    result = s.driver.execute(plan, ExecutionPolicy(guard_timeout_s=20), run_id="r")
    assert result.status == "refused"
    assert s.cluster.partitions([JOURNAL])[JOURNAL].replicas == (4, 2, 3)


def test_a_journal_begun_on_one_broker_is_kept_on_three() -> None:
    """Before the run begins both topics get two more replicas and a min ISR of two, and nothing of the intent is left."""
    s = with_journal(replicas=(2,))
    assert s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 20 * MB)), ExecutionPolicy(), run_id="r").status == "done"
    for topic in (JOURNAL_TOPIC, REQUESTS_TOPIC):
        name = TopicPartition(topic, 0)
        replicas = s.cluster.partitions([name])[name].replicas
        assert replicas[0] == 2
        assert len(set(replicas)) == 3
        resource = ConfigResource("topic", topic)
        assert s.cluster.configs([resource])[resource][MIN_ISR].value == "2"
    assert KEY not in {r.key for r in s.journal.read() if r.value is not None}
    assert any(isinstance(h, RunNote) and h.code == "journal-replicated" for h in s.ears.heard)


def test_a_plan_for_the_journal_is_executed_as_it_was_made() -> None:
    """A topic that the run moves is left alone; the other one is strengthened."""
    s = with_journal(replicas=(2,))
    plan = s.plan(Move(JOURNAL_TOPIC, 0, (2,), (4,), MB))
    assert s.driver.execute(plan, ExecutionPolicy(), run_id="r").status == "done"
    other = TopicPartition(REQUESTS_TOPIC, 0)
    assert s.cluster.partitions([JOURNAL])[JOURNAL].replicas == (4,)
    assert len(s.cluster.partitions([other])[other].replicas) == 3


@pytest.mark.parametrize("value", [{"topics": "?"}, {"version": 2, "topics": {}}, {"version": 1, "topics": [1]}])
def test_a_record_of_replicas_that_cannot_be_read_keeps_no_run_from_starting(value: dict[str, object]) -> None:
    """The replicas are left alone and the person is told which record it is; the run goes on."""
    s = with_journal()
    s.journal.append([Record(KEY, value)])
    assert s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 20 * MB)), ExecutionPolicy(), run_id="r").status == "done"
    (note,) = [h for h in s.ears.heard if isinstance(h, RunNote) and h.code == "journal-replicas-kept"]
    assert KEY in str(note)


def test_a_journal_replication_that_was_cut_short_is_finished_before_the_next_run() -> None:
    """The destination dies before it has copied: the run goes on, and the min ISR follows when the copy is there."""
    s = with_journal(replicas=(2, 3), brokers=3)
    s.world.clock.at(s.world.clock.monotonic_s() + 1.2, lambda: s.world.kill(1))
    first = s.plan(Move(T, 0, (1, 2), (2, 1), 20 * MB))
    s.driver.execute(first, ExecutionPolicy(guard_timeout_s=5), run_id="r")
    resource = ConfigResource("topic", JOURNAL_TOPIC)
    assert MIN_ISR not in s.cluster.configs([resource])[resource]
    assert KEY in {r.key for r in s.journal.read()}
    s.world.start(1)
    s.world.clock.sleep(120)
    assert (
        s.process().execute(s.plan(Move(T, 1, (1, 2), (2, 1), 20 * MB)), ExecutionPolicy(), run_id="q").status == "done"
    )
    assert s.cluster.configs([resource])[resource][MIN_ISR].value == "2"
    assert KEY not in {r.key for r in s.journal.read() if r.value is not None}


def picture(*, alive: tuple[int, ...], replicas: tuple[int, ...]) -> ClusterState:
    """A cluster of four brokers in two racks that holds nothing but the journal."""
    brokers = tuple(Broker(i, f"r{i % 2}", alive=i in alive) for i in range(1, 5))
    row = PartitionRow(JOURNAL_TOPIC, 0, replicas[0], replicas, replicas)
    return build("c", brokers, (Topic(JOURNAL_TOPIC),), [row])


@pytest.mark.parametrize(
    ("alive", "replicas", "avoid", "wanted"),
    [
        ((1, 2, 3, 4), (1,), (), (1, 2, 3)),
        ((1, 2, 3, 4), (1,), (2,), (1, 4, 3)),
        ((1, 2), (1,), (), (1, 2)),
        ((1,), (1,), (), None),
        ((1, 2, 3, 4), (1, 2, 4), (), None),
        ((1, 2, 3, 4), (4, 3, 2, 1), (), None),
    ],
)
def test_where_more_replicas_go(
    alive: tuple[int, ...], replicas: tuple[int, ...], avoid: tuple[int, ...], wanted: tuple[int, ...] | None
) -> None:
    """Another rack first, live brokers only, never one that the plan empties; a longer list is left alone."""
    found = lacking(picture(alive=alive, replicas=replicas), avoid=avoid)
    assert found == ({} if wanted is None else {JOURNAL: wanted})


def test_brokers_that_a_plan_empties() -> None:
    """A broker that gives and takes is not one of them."""
    plan = Plan("x", "c", "", moves=(Move(T, 0, (1, 2), (3, 2)), Move(T, 1, (3, 2), (3, 4))))
    assert emptied_brokers(plan) == {1, 2}

"""Decommission in phases: what comes next is told from the cluster alone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.planner.clusters import cluster, clusters
from tests.unit.core.planner.demands import lists_after as after
from tests.unit.core.planner.test_planner import cluster_like

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, build
from ballast.core.planner.retirement import DecommissionPhase, count_held, next_step

FOUR = frozenset({4})


def walk(state: ClusterState, brokers: frozenset[int]) -> tuple[list[DecommissionPhase], ClusterState]:
    """Execute step after step until nothing is left to do."""
    phases: list[DecommissionPhase] = []
    while True:
        step = next_step(state, brokers, leadership=phases[-1:] != [DecommissionPhase.LEADERSHIP])
        phases.append(step.phase)
        if step.plan is None or step.phase is DecommissionPhase.STUCK:
            return phases, state
        state = cluster_like(state, after(state, step.plan))


def test_leadership_goes_first_then_data_then_the_word() -> None:
    """The first plan copies nothing, the second moves followers alone, the third says that it is over."""
    state = cluster(*[(1, 2), (2, 3), (3, 4), (4, 1)] * 3, brokers=5)
    first = next_step(state, FOUR)
    assert first.phase is DecommissionPhase.LEADERSHIP
    assert first.plan is not None
    assert first.plan.bytes_moved == 0
    state = cluster_like(state, after(state, first.plan))
    assert 4 not in state.partitions.leader.tolist()
    second = next_step(state, FOUR)
    assert second.phase is DecommissionPhase.DATA
    assert second.plan is not None
    assert all(m.old[0] != 4 for m in second.plan.moves)
    state = cluster_like(state, after(state, second.plan))
    third = next_step(state, FOUR)
    assert third.phase is DecommissionPhase.SAFE
    assert "can be stopped safely" in third.sentence


def test_what_lands_on_it_meanwhile_is_followed() -> None:
    """A new partition on the empty broker starts the phases again."""
    state = cluster((1, 2), (2, 3), brokers=4)
    assert next_step(state, FOUR).phase is DecommissionPhase.SAFE
    assert walk(cluster((1, 2), (2, 3), (4, 1), brokers=4), FOUR)[0] == [
        DecommissionPhase.LEADERSHIP,
        DecommissionPhase.DATA,
        DecommissionPhase.SAFE,
    ]


def test_a_partition_with_one_replica_goes_with_its_leader() -> None:
    """No other broker can lead it, so leadership is not waited for."""
    assert walk(cluster((4,), (1,), brokers=4), FOUR)[0] == [DecommissionPhase.DATA, DecommissionPhase.SAFE]


def test_what_cannot_go_is_named() -> None:
    """Three replicas on three brokers leave nowhere to go."""
    step = next_step(cluster((1, 2, 4), brokers=2), FOUR, leadership=False)
    assert step.phase is DecommissionPhase.STUCK
    assert "still holds 1 partition that cannot go: t-0" in step.sentence
    assert step.then.startswith("Then it still holds 1 partition that cannot go: t-0")


def test_a_step_can_be_said_after_another() -> None:
    """The brokers are not named a second time."""
    data = next_step(cluster((4, 1), (1, 4), brokers=4), FOUR, leadership=False)
    assert (data.sentence, data.then) == (
        "Broker 4: 2 replicas move to other brokers.",
        "Then 2 replicas move to other brokers.",
    )
    safe = next_step(cluster((1, 2), brokers=4), FOUR)
    assert safe.then == "Then it holds no replica and leads nothing: it can be stopped safely."


def test_a_move_in_flight_is_waited_for() -> None:
    """The union still has the broker, and the partition is being moved already."""
    row = PartitionRow("t", 0, 1, (1, 2, 4), (1, 4), adding=(2,), removing=(4,), sizes=(5, 1, 5))
    state = build("c", tuple(Broker(i) for i in (1, 2, 4)), (Topic("t"),), [row])
    assert next_step(state, FOUR).phase is DecommissionPhase.WAITING
    assert count_held(state, FOUR) == 1


def test_the_active_controller_is_told_apart() -> None:
    """It can be stopped as well, and the word says what happens."""
    brokers = (Broker(1), Broker(2), Broker(4, controller=True))
    state = build("c", brokers, (Topic("t"),), [PartitionRow("t", 0, 1, (1, 2), (1, 2), sizes=(5, 5))])
    assert "active controller" in next_step(state, FOUR).sentence


@settings(max_examples=60)
@given(st.data())
def test_the_word_is_given_only_of_empty_brokers(data: st.DataObject) -> None:
    """Whatever the cluster: the phases end, in this order, and safe means that nothing is held."""
    state = data.draw(clusters())
    leaving = frozenset(data.draw(st.sets(st.sampled_from([b.id for b in state.brokers]), min_size=1, max_size=2)))
    phases, end = walk(state, leaving)
    assert phases[-1] in {DecommissionPhase.SAFE, DecommissionPhase.STUCK}
    assert (phases[-1] is DecommissionPhase.SAFE) == (count_held(end, leaving) == 0)
    if phases[-1] is DecommissionPhase.SAFE:
        assert phases == [
            p for p in (DecommissionPhase.LEADERSHIP, DecommissionPhase.DATA, DecommissionPhase.SAFE) if p in phases
        ]

"""No replica is added where brokers would refuse ``acks=all`` writes until it is in sync, unless a user allows it."""

from __future__ import annotations

from typing import Literal

import pytest

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.guards import judge
from ballast.core.plan import Move, Plan
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, new_run
from ballast.executor.machine.scheduling.schedule import start
from ballast.executor.machine.stages import Planned
from ballast.executor.machine.transitions import Effect

NAME = TopicPartition("t", 0)


def state_of(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    min_isr: int,
    *,
    version: str | None = "4.3",
    adding: tuple[int, ...] = (),
) -> ClusterState:
    """One partition; broker 5 is down."""
    brokers = tuple(Broker(b, host="h", alive=b != 5) for b in range(1, 7))
    row = PartitionRow("t", 0, isr[0], replicas, isr, adding=adding, sizes=(1,) * len(replicas))
    return build("c", brokers, (Topic("t", min_isr=min_isr),), [row], kafka_version=version)


@pytest.mark.parametrize(
    ("state", "new", "held"),
    [
        pytest.param(state_of((1,), (1,), 2), (2,), True, id="one-replica-moves"),
        pytest.param(state_of((1,), (1,), 2), (1, 2, 3), True, id="replication-factor-raised"),
        pytest.param(state_of((1, 2), (1, 2), 3), (1, 3), True, id="one-of-two-moves"),
        pytest.param(state_of((1,), (1,), 2, version=None), (2,), True, id="version-unknown"),
        pytest.param(state_of((1,), (1,), 2, version="3.6"), (2,), False, id="refused-already-before-37"),
        pytest.param(state_of((1,), (1,), 1), (2,), False, id="min-isr-of-one"),
        pytest.param(state_of((1, 2, 3), (1, 2, 3), 2), (1, 2, 4), False, id="usual"),
        pytest.param(state_of((1, 2, 3), (1, 2, 3), 3), (4, 1, 2), False, id="as-many-as-replicas"),
        pytest.param(state_of((1, 2), (1, 2), 3), (2, 1), False, id="order-alone"),
        pytest.param(state_of((1, 2), (1, 2), 3), (1,), False, id="fewer"),
        pytest.param(state_of((1, 5), (1,), 3), (1, 3), False, id="offline-replica-replaced"),
        pytest.param(state_of((1, 2), (1,), 3), (1, 3), False, id="already-under"),
        pytest.param(state_of((1, 2), (1,), 2, adding=(2,)), (1, 2), False, id="in-flight-already"),
    ],
)
@pytest.mark.parametrize("allowed", [False, True])
def test_a_copy_waits_where_it_alone_would_refuse_writes(
    state: ClusterState, new: tuple[int, ...], *, held: bool, allowed: bool
) -> None:
    """By the brokers' own count: the lesser of min.insync.replicas and the replicas, old and new together."""
    move = Move("t", 0, state.settled_replicas(0), new, 1)
    found = judge([move], state, ours={NAME: move}, room={}, allow_replicas_below_min_isr=allowed)
    assert (NAME in found and found[NAME].code == "replicas-below-min-isr") is (held and not allowed)


@pytest.mark.parametrize("word", ["refuse", "allow"])
def test_a_run_goes_by_its_policy(word: Literal["refuse", "allow"]) -> None:
    """``replicas_below_min_isr``, the one setting for it."""
    state = state_of((1,), (1,), 2)
    plan = Plan("test", "c", "", (Move("t", 0, (1,), (2,), 1),))
    run = new_run("r", plan, ExecutionPolicy(replicas_below_min_isr=word, throttle="none"), Now(0, 0.0))
    effects: list[Effect] = []
    picture = Picture({}, {}, frozenset(), frozenset(range(1, 7)), state=state)
    run = start(run, picture, Now(0, 1.0), effects)
    assert isinstance(run.moves[NAME].stage, Planned) is (word == "refuse")
    assert [v.code for v in run.verdicts] == (["replicas-below-min-isr"] if word == "refuse" else [])
    assert bool(effects) is (word == "allow")


def test_unknown_holds_nothing_where_every_replica_is_in_sync() -> None:
    """A minimum that no broker told: see ``min-isr-unknown`` for the partitions that lack a replica."""
    state = state_of((1,), (1,), UNKNOWN)
    move = Move("t", 0, (1,), (2,), 1)
    assert judge([move], state, ours={NAME: move}, room={}) == {}

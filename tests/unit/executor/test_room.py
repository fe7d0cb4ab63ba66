"""Room at the destination: refused beforehand with the arithmetic, and named when it is gone in mid-move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import Broker, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.guards import judge, rooms
from ballast.core.plan import Move
from ballast.executor.absorb import absorb
from ballast.executor.observation import Picture
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.run import MoveRun, Now, Run, Stage
from ballast.ports.cluster import BrokerLogs, PartitionState, Reassignment, ReplicaLog

MB = 1_000_000
NAME = TopicPartition("t", 0)
LARGE, SMALL = (
    LogDir("/large", total_bytes=1000 * MB, usable_bytes=900 * MB),
    LogDir("/small", total_bytes=40 * MB, usable_bytes=30 * MB),
)


def verdict(size_now: int, planned: int, log_dirs: tuple[str, ...] | None = None) -> str:
    """What the guards say to a move onto broker 2, which has a large and a small log dir."""
    brokers = (Broker(1, host="h"), Broker(2, host="h", log_dirs=(LARGE, SMALL), log_dirs_known=True))
    state = build("c", brokers, (Topic("t"),), [PartitionRow("t", 0, 1, (1,), (1,), sizes=(size_now,))])
    move = Move("t", 0, (1,), (2,), planned, log_dirs=log_dirs)
    found = judge([move], state, ours={NAME: move}, room=rooms(state, {}, 0.0))
    return str(found.get(NAME, ""))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        pytest.param((50 * MB, 50 * MB, ("/small",)), "Log dir /small of broker 2 has 30.0 MB to spare", id="dir"),
        pytest.param((50 * MB, 50 * MB, ("any",)), "", id="any-dir"),
        pytest.param((50 * MB, 50 * MB, ("/large",)), "", id="other-dir"),
        pytest.param((20 * MB, 20 * MB, ("/small",)), "", id="fits"),
        pytest.param((950 * MB, 1 * MB), "Broker 2 has 930 MB to spare and t-0 needs 950 MB", id="grown"),
        pytest.param((1 * MB, 950 * MB), "and t-0 needs 950 MB", id="shrunk"),
        pytest.param((-1, 20 * MB), "", id="size-not-told"),
    ],
)
def test_a_replica_must_fit_where_it_is_to_go(asked: tuple[int, int, tuple[str, ...]], says: str) -> None:
    """The log dir asked for counts, and the size that the partition has by now as well as the plan's."""
    said = verdict(*asked)
    assert says in said
    assert bool(said) is bool(says)


def after_looks(*looks: BrokerLogs | None) -> MoveRun:
    """A move onto broker 2, seen every ten seconds; None is a look in which that broker did not answer."""
    move = Move("t", 0, (1,), (2,), 100 * MB)
    run = Run("r", "test", "c", ExecutionPolicy(), {NAME: MoveRun(move, stage=Stage.MOVING)}, {})
    picture = Picture(
        reassignments={NAME: Reassignment((1, 2), (2,), (1,))},
        partitions={NAME: PartitionState(1, (2, 1), (1,))},
        names=frozenset({NAME}),
        alive=frozenset({1, 2}),
    )
    for seconds, logs in enumerate(looks, 1):
        seen = replace(picture, logs={} if logs is None else {2: logs})
        run = absorb(run, seen, Now(0, 10.0 * seconds))
    return run.moves[NAME]


def test_a_failed_log_dir_is_named_without_waiting_for_a_minute_of_silence() -> None:
    """A copy whose disk is gone cannot grow; a failed dir elsewhere does not disturb a copy that is there."""
    failed = replace(SMALL, error="KAFKA_STORAGE_ERROR")
    stalled = after_looks(*[BrokerLogs((LARGE, failed), {})] * 2)
    assert (stalled.stage, stalled.cause) == (Stage.STALLED, "log-dir-failed")
    assert "/small of broker 2 has failed" in stalled.detail
    copying = {NAME: (ReplicaLog("/large", 50 * MB, 0),)}
    assert after_looks(*[BrokerLogs((LARGE, failed), copying)] * 2).stage is Stage.MOVING
    assert after_looks(*[BrokerLogs((LARGE, SMALL), {})] * 2).stage is Stage.MOVING


def test_what_a_silent_destination_has_copied_is_not_taken_for_nothing() -> None:
    """The last known figure stands until the broker answers again."""
    half = BrokerLogs((LARGE,), {NAME: (ReplicaLog("/large", 50 * MB, 0),)})
    assert after_looks(half, None).copied_bytes == 50 * MB
    assert after_looks(half, BrokerLogs((LARGE,), {})).copied_bytes == 0


def test_a_light_reading_does_not_make_room() -> None:
    """Sizes that a light reading does not tell are those of the last one that did."""
    brokers = (Broker(1, host="h"), Broker(2, host="h", log_dirs=(LARGE, SMALL), log_dirs_known=True))
    light = build("c", brokers, (Topic("t"),), [PartitionRow("t", 0, 1, (1,), (1,))])
    move = Move("t", 0, (1,), (2,), 1 * MB, log_dirs=("/small",))
    assert judge([move], light, ours={NAME: move}, room={}) == {}
    (found,) = judge([move], light, ours={NAME: move}, room={}, sizes={NAME: 50 * MB}).values()
    assert found.code == "destination-full"

"""Room at the destination: refused beforehand with the arithmetic, and named when it is gone in mid-move."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from ballast.core.cluster import UNKNOWN, Broker, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.guards import judge, rooms
from ballast.core.plan import Move, Plan
from ballast.executor.machine.observation import Disks, Picture
from ballast.executor.machine.observe import observe
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.progress import Speedometer, total_of
from ballast.executor.machine.run import MoveRun, Now, Run, new_run, with_moves
from ballast.executor.machine.scheduling.batches import Caps, Load, choose
from ballast.executor.machine.scheduling.room import bytes_to_arrive
from ballast.executor.machine.scheduling.schedule import start
from ballast.executor.machine.stages import Moving, Planned, Relocating, Stage, Stalled, Verified
from ballast.executor.machine.transitions import Effect, EffectKind
from ballast.ports.cluster import BrokerLogs, PartitionState, Reassignment, ReplicaLog

MB = 1_000_000
NAME = TopicPartition("t", 0)
LARGE, SMALL = (
    LogDir("/large", total_bytes=1000 * MB, usable_bytes=900 * MB),
    LogDir("/small", total_bytes=40 * MB, usable_bytes=30 * MB),
)


def figures(size_now: int, planned: int, log_dirs: tuple[str, ...] | None = None) -> tuple[object, ...] | None:
    """What the guards say to a move onto broker 2, which has a large and a small log dir."""
    brokers = (Broker(1, host="h"), Broker(2, host="h", log_dirs=(LARGE, SMALL), log_dirs_known=True))
    state = build("c", brokers, (Topic("t"),), [PartitionRow("t", 0, 1, (1,), (1,), sizes=(size_now,))])
    move = Move("t", 0, (1,), (2,), planned, log_dirs=log_dirs)
    found = judge([move], state, ours={NAME: move}, room=rooms(state, {}, 0.0)).get(NAME)
    if found is None:
        return None
    assert (found.code, found.subject) == ("destination-full", "broker 2")
    return tuple(found.values[name] for name in ("log_dir", "free", "size"))


@pytest.mark.parametrize(
    ("asked", "lacks"),
    [
        pytest.param((50 * MB, 50 * MB, ("/small",)), ("/small", 30 * MB, 50 * MB), id="dir"),
        pytest.param((50 * MB, 50 * MB, ("any",)), None, id="any-dir"),
        pytest.param((50 * MB, 50 * MB, ("/large",)), None, id="other-dir"),
        pytest.param((20 * MB, 20 * MB, ("/small",)), None, id="fits"),
        pytest.param((950 * MB, 1 * MB), ("", 930 * MB, 950 * MB), id="grown"),
        pytest.param((1 * MB, 950 * MB), ("", 930 * MB, 950 * MB), id="shrunk"),
        pytest.param((-1, 20 * MB), None, id="size-not-told"),
    ],
)
def test_a_replica_must_fit_where_it_is_to_go(
    asked: tuple[int, int, tuple[str, ...]], lacks: tuple[str, int, int] | None
) -> None:
    """The log dir asked for counts, and the size that the partition has by now as well as the plan's."""
    assert figures(*asked) == lacks


def after_looks(*looks: BrokerLogs | None) -> MoveRun:
    """A move onto broker 2, seen every ten seconds; None is a look in which that broker did not answer."""
    move = Move("t", 0, (1,), (2,), 100 * MB)
    run = Run("r", "test", "c", ExecutionPolicy(), {NAME: MoveRun(move, stage=Moving())}, {})
    picture = Picture(
        reassignments={NAME: Reassignment((1, 2), (2,), (1,))},
        partitions={NAME: PartitionState(1, (2, 1), (1,))},
        names=frozenset({NAME}),
        alive=frozenset({1, 2}),
    )
    for seconds, logs in enumerate(looks, 1):
        seen = replace(picture, logs={} if logs is None else {2: logs})
        run = observe(run, seen, Now(0, 10.0 * seconds))
    return run.moves[NAME]


def test_a_failed_log_dir_is_named_without_waiting_for_a_minute_of_silence() -> None:
    """A copy whose disk is gone cannot grow; a failed dir elsewhere does not disturb a copy that is there."""
    failed = replace(SMALL, error="KAFKA_STORAGE_ERROR")
    stalled = after_looks(*[BrokerLogs((LARGE, failed), {})] * 2)
    assert (type(stalled.stage), stalled.cause) == (Stalled, "log-dir-failed")
    assert "/small of broker 2 is offline" in stalled.detail
    copying = {NAME: (ReplicaLog("/large", 50 * MB, 0),)}
    assert isinstance(after_looks(*[BrokerLogs((LARGE, failed), copying)] * 2).stage, Moving)
    assert isinstance(after_looks(*[BrokerLogs((LARGE, SMALL), {})] * 2).stage, Moving)


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
    room = rooms(light, {}, 0.0)
    assert judge([move], light, ours={NAME: move}, room=room) == {}
    (found,) = judge([move], light, ours={NAME: move}, room=room, sizes={NAME: 50 * MB}).values()
    assert found.code == "destination-full"


FAILED = LogDir("/failed", error="KAFKA_STORAGE_ERROR")


@pytest.mark.parametrize(
    ("dirs", "code"),
    [
        pytest.param((LARGE, FAILED), "", id="fits-beside-a-failed-dir"),
        pytest.param((SMALL, FAILED), "destination-full", id="too-much-for-the-healthy-dir"),
        pytest.param((FAILED,), "destination-space-unknown", id="every-dir-failed"),
        pytest.param((), "destination-space-unknown", id="did-not-answer"),
        pytest.param((LogDir("/old"),), "destination-space-unknown", id="tells-no-sizes"),
    ],
)
def test_a_failed_log_dir_does_not_switch_the_check_off(dirs: tuple[LogDir, ...], code: str) -> None:
    """What the healthy ones have left counts; where nothing is known, nothing goes."""
    brokers = (
        Broker(1, host="h", log_dirs=(LARGE,), log_dirs_known=True),
        Broker(2, host="h", log_dirs=dirs, log_dirs_known=bool(dirs)),
    )
    state = build("c", brokers, (Topic("t"),), [PartitionRow("t", 0, 1, (1,), (1,), sizes=(50 * MB,))])
    move = Move("t", 0, (1,), (2,), 50 * MB)
    found = judge([move], state, ours={NAME: move}, room=rooms(state, {}, 0.0))
    assert [v.code for v in found.values()] == ([code] if code else [])


def test_a_cluster_that_cannot_tell_room_is_not_held_back() -> None:
    """Brokers before Kafka 3.3 tell no sizes of disks."""
    old = (LogDir("/data"),)
    brokers = tuple(Broker(b, host="h", log_dirs=old, log_dirs_known=True) for b in (1, 2))
    state = build("c", brokers, (Topic("t"),), [PartitionRow("t", 0, 1, (1,), (1,), sizes=(50 * MB,))])
    move = Move("t", 0, (1,), (2,), 50 * MB)
    assert judge([move], state, ours={NAME: move}, room=rooms(state, {}, 0.0)) == {}


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize(
    ("present", "planned", "read", "code"),
    [
        pytest.param(UNKNOWN, UNKNOWN, {}, "size-unknown", id="unreported"),
        pytest.param(UNKNOWN, UNKNOWN, {NAME: 20 * MB}, "", id="last-full-reading"),
        pytest.param(UNKNOWN, 20 * MB, {}, "", id="plan"),
        pytest.param(20 * MB, UNKNOWN, {}, "", id="this-reading"),
        pytest.param(0, UNKNOWN, {}, "", id="known-to-be-empty"),
    ],
)
def test_a_partition_of_unknown_size_is_not_copied(
    present: int, planned: int, read: dict[TopicPartition, int], code: str, *, adds: bool
) -> None:
    """Unknown is not small enough; where nothing is copied its size does not matter, nor where a person says to trust it."""
    brokers = tuple(Broker(b, host="h", log_dirs=(LARGE,), log_dirs_known=True) for b in (1, 2))
    rows = [PartitionRow("t", 0, 1, (1, 2), (1, 2), sizes=(present, present))]
    if adds:
        rows = [PartitionRow("t", 0, 1, (1,), (1,), sizes=(present,))]
    state = build("c", brokers, (Topic("t"),), rows)
    move = Move("t", 0, (1,), (2,), planned) if adds else Move("t", 0, (1, 2), (2, 1), planned)
    about = {"ours": {NAME: move}, "room": rooms(state, {}, 0.0), "sizes": read}
    expected = [code] if code and adds else []
    assert [v.code for v in judge([move], state, **about).values()] == expected  # type: ignore[arg-type]
    assert judge([move], state, allow_unknown_disk_space=True, **about) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["refuse", "allow"])
def test_a_run_holds_moves_of_unknown_size_unless_told_otherwise(policy: Literal["refuse", "allow"]) -> None:
    """By ``unknown_disk_space``, the one setting for what is not known to fit."""
    brokers = tuple(Broker(b, host="h", log_dirs=(LARGE,), log_dirs_known=True) for b in (1, 2))
    state = build("c", brokers, (Topic("t"),), [PartitionRow("t", 0, 1, (1,), (1,))])
    plan = Plan("test", "c", "", (Move("t", 0, (1,), (2,)),))
    run = new_run("r", plan, ExecutionPolicy(unknown_disk_space=policy, throttle="none"), Now(0, 0.0))
    picture = Picture({}, {NAME: PartitionState(1, (1,), (1,))}, frozenset({NAME}), frozenset({1, 2}), state=state)
    effects: list[Effect] = []
    run = start(run, picture, Now(0, 1.0), effects)
    assert [v.code for v in run.verdicts] == (["size-unknown"] if policy == "refuse" else [])
    assert [e.kind for e in effects] == ([] if policy == "refuse" else [EffectKind.SUBMIT])


@pytest.mark.parametrize("unknown_first", [True, False])
def test_a_bound_of_bytes_in_flight_lets_a_move_of_unknown_size_go_alone(*, unknown_first: bool) -> None:
    """It may be any number of bytes: nothing begins beside it, and it begins beside nothing."""
    loads = [
        Load(Move("t", 0, (1,), (2,)), 1, 0, size_unknown=True),
        Load(Move("t", 1, (3,), (4,), 10 * MB), 3, 10 * MB),
    ]
    caps = Caps(moves_in_per_broker=9, moves_out_per_broker=9, moves_at_once=9, bytes_at_once=100 * MB)
    one, other = loads if unknown_first else reversed(loads)
    assert choose([other], [one], caps, rates={}, room={}) == []
    assert len(choose(loads, [], caps, rates={}, room={})) == 1
    assert len(choose(loads, [], replace(caps, bytes_at_once=None), rates={}, room={})) == 2


def test_bytes_and_time_left_are_not_told_while_a_size_is_unknown() -> None:
    """None, not the sum of the others; a reading that tells the size gives both back."""
    known, unknown = Move("t", 0, (1,), (2,), 20 * MB), Move("t", 1, (1,), (2,))
    run = new_run("r", Plan("test", "c", "", (known, unknown)), ExecutionPolicy(), Now(0, 0.0))
    shown = Speedometer().read(run, 0.0)
    assert (shown.bytes_total, shown.left_s) == (None, None)
    assert total_of([run.moves[known.name]]) == 20 * MB
    told = with_moves(run, {unknown.name: replace(run.moves[unknown.name], total_bytes=0)})
    assert Speedometer().read(told, 0.0).bytes_total == 20 * MB


def test_a_move_whose_size_is_not_told_on_its_way_stays_unknown() -> None:
    """Its destination answers; what belongs there is known only when a reading tells the partition's size."""
    m = MoveRun(Move("t", 0, (1,), (2,)), stage=Moving())
    run = Run("r", "test", "c", ExecutionPolicy(), {NAME: m}, {})
    logs = {2: BrokerLogs((LARGE,), {NAME: (ReplicaLog("/large", 5 * MB, 0),)})}
    picture = Picture(
        reassignments={NAME: Reassignment((1, 2), (2,), (1,))},
        partitions={NAME: PartitionState(1, (2, 1), (1,))},
        names=frozenset({NAME}),
        alive=frozenset({1, 2}),
        logs=logs,
    )
    seen = observe(run, picture, Now(0, 10.0)).moves[NAME]
    assert (seen.copied_bytes, seen.total_bytes, seen.size_unknown) == (5 * MB, None, True)
    seen = observe(run, replace(picture, sizes={NAME: 50 * MB}), Now(0, 10.0)).moves[NAME]
    assert (seen.copied_bytes, seen.total_bytes, seen.left_bytes) == (5 * MB, 50 * MB, 45 * MB)


def in_flight(*moves: tuple[int, tuple[str, ...] | None, int]) -> tuple[Run, Picture]:
    """Moves of 20 MB onto broker 2, of which the reading shows this much in the log dir that they name."""
    runs = [MoveRun(Move("t", n, (1,), (2,), 20 * MB, log_dirs=dirs), stage=Moving()) for n, dirs, _ in moves]
    shown = {TopicPartition("t", n): (ReplicaLog("/small", copied, 0),) for n, dirs, copied in moves if copied and dirs}
    disks = Disks(later={2: (0.0, BrokerLogs((), shown))})
    run = Run("r", "test", "c", ExecutionPolicy(), {m.move.name: m for m in runs}, {})
    return run, Picture({}, {}, frozenset(), frozenset({2}), disks=disks)


def test_what_is_in_flight_takes_room_in_the_log_dir_that_it_names() -> None:
    """One of two disks is spoken for: the other one, and the broker as a whole, have room left."""
    state = build("c", (Broker(2, host="h", log_dirs=(LARGE, SMALL), log_dirs_known=True),), (Topic("t"),), [])
    assert rooms(state, {}, 0.1) == {
        2: 826 * MB,
        (2, "/large"): 800 * MB,
        (2, "/small"): 26 * MB,
    }
    run, picture = in_flight((0, ("/small",), 5 * MB), (1, None, 0), (2, ("any",), 0))
    found = rooms(state, bytes_to_arrive(run, picture).bytes, 0.0)
    assert found[2, "/small"] == 15 * MB
    assert found[2, "/large"] == 900 * MB
    assert found[2] == (930 - 15 - 20 - 20) * MB


@pytest.mark.parametrize("moves_too", [False, True])
def test_a_copy_between_log_dirs_takes_room_beside_its_replica(*, moves_too: bool) -> None:
    """Until it has taken the replica's place, in the dir that it goes to and on the broker that holds both."""
    old = (3, 1) if moves_too else (2, 1)
    m = MoveRun(Move("t", 0, old, (2, 1), 20 * MB, log_dirs=("/small", "any")), stage=Relocating())
    m = replace(m, total_bytes=40 * MB if moves_too else 20 * MB, copied_bytes=28 * MB if moves_too else 8 * MB)
    run = Run("r", "test", "c", ExecutionPolicy(), {NAME: m}, {})
    there = (ReplicaLog("/large", 20 * MB, 0), ReplicaLog("/small", 8 * MB, 0, is_future=True))
    disks = Disks(later={2: (0.0, BrokerLogs((), {NAME: there}))})
    picture = Picture({}, {}, frozenset(), frozenset({2}), disks=disks)
    assert bytes_to_arrive(run, picture).bytes == {2: 12 * MB, (2, "/small"): 12 * MB}


@pytest.mark.parametrize(
    ("size", "lies", "path", "code"),
    [
        pytest.param(50 * MB, 0, "/small", "destination-full", id="too-large-for-the-other-dir"),
        pytest.param(20 * MB, 0, "/small", "", id="fits"),
        pytest.param(50 * MB, 1, "/small", "", id="lies-there-already"),
        pytest.param(50 * MB, UNKNOWN, "/small", "destination-full", id="unreported-where-it-lies"),
        pytest.param(UNKNOWN, 0, "/small", "size-unknown", id="size-unknown"),
        pytest.param(50 * MB, 0, "any", "", id="stays-where-it-is"),
    ],
)
def test_a_replica_that_changes_its_log_dir_must_fit_there(size: int, lies: int, path: str, code: str) -> None:
    """It is a copy like any other, though no broker is added."""
    brokers = (Broker(2, host="h", log_dirs=(LARGE, SMALL), log_dirs_known=True),)
    state = build("c", brokers, (Topic("t"),), [PartitionRow("t", 0, 2, (2,), (2,), sizes=(size,), log_dirs=(lies,))])
    move = Move("t", 0, (2,), (2,), size, log_dirs=(path,))
    found = judge([move], state, ours={NAME: move}, room=rooms(state, {}, 0.0))
    assert [v.code for v in found.values()] == ([code] if code else [])


def test_copies_between_log_dirs_that_fit_alone_do_not_begin_together() -> None:
    """Neither at one choice, nor the second before a reading has told of the first."""
    brokers = (Broker(2, host="h", log_dirs=(LARGE, SMALL), log_dirs_known=True),)
    rows = [PartitionRow("t", n, 2, (2,), (2,), sizes=(20 * MB,), log_dirs=(0,)) for n in range(2)]
    state = build("c", brokers, (Topic("t"),), rows)
    moves = tuple(Move("t", n, (2,), (2,), 20 * MB, log_dirs=("/small",)) for n in range(2))
    run = new_run("r", Plan("test", "c", "", moves), ExecutionPolicy(throttle="none"), Now(0, 0.0))
    names = frozenset(m.name for m in moves)
    picture = Picture({}, dict.fromkeys(names, PartitionState(2, (2,), (2,))), names, frozenset({2}), state=state)
    effects: list[Effect] = []
    for _ in range(2):
        run = start(run, picture, Now(0, 1.0), effects)
        assert len(run.moves_in(Planned)) == 1


def test_two_moves_that_fit_alone_do_not_begin_together_in_one_small_log_dir() -> None:
    """Neither at one choice, nor the second while the first is in flight; the broker's other disk does not help."""
    brokers = (Broker(1, host="h"), Broker(2, host="h", log_dirs=(LARGE, SMALL), log_dirs_known=True))
    rows = [PartitionRow("t", n, 1, (1,), (1,), sizes=(20 * MB,)) for n in range(3)]
    state = build("c", brokers, (Topic("t"),), rows)
    moves = [
        Move("t", n, (1,), (2,), 20 * MB, log_dirs=(path,)) for n, path in enumerate(["/small", "/small", "/large"])
    ]
    caps = Caps(moves_in_per_broker=9, moves_out_per_broker=9, moves_at_once=9)
    chosen = choose([Load(m, 1, 20 * MB) for m in moves], [], caps, rates={}, room=rooms(state, {}, 0.0))
    assert sorted(m.log_dirs or () for m in chosen) == [("/large",), ("/small",)]
    left = rooms(state, bytes_to_arrive(*in_flight((0, ("/small",), 0))).bytes, 0.0)
    found = judge(moves[1:], state, ours={m.name: m for m in moves}, room=left)
    assert [(n.partition, v.code) for n, v in found.items()] == [(1, "destination-full")]
    lacks = found[moves[1].name].values
    assert (lacks["broker"], lacks["log_dir"], lacks["free"], lacks["size"]) == (2, "/small", 10 * MB, 20 * MB)


def test_a_disk_whose_size_is_not_told_keeps_its_reserve() -> None:
    """It is at least as large as what is free on it."""
    disk = LogDir("/d", usable_bytes=100 * MB)
    state = build("c", (Broker(1, host="h", log_dirs=(disk,), log_dirs_known=True),), (), [])
    assert rooms(state, {}, 0.1)[1, "/d"] == 90 * MB


TO_TWO = Reassignment((1, 2), (2,), (1,))


@pytest.mark.parametrize("stage", [Moving(), Planned(), Verified()])
@pytest.mark.parametrize("listed", [True, False])
def test_a_copy_counts_once_whether_its_reassignment_is_ours_or_not(stage: Stage, *, listed: bool) -> None:
    """While it is listed, and when it was until a moment ago."""
    run = Run("r", "test", "c", ExecutionPolicy(), {NAME: MoveRun(Move("t", 0, (1,), (2,), 20 * MB), stage=stage)}, {})
    picture = Picture({NAME: TO_TWO} if listed else {}, {}, frozenset(), frozenset({1, 2}), sizes={NAME: 20 * MB})
    seen = replace(picture, ended={} if listed else {NAME: (TO_TWO, 5.0)})
    assert bytes_to_arrive(run, seen).bytes == {2: 20 * MB}


@pytest.mark.parametrize(("listed_s", "left"), [(30.0, {}), (45.0, {2: 20 * MB})])
def test_what_ended_before_its_broker_was_read_has_nothing_to_come(listed_s: float, left: dict[int, int]) -> None:
    """Whatever the whole reading before it did not show yet."""
    run = Run("r", "test", "c", ExecutionPolicy(), {}, {})
    disks = Disks(full_s=10.0, later={2: (40.0, BrokerLogs((), {}))})
    picture = Picture({}, {}, frozenset(), frozenset({1, 2}), disks=disks, sizes={NAME: 20 * MB})
    assert bytes_to_arrive(run, replace(picture, ended={NAME: (TO_TWO, listed_s)})).bytes == left


@pytest.mark.parametrize(
    ("ended_s", "later_s", "counts"),
    [(9.5, None, False), (10.0, None, True), (20.0, None, True), (20.0, 15.0, True), (20.0, 40.0, False)],
)
def test_a_move_that_has_ended_counts_until_its_destination_was_read(
    ended_s: float, later_s: float | None, *, counts: bool
) -> None:
    """By the whole reading at second 10, or by that broker's own; one that goes on beside it counts anyway."""
    other = Move("t", 1, (1,), (3,), 5 * MB)
    ended = MoveRun(Move("t", 0, (1,), (2,), 20 * MB), stage=Verified(), entered_s=ended_s)
    moves = {NAME: ended, other.name: MoveRun(other, stage=Moving(), entered_s=1.0)}
    run = Run("r", "test", "c", ExecutionPolicy(), moves, {})
    later = {} if later_s is None else {2: (later_s, BrokerLogs((), {}))}
    seen = Picture({}, {}, frozenset(), frozenset({1, 2}), disks=Disks(full_s=10.0, later=later))
    assert bytes_to_arrive(run, seen).bytes == ({2: 20 * MB, 3: 5 * MB} if counts else {3: 5 * MB})


def test_a_copy_of_unknown_size_is_told_by_its_partition() -> None:
    """The first one to each broker."""
    moves = [Move("t", 0, (1,), (2,)), Move("t", 1, (1,), (2,)), Move("t", 2, (1,), (3,))]
    run = Run("r", "test", "c", ExecutionPolicy(), {m.name: MoveRun(m, stage=Moving()) for m in moves}, {})
    found = bytes_to_arrive(run, Picture({}, {}, frozenset(), frozenset({1, 2, 3})))
    assert (found.unsized, found.bytes) == ({2: moves[0].name, 3: moves[2].name}, {})

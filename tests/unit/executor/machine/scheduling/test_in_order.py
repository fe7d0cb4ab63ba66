"""Runs whose moves need room that moves before them free: no disk overflows, and no two moves wait for each other."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.executor.scenes import MB, Ears, Scene, holder

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.guards import verdict
from ballast.core.plan import Move, Place, Plan
from ballast.core.plan.fingerprint import fingerprint
from ballast.executor.driver.driver import Driver
from ballast.executor.journal.records import dump_run, load_runs
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.rollback import rollback_plan
from ballast.executor.machine.run import MoveRun, Now, Run, new_run, with_moves
from ballast.executor.machine.scheduling.schedule import refuse_out_of_turn
from ballast.executor.machine.stages import Moving, Planned, Verified
from ballast.sim import SimBroker, SimClock, SimCluster, SimWorld
from ballast.sim.journal import JournalStore, MemoryJournal

POLICY = ExecutionPolicy()
NOW = Now(0, 0.0)


def move(number: int, source: int, target: int, size: int) -> Move:
    """One replica from broker to broker."""
    return Move("t", number, (source,), (target,), size)


def picture_of(moves: list[Move], *, out_of_sync: frozenset[int] = frozenset()) -> tuple[Picture, ClusterState]:
    """Every partition where its move begins."""
    rows = [
        PartitionRow(
            "t", m.partition, m.old[0], m.old, () if m.partition in out_of_sync else m.old, sizes=(m.size_bytes,)
        )
        for m in moves
    ]
    ids = {b for m in moves for b in (*m.old, *m.new)}
    state = build("c", tuple(Broker(b, host="h") for b in sorted(ids)), (Topic("t"),), rows)
    return Picture(reassignments={}, partitions={}, names=frozenset(m.name for m in moves), alive=frozenset(ids)), state


def run_of(moves: list[Move]) -> Run:
    """Nothing has started."""
    return new_run("r", Plan("test", "c", "", tuple(moves), in_order=True), POLICY, NOW)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 9)), min_size=1, max_size=14),
    st.lists(st.integers(0, 12), min_size=5, max_size=5),
    st.integers(0, 1 << 30),
)
def test_no_run_in_order_overfills_a_disk_or_comes_to_a_halt(
    drawn: list[tuple[int, int, int]], spare: list[int], seed: int
) -> None:
    """However its moves overlap, whichever starts or ends first: while one is left, one is on its way or may start."""
    moves: list[Move] = []
    walked: dict[Place, int] = dict(enumerate(spare, 1))
    for number, (source, target, size) in enumerate(drawn):
        # Only what fits at its turn is in a plan.
        if source != target and size <= walked[target]:
            moves.append(move(number, source, target, size))
            walked[target] -= size
            walked[source] += size
    run, random = run_of(moves), Random(seed)
    picture, state = picture_of(moves) if moves else (Picture({}, {}, frozenset(), frozenset()), build("c", (), (), []))
    room: dict[Place, int] = dict(enumerate(spare, 1))
    flying: list[Move] = []
    while waiting := [m.move for m in run.moves.values() if isinstance(m.stage, Planned)]:
        behind = refuse_out_of_turn(run, picture, state, room)
        ready = [m for m in waiting if m.name not in behind and m.size_bytes <= room[m.new[0]]]
        assert ready or flying, [str(v) for v in behind.values()]
        if ready and (not flying or random.random() < 0.6):
            begun = random.choice(ready)
            room[begun.new[0]] -= begun.size_bytes
            assert room[begun.new[0]] >= 0
            flying.append(begun)
            run = with_moves(run, {begun.name: MoveRun(begun, stage=Moving())})
        else:
            ended = flying.pop(random.randrange(len(flying)))
            room[ended.old[0]] += ended.size_bytes
            run = with_moves(run, {ended.name: MoveRun(ended, stage=Verified())})


def test_a_repair_does_not_wait_for_room_that_others_need() -> None:
    """A replica that is out of sync may be what the moves before it wait for."""
    moves = [move(0, 1, 2, 30), move(1, 3, 2, 30)]
    room: dict[Place, int] = {1: 50, 2: 40, 3: 50}
    for out_of_sync, held in ((frozenset[int](), [1]), (frozenset({1}), [])):
        picture, state = picture_of(moves, out_of_sync=out_of_sync)
        assert [n.partition for n in refuse_out_of_turn(run_of(moves), picture, state, room)] == held


def test_the_journal_keeps_the_order_and_the_way_back_goes_from_the_newest() -> None:
    """A resumed run and a rollback keep it: by when moves ended, not by when they were to begin."""
    run = run_of([move(0, 1, 2, 30), move(1, 3, 2, 30), move(2, 2, 1, 30)])
    (loaded,) = load_runs(dump_run(run), NOW).values()
    assert loaded.in_order
    ended = {1: 5, 0: 7, 2: 9}
    done = {n: MoveRun(m.move, stage=Verified(), since_ms=ended[n.partition]) for n, m in loaded.moves.items()}
    back = rollback_plan(with_moves(loaded, done))
    assert back.in_order
    assert [m.partition for m in back.moves] == [2, 0, 1]


SIZES = {"a": (1, 30), "b": (2, 30), "c": (3, 30), "rest1": (1, 60), "rest2": (2, 33)}


def crossing() -> Scene:
    """Brokers 1 and 2 can exchange ``a`` and ``b`` only as long as ``c``, which would fit, has not come to broker 2."""
    disks = {1: 100, 2: 100, 3: 1000}
    world = SimWorld(
        SimClock(), [SimBroker(id=b, nic_bytes_per_s=10 * MB, dir_bytes=(d * MB,)) for b, d in disks.items()]
    )
    for topic, (broker, size) in SIZES.items():
        world.add_topic(topic, {0: (broker,)}, size_bytes=size * MB)
    cluster, store = SimCluster(world), JournalStore()
    journal = MemoryJournal(store, world.clock)
    journal.acquire(holder("first"))
    ears = Ears()
    return Scene(world, cluster, store, journal, ears, Driver(cluster, journal, world.clock, ears))


MOVES = (
    Move("a", 0, (1,), (2,), 30 * MB),
    Move("b", 0, (2,), (1,), 30 * MB),
    Move("c", 0, (3,), (2,), 30 * MB),
)


@pytest.mark.parametrize("throttle", ["none", 5 * MB])
def test_moves_that_cross_on_full_disks_all_arrive(throttle: Literal["none"] | int) -> None:
    """And go back again: each disk holds at most what it can at every moment."""
    s = crossing()
    most = dict.fromkeys(s.world.brokers, 0.0)

    def watch(_elapsed: float) -> None:
        for b in most:
            used = sum(p.copies[b].size_bytes for p in s.world.partitions() if b in p.copies)
            most[b] = max(most[b], used)

    s.world.clock.subscribe(watch)
    state = s.cluster.snapshot()
    made = Plan("test", state.cluster_id, fingerprint(state), MOVES, in_order=True)
    policy = ExecutionPolicy(throttle=throttle, guard_timeout_s=600.0)
    assert s.driver.execute(made, policy, run_id="r").status == "done"
    assert {t: tuple(s.world.partition(t, 0).replicas) for t in "abc"} == {"a": (2,), "b": (1,), "c": (2,)}
    run = load_runs(s.store.view.records(), NOW)["r"]
    assert s.driver.execute(rollback_plan(run), policy, run_id="back").status == "done"
    assert {t: tuple(s.world.partition(t, 0).replicas) for t in "abc"} == {"a": (1,), "b": (2,), "c": (3,)}
    assert most[1] <= 95 * MB
    assert most[2] <= 95 * MB


def test_who_would_take_room_that_is_needed_is_named() -> None:
    """The broker, and that it waits for those before it."""
    moves = [m for m in MOVES if m.topic != "b"]
    rows = [PartitionRow(m.topic, 0, m.old[0], m.old, m.old, sizes=(m.size_bytes,)) for m in moves]
    state = build("c", tuple(Broker(b, host="h") for b in (1, 2, 3)), (Topic("a"), Topic("c")), rows)
    picture, _ = picture_of([])
    verdicts = refuse_out_of_turn(run_of(moves), picture, state, {2: 32 * MB})
    assert {n: (v.code, v.subject) for n, v in verdicts.items()} == {
        TopicPartition("c", 0): ("space-reserved", "broker 2")
    }


ONE = (2, "/one")


@pytest.mark.parametrize(
    ("moves", "room", "held"),
    [
        pytest.param([move(0, 1, 2, 30), move(1, 3, 2, 10)], {2: 40}, [], id="both-fit"),
        pytest.param([move(0, 1, 2, 30), move(1, 3, 2, 10)], {2: 39}, [1], id="one-byte-too-little"),
        pytest.param([move(0, 1, 2, 30), move(1, 3, 2, 10)], {3: 5}, [], id="room-not-known"),
        pytest.param([move(0, 1, 2, 30)], {2: 20}, [], id="waits-for-no-move"),
        pytest.param([move(0, 1, 2, 30), move(1, 3, 2, 25)], {2: 20}, [], id="does-not-fit-at-all"),
        pytest.param([move(0, 1, 2, 30), move(1, 3, 2, 20)], {2: 20}, [1], id="just-fits-by-itself"),
        pytest.param([move(0, 1, 2, 30), move(1, 3, 2, 0)], {2: 20}, [], id="an-empty-partition"),
        pytest.param([move(0, 1, 2, UNKNOWN), move(1, 3, 2, 20)], {2: 20}, [], id="size-not-known"),
        pytest.param(
            [move(0, 1, 2, 30), move(1, 1, 2, 5), move(2, 1, 3, 10)], {2: 30, 3: 10}, [1], id="to-another-broker"
        ),
        pytest.param(
            [move(0, 1, 2, 10), move(1, 1, 2, 10), move(2, 1, 2, 10)], {2: 20}, [2], id="all-before-it-add-up"
        ),
        pytest.param(
            [replace(move(n, 1, 2, 10), log_dirs=("/one",)) for n in range(2)], {2: 90, ONE: 15}, [1], id="in-a-log-dir"
        ),
        pytest.param(
            [replace(move(0, 1, 2, 10), log_dirs=("/other",)), replace(move(1, 1, 2, 10), log_dirs=("/one",))],
            {2: 90, ONE: 15},
            [],
            id="in-another-log-dir",
        ),
        pytest.param(
            [move(0, 1, 2, 10), Move("t", 1, (1,), (3, 2), 10)], {3: 90, 2: 15}, [1], id="one-of-two-destinations"
        ),
        pytest.param(
            [move(0, 1, 2, 10), Move("t", 1, (1,), (3, 2), 10)], {2: 15}, [1], id="room-of-the-other-not-known"
        ),
    ],
)
def test_a_move_waits_for_the_room_that_moves_before_it_need(
    moves: list[Move], room: dict[Place, int], held: list[int]
) -> None:
    """On each broker, and in each log dir that is named; where it would not fit anyway, another guard says so."""
    picture, state = picture_of(moves)
    found = refuse_out_of_turn(run_of(moves), picture, state, room)
    assert [n.partition for n in found] == held
    assert refuse_out_of_turn(replace(run_of(moves), in_order=False), picture, state, room) == {}


def test_a_move_that_waits_for_room_is_named_with_its_broker() -> None:
    """Those on their way need nothing any more; one that is not in the reading is no repair."""
    moves = [move(0, 1, 2, 30), move(1, 3, 2, 10)]
    picture, _ = picture_of(moves)
    empty = build("c", (), (Topic("t"),), [])
    found = refuse_out_of_turn(run_of(moves), picture, empty, {2: 39})
    assert found == {moves[1].name: verdict("space-reserved", 2, broker=2, partition=moves[1].name)}
    begun = with_moves(run_of(moves), {moves[0].name: MoveRun(moves[0], stage=Moving())})
    assert refuse_out_of_turn(begun, picture, empty, {2: 10}) == {}


def test_a_move_needs_the_room_of_the_size_that_is_known_now() -> None:
    """A partition that has grown since the plan was made takes more."""
    moves = [move(0, 1, 2, 30), move(1, 3, 2, 10)]
    picture, state = picture_of(moves)
    grown = replace(picture, sizes={moves[0].name: 35})
    assert [list(refuse_out_of_turn(run_of(moves), p, state, {2: 44})) for p in (picture, grown)] == [
        [],
        [moves[1].name],
    ]

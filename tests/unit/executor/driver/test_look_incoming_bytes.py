"""Bytes on their way to a disk take its room: those of other people's reassignments, and ours that the last reading lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from tests.unit.executor.scenes import Ears, Scene, holder

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Move, Plan
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.look import FULL_EVERY_S, Looker
from ballast.executor.machine.observation import DirCopy, Disks, Needs, Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import MoveRun, Now, Run, new_run, with_moves
from ballast.executor.machine.scheduling.room import bytes_to_arrive, bytes_to_arrive_of_others, size_of
from ballast.executor.machine.scheduling.schedule import start
from ballast.executor.machine.stages import (
    Failed,
    Moving,
    Planned,
    Relocating,
    RolledBack,
    Stage,
    Submitted,
    Verified,
)
from ballast.ports.cluster import BrokerLogs, PartitionState, Reassignment, ReplicaLog
from ballast.sim import SimBroker, SimClock, SimCluster, SimWorld
from ballast.sim.journal import JournalStore, MemoryJournal

MB = 1_000_000
FIRST, SECOND, THEIRS = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
ONE, OTHER = "/one", "/other"


def cluster(*, one: int = 30, other: int | None = None, theirs: tuple[int, ...] = (1,)) -> ClusterState:
    """Broker 1 leads three partitions of 20 MB; broker 2 has a log dir or two with this many MB to spare."""
    dirs = [LogDir(ONE, total_bytes=1000 * MB, usable_bytes=one * MB)]
    if other is not None:
        dirs.append(LogDir(OTHER, total_bytes=1000 * MB, usable_bytes=other * MB))
    brokers = (
        Broker(1, host="h", log_dirs=(LogDir("/d", 1000 * MB, 500 * MB),), log_dirs_known=True),
        Broker(2, host="h", log_dirs=tuple(dirs), log_dirs_known=True),
    )
    rows = [PartitionRow("t", n, 1, (1,), (1,), sizes=(20 * MB,)) for n in range(2)]
    rows.append(PartitionRow("u", 0, 1, theirs, theirs, sizes=(20 * MB,) * len(theirs)))
    return build("c", brokers, (Topic("t"), Topic("u")), rows)


def run_of(*moves: Move, policy: Literal["refuse", "allow"] = "refuse") -> Run:
    """Nothing has started."""
    settled = ExecutionPolicy(throttle="none", unknown_disk_space=policy, disk_reserve_fraction=0.0)
    return new_run("r", Plan("test", "c", "", moves), settled, Now(0, 0.0))


def picture(state: ClusterState, **more: object) -> Picture:
    """A look by this reading, which began at second 10."""
    names = frozenset({FIRST, SECOND})
    given = {"reassignments": {}, "sizes": dict.fromkeys((FIRST, SECOND, THEIRS), 20 * MB)} | more
    return Picture(
        partitions=dict.fromkeys(names, PartitionState(1, (1,), (1,))),
        names=names,
        alive=state.alive,
        state=state,
        **{"disks": Disks(state, 10.0)} | given,  # type: ignore[arg-type]
    )


def held(run: Run, seen: Picture) -> dict[int, str]:
    """What keeps the waiting moves, by partition ("busy": it waits for others of its run); "" where one starts."""
    after = start(run, seen, Now(0, 60.0), [])
    codes = {v.code for v in after.verdicts}
    assert len(codes) <= 1
    waiting = {n.partition: "".join(codes) or "busy" for n, m in after.moves.items() if isinstance(m.stage, Planned)}
    begun = {n.partition: "" for n, m in after.moves.items() if isinstance(m.stage, Submitted)}
    return waiting | begun


TO_TWO = Move("t", 0, (1,), (2,), 20 * MB)
BY_OTHERS = {THEIRS: Reassignment((1, 2), (2,), (1,))}


@pytest.mark.parametrize(
    ("listed", "shown", "says"),
    [
        pytest.param({}, None, "", id="none"),
        pytest.param(BY_OTHERS, None, "destination-full", id="nothing-shown"),
        pytest.param(BY_OTHERS, 5, "destination-full", id="hardly-begun"),
        pytest.param(BY_OTHERS, 11, "", id="the-rest-fits-beside-ours"),
        pytest.param({THEIRS: Reassignment((1, 3), (3,), (1,))}, None, "", id="to-another-broker"),
        pytest.param({THEIRS: Reassignment((1, 2), (), (2,))}, None, "", id="adds-nothing"),
    ],
)
def test_what_others_are_copying_to_a_broker_takes_its_room(
    listed: dict[TopicPartition, Reassignment], shown: int | None, says: str
) -> None:
    """As much of it as the reading lacks that told how much is free."""
    logs = BrokerLogs((), {THEIRS: (ReplicaLog(ONE, shown * MB, 0),)} if shown is not None else {})
    disks = Disks(cluster(), 10.0, {2: (20.0, logs)})
    seen = picture(cluster(), reassignments=listed, disks=disks)
    assert held(run_of(TO_TWO), seen) == {0: says}


@pytest.mark.parametrize(("policy", "says"), [("refuse", "destination-space-unknown"), ("allow", "")])
def test_a_copy_of_unknown_size_makes_the_room_of_its_broker_unknown(
    policy: Literal["refuse", "allow"], says: str
) -> None:
    """Theirs as ours: how much is left is not known, and ``unknown_disk_space`` says whether that is waited for."""
    untold = {FIRST: 20 * MB, SECOND: 20 * MB}
    run = run_of(TO_TWO, policy=policy)
    assert held(run, picture(cluster(), reassignments=BY_OTHERS, sizes=untold)) == {0: says}
    assert held(run, picture(cluster(), sizes=untold)) == {0: ""}
    ours = Move("u", 0, (1,), (2,))
    run = with_moves(run_of(TO_TWO, ours, policy=policy), {THEIRS: MoveRun(ours, stage=Moving())})
    assert held(run, picture(cluster(), sizes=untold)) == {0: says}


def test_where_no_broker_tells_its_room_a_copy_of_unknown_size_holds_nothing_up() -> None:
    """Brokers before Kafka 3.3: a plan goes by stated capacities."""
    state = cluster()
    silent = replace(state, brokers=tuple(replace(b, log_dirs=(LogDir("/d"),)) for b in state.brokers))
    seen = picture(silent, reassignments=BY_OTHERS, sizes={FIRST: 20 * MB})
    assert held(run_of(TO_TWO), seen) == {0: ""}


@pytest.mark.parametrize(("at", "says"), [(ONE, "destination-full"), (OTHER, "")])
def test_what_others_copy_takes_room_in_the_log_dir_that_it_is_in(at: str, says: str) -> None:
    """A reassignment names no log dir; the reading shows which one the broker chose."""
    logs = BrokerLogs((), {THEIRS: (ReplicaLog(at, MB, 0),)})
    state = cluster(one=30, other=100)
    seen = picture(state, reassignments=BY_OTHERS, disks=Disks(state, 10.0, {2: (20.0, logs)}))
    assert held(run_of(replace(TO_TWO, log_dirs=(ONE,))), seen) == {0: says}


@pytest.mark.parametrize(("listed_s", "says"), [(5.0, ""), (15.0, "destination-full")])
def test_a_copy_of_others_that_ended_since_the_disks_were_read_counts_until_they_are(
    listed_s: float, says: str
) -> None:
    """It is listed no longer, and the room that it took is not yet missed."""
    ended = {THEIRS: (BY_OTHERS[THEIRS], listed_s)}
    assert held(run_of(TO_TWO), picture(cluster(), ended=ended)) == {0: says}
    later = Disks(cluster(), 10.0, {2: (40.0, BrokerLogs((), {THEIRS: (ReplicaLog(ONE, 20 * MB, 0),)}))})
    assert held(run_of(TO_TWO), picture(cluster(), ended=ended, disks=later)) == {0: ""}


@pytest.mark.parametrize(
    ("stage", "entered_s", "shown", "says"),
    [
        pytest.param(Moving(), 20.0, 0, "busy", id="began-since"),
        pytest.param(Moving(), 5.0, 5, "busy", id="grew-since"),
        pytest.param(Moving(), 5.0, 11, "", id="shown-for-the-most-part"),
        pytest.param(Verified(), 20.0, 0, "destination-full", id="ended-since"),
        pytest.param(Verified(), 20.0, 20, "", id="ended-since-and-shown"),
        pytest.param(Verified(), 5.0, 0, "", id="ended-before"),
        pytest.param(RolledBack(), 5.0, 0, "", id="cancelled-before"),
    ],
)
def test_moves_of_ours_count_by_what_the_reading_lacks_of_them(
    stage: Stage, entered_s: float, shown: int, says: str
) -> None:
    """Whether or not the run is in order, and however much has been copied by now."""
    other = Move("t", 1, (1,), (2,), 20 * MB)
    begun = MoveRun(other, stage=stage, entered_s=entered_s, copied_bytes=15 * MB, total_bytes=20 * MB)
    run = with_moves(run_of(TO_TWO, other), {SECOND: begun})
    state = cluster()
    rows = {2: (10.0, BrokerLogs((), {SECOND: (ReplicaLog(ONE, shown * MB, 0),)}))}
    assert held(run, picture(state, disks=Disks(state, 10.0, rows)))[0] == says
    assert held(replace(run, in_order=True), picture(state, disks=Disks(state, 10.0, rows)))[0] == says


def test_a_whole_reading_shows_copies_as_well() -> None:
    """Metadata lists the union in mid-move: what lay there counts, in the log dir where it lay."""
    state = cluster(theirs=(1, 2))
    p = state.partitions
    sizes, dirs = p.size_bytes.copy(), p.log_dir.copy()
    sizes[-1], dirs[-1] = 12 * MB, 0
    state = replace(state, partitions=replace(p, size_bytes=sizes, log_dir=dirs))
    more = bytes_to_arrive(run_of(), picture(state, reassignments=BY_OTHERS))
    assert dict(more.bytes) == {2: 8 * MB, (2, ONE): 8 * MB}
    sizes = sizes.copy()
    sizes[-1] = UNKNOWN
    state = replace(state, partitions=replace(p, size_bytes=sizes))
    assert bytes_to_arrive(run_of(), picture(state, reassignments=BY_OTHERS)).bytes[2] == 20 * MB


def between_dirs(size: int = 20 * MB, shown: int = 5 * MB) -> ClusterState:
    """Another user copies the second replica of ``u`` on broker 2 from one log dir to the other."""
    state = cluster(one=100, other=30, theirs=(1, 2))
    p = state.partitions
    sizes, dirs = p.size_bytes.copy(), p.log_dir.copy()
    future, future_dir = p.future_size_bytes.copy(), p.future_log_dir.copy()
    sizes[-1], dirs[-1], future[-1], future_dir[-1] = size, 0, shown, 1
    columns = replace(p, size_bytes=sizes, log_dir=dirs, future_size_bytes=future, future_log_dir=future_dir)
    return replace(state, partitions=columns)


def logs_between(shown: int) -> BrokerLogs:
    """The same, as the broker itself tells it later."""
    return BrokerLogs((), {THEIRS: (ReplicaLog(ONE, 20 * MB, 0), ReplicaLog(OTHER, shown, 7, is_future=True))})


def test_what_others_copy_between_log_dirs_takes_room_in_the_one_it_goes_to() -> None:
    """As much as the reading lacks of the replica, by the newest reading of that broker; the replica stays until it has ended."""
    state = between_dirs()
    rest = {2: 15 * MB, (2, OTHER): 15 * MB}
    assert dict(bytes_to_arrive(run_of(), picture(state)).bytes) == rest
    assert dict(bytes_to_arrive_of_others({}, {}, Disks(state)).bytes) == rest
    later = Disks(state, 10.0, {2: (20.0, logs_between(12 * MB))})
    assert dict(bytes_to_arrive(run_of(), picture(state, disks=later)).bytes) == {2: 8 * MB, (2, OTHER): 8 * MB}
    ended = Disks(state, 10.0, {2: (20.0, BrokerLogs((), {THEIRS: (ReplicaLog(OTHER, 20 * MB, 0),)}))})
    assert not bytes_to_arrive(run_of(), picture(state, disks=ended)).bytes
    assert bytes_to_arrive(run_of(), picture(between_dirs(UNKNOWN))).unsized == {2: THEIRS}


@pytest.mark.parametrize(("at", "says"), [(ONE, ""), (OTHER, "destination-full")])
def test_a_move_waits_for_the_room_that_a_copy_between_log_dirs_takes(at: str, says: str) -> None:
    """In the log dir that it goes to, not in the one that it comes from."""
    assert held(run_of(replace(TO_TWO, log_dirs=(at,))), picture(between_dirs())) == {0: says}


def test_our_own_copy_between_log_dirs_counts_once() -> None:
    """Whether the reading shows it already or not."""
    move = Move("u", 0, (1, 2), (1, 2), 20 * MB, log_dirs=("any", OTHER))
    run = with_moves(run_of(move), {THEIRS: MoveRun(move, stage=Moving(), entered_s=5.0)})
    for state in (between_dirs(), cluster(one=100, other=30, theirs=(1, 2))):
        seen = picture(state, disks=Disks(state, 10.0, {2: (20.0, logs_between(5 * MB))}))
        assert dict(bytes_to_arrive(run, seen).bytes) == {2: 15 * MB, (2, OTHER): 15 * MB}


def test_a_move_of_ours_that_another_user_gave_another_target_counts_once() -> None:
    """By the reassignment that is listed, not by the move that ended."""
    other = Move("t", 1, (1,), (2,), 20 * MB)
    overridden = MoveRun(other, stage=Failed("overridden"), entered_s=20.0)
    run = with_moves(run_of(TO_TWO, other), {SECOND: overridden})
    listed = {SECOND: Reassignment((1, 2, 3), (2, 3), (1,))}
    assert dict(bytes_to_arrive(run, picture(cluster(), reassignments=listed)).bytes) == {2: 20 * MB, 3: 20 * MB}
    assert dict(bytes_to_arrive(run, picture(cluster())).bytes) == {2: 20 * MB}


def scene(disk_mb: int) -> Scene:
    """Four brokers, the fourth with a disk of this size."""
    brokers = [SimBroker(id=b, nic_bytes_per_s=10 * MB, dir_bytes=(1000 * MB,)) for b in (1, 2, 3)]
    brokers.append(SimBroker(id=4, nic_bytes_per_s=10 * MB, dir_bytes=(disk_mb * MB,)))
    world = SimWorld(SimClock(), brokers)
    for n in range(6):
        world.add_topic(f"t{n}", {0: (1 + n % 3,)}, size_bytes=30 * MB)
    simulated, store = SimCluster(world), JournalStore()
    journal = MemoryJournal(store, world.clock)
    journal.acquire(holder("first"))
    ears = Ears()
    return Scene(world, simulated, store, journal, ears, Driver(simulated, journal, world.clock, ears))


def test_a_disk_is_not_overfilled_by_ours_beside_those_of_others() -> None:
    """Another user's reassignment has begun: what no longer fits beside it waits, however many may be in flight."""
    s = scene(100)
    most = 0.0

    def watch(_: float) -> None:
        nonlocal most
        most = max(most, s.world.disks()[4, 0])

    s.world.clock.subscribe(watch)
    s.cluster.alter_reassignments({TopicPartition("t5", 0): (4,)})
    moves = tuple(Move(f"t{n}", 0, (1 + n % 3,), (4,), 30 * MB) for n in range(4))
    policy = ExecutionPolicy(throttle="none", guard_timeout_s=200.0, disk_reserve_fraction=0.05)
    result = s.driver.execute(s.plan(*moves), policy, run_id="r")
    assert most <= 95 * MB
    assert result.status == "refused"
    arrived = [n for n in range(6) if s.world.partition(f"t{n}", 0).replicas == [4]]
    assert len(arrived) == 3
    assert 5 in arrived


def test_a_log_dir_is_not_overfilled_beside_a_copy_from_the_one_next_to_it() -> None:
    """Another user moves a replica to another log dir of its broker: what does not fit there beside it is not begun."""
    s = scene(1000)
    s.world.brokers[4].dir_bytes = (100 * MB, 60 * MB)
    s.world.add_topic("big", {0: (4,)}, size_bytes=40 * MB)
    name = TopicPartition("big", 0)
    dirs = s.cluster.log_dirs([4])[4]
    (home,) = (r.log_dir for r in dirs.replicas[name])
    (away,) = (d.path for d in dirs.dirs if d.path != home)
    most = 0.0

    def watch(_: float) -> None:
        nonlocal most
        most = max(most, s.world.disks()[4, 1])

    s.world.clock.subscribe(watch)
    assert all(o.ok for o in s.cluster.alter_log_dirs({(name, 4): away}).values())
    move = Move("t0", 0, (1,), (4,), 30 * MB, log_dirs=(away,))
    policy = ExecutionPolicy(throttle="none", guard_timeout_s=200.0, disk_reserve_fraction=0.05)
    assert s.driver.execute(s.plan(move), policy, run_id="r").status == "refused"
    assert most <= 57 * MB
    assert [r.log_dir for r in s.cluster.log_dirs([4])[4].replicas[name]] == [away]


def test_a_reassignment_that_ended_is_remembered_until_every_disk_has_been_read_again() -> None:
    """By name, with when it was last listed; after the next whole reading it is forgotten."""
    s = scene(1000)
    clock, name = s.world.clock, TopicPartition("t5", 0)
    looker = Looker(s.cluster, clock, ExecutionPolicy(throttle="none"))
    assert looker.look(Needs()).ended == {}
    s.cluster.alter_reassignments({name: (4,)})
    assert name in looker.look(Needs()).reassignments
    clock.sleep(FULL_EVERY_S / 2)
    seen = looker.look(Needs())
    assert not seen.reassignments
    assert seen.ended[name][0].adding == (4,)
    assert seen.disks.read_before(4, seen.ended[name][1])
    clock.sleep(FULL_EVERY_S)
    assert looker.look(Needs()).ended == {}


def test_what_others_have_yet_to_copy_is_known_without_a_run() -> None:
    """By size and by what the reading shows, on each broker that gets a replica."""
    state = cluster()
    logs = BrokerLogs((), {THEIRS: (ReplicaLog(ONE, 5 * MB, 0),)})
    disks = Disks(state, 10.0, {2: (20.0, logs)})
    found = bytes_to_arrive_of_others(BY_OTHERS, {THEIRS: 20 * MB}, disks)
    assert (dict(found.bytes), found.unsized) == ({2: 15 * MB, (2, ONE): 15 * MB}, {})
    assert bytes_to_arrive_of_others(BY_OTHERS, {}, disks).unsized == {2: THEIRS}


def test_a_copy_that_has_outgrown_its_size_takes_nothing_more() -> None:
    """Nor does it give room to others; one of which nothing shows counts whole."""
    state = cluster()
    logs = BrokerLogs((), {THEIRS: (ReplicaLog(ONE, 25 * MB, 0),)})
    found = bytes_to_arrive_of_others(BY_OTHERS, {THEIRS: 20 * MB}, Disks(state, 10.0, {2: (20.0, logs)}))
    assert +found.bytes == {}
    assert not any(found.bytes.values())
    move = Move("u", 0, (1, 2), (1, 2), 20 * MB, log_dirs=("any", OTHER))
    run = with_moves(run_of(move), {THEIRS: MoveRun(move, stage=Relocating(), entered_s=5.0)})
    assert dict(bytes_to_arrive(run, picture(state)).bytes) == {2: 20 * MB, (2, OTHER): 20 * MB}


TWO_NEW = Move("t", 0, (1,), (2, 3), 20)
TWO_DIRS = Move("t", 0, (1, 2), (1, 2), 20, log_dirs=(ONE, OTHER))
NEW_AND_DIR = Move("t", 0, (1, 2), (3, 2), 20, log_dirs=("any", OTHER))


@pytest.mark.parametrize(
    ("move", "stage", "total", "told", "size"),
    [
        pytest.param(TWO_NEW, Moving(), None, 30, 30, id="grown-since-the-plan"),
        pytest.param(TWO_NEW, Moving(), None, 10, 20, id="shrunk-since-the-plan"),
        pytest.param(TWO_NEW, Moving(), 81, 30, 40, id="total-of-two-copies"),
        pytest.param(TWO_NEW, Moving(), 50, 30, 30, id="a-smaller-total"),
        pytest.param(TWO_DIRS, Relocating(), 81, 30, 40, id="total-of-two-log-dirs"),
        pytest.param(NEW_AND_DIR, Moving(), 81, 30, 81, id="total-of-one-copy"),
        pytest.param(NEW_AND_DIR, Relocating(), 81, 30, 30, id="total-of-both-kinds"),
        pytest.param(Move("t", 0, (1, 2), (2, 1), 20), Moving(), 81, 30, 30, id="copies-nothing"),
        pytest.param(Move("t", 0, (1,), (2,)), Moving(), None, UNKNOWN, UNKNOWN, id="never-told"),
        pytest.param(Move("t", 0, (1,), (2,)), Moving(), 40, UNKNOWN, 40, id="only-the-total-is-told"),
    ],
)
def test_the_size_of_a_replica_is_the_most_that_is_known_of_it(
    move: Move, stage: Stage, total: int | None, told: int, size: int
) -> None:
    """By the plan, by a reading, or by the bytes of all its copies, which are as many as are being written."""
    assert size_of(MoveRun(move, stage, total_bytes=total), picture(cluster(), sizes={FIRST: told})) == size


def test_what_a_reading_shows_is_told_by_partition_and_broker() -> None:
    """By log dir, of the newest reading of that broker; what has no size, or another broker's replica, is not shown."""
    state = cluster(other=10, theirs=(1, 2))
    p = state.partitions
    sizes, dirs = p.size_bytes.copy(), p.log_dir.copy()
    sizes[:], dirs[:] = [1, 2, 3, 4], [0, UNKNOWN, 0, 1]
    untold = replace(state, partitions=replace(p, size_bytes=sizes * 0 + UNKNOWN, log_dir=dirs))
    assert Disks(untold).sizes_by_dir(THEIRS, 2) == {}
    state = replace(state, partitions=replace(p, size_bytes=sizes, log_dir=dirs))
    disks = Disks(state, 10.0)
    assert [disks.sizes_by_dir(n, 1) for n in (FIRST, SECOND, THEIRS)] == [{"/d": 1}, {"": 2}, {"/d": 3}]
    assert [disks.sizes_by_dir(n, 2) for n in (FIRST, SECOND, THEIRS)] == [{}, {}, {OTHER: 4}]
    assert disks.sizes_by_dir(TopicPartition("none", 0), 1) == {}
    assert disks.sizes_by_dir(FIRST, 9) == {}
    assert Disks().sizes_by_dir(FIRST, 1) == {}
    later = Disks(state, 10.0, {2: (20.0, BrokerLogs((), {FIRST: (ReplicaLog(ONE, 7, 0),)}))})
    assert [later.sizes_by_dir(n, 2) for n in (FIRST, THEIRS)] == [{ONE: 7}, {}]
    assert later.sizes_by_dir(THEIRS, 1) == {"/d": 3}


@pytest.mark.parametrize(
    ("broker", "moment_s", "missing"),
    [(1, 9.5, False), (1, 10.0, True), (1, 15.0, True), (2, 15.0, False), (2, 19.5, False), (2, 20.0, True)],
)
def test_what_happened_since_a_broker_was_read_may_be_missing(broker: int, moment_s: float, *, missing: bool) -> None:
    """By the whole reading, or by that broker's own where one came later."""
    disks = Disks(cluster(), 10.0, {2: (20.0, BrokerLogs((), {}))})
    assert disks.read_before(broker, moment_s) is missing


def test_copies_between_log_dirs_are_told_by_name_place_and_size() -> None:
    """Each with its broker; where the log dir or the size is not told, nothing is made of it."""
    state = between_dirs()
    copy = DirCopy(THEIRS, 2, OTHER, 20 * MB, 5 * MB)
    assert Disks(state).dir_copies == (copy,)
    p = state.partitions
    untold = replace(state, partitions=replace(p, future_log_dir=p.future_log_dir * 0 + UNKNOWN))
    assert Disks(untold).dir_copies == (replace(copy, path=""),)
    assert Disks().dir_copies == ()
    later = {2: (20.0, logs_between(12 * MB))}
    assert Disks(state, 10.0, later).dir_copies == (replace(copy, shown_bytes=12 * MB),)
    alone = BrokerLogs((), {THEIRS: (ReplicaLog(OTHER, 3, 7, is_future=True),)})
    assert Disks(state, 10.0, {2: (20.0, alone)}).dir_copies == (DirCopy(THEIRS, 2, OTHER, UNKNOWN, 3),)
    elsewhere = {1: (20.0, BrokerLogs((), {FIRST: (ReplicaLog("/d", 20, 0),)}))}
    assert Disks(state, 10.0, elsewhere).dir_copies == (copy,)


def test_a_log_dir_that_is_not_told_takes_no_room_of_its_own() -> None:
    """The broker's room is taken all the same."""
    p = between_dirs().partitions
    untold = replace(between_dirs(), partitions=replace(p, future_log_dir=p.future_log_dir * 0 + UNKNOWN))
    assert dict(bytes_to_arrive(run_of(), picture(untold)).bytes) == {2: 15 * MB}

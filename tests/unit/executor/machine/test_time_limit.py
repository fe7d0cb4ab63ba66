"""A move's time follows its bytes; what is over it is named with its cause, and kept or cancelled as the policy says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.executor.scenes import MB, Scene, T, reasons, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.errors import UsageError
from ballast.executor.driver.events import MoveChanged
from ballast.executor.machine.notes import note
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import MoveRun, Now, Run
from ballast.executor.machine.stages import Moving, Planned, Relocating, Stage, Stalled, Submitted, Verified
from ballast.executor.machine.time_limit import (
    allowed_s,
    dir_share_bytes_per_s,
    leg_bytes,
    mark,
    next_end_s,
    overdue,
    share_bytes_per_s,
)

T0, T1 = TopicPartition(T, 0), TopicPartition(T, 1)


def run_of(*moves: MoveRun, policy: ExecutionPolicy) -> Run:
    """A run that has just these moves."""
    return Run("r", "test", "c", policy, {m.move.name: m for m in moves}, {})


def flying(partition: int, *, total: int, copied: int = 0, mark_s: float = 0.0) -> MoveRun:
    """A move from broker 1 to broker 3, led by 1."""
    stage = Moving(mark_s=mark_s, mark_left_bytes=total)
    return MoveRun(Move(T, partition, (1, 2), (3, 2), total), stage, total_bytes=total, copied_bytes=copied)


def clock(m: MoveRun) -> Moving:
    """Its stage."""
    assert isinstance(m.stage, Moving)
    return m.stage


def estimated(m: MoveRun) -> tuple[float, int]:
    """When the clock was started last, and what was left then, by a look at 50 s."""
    stage = mark(m, clock(m), Now(0, 50.0))
    return stage.mark_s, stage.mark_left_bytes


def test_time_follows_the_bytes_and_the_share_of_the_rate() -> None:
    """A tenth of 10 GB at half of 10 MB/s takes 200 s; it has four times that, and a small move has the floor."""
    policy = ExecutionPolicy(throttle=10 * MB)
    large, small = flying(0, total=10_000 * MB), flying(1, total=MB)
    run = run_of(large, small, policy=policy)
    assert allowed_s(run, large, clock(large), leader=1) == pytest.approx(4 * 1000 * MB / (5 * MB))
    assert allowed_s(run, small, clock(small), leader=1) == policy.stall_min_s
    alone = run_of(large, policy=policy)
    assert allowed_s(alone, large, clock(large), leader=1) == pytest.approx(400)


def test_time_without_a_throttle_follows_the_least_rate() -> None:
    """Where no rate is in force, the policy says what a move is expected to make."""
    policy = ExecutionPolicy(throttle="none", stall_unthrottled_bytes_per_s=2 * MB)
    m = flying(0, total=10_000 * MB)
    assert allowed_s(run_of(m, policy=policy), m, clock(m), leader=1) == pytest.approx(4 * 1000 * MB / (2 * MB))


def test_a_leg_that_is_done_starts_the_clock_anew_and_single_bytes_do_not() -> None:
    """A tenth of the bytes is progress; less is not, and what producers add is not the opposite."""
    m = flying(0, total=1000 * MB)
    assert leg_bytes(m, clock(m)) == 100 * MB
    assert estimated(replace(m, copied_bytes=99 * MB)) == (0.0, 1000 * MB)
    assert estimated(replace(m, copied_bytes=100 * MB)) == (50.0, 900 * MB)
    assert estimated(replace(m, total_bytes=1100 * MB)) == (0.0, 1100 * MB)


def test_the_last_bytes_are_a_leg_of_their_own() -> None:
    """A move with all bytes there has the floor to be let into the ISR, and no arithmetic divides by nothing."""
    m = replace(flying(0, total=1000 * MB, copied=1000 * MB), stage=Moving(mark_left_bytes=0))
    run = run_of(m, policy=ExecutionPolicy(throttle=MB, stall_min_s=30))
    assert overdue(run, m, clock(m), 1, Now(0, 29.0)) is None
    assert "0 B left" in str(overdue(run, m, clock(m), 1, Now(0, 31.0)))


@pytest.mark.parametrize("wrong", [{"stall_min_s": 0.0}, {"stall_factor": 0.5}, {"stall_unthrottled_bytes_per_s": 0}])
def test_a_time_of_nothing_is_refused(wrong: dict[str, float]) -> None:
    """Values that would end every move are a slip."""
    with pytest.raises(UsageError, match="more than nothing"):
        ExecutionPolicy(**wrong)  # type: ignore[arg-type]


def stalls(s: Scene, name: TopicPartition) -> list[str]:
    """What was said when this move was named as stalled."""
    return [
        h.detail for h in s.ears.heard if isinstance(h, MoveChanged) and h.name == name and isinstance(h.after, Stalled)
    ]


def two_moves(s: Scene) -> tuple[Move, Move]:
    """One move onto broker 3 from 1, one onto 4 from 2."""
    return Move(T, 0, (1, 2), (3, 2), 100 * MB), Move(T, 1, (2, 1), (4, 1), 100 * MB)


IMPATIENT = ExecutionPolicy(throttle=5 * MB, stall_after_s=20, stall_min_s=30, cancel_stalled_after_s=40, measure_s=0)


def test_a_crawling_move_is_cancelled_with_the_arithmetic_and_the_rest_goes_on() -> None:
    """Bytes arrive all the time, far too few: it ends as timed-out, the other move is verified, no throttle stays."""
    s = scene({0: (1, 2), 1: (2, 1)})
    s.world.brokers[3].nic_bytes_per_s = 50_000
    result = s.driver.execute(s.plan(*two_moves(s)), IMPATIENT, run_id="r")
    assert (result.status, result.verified, result.rolled_back) == ("incomplete", 1, 1)
    (ending,) = result.endings
    assert (ending.subject, ending.outcome) == ("t-0", "timed-out")
    ((code, figures),) = reasons(result)
    due = {"leg": 10_000_000, "allowed_s": 30, "throttled": True, "share": 5_000_000}
    assert (code, {name: figures[name] for name in due}) == ("slow", due)
    assert s.throttles() == {}
    assert s.cluster.partitions([T0])[T0].replicas == (1, 2)


def test_a_destination_that_cannot_fetch_is_named_and_cancelled() -> None:
    """Alive, with room, not held back, and nothing arrives: fetch errors, said with both ends of the road."""
    s = scene({0: (1, 2), 1: (2, 1)})
    s.world.cut = {(3, 1)}
    result = s.driver.execute(s.plan(*two_moves(s)), IMPATIENT, run_id="r")
    assert (result.status, result.verified) == ("incomplete", 1)
    assert result.endings[0].outcome == "timed-out"
    ((code, figures),) = reasons(result)
    assert (code, figures["brokers"], figures["leader"]) == ("fetch-errors", [3], 1)
    assert len(stalls(s, T0)) == 1


def test_a_kept_move_waits_with_its_cause_and_ends_when_the_cause_does() -> None:
    """Without a patience the move is named once, the other one ends meanwhile, and it goes on when it can."""
    s = scene({0: (1, 2), 1: (2, 1)})
    s.world.cut = {(3, 1)}
    s.world.clock.at(400, s.world.cut.clear)
    result = s.driver.execute(s.plan(*two_moves(s)), replace(IMPATIENT, cancel_stalled_after_s=None), run_id="r")
    assert (result.status, result.verified) == ("done", 2)
    ended = [h.name for h in s.ears.heard if isinstance(h, MoveChanged) and isinstance(h.after, Verified)]
    assert ended == [T1, T0]
    assert s.throttles() == {}


def test_a_large_move_that_does_its_share_is_never_called_stalled() -> None:
    """It takes a hundred times the floor, in steps far below a tenth, and its clock starts anew with each leg."""
    s = scene(size_bytes=2000 * MB)
    policy = ExecutionPolicy(throttle=MB, stall_min_s=20, cancel_stalled_after_s=5, measure_s=0)
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 2000 * MB)), policy, run_id="r")
    assert (result.status, stalls(s, T0)) == ("done", [])


def test_a_move_that_stood_still_has_its_whole_time_when_it_goes_on() -> None:
    """The time of a down destination is not held against the copy that goes on when it returns."""
    s = scene(size_bytes=200 * MB)
    s.world.clock.at(s.world.clock.monotonic_s() + 14, lambda: s.world.kill(3))
    s.world.clock.at(s.world.clock.monotonic_s() + 300, lambda: s.world.start(3))
    policy = replace(IMPATIENT, cancel_stalled_after_s=320)
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 200 * MB)), policy, run_id="r")
    assert result.status == "done"
    assert len(stalls(s, T0)) == 1


# The arithmetic by itself.


def on_its_way(partition: int, old: tuple[int, ...], new: tuple[int, ...], stage: Stage | None = None) -> MoveRun:
    """A move in flight, or in another stage."""
    return MoveRun(Move(T, partition, old, new, 100), stage or Moving())


@pytest.mark.parametrize(
    ("others", "share"),
    [
        pytest.param((), 12.0, id="alone"),
        pytest.param((((4, 5), (3, 5)), ((6, 7), (3, 7))), 4.0, id="three-share-the-destination"),
        pytest.param((((1, 2), (4, 2)),), 6.0, id="two-share-the-source"),
        pytest.param((((5, 1), (4, 1)),), 6.0, id="the-source-may-send-another-too"),
        pytest.param((((5, 2), (4, 2)),), 12.0, id="share-a-broker-that-copies-nothing"),
        pytest.param((((3, 1), (1, 3)),), 12.0, id="copies-nothing"),
    ],
)
def test_moves_that_share_a_broker_share_its_rate(
    others: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], share: float
) -> None:
    """Of the tightest of its brokers; what waits takes no share."""
    m = on_its_way(0, (1, 2), (3, 2))
    beside = [on_its_way(n, old, new) for n, (old, new) in enumerate(others, 1)]
    waiting = on_its_way(9, (1, 2), (3, 2), Planned())
    run = run_of(m, *beside, waiting, policy=ExecutionPolicy(throttle=12))
    assert share_bytes_per_s(run, m, leader=1) == share


def test_a_move_to_two_brokers_makes_the_share_of_both() -> None:
    """Its bytes are those of two copies."""
    m = on_its_way(0, (1, 2), (3, 4))
    assert share_bytes_per_s(run_of(m, policy=ExecutionPolicy(throttle=12)), m, leader=1) == 24.0


def test_brokers_without_a_rate_bound_no_share() -> None:
    """The tightest of those that have one does; where none has, the least that is expected of each copy."""
    policy = ExecutionPolicy(throttle="none", throttle_per_broker={1: 5, 3: 3, 9: 1}, stall_unthrottled_bytes_per_s=7)
    two = on_its_way(0, (1, 2), (5, 6))
    run = run_of(two, policy=policy)
    assert share_bytes_per_s(run, two, leader=2) == 14.0
    assert share_bytes_per_s(run, two, leader=1) == 10.0
    one = on_its_way(0, (1, 2), (3, 2))
    assert share_bytes_per_s(run_of(one, policy=policy), one, leader=2) == 3.0
    assert share_bytes_per_s(run_of(one, policy=policy), one, leader=9) == 1.0
    assert share_bytes_per_s(run_of(two, policy=replace(policy, throttle_per_broker={})), two, leader=1) == 7.0


def between_dirs(partition: int, *paths: str, stage: Stage | None = None) -> MoveRun:
    """Replicas on brokers 1 and 2 that change their log dirs."""
    move = Move(T, partition, (1, 2), (1, 2), 100, log_dirs=paths)
    return MoveRun(move, stage or Relocating(mark_left_bytes=100), total_bytes=100)


def test_copies_between_log_dirs_share_their_brokers_rate() -> None:
    """By the broker on which most of them copy; where no log dir is named or no rate set, it is whole."""
    policy = ExecutionPolicy(log_dir_throttle_bytes_per_s=12, stall_unthrottled_bytes_per_s=7)
    both, one = between_dirs(0, "/b", "/b"), between_dirs(1, "/b", "any")
    other, waiting = between_dirs(2, "any", "/b"), between_dirs(3, "/b", "/b", stage=Planned())
    third = between_dirs(4, "/b", "any")
    run = run_of(both, one, other, waiting, third, policy=policy)
    assert [dir_share_bytes_per_s(run, m) for m in (both, one, other)] == [4.0, 4.0, 6.0]
    assert dir_share_bytes_per_s(run, between_dirs(5, "any", "any")) == 12.0
    assert dir_share_bytes_per_s(run_of(both, policy=replace(policy, log_dir_throttle_bytes_per_s=None)), both) == 7.0


def test_copies_between_log_dirs_have_their_time_by_their_own_rate() -> None:
    """Whatever the rate of replication is; and what is said of them names that rate only where it is set."""
    policy = ExecutionPolicy(
        throttle=1000, log_dir_throttle_bytes_per_s=2, stall_min_s=1, stall_unthrottled_bytes_per_s=5
    )
    m = between_dirs(0, "/b", "any")
    stage = Relocating(mark_s=10.0, mark_left_bytes=100)
    run = run_of(m, policy=policy)
    assert allowed_s(run, m, stage, leader=1) == 4 * 10 / 2
    assert overdue(run, m, stage, 1, Now(0, 29.5)) is None
    figures = {"done": 0, "passed_s": 20.0, "leg": 10, "allowed_s": 20.0, "share": 2.0, "left": 100}
    assert overdue(run, m, stage, 1, Now(0, 30.0)) == note("slow", **figures, throttled=True)
    bare = run_of(m, policy=replace(policy, log_dir_throttle_bytes_per_s=None))
    figures |= {"allowed_s": 8.0, "share": 5.0}
    assert overdue(bare, m, stage, 1, Now(0, 30.0)) == note("slow", **figures, throttled=False)


def test_a_move_is_over_its_time_with_the_figures_of_its_leg() -> None:
    """What was left when the clock started, what has come since, and what the throttle of the tighter end would have let through."""
    policy = ExecutionPolicy(throttle=2, stall_min_s=15, stall_unthrottled_bytes_per_s=50)
    m, stage = flying(0, total=100, copied=25), Moving(mark_s=10.0, mark_left_bytes=80)
    run = run_of(m, policy=policy)
    assert overdue(run, m, stage, 1, Now(0, 29.5)) is None
    figures = {"passed_s": 20.0, "leg": 10, "allowed_s": 20.0, "share": 2.0, "throttled": True}
    assert overdue(run, m, stage, 1, Now(0, 30.0)) == note("slow", done=5, left=75, **figures)
    sends_slowly = run_of(m, policy=replace(policy, throttle_per_broker={1: 1}))
    assert overdue(sends_slowly, m, stage, 1, Now(0, 49.5)) is None
    of_the_leader = {**figures, "passed_s": 40.0, "allowed_s": 40.0, "share": 1.0}
    assert overdue(sends_slowly, m, stage, 1, Now(0, 50.0)) == note("slow", done=5, left=75, **of_the_leader)
    grown = replace(m, total_bytes=120)
    figures["leg"] = 12
    figures["allowed_s"], figures["passed_s"] = 24.0, 30.0
    assert overdue(run, grown, stage, 1, Now(0, 40.0)) == note("slow", done=0, left=95, **figures)
    free = run_of(m, policy=replace(policy, throttle="none"))
    assert overdue(free, m, stage, 1, Now(0, 24.5)) is None
    figures = {"passed_s": 15.0, "leg": 10, "allowed_s": 15, "share": 50.0, "throttled": False}
    assert overdue(free, m, stage, 1, Now(0, 25.0)) == note("slow", done=5, left=75, **figures)


@pytest.mark.parametrize(
    ("left", "mark_left", "anew", "expected"),
    [
        pytest.param(91, 100, False, (0.0, 100), id="less-than-a-leg"),
        pytest.param(90, 100, False, (50.0, 90), id="a-leg"),
        pytest.param(95, 100, True, (50.0, 95), id="goes-on-after-a-standstill"),
        pytest.param(100, 90, False, (0.0, 100), id="more-to-copy"),
        pytest.param(0, 4, False, (50.0, 0), id="the-last-bytes"),
        pytest.param(0, 1, False, (50.0, 0), id="the-last-byte"),
        pytest.param(0, 0, False, (0.0, 0), id="nothing-left"),
    ],
)
def test_the_clock_starts_anew_with_each_leg(
    left: int, mark_left: int, expected: tuple[float, int], *, anew: bool
) -> None:
    """A tenth of the bytes, or all that is left; nothing at all is no leg."""
    m = flying(0, total=100, copied=100 - left)
    stage = mark(m, Moving(mark_left_bytes=mark_left), Now(0, 50.0), anew=anew)
    assert (stage.mark_s, stage.mark_left_bytes) == expected


def test_a_leg_is_rounded_up() -> None:
    """A tenth of a few bytes is one of them."""
    assert [leg_bytes(flying(0, total=n), Moving(mark_left_bytes=n)) for n in (0, 1, 9, 10, 11, 20)] == [
        0,
        1,
        1,
        1,
        2,
        2,
    ]
    assert leg_bytes(flying(0, total=100), Moving(mark_left_bytes=3)) == 3


def test_the_next_end_is_that_of_the_first_move_that_may_arrive() -> None:
    """By its share of each destination's rate, less the time since the last reading; never before now."""
    one = replace(flying(0, total=100, copied=50), stage=Moving(grown_at_s=5.0))
    two = MoveRun(Move(T, 1, (1,), (3, 4), 100), Moving(grown_at_s=8.0), total_bytes=200, copied_bytes=20)
    policy, now = ExecutionPolicy(throttle=10), Now(0, 9.0)
    assert next_end_s(run_of(one, policy=policy), now) == 1.0
    assert next_end_s(run_of(one, policy=policy), Now(0, 11.0)) == 0.0
    assert next_end_s(run_of(two, policy=policy), now) == 8.0
    assert next_end_s(run_of(one, two, policy=policy), now) == 6.0
    wide = ExecutionPolicy(throttle="none", throttle_per_broker={4: 10})
    assert next_end_s(run_of(one, two, policy=wide), now) == 8.0


def test_where_no_end_can_be_told_none_is() -> None:
    """Without a rate, without a size, or where nothing copies."""
    policy, now = ExecutionPolicy(throttle=10), Now(0, 9.0)
    m = flying(0, total=100)
    untold = MoveRun(Move(T, 1, (1,), (3,)), Moving())
    list_change = MoveRun(Move(T, 2, (1, 2), (2, 1), 100), Moving())
    assert next_end_s(run_of(m, policy=replace(policy, throttle="none")), now) is None
    others = [replace(m, stage=stage) for stage in (Submitted(), Stalled(), Planned(), Verified())]
    for m in (untold, list_change, *others):
        assert next_end_s(run_of(m, policy=policy), now) is None

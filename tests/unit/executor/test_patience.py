"""A move's time follows its bytes; what is over it is named with its cause, and kept or taken back as the policy says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.executor.scenes import MB, Scene, T, reasons, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.errors import UsageError
from ballast.executor.driver.events import MoveChanged
from ballast.executor.machine.patience import allowed_s, leg_bytes, marked, overdue
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import MoveRun, Now, Run
from ballast.executor.machine.stages import Moving, Stalled, Verified

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


def reckoned(m: MoveRun) -> tuple[float, int]:
    """When the clock was started last, and what was left then, by a look at 50 s."""
    stage = marked(m, clock(m), Now(0, 50.0))
    return stage.mark_s, stage.mark_left_bytes


def test_time_follows_the_bytes_and_the_share_of_the_rate() -> None:
    """A tenth of 10 GB at half of 10 MB/s takes 200 s; it has four times that, and a small move has the floor."""
    policy = ExecutionPolicy(throttle=10 * MB)
    large, small = flying(0, total=10_000 * MB), flying(1, total=MB)
    run = run_of(large, small, policy=policy)
    assert allowed_s(run, large, clock(large), leader=1) == pytest.approx(4 * 1000 * MB / (5 * MB))
    assert allowed_s(run, small, clock(small), leader=1) == policy.timeout_floor_s
    alone = run_of(large, policy=policy)
    assert allowed_s(alone, large, clock(large), leader=1) == pytest.approx(400)


def test_time_without_a_throttle_follows_the_least_rate() -> None:
    """Where no rate is in force, the policy says what a move is expected to make."""
    policy = ExecutionPolicy(throttle="none", least_bytes_per_s=2 * MB)
    m = flying(0, total=10_000 * MB)
    assert allowed_s(run_of(m, policy=policy), m, clock(m), leader=1) == pytest.approx(4 * 1000 * MB / (2 * MB))


def test_a_leg_that_is_done_starts_the_clock_anew_and_single_bytes_do_not() -> None:
    """A tenth of the bytes is progress; less is not, and what producers add is not the opposite."""
    m = flying(0, total=1000 * MB)
    assert leg_bytes(m, clock(m)) == 100 * MB
    assert reckoned(replace(m, copied_bytes=99 * MB)) == (0.0, 1000 * MB)
    assert reckoned(replace(m, copied_bytes=100 * MB)) == (50.0, 900 * MB)
    assert reckoned(replace(m, total_bytes=1100 * MB)) == (0.0, 1100 * MB)


def test_the_last_bytes_are_a_leg_of_their_own() -> None:
    """A move with all bytes there has the floor to be let into the ISR, and no arithmetic divides by nothing."""
    m = replace(flying(0, total=1000 * MB, copied=1000 * MB), stage=Moving(mark_left_bytes=0))
    run = run_of(m, policy=ExecutionPolicy(throttle=MB, timeout_floor_s=30))
    assert overdue(run, m, clock(m), 1, Now(0, 29.0)) is None
    assert "0 B are left" in str(overdue(run, m, clock(m), 1, Now(0, 31.0)))


@pytest.mark.parametrize("wrong", [{"timeout_floor_s": 0.0}, {"timeout_slack": 0.5}, {"least_bytes_per_s": 0}])
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


IMPATIENT = ExecutionPolicy(
    throttle=5 * MB, stall_after_s=20, timeout_floor_s=30, cancel_stalled_after_s=40, measure_s=0
)


def test_a_crawling_move_is_taken_back_with_the_arithmetic_and_the_rest_goes_on() -> None:
    """Bytes arrive all the time, far too few: it ends as timed-out, the other move is verified, nothing is left behind."""
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


def test_a_destination_that_cannot_fetch_is_named_and_taken_back() -> None:
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
    policy = ExecutionPolicy(throttle=MB, timeout_floor_s=20, cancel_stalled_after_s=5, measure_s=0)
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 2000 * MB)), policy, run_id="r")
    assert (result.status, stalls(s, T0)) == ("done", [])


def test_a_move_that_stood_still_has_its_whole_time_when_it_goes_on() -> None:
    """The time of a dead destination is not held against the copy that goes on when it returns."""
    s = scene(size_bytes=200 * MB)
    s.world.clock.at(s.world.clock.monotonic_s() + 14, lambda: s.world.kill(3))
    s.world.clock.at(s.world.clock.monotonic_s() + 300, lambda: s.world.start(3))
    policy = replace(IMPATIENT, cancel_stalled_after_s=320)
    result = s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 200 * MB)), policy, run_id="r")
    assert result.status == "done"
    assert len(stalls(s, T0)) == 1

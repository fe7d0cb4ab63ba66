"""What starts next, and when it is looked for: no link stands idle while moves wait that could use it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.executor.scenes import MB, T, scene

from ballast.core.plan import Move
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import MoveRun, Now, Run
from ballast.executor.machine.scheduling.batches import Caps, Load, choose
from ballast.executor.machine.stages import Moving
from ballast.executor.machine.time_limit import next_end_s

CAPS = Caps(moves_in_per_broker=2, moves_out_per_broker=4, moves_at_once=100)
RATES = dict.fromkeys(range(1, 7), 4 * MB)


def load(partition: int, leader: int, to: int, size: int = 20 * MB) -> Load:
    """A move from its leader to another broker."""
    return Load(Move(T, partition, (leader,), (to,), size), leader, size)


def test_the_least_busy_sender_goes_first() -> None:
    """Two moves in flight come from broker 2, which has more left than broker 1: the next one comes from 1 all the same."""
    active = [load(0, 2, 3), load(1, 2, 4)]
    waiting = [load(2, 2, 3), load(3, 2, 4), load(4, 2, 3), load(5, 1, 3), load(6, 1, 4)]
    assert [m.partition for m in choose(waiting, active, CAPS, rates=RATES, room={})] == [5, 6]


def test_senders_are_taken_in_turn_within_one_choice() -> None:
    """What has just been chosen counts as well: small moves that start together come from all senders."""
    waiting = [load(i, 1 + i // 4, 3 + i % 2, MB) for i in range(8)]
    first = choose(waiting, [], CAPS, rates=RATES, room={})
    assert sorted(1 + m.partition // 4 for m in first) == [1, 1, 2, 2]


def test_a_full_disk_is_relieved_before_senders_are_balanced() -> None:
    """Relief comes first, whichever broker sends."""
    active = [load(0, 1, 3)]
    waiting = [load(1, 2, 4), load(2, 1, 4)]
    caps = replace(CAPS, moves_at_once=2)
    assert [m.partition for m in choose(waiting, active, caps, rates=RATES, room={}, full={1})] == [2]


def flying(partition: int, *, left: int, to: int = 3, grown_at_s: float = 0.0) -> MoveRun:
    """A move in flight from broker 1."""
    m = MoveRun(
        Move(T, partition, (1, 2), (to, 2), 100 * MB), stage=Moving(grown_at_s=grown_at_s), total_bytes=100 * MB
    )
    return replace(m, copied_bytes=100 * MB - left)


def run_of(*moves: MoveRun, policy: ExecutionPolicy) -> Run:
    """A run with these moves in flight."""
    return Run("r", "test", "c", policy, {m.move.name: m for m in moves}, {})


def test_the_next_end_is_told_from_bytes_shares_and_time() -> None:
    """Two share 4 MB/s, one has 10 MB left: five seconds after its last reading, of which two have passed."""
    policy = ExecutionPolicy(throttle=4 * MB)
    run = run_of(flying(0, left=10 * MB), flying(1, left=90 * MB), policy=policy)
    assert next_end_s(run, Now(0, 2.0)) == pytest.approx(3.0)
    assert next_end_s(run, Now(0, 60.0)) == 0.0
    assert next_end_s(run_of(flying(0, left=10 * MB), policy=ExecutionPolicy(throttle="none")), Now(0, 2.0)) is None
    assert next_end_s(run_of(policy=policy), Now(0, 2.0)) is None


@pytest.mark.parametrize("later_s", [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
def test_many_small_moves_keep_their_link_busy(later_s: float) -> None:
    """Forty moves of one second each, two at a time, are not waited for a whole poll each: that alone made it 82 s.

    By the moment at which the run starts between two ticks they take twenty rounds or one more, of 3.1 s.
    """
    count, rate = 40, 5 * MB
    s = scene(dict.fromkeys(range(count), (1, 2)), size_bytes=rate)
    s.world.clock.sleep(later_s)
    moves = [Move(T, i, (1, 2), (3, 2), rate) for i in range(count)]
    policy = ExecutionPolicy(throttle=rate, measure_s=0, moves_in_per_broker=2)
    result = s.driver.execute(s.plan(*moves), policy, run_id="r")
    assert result.status == "done"
    assert result.seconds < 67

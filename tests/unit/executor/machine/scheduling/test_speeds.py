"""Which rate each broker gets: stated for all, stated for one, or following what its network has left."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.executor.scenes import MB, Ears, Scene, T, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.core.throttles import FOLLOWER_RATE, LEADER_RATE, RateShortfall, Setting
from ballast.core.throttles.headroom import busiest_side, headroom
from ballast.core.throttles.pace import Basis, Start
from ballast.errors import UsageError
from ballast.executor.driver.events import Performing, Refusing
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import MoveRun, Now, Run, new_run
from ballast.executor.machine.scheduling.speeds import (
    broker_rates,
    max_rate,
    measure_late,
    measure_traffic,
    min_rate,
    needed_rates,
    require_rates,
    start_rate,
)
from ballast.executor.machine.stages import Moved, Moving, Planned, Submitted, Throttled
from ballast.executor.machine.transitions import EffectKind

T0 = TopicPartition(T, 0)
MOVE = Move(T, 0, (1, 2), (3, 2), 100 * MB)


def rates_set(ears: Ears, broker: int, key: str = FOLLOWER_RATE) -> list[int]:
    """The rates that a run set on a broker, in order, without repeats."""
    aims = [
        h.effect.desired
        for h in ears.heard
        if isinstance(h, Performing) and h.effect.kind in {EffectKind.THROTTLE, EffectKind.UNTHROTTLE}
    ]
    found = [int(next(iter(a[s]))) for a in aims if (s := Setting("broker", str(broker), key)) in a]
    return [rate for i, rate in enumerate(found) if i == 0 or found[i - 1] != rate]


def test_traffic_counts_each_replica_in_and_each_copy_and_reading_out() -> None:
    """3 MB/s to a partition of three: 3 in at each; 9 out at the leader, two followers and one reading."""
    s = scene({0: (1, 2, 3)})
    used = busiest_side(s.cluster.snapshot(), {T0: 3.0 * MB})
    assert used == {1: 9 * MB, 2: 3 * MB, 3: 3 * MB, 4: 0}


def test_the_traffic_of_all_partitions_adds_up() -> None:
    """Two led by broker 1, followed by 2 and 3; one that shrinks, one that is gone by now and one that stands still send nothing."""
    s = scene({0: (1, 2), 1: (1, 3), 2: (3, 2), 3: (3, 2), 4: (3, 2)})
    growth = {TopicPartition("gone", 0): 8.0, TopicPartition(T, 4): -5.0}
    growth |= {TopicPartition(T, n): rate for n, rate in enumerate([1.0, 3.0, 2.0, 0.0])}
    assert busiest_side(s.cluster.snapshot(), growth) == {1: 8.0, 2: 3.0, 3: 5.0, 4: 0.0}


def test_headroom_is_the_shared_link_less_the_busier_side_and_never_negative() -> None:
    """80 % of 10 MB/s, less what goes through already."""
    s = scene({0: (1, 2, 3)})
    left = headroom(s.cluster.snapshot(), {T0: 3.0 * MB}, network_bytes_per_s=10 * MB, share=0.8)
    assert left == {1: 0, 2: 5 * MB, 3: 5 * MB, 4: 8 * MB}


def test_a_broker_that_did_not_tell_what_goes_through_it_is_not_taken_for_idle() -> None:
    """Broker 2 leads a partition that was not measured: it begins cautiously, like an unknown one, under the link."""
    s = scene({0: (1, 2), 1: (2, 1)}, size_bytes=900 * MB)
    state = s.cluster.snapshot()
    policy = ExecutionPolicy(network_bytes_per_s=100 * MB, network_fraction=0.8, auto_start_bytes_per_s=4 * MB)
    plan = s.plan(Move(T, 0, (1, 2), (3, 2), 900 * MB), Move(T, 1, (2, 1), (3, 1), 900 * MB))
    run = new_run("r", plan, policy, Now(0, 0.0))
    whole = measure_traffic(run, state, {T0: 0.0, TopicPartition(T, 1): 0.0})
    assert broker_rates(whole, [1, 2]) == {1: 40 * MB, 2: 40 * MB}
    part = measure_traffic(run, state, {T0: 0.0})
    assert broker_rates(part, [1, 2]) == {1: 40 * MB, 2: 4 * MB}
    assert max_rate(part, 2) == 80 * MB


def run_under(policy: ExecutionPolicy, *, inbound: float = 0.0, size: int = 400 * MB) -> Scene:
    """The move, executed while producers write to another topic on the same brokers."""
    s = scene({0: (1, 2)}, size_bytes=size)
    s.world.add_topic("busy", {0: (2, 3)}, size_bytes=MB, inbound_bytes_per_s=inbound)
    assert s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), size)), policy, run_id="r").status == "done"
    return s


def test_auto_begins_at_half_of_the_headroom_and_never_goes_over_it() -> None:
    """8 of 10 MB/s usable, 2 in use on broker 3: it begins at 3 there, and ends at the 6 that are left."""
    policy = ExecutionPolicy(network_bytes_per_s=10 * MB, auto_min_bytes_per_s=MB)
    s = run_under(policy, inbound=2 * MB)
    rates = rates_set(s.ears, 3)
    assert rates[0] == pytest.approx(3 * MB, rel=0.05)
    assert max(rates) == pytest.approx(6 * MB, rel=0.05)
    # A source that is no destination is not held tighter than the destination, nor over its own headroom.
    assert max(rates_set(s.ears, 1, LEADER_RATE)) <= 8 * MB
    assert s.throttles() == {}


def test_auto_follows_the_headroom_while_it_runs() -> None:
    """Producers begin to write in mid-move: the rate comes down to what they leave."""
    s = scene({0: (1, 2)}, size_bytes=1500 * MB)
    s.world.add_topic("busy", {0: (2, 3)}, size_bytes=MB)
    s.world.clock.at(s.world.clock.monotonic_s() + 70, lambda: s.world.set_load("busy", 5 * MB))
    policy = ExecutionPolicy(network_bytes_per_s=10 * MB, auto_min_bytes_per_s=MB)
    assert s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 1500 * MB)), policy, run_id="r").status == "done"
    rates = rates_set(s.ears, 3)
    assert max(rates) == pytest.approx(8 * MB, rel=0.05)
    assert rates[-1] == pytest.approx(3 * MB, rel=0.1)


def test_auto_without_a_link_assumes_nothing_and_begins_low() -> None:
    """The cautious start while brokers carry little, and half of what they carry where that is more."""
    policy = ExecutionPolicy(auto_min_bytes_per_s=MB // 4, auto_start_bytes_per_s=2 * MB)
    assert rates_set(run_under(policy, inbound=MB).ears, 3)[0] == 2 * MB
    # Broker 2 leads the busy partition: 5 MB/s to its follower and as much to readers go out, 10 MB/s.
    busy = run_under(policy, inbound=5 * MB)
    assert rates_set(busy.ears, 2, LEADER_RATE)[0] == pytest.approx(5 * MB, rel=0.05)


def test_auto_refuses_a_move_that_needs_more_than_its_headroom() -> None:
    """What the move takes in does not fit into what is left: said with both figures, and nothing is started."""
    s = scene({0: (1, 2)}, inbound_bytes_per_s=3 * MB, size_bytes=20 * MB)
    policy = ExecutionPolicy(network_bytes_per_s=10 * MB, guard_timeout_s=5)
    result = s.driver.execute(s.plan(MOVE), policy, run_id="r")
    assert result.status == "refused"
    (held,) = next(h.verdicts for h in s.ears.heard if isinstance(h, Refusing) and h.verdicts)
    assert (held.code, held.cause) == ("throttle-too-low", "headroom")
    assert held.values["max_bytes_per_s"] == pytest.approx(2 * MB, rel=0.05)
    assert isinstance(held.values["lack"], RateShortfall)
    assert held.values["lack"].broker == 1


def test_auto_never_goes_under_its_floor() -> None:
    """A broker whose link is full already still gets the minimum, or its moves would never end."""
    policy = ExecutionPolicy(network_bytes_per_s=10 * MB, auto_min_bytes_per_s=MB)
    run = replace(Run("r", "test", "c", policy, {}, {}), headroom={1: 0})
    assert (max_rate(run, 1), broker_rates(run, [1])) == (MB, {1: MB})


def test_one_rate_for_each_broker() -> None:
    """Each broker of the move gets its own, others none."""
    policy = ExecutionPolicy(throttle_per_broker={1: 4 * MB, 3: 2 * MB}, throttle=3 * MB)
    s = run_under(policy, size=20 * MB)
    assert [rates_set(s.ears, b) for b in (1, 2, 3, 4)] == [[4 * MB], [3 * MB], [2 * MB], []]


def test_rates_by_broker_must_name_brokers_that_exist() -> None:
    """A slip of the finger is found before anything is asked."""
    policy = ExecutionPolicy(throttle_per_broker={9: MB}, throttle=MB)
    with pytest.raises(UsageError, match="names broker 9, and the cluster has 1, 2, 3") as raised:
        require_rates(policy, [MOVE], [3, 1, 2])
    assert raised.value.hint == "Leave it out, or correct the id."


def test_rates_by_broker_must_cover_the_plan() -> None:
    """A broker without a rate would copy unthrottled, which no user meant."""
    policy = ExecutionPolicy(throttle="none", throttle_per_broker={1: MB})
    with pytest.raises(UsageError, match=r"says nothing of broker 2 \(and 1 more\)"):
        require_rates(policy, [MOVE], [1, 2, 3])
    with pytest.raises(UsageError, match=r"says nothing of broker 3, which sends") as raised:
        require_rates(replace(policy, throttle_per_broker={1: MB, 2: MB}), [MOVE], [1, 2, 3])
    assert raised.value.hint == "Add 3=RATE, or default=RATE (or default=auto) for all that are not named."
    require_rates(ExecutionPolicy(throttle_per_broker={1: MB}, throttle=MB), [MOVE], [1, 2, 3])


@pytest.mark.parametrize(
    "wrong",
    [{"network_bytes_per_s": 0}, {"network_fraction": 0.0}, {"network_fraction": 1.1}, {"auto_min_bytes_per_s": 0}],
)
def test_a_link_of_nothing_is_refused(wrong: dict[str, float]) -> None:
    """Values that could only be a slip."""
    with pytest.raises(UsageError):
        ExecutionPolicy(**wrong)  # type: ignore[arg-type]


def bare(policy: ExecutionPolicy, *moves: MoveRun) -> Run:
    """A run of which nothing was measured."""
    return Run("r", "test", "c", policy, {m.move.name: m for m in moves}, {})


def test_what_copies_need_is_given_whatever_the_link_has_left() -> None:
    """To the broker that needs it; the others keep to their headroom and the minimum."""
    policy = ExecutionPolicy(auto_min_bytes_per_s=10, auto_max_bytes_per_s=900, auto_start_bytes_per_s=50)
    run = replace(bare(policy), headroom={1: 30, 2: 30}, needed={1: 70})
    assert [min_rate(run, b) for b in (1, 2)] == [70, 10]
    assert [max_rate(run, b) for b in (1, 2, 3)] == [70, 30, 900]
    assert broker_rates(run, [1, 2, 3]) == {1: 70, 2: 30, 3: 50}


def test_a_rate_that_was_chosen_is_kept_within_its_bounds_and_a_stated_one_as_it_is() -> None:
    """A raised rate of a broker that is named may be over the most that ``auto`` would give."""
    policy = ExecutionPolicy(auto_min_bytes_per_s=10, auto_max_bytes_per_s=900, throttle_per_broker={4: 5})
    run = replace(bare(policy), rates={1: 5, 2: 1000, 3: 500, 4: 2000, 5: 500}, headroom={5: 300})
    assert broker_rates(run, [1, 2, 3, 4, 5]) == {1: 10, 2: 900, 3: 500, 4: 2000, 5: 300}
    assert broker_rates(replace(run, rates={}), [4]) == {4: 5}


def test_what_a_broker_begins_with_goes_by_what_was_measured_of_it() -> None:
    """Its headroom counts only where its traffic is known, its copies where their size is; a stated rate is begun with, and so is what copies need."""
    policy = ExecutionPolicy(
        throttle_per_broker={9: 5},
        auto_min_bytes_per_s=10,
        auto_max_bytes_per_s=900,
        auto_start_bytes_per_s=50,
        auto_small_copy_bytes_per_s=70,
        auto_small_copy_s=2,
    )
    run = replace(
        bare(policy),
        headroom={1: 400, 2: 400, 5: 60},
        traffic={1: 10.0, 3: 240.0},
        copies={4: 140, 5: 140, 6: 141},
        needed={8: 80},
    )
    assert {b: start_rate(run, b) for b in range(1, 10)} == {
        1: Start(200, Basis.NETWORK),
        2: Start(50, Basis.CAUTIOUS),
        3: Start(120, Basis.TRAFFIC),
        4: Start(70, Basis.SMALL),
        5: Start(60, Basis.MAXIMUM),
        6: Start(50, Basis.CAUTIOUS),
        7: Start(50, Basis.CAUTIOUS),
        8: Start(80, Basis.CAUTIOUS),
        9: Start(5, Basis.STATED),
    }
    assert start_rate(bare(ExecutionPolicy(throttle="none", throttle_per_broker={1: 7})), 2) is None


def test_the_first_measurement_tells_the_traffic_and_each_one_the_headroom() -> None:
    """A run whose rates do not follow the cluster has no use for either."""
    s = scene({0: (1, 2)}, brokers=2)
    state = s.cluster.snapshot()
    linked = bare(ExecutionPolicy(network_bytes_per_s=100, network_fraction=0.5))
    first = measure_traffic(linked, state, {T0: 10.0})
    assert (first.headroom, first.traffic) == ({1: 30, 2: 40}, {1: 20.0, 2: 10.0})
    second = measure_traffic(first, state, {T0: 20.0})
    assert (second.headroom, second.traffic) == ({1: 10, 2: 30}, first.traffic)
    free = measure_traffic(bare(ExecutionPolicy()), state, {T0: 10.0})
    assert (free.headroom, free.traffic) == ({}, first.traffic)
    stated = bare(ExecutionPolicy(throttle=5, network_bytes_per_s=100))
    assert measure_traffic(stated, state, {T0: 10.0}) is stated


def test_a_later_reading_tells_what_the_measurement_did_not() -> None:
    """What was measured stands; what is still not told is waited for."""
    names = [TopicPartition(T, n) for n in range(4)]
    run = replace(bare(ExecutionPolicy()), inbound={names[0]: 5.0}, unmeasured=frozenset(names[1:3]))
    told = measure_late(run, {names[0]: 9.0, names[1]: 7.0, names[3]: 8.0})
    assert told.inbound == {names[0]: 5.0, names[1]: 7.0}
    assert told.unmeasured == {names[2]}
    assert measure_late(run, {names[3]: 8.0}) is run


def test_what_copies_in_flight_need_adds_up_on_each_broker() -> None:
    """At a destination what it takes in, at a leader what it sends to all; what waits, has arrived or is not written to needs nothing."""
    s = scene(dict.fromkeys(range(8), (1, 2)), brokers=6)
    gone = TopicPartition("gone", 0)
    moves = (
        MoveRun(Move(T, 6, (1, 2), (6, 2), MB), Moving()),
        MoveRun(Move("gone", 0, (1, 2), (5, 2), MB), Moving()),
        MoveRun(Move(T, 7, (1, 2), (5, 2), MB), Submitted()),
        MoveRun(Move(T, 0, (1, 2), (3, 2), MB), Moving()),
        MoveRun(Move(T, 1, (1, 2), (3, 4), MB), Throttled()),
        MoveRun(Move(T, 2, (1, 2), (5, 2), MB), Planned()),
        MoveRun(Move(T, 3, (1, 2), (5, 2), MB), Moved()),
    )
    written = {TopicPartition(T, n): rate for n, rate in enumerate([8.0, 16.0, 80.0, 80.0])}
    run = replace(bare(ExecutionPolicy(), *moves), inbound={**written, gone: 80.0, TopicPartition(T, 7): 0.4})
    # By four fifths of a rate, of 40.4, 24, 16 and 0.4 bytes/s.
    assert needed_rates(run, s.cluster.snapshot()) == {1: 51, 3: 31, 4: 21, 5: 1}

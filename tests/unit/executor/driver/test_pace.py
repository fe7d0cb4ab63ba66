"""A run without a given rate is throttled all the same: where it starts, what is said of it, what may hold it back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.executor.machine.scheduling.test_speeds import rates_set
from tests.unit.executor.scenes import MB, Scene, T, performed, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.core.throttles import LEADER_RATE
from ballast.core.throttles.pace import Basis, Bounds, Known, Start, bytes_by_broker, least, start
from ballast.errors import UsageError
from ballast.executor.driver.events import Paced
from ballast.executor.driver.pace import Pace, pace_of
from ballast.executor.machine.policy import MIB, ExecutionPolicy
from ballast.executor.machine.run import Now, new_run, with_moves
from ballast.executor.machine.scheduling.speeds import broker_rates, needed_rates
from ballast.executor.machine.stages import Moving
from ballast.executor.machine.transitions import EffectKind
from ballast.wiring.runs import foreseen_pace

BOUNDS = Bounds(minimum=1, maximum=1000, cautious=8, small_rate=32, small_bytes=256)
NOW = Now(0, 0.0)


@pytest.mark.parametrize(
    ("known", "chosen"),
    [
        (Known(), Start(8, Basis.CAUTIOUS)),
        (Known(traffic=10.0), Start(8, Basis.CAUTIOUS)),
        (Known(traffic=100.0), Start(50, Basis.TRAFFIC)),
        (Known(traffic=9000.0), Start(1000, Basis.MAXIMUM)),
        (Known(headroom=70, traffic=9000.0), Start(35, Basis.NETWORK)),
        (Known(headroom=0), Start(1, Basis.CAUTIOUS)),
        (Known(copies=256), Start(32, Basis.SMALL)),
        (Known(copies=257), Start(8, Basis.CAUTIOUS)),
        (Known(copies=256, traffic=100.0), Start(50, Basis.TRAFFIC)),
        (Known(copies=256, headroom=40), Start(32, Basis.SMALL)),
    ],
)
def test_a_rate_starts_from_what_is_known(known: Known, chosen: Start) -> None:
    """A link, else traffic, else caution; a small part of the run is never slower than the small rate."""
    assert start(known, BOUNDS) == chosen


def test_a_start_never_leaves_its_bounds() -> None:
    """The headroom of a broker is its maximum, also for a small part; the minimum holds where nothing is left."""
    assert start(Known(copies=1, headroom=10), replace(BOUNDS, maximum=10)) == Start(10, Basis.MAXIMUM)
    assert start(Known(), replace(BOUNDS, minimum=12)) == Start(12, Basis.CAUTIOUS)
    assert start(Known(headroom=24), replace(BOUNDS, minimum=12)) == Start(12, Basis.NETWORK)
    assert start(Known(headroom=24), replace(BOUNDS, maximum=12)) == Start(12, Basis.NETWORK)


@pytest.mark.parametrize(("inbound", "rate"), [(0.0, 0), (0.5, 1), (80.0, 101)])
def test_a_copy_needs_more_than_its_inbound_rate(inbound: float, rate: int) -> None:
    """The inbound rate stays under 80 % of the rate; without any the rate may be anything."""
    assert least(inbound) == rate


def test_bytes_count_at_each_end_and_an_unknown_size_is_not_small() -> None:
    """A broker receives its own copies; one that had the partition may send one to each destination."""
    moves = [Move(T, 0, (1, 2), (3, 4), 10), Move(T, 1, (1,), (3,), 5), Move(T, 2, (2, 1), (1, 2), 99)]
    assert bytes_by_broker(moves) == {1: 25, 2: 20, 3: 15, 4: 10}
    unknown, empty = Move(T, 3, (4,), (5,)), Move(T, 4, (6,), (7,), 0)
    assert bytes_by_broker([unknown, empty, Move(T, 5, (2,), (5,), 9), *moves]) == {1: 25, 2: 29, 3: 15, 6: 0, 7: 0}


def told(s: Scene) -> Pace:
    """The pace that the run told when it had measured."""
    (pace,) = [h.pace for h in s.ears.heard if isinstance(h, Paced)]
    return pace


def executed(size: int, policy: ExecutionPolicy | None = None, *, inbound: float = 0.0) -> tuple[Scene, float]:
    """One copy from a broker to another on cards of 10 MB/s, and the seconds that its run took."""
    s = scene({0: (1, 2)}, size_bytes=size, inbound_bytes_per_s=inbound)
    plan = s.plan(Move(T, 0, (1, 2), (3, 2), size))
    result = s.driver.execute(plan, policy or ExecutionPolicy(), run_id="r")
    assert result.status == "done"
    assert s.throttles() == {}
    return s, result.seconds


def test_a_run_without_a_word_about_throttles_is_throttled() -> None:
    """Lists and rates are set before the first byte, and the rate, its reason and the time are told."""
    s, _ = executed(400 * MB)
    assert performed(s.ears).index(EffectKind.THROTTLE) < performed(s.ears).index(EffectKind.SUBMIT)
    assert rates_set(s.ears, 3)[0] == 8 * MIB
    (destination,) = [b for b in told(s).brokers if b.broker == 3]
    assert (destination.bytes_per_s, destination.basis, destination.bytes) == (8 * MIB, Basis.CAUTIOUS, 400 * MB)
    assert told(s).seconds == pytest.approx(400 * MB / (8 * MIB))


def test_none_is_the_only_way_to_copy_without_a_throttle() -> None:
    """Neither lists nor rates are set."""
    s, _ = executed(20 * MB, ExecutionPolicy(throttle="none"))
    assert EffectKind.THROTTLE not in performed(s.ears)
    assert not [h for h in s.ears.heard if isinstance(h, Paced)]


def test_a_small_run_takes_no_longer_for_its_throttle_than_measuring_and_setting_it() -> None:
    """Its rate is above what the cards carry here: beside a run without a throttle only the two seconds of measuring count."""
    s, throttled_s = executed(80 * MB)
    _, free_s = executed(80 * MB, ExecutionPolicy(throttle="none"))
    assert {b.basis for b in told(s).brokers} == {Basis.SMALL}
    assert throttled_s <= free_s + ExecutionPolicy().measure_s + 2 * ExecutionPolicy().poll_s


def test_a_run_that_copies_nothing_sets_no_throttle() -> None:
    """Another order of the same replicas has nothing to slow down, and nothing is written for it."""
    s = scene({0: (1, 2)})
    assert s.driver.execute(s.plan(Move(T, 0, (1, 2), (2, 1))), ExecutionPolicy(), run_id="r").status == "done"
    assert {EffectKind.THROTTLE, EffectKind.UNTHROTTLE}.isdisjoint(performed(s.ears))


def test_auto_starts_above_what_producers_write_to_the_copy() -> None:
    """4 MB/s are written to the partition: at most 80 % of the rate, so it starts at 5 and not at the cautious 1."""
    policy = ExecutionPolicy(auto_start_bytes_per_s=MB, auto_small_copy_bytes_per_s=MB)
    s, _ = executed(60 * MB, policy, inbound=4 * MB)
    at = {b.broker: b for b in told(s).brokers}
    assert at[3].basis is Basis.PRODUCERS
    assert at[3].bytes_per_s == pytest.approx(5 * MB, rel=0.01)
    assert rates_set(s.ears, 3)[0] == pytest.approx(5 * MB, rel=0.01)
    assert min(rates_set(s.ears, 1, LEADER_RATE)) >= 4 * MB


def test_auto_does_not_halve_below_what_producers_write() -> None:
    """Whatever suffers: under the inbound rate of its copies a broker would only fall further behind."""
    s = scene({0: (1, 2)}, inbound_bytes_per_s=2 * MB)
    run = new_run("r", s.plan(Move(T, 0, (1, 2), (3, 2), MB)), ExecutionPolicy(), NOW)
    name = TopicPartition(T, 0)
    run = with_moves(run, {name: replace(run.moves[name], stage=Moving())})
    run = replace(run, inbound={name: 2.0 * MB}, rates={3: MIB})
    needed = needed_rates(run, s.cluster.snapshot())
    assert needed == {1: pytest.approx(2.5 * MB, rel=0.01), 3: pytest.approx(2.5 * MB, rel=0.01)}
    assert broker_rates(replace(run, needed=needed), [3])[3] == needed[3]


def test_a_broker_that_is_named_keeps_its_rate_while_others_follow() -> None:
    """``1=2MB,default=auto``: broker 1 stays at 2 MB/s whatever its copies use."""
    policy = ExecutionPolicy(throttle_per_broker={3: 2 * MB}, auto_small_copy_bytes_per_s=MB)
    s, _ = executed(60 * MB, policy)
    assert rates_set(s.ears, 3) == [2 * MB]
    assert {b.broker: b.basis for b in told(s).brokers}[3] is Basis.STATED


def test_what_is_foreseen_is_what_the_run_begins_with() -> None:
    """The figures shown before the question are those that the run then tells, and showing them changes nothing."""
    s = scene({0: (1, 2)}, size_bytes=400 * MB)
    plan = s.plan(Move(T, 0, (1, 2), (3, 2), 400 * MB))
    seen = foreseen_pace(s.cluster, s.cluster.snapshot(), plan, ExecutionPolicy(measure_s=0))
    assert s.throttles() == {}
    s.driver.execute(plan, ExecutionPolicy(), run_id="r")
    assert seen == told(s)


def test_a_size_that_is_not_known_makes_the_time_unknown() -> None:
    """No zero is made of it, neither in the time nor in the rate."""
    s = scene({0: (1, 2)})
    pace = pace_of(new_run("r", s.plan(Move(T, 0, (1, 2), (3, 2))), ExecutionPolicy(), NOW), s.cluster.snapshot())
    assert pace.seconds is None
    assert any("How long copying takes is not known" in line for line in pace.lines())
    assert {b.basis for b in pace.brokers} == {Basis.CAUTIOUS}


@pytest.mark.parametrize(
    ("size", "line"),
    [
        (20 * MB, "Copying takes about 1 s at this rate, and each batch some seconds more"),
        (4000 * MB, "Copying takes about 8 min at this rate; auto"),
    ],
)
def test_what_a_short_run_takes_besides_copying_is_told(size: int, line: str) -> None:
    """Copying is most of a long run, and the least of a short one."""
    s = scene({0: (1, 2)}, size_bytes=size)
    plan = s.plan(Move(T, 0, (1, 2), (3, 2), size))
    pace = foreseen_pace(s.cluster, s.cluster.snapshot(), plan, ExecutionPolicy(measure_s=0))
    assert any(said.startswith(line) for said in pace.lines()), list(pace.lines())


@pytest.mark.parametrize(
    "wrong", [{"auto_start_bytes_per_s": 0}, {"auto_small_copy_bytes_per_s": 0}, {"auto_small_copy_s": -1.0}]
)
def test_starts_of_nothing_are_refused(wrong: dict[str, float]) -> None:
    """Values that could only be a slip."""
    with pytest.raises(UsageError):
        ExecutionPolicy(**wrong)  # type: ignore[arg-type]

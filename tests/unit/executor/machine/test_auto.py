"""The lag by which ``auto`` judges is that of the replicas' own log ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ballast.core.cluster import Broker, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Move
from ballast.executor.machine.auto import LAG_GROWTH, falls_behind, follow_cluster
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import AutoReading, MoveRun, Now, Run
from ballast.executor.machine.stages import Moving, Planned, Verified
from ballast.ports.cluster import BrokerLogs, ReplicaLog

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def test_bystanders_are_measured_by_their_log_ends() -> None:
    """What log dirs say counts for nothing; a replica whose end, or whose leader's end, is not told is left out."""
    rows = [PartitionRow("t", 0, 1, (1, 2), (1, 2)), PartitionRow("t", 1, 3, (3, 2), (3, 2))]
    state = build("c", tuple(Broker(b) for b in (1, 2, 3)), (Topic("t"),), rows)
    picture = Picture(
        reassignments={},
        partitions={},
        names=frozenset(),
        alive=frozenset({1, 2, 3}),
        logs={2: BrokerLogs((), {T0: (ReplicaLog("/a", 10, 0),), T1: (ReplicaLog("/a", 10, 0),)})},
        ends={1: {T0: 900}, 2: {T0: 400, T1: 7}},
        state=state,
    )
    run = follow_cluster(Run("r", "test", "c", ExecutionPolicy(), {}, {}), picture, Now(1000, 1.0))
    assert run.auto is not None
    assert run.auto.lags == {(T0, 1): 0, (T0, 2): 500}


def test_falling_behind_is_judged_by_those_read_twice() -> None:
    """A replica that is read for the first time, or no longer, is no sign of anything."""
    assert not falls_behind({(T0, 2): 10}, {(T0, 2): 10, (T1, 2): 10 * LAG_GROWTH})
    assert not falls_behind({(T0, 2): 10}, {})
    assert falls_behind({(T0, 2): 10, (T1, 2): 5}, {(T0, 2): 21 + LAG_GROWTH})
    assert not falls_behind({(T0, 2): 10}, {(T0, 2): 20 + LAG_GROWTH})


NOW: Final = Now(10_000, 10.0)
POLICY: Final = ExecutionPolicy(auto_min_bytes_per_s=100, auto_max_bytes_per_s=10_000)
ONE, TWO = Move("t", 0, (1, 2), (3, 2), 100_000), Move("t", 1, (5, 2), (4, 2), 100_000)
STATE: Final = build(
    "c",
    tuple(Broker(b) for b in (1, 2, 3, 4, 5)),
    (Topic("t"), Topic("u")),
    [
        PartitionRow("t", 0, 1, (1, 2), (1, 2)),
        PartitionRow("t", 1, 5, (5, 2), (5, 2)),
        PartitionRow("u", 0, 2, (2, 1), (2, 1)),
    ],
)


def look(**known: Any) -> Picture:
    """A look that read log dirs."""
    return Picture({}, {}, frozenset(), frozenset({1, 2, 3, 4, 5}), **{"logs": {}, **known})


def run_of(*moves: MoveRun, policy: ExecutionPolicy = POLICY, **known: Any) -> Run:
    """A run ten seconds after its last reading, at which nothing had arrived, at 1000 bytes/s on every destination."""
    last = AutoReading(0.0, {3: 0, 4: 0}, {}, 0)
    given = {"rates": {3: 1000, 4: 1000}, "auto": last, **known}
    return Run("r", "test", "c", policy, {m.move.name: m for m in moves}, {}, **given)


def flying(move: Move, copied: int) -> MoveRun:
    """A move in flight of which so much has arrived."""
    return MoveRun(move, Moving(), copied_bytes=copied)


def test_the_rate_of_each_destination_follows_what_arrives_there() -> None:
    """By a quarter where most of it is used; sources follow the fastest destination."""
    run = follow_cluster(run_of(flying(ONE, 7_000), flying(TWO, 6_990)), look(), NOW)
    assert run.rates == {3: 1250, 4: 1000, 1: 1250, 2: 1250, 5: 1250}
    assert run.auto == AutoReading(10.0, {3: 7_000, 4: 6_990}, {}, 0)


def test_rates_that_were_stated_are_left_alone_beside_those_that_follow() -> None:
    """Of destinations and of sources."""
    policy = replace(POLICY, throttle_per_broker={3: 700, 2: 600})
    run = follow_cluster(run_of(flying(ONE, 7_000), flying(TWO, 7_000), policy=policy), look(), NOW)
    assert run.rates == {3: 1000, 4: 1250, 1: 1250, 5: 1250}
    run = follow_cluster(run_of(flying(ONE, 7_000), policy=policy, rates={}), look(), NOW)
    assert run.rates == {}


def test_no_rate_grows_over_its_brokers_own_headroom() -> None:
    """Nor does that of a source."""
    run = run_of(flying(ONE, 7_000), flying(TWO, 7_000), headroom={3: 1_100, 1: 900})
    assert follow_cluster(run, look(), NOW).rates == {3: 1_100, 4: 1_250, 1: 900, 2: 1_250, 5: 1_250}


def test_rates_halve_while_bystanders_suffer_and_never_under_what_copies_need() -> None:
    """Where a partition of others falls out of sync; one of ours does not count."""
    run = run_of(flying(ONE, 7_000), flying(TWO, 7_000), inbound={T1: 640.0})
    unwell = build(
        "c",
        STATE.brokers,
        STATE.topics,
        [
            PartitionRow("t", 0, 1, (1, 2), (1,)),
            PartitionRow("t", 1, 5, (5, 2), (5, 2)),
            PartitionRow("u", 0, 2, (2, 1), (2,)),
            PartitionRow("u", 1, 2, (2, 1), (2,)),
        ],
    )
    after = follow_cluster(run, look(state=unwell), NOW)
    assert after.needed == {4: 801, 5: 801}
    assert after.rates == {3: 500, 4: 801, 1: 801, 2: 801, 5: 801}
    assert after.auto is not None
    assert after.auto.unhealthy == 2
    again = follow_cluster(after, look(state=unwell), Now(20_000, 20.0))
    assert again.rates == {3: 500, 4: 801, 1: 801, 2: 801, 5: 801}


def test_rates_halve_when_followers_of_others_fall_behind() -> None:
    """More than twice what they were, and by more than a little."""
    last = AutoReading(0.0, {3: 0}, {(U0, 1): 5}, 0)
    for behind, rate in ((2_010, 1250), (2_011, 500)):
        ends = {2: {U0: 5_000}, 1: {U0: 5_000 - behind}}
        run = follow_cluster(run_of(flying(ONE, 7_000), auto=last), look(state=STATE, ends=ends), NOW)
        assert run.rates[3] == rate


def test_what_has_arrived_is_shared_among_the_destinations_of_a_move() -> None:
    """And added up over the moves to a broker, ended ones included, as long as one is on its way there."""
    wide = Move("t", 2, (1,), (3, 4), 100)
    moves = (flying(ONE, 5), flying(wide, 7), MoveRun(TWO, Verified(), copied_bytes=20))
    run = follow_cluster(run_of(*moves, auto=None), look(), NOW)
    assert run.auto is not None
    assert run.auto.arrived == {3: 8, 4: 23}
    run = follow_cluster(run_of(flying(ONE, 5), MoveRun(TWO, Verified(), copied_bytes=20), auto=None), look(), NOW)
    assert run.auto is not None
    assert run.auto.arrived == {3: 5}


def test_a_first_reading_and_one_of_the_same_moment_change_no_rate() -> None:
    """They are what the next one is judged by."""
    for last in (None, AutoReading(10.0, {3: 0}, {}, 0)):
        run = follow_cluster(run_of(flying(ONE, 7_000), auto=last), look(), NOW)
        assert run.rates == {3: 1000, 4: 1000}
        assert run.auto == AutoReading(10.0, {3: 7_000}, {}, 0)


def test_without_a_reading_nothing_follows() -> None:
    """Nor in a run whose rates do not."""
    run = run_of(flying(ONE, 7_000))
    assert follow_cluster(run, look(logs=None), NOW) is run
    stated = run_of(flying(ONE, 7_000), policy=replace(POLICY, throttle=1000))
    assert follow_cluster(stated, look(state=STATE, growth={}), NOW) is stated


def test_lags_are_those_of_partitions_of_others_that_the_whole_reading_knows() -> None:
    """A topic made since is not judged, nor one of ours that is on its way; without a whole reading none is."""
    made_since = TopicPartition("new", 0)
    ends = {2: {U0: 9, T0: 9, made_since: 5, T1: 4}, 1: {U0: 3, T0: 2, made_since: 1}, 5: {T1: 7}}
    moves = (flying(ONE, 0), MoveRun(TWO, Planned()))
    run = follow_cluster(run_of(*moves), look(state=STATE, ends=ends), NOW)
    assert run.auto is not None
    assert run.auto.lags == {(U0, 2): 0, (U0, 1): 6, (T1, 2): 3, (T1, 5): 0}
    for known in ({"ends": ends}, {"state": STATE}):
        run = follow_cluster(run_of(*moves), look(**known), NOW)
        assert run.auto is not None
        assert run.auto.lags == {}


def test_the_headroom_follows_each_measurement_and_the_traffic_the_first() -> None:
    """A look without one leaves both; what copies need is told by every whole reading."""
    policy = replace(POLICY, network_bytes_per_s=1_000, network_fraction=0.5)
    run = run_of(flying(ONE, 0), policy=policy, inbound={T0: 8.0})
    first = follow_cluster(run, look(logs=None, state=STATE, growth={T0: 10.0, T1: 0.0, U0: 0.0}), NOW)
    assert (first.headroom[1], first.traffic[1], first.needed) == (480, 20.0, {1: 11, 3: 11})
    second = follow_cluster(first, look(logs=None, state=STATE, growth={T0: 50.0, T1: 0.0, U0: 0.0}), NOW)
    assert (second.headroom[1], second.traffic[1]) == (400, 20.0)
    third = follow_cluster(replace(second, needed={}), look(logs=None, state=STATE), NOW)
    assert (third.headroom, third.needed) == (second.headroom, {1: 11, 3: 11})

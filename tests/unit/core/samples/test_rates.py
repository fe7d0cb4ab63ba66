"""The rates of samples, from generated series whose truth is known."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.series import RECORD_BYTES, START_MS, Log, World, run, sample_rows

from ballast.core.samples import MinuteSample

GIB = 1 << 30
RATE = 120 * RECORD_BYTES / 60
"""Bytes per second of 120 records a minute."""


def rows(samples: Any, **wanted: Any) -> dict[int, dict[str, Any]]:
    """Rows of one partition by the minute of their sample, counted from the start."""
    found = [r for r in sample_rows(samples).to_pylist() if all(r[k] == v for k, v in wanted.items())]
    by_minute = {int(r["time"].timestamp() * 1000 - START_MS) // 60_000: r for r in found}
    assert len(by_minute) == len(found), "one row a minute"
    return by_minute


def rates(found: dict[int, dict[str, Any]]) -> dict[int, float]:
    """The known rates by minute; where the rate is not known, nor are its seconds."""
    assert all((r["bytes_in"] is None) == (r["seconds"] is None) for r in found.values())
    return {minute: r["bytes_in"] for minute, r in found.items() if r["bytes_in"] is not None}


def came_in(found: dict[int, dict[str, Any]]) -> float:
    """All bytes of the known intervals."""
    return float(sum(r["bytes_in"] * r["seconds"] for r in found.values() if r["seconds"] is not None))


def steady(world: World, records: int = 120) -> Any:
    """Each minute, as many records to every partition."""

    def minute(_: int) -> bool:
        for log in world.logs.values():
            log.append(records)
        return True

    return minute


def one(**log: Any) -> World:
    """A world of one partition."""
    return World({("t", 0): Log(**log)})


def test_steady_load_is_measured_in_every_sample_but_the_first() -> None:
    """Nothing is known before the first sample; later ones have the true rate, and sizes and roles of each replica."""
    world = one()
    found = rows(run(world, range(60), steady(world)))
    assert rates(found) == pytest.approx(dict.fromkeys(range(1, 60), RATE))
    assert {m: r["records_in"] for m, r in found.items() if m} == pytest.approx(dict.fromkeys(range(1, 60), 2.0))
    assert {r["seconds"] for m, r in found.items() if m} == {60.0}
    last = found[59]
    assert (last["replicas"], last["in_sync"]) == ([1, 2, 3], [True] * 3)
    assert last["size_bytes"] == [world.logs["t", 0].size] * 3
    assert last["log_dir"] == ["/data"] * 3
    assert (last["leader"], last["leader_before"], last["preferred_leader"]) == (1, 1, 1)
    assert found[0]["leader_before"] is None


def test_a_short_gap_is_measured_by_the_sample_after_it() -> None:
    """Three lost minutes: their volume is known from both ends, and they are in its seconds."""
    world = one()

    def each(minute: int) -> bool:
        world.logs["t", 0].append(120 if minute != 21 else 480)
        return minute not in (20, 21, 22)

    found = rows(run(world, range(60), each))
    assert sorted(found) == [m for m in range(60) if m not in (20, 21, 22)]
    assert (found[23]["seconds"], found[23]["bytes_in"]) == (240.0, pytest.approx((3 * 120 + 480) * RECORD_BYTES / 240))
    assert came_in(found) == pytest.approx((58 * 120 + 480) * RECORD_BYTES)


def test_a_long_gap_stays_unknown() -> None:
    """After a quarter of an hour without samples it is not known when the bytes came."""
    world = one()

    def each(minute: int) -> bool:
        world.logs["t", 0].append(120)
        return not 20 <= minute < 35

    found = rates(rows(run(world, range(60), each)))
    assert found == pytest.approx({m: RATE for m in range(1, 60) if not 20 <= m < 36})


def test_retention_does_not_hide_what_came_in() -> None:
    """Where the first offset moves, records are counted and weighed with the bytes per record seen before."""
    world = one(high=10_000, earliest=0, start_bytes=10_000 * RECORD_BYTES)

    def each(minute: int) -> None:
        log = world.logs["t", 0]
        log.append(120)
        if minute in (10, 40):
            log.earliest += 3000
            log.deleted += 3000 * RECORD_BYTES

    assert rates(rows(run(world, range(60), each))) == pytest.approx(dict.fromkeys(range(1, 60), RATE))


def tiered(**log: Any) -> World:
    """A world of one partition whose first 90,000 records are in remote storage alone, and 10,000 on disk."""
    size = 10_000 * RECORD_BYTES
    log = {"high": 100_000, "local_start": 90_000, "start_bytes": size, **log}
    return World({("t", 0): Log(**log)}, tiered=frozenset({"t"}))


def delete_locally(log: Log, records: int) -> None:
    """Local retention: gone from disk, while the earliest offset stays where it is."""
    assert log.local_start is not None
    log.local_start += records
    log.deleted += records * RECORD_BYTES


def test_local_retention_of_a_tiered_topic_does_not_hide_what_came_in() -> None:
    """The earliest offset, in remote storage, does not move, while segments go from the leader's disk."""
    world = tiered()

    def each(minute: int) -> None:
        log = world.logs["t", 0]
        log.append(120)
        if minute % 10 == 0:
            # Less than came in since the sample before: the log has grown all the same.
            delete_locally(log, 100)

    assert rates(rows(run(world, range(60), each))) == pytest.approx(dict.fromkeys(range(1, 60), RATE))


def test_a_record_of_a_tiered_topic_weighs_what_those_on_disk_do() -> None:
    """With no clean interval: the local log's size over the local log's offsets, of which there are a tenth."""
    world = tiered()

    def each(minute: int) -> None:
        log = world.logs["t", 0]
        log.append(120)
        if minute == 1:
            delete_locally(log, 3000)

    assert rates(rows(run(world, range(2), each))) == pytest.approx({1: RATE})


def test_an_unknown_local_log_start_makes_no_rate_up() -> None:
    """The log has grown, and what went meanwhile is not known: the earliest offset does not stand in for it."""
    world = tiered(local_start=None)

    def each(_: int) -> None:
        log = world.logs["t", 0]
        log.append(120)
        log.deleted += 100 * RECORD_BYTES

    assert rates(rows(run(world, range(5), each))) == {}


def test_retention_in_the_very_first_interval_uses_the_log_s_own_average() -> None:
    """With no clean interval at all, size over offsets says what a record weighs."""
    world = one(high=10_000, start_bytes=10_000 * RECORD_BYTES)

    def each(minute: int) -> None:
        log = world.logs["t", 0]
        log.append(120)
        if minute == 1:
            log.earliest += 3000
            log.deleted += 3000 * RECORD_BYTES

    assert rates(rows(run(world, range(2), each))) == pytest.approx({1: RATE})


def test_records_that_came_and_went_unseen_are_no_bytes_and_no_zero() -> None:
    """Of an empty log's first records, deleted before the next sample, the bytes are not known."""
    world = one(start_bytes=0)

    def each(minute: int) -> None:
        log = world.logs["t", 0]
        if minute == 1:
            log.append(120)
            log.earliest, log.deleted = log.high, log.appended

    assert rates(rows(run(world, range(3), each))) == {2: 0.0}


def test_compaction_does_not_hide_what_came_in() -> None:
    """The cleaner shrinks a compacted log without moving its first offset; the median record weight fills in."""
    world = one(start_bytes=10**9)
    world.compacted = frozenset({"t"})

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        if minute % 15 == 7:
            world.logs["t", 0].deleted += 50_000_000
        if minute == 30:
            world.logs["t", 0].deleted += 90 * RECORD_BYTES

    assert rates(rows(run(world, range(60), each))) == pytest.approx(dict.fromkeys(range(1, 60), RATE))


def test_a_leader_change_compares_no_two_logs_and_is_told() -> None:
    """The rate goes on, although the new leader's log has another size; the row says who led before."""
    world = one()

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        world.logs["t", 0].leader = 1 if minute < 30 else 2

    found = rows(run(world, range(60), each))
    assert rates(found) == pytest.approx(dict.fromkeys(range(1, 60), RATE))
    assert {m: r["leader_before"] for m, r in found.items() if r["leader"] != r["leader_before"] and m} == {30: 1}


def test_a_partition_without_a_leader_and_offsets_has_no_rate_and_loses_none() -> None:
    """No broker leads it or answers for offsets for two minutes: the sample after them is over all three."""
    world = one()
    samples = []
    for minute in range(20):
        world.logs["t", 0].append(120 if minute not in (10, 11) else 0)
        world.logs["t", 0].leader = -1 if minute in (10, 11) else 1
        samples.append(world.sample(minute, offsets=minute not in (10, 11)))
    found = rows(samples)
    assert sorted(rates(found)) == [m for m in range(1, 20) if m not in (10, 11)]
    assert found[12]["seconds"] == 180.0
    assert came_in(found) == pytest.approx(17 * 120 * RECORD_BYTES)


def test_a_high_watermark_that_went_back_is_no_rate() -> None:
    """An unclean election loses records: the interval says nothing, the next one does."""
    world = one(high=5000)

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        if minute == 5:
            world.logs["t", 0].high -= 1000

    assert sorted(rates(rows(run(world, range(10), each)))) == [1, 2, 3, 4, 6, 7, 8, 9]


def test_a_recreated_topic_is_another_topic() -> None:
    """The same name with another id starts afresh, even where its offsets grew past the old ones."""
    world = one()

    def each(minute: int) -> None:
        if minute == 30:
            world.logs["t", 0] = Log(high=10**6, appended=10**9)
            world.topic_ids["t"] = "id-new"
        world.logs["t", 0].append(120)

    samples = run(world, range(60), each)
    assert sorted(rates(rows(samples, topic_id="id-t"))) == list(range(1, 30))
    new = rows(samples, topic_id="id-new")
    assert rates(new) == pytest.approx(dict.fromkeys(range(31, 60), RATE))
    assert new[30]["leader_before"] is None


def test_partitions_that_are_added_begin_there() -> None:
    """A new partition has no rate before its second sample; the others go on."""
    world = one()

    def each(minute: int) -> None:
        if minute == 20:
            world.logs["t", 1] = Log(replicas=(2, 3, 1))
        for log in world.logs.values():
            log.append(120)

    samples = run(world, range(60), each)
    assert sorted(rates(rows(samples, partition=1))) == list(range(21, 60))
    assert sorted(rates(rows(samples, partition=0))) == list(range(1, 60))


def test_a_move_keeps_the_rate() -> None:
    """A replica leaves, one arrives, and for a while there are more: each list is as long as the replicas were."""
    world = one(replicas=(1, 2))

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        world.logs["t", 0].replicas = (1, 2) if minute < 40 else (1, 3, 2) if minute < 42 else (1, 3)

    found = rows(run(world, range(60), each))
    assert rates(found) == pytest.approx(dict.fromkeys(range(1, 60), RATE))
    assert [len(found[m]["size_bytes"]) for m in (39, 40, 42)] == [2, 3, 2]


def moved(*, offsets: bool = True) -> list[MinuteSample]:
    """A replica is filled and leads as soon as it is in sync, with all bytes of the log."""
    world, samples = one(replicas=(1, 2), start_bytes=100 * GIB), []
    log = world.logs["t", 0]
    for minute in range(40):
        log.append(120)
        if minute >= 20:
            log.replicas, log.copied = (1, 2, 3), {3: (minute - 19) * 10 * GIB}
        if minute >= 25:
            log.replicas, log.copied, log.leader = (3, 2), {}, 3
        samples.append(world.sample(minute, offsets=offsets))
    return samples


def test_a_replica_that_leads_once_it_is_filled_did_not_append_what_it_copied() -> None:
    """Its own log grew by what the reassignment copied; the records that came are counted instead."""
    assert rates(rows(moved())) == pytest.approx(dict.fromkeys(range(1, 40), RATE))


def test_without_offsets_the_interval_of_a_filled_replica_s_election_is_unknown() -> None:
    """Its growth says nothing of appends, and no sample has counted records."""
    assert rates(rows(moved(offsets=False))) == pytest.approx({m: RATE for m in range(1, 40) if m != 25})


def test_a_clock_that_steps_ahead_makes_no_wrong_rate() -> None:
    """The wall clock jumps five minutes: the monotonic one disagrees, so that interval is unknown."""
    world = one()

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        world.clock_ms = 300_000 if minute >= 20 else 0

    found = rates(rows(run(world, range(40), each)))
    assert found == pytest.approx(dict.fromkeys([*range(1, 20), *range(26, 45)], RATE))


def test_a_restarted_sampler_goes_on_by_the_wall_clock() -> None:
    """Another process has another monotonic clock; the wall clocks of both still measure the interval."""
    world = one()

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        world.writer = "w1" if minute < 20 else "w2"

    assert rates(rows(run(world, range(60), each))) == pytest.approx(dict.fromkeys(range(1, 60), RATE))


def test_without_offsets_growth_alone_is_believed() -> None:
    """A principal that may not read offsets still gets rates where the log only grew; of records nothing is known."""
    world = one()
    samples = []
    for minute in range(6):
        world.logs["t", 0].append(120)
        samples.append(world.sample(minute, offsets=False))
    found = rows(samples)
    assert rates(found) == pytest.approx(dict.fromkeys(range(1, 6), RATE))
    assert {r["records_in"] for r in found.values()} == {None}
    assert {r["end_offset"] for r in found.values()} == {None}


def test_a_cluster_without_partitions_is_a_sample() -> None:
    """Nothing to say is not an error, before or after there is something."""
    empty, world = World({}), one()
    table = sample_rows([empty.sample(0), world.sample(1), empty.sample(2), world.sample(3)])
    assert len(table) == 2


@pytest.mark.parametrize("lost", [1, 3])
def test_a_change_of_leader_is_seen_across_samples_without_a_leadership_record(lost: int) -> None:
    """The leader is not known while the record is lost; the leader before it and the one after it are known."""
    world = one()

    def each(minute: int) -> None:
        world.logs["t", 0].leader = 1 if minute < 5 else -2 if minute < 5 + lost else 2

    found = rows(run(world, range(10), each))
    assert {r["leader"] for m, r in found.items() if 5 <= m < 5 + lost} == {None}
    assert {m: r["leader_before"] for m, r in found.items() if r["leader"] not in {None, r["leader_before"]} and m} == {
        5 + lost: 1
    }

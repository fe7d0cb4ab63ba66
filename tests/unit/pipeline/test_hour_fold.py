"""The numbers of an hour, from generated series whose truth is known."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.pure import HOUR, hour_rows, load_rows, model_rows
from tests.spark.series import HOUR_MS, RECORD_BYTES, START_MS, Log, World, run

RATE = 120 * RECORD_BYTES / 60
"""Bytes per second of 120 records a minute."""


def bits(*minutes: int) -> int:
    """The mask of these minutes."""
    return sum(1 << m for m in minutes)


def only(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    """The one row with these values."""
    found = [r for r in rows if all(r[k] == v for k, v in wanted.items())]
    assert len(found) == 1, found
    return found[0]


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


def test_steady_load_is_measured_in_every_minute() -> None:
    """With a lead-in sample, all sixty minutes have the true rate; each replica has its role and size."""
    world = one()
    rows = hour_rows(run(world, range(-1, 60), steady(world)))
    assert [r["broker"] for r in rows] == [1, 2, 3]
    leader = only(rows, broker=1)
    assert leader["hour"] == HOUR
    assert leader["sampled"] == leader["rated"] == leader["led"] == leader["in_sync"] == bits(*range(60))
    assert leader["bytes_in"] == pytest.approx([RATE] * 60)
    assert leader["records_in"] == pytest.approx(120 * 60)
    assert leader["size_bytes"][59] == world.logs["t", 0].size
    follower = only(rows, broker=2)
    assert (follower["led"], follower["records_in"]) == (0, 0)
    assert follower["bytes_in"] == leader["bytes_in"]


def test_the_first_sample_ever_has_no_rate() -> None:
    """Nothing is known before the first sample, so its minute is sampled and not rated."""
    world = one()
    row = only(hour_rows(run(world, range(3), steady(world))), broker=1)
    assert row["sampled"] == bits(0, 1, 2)
    assert row["rated"] == bits(1, 2)
    assert row["bytes_in"][0] == -1


def test_a_sampler_that_begins_in_the_second_minute_leaves_the_first_alone_unknown() -> None:
    """Every later minute has the size of its own sample."""
    world = one(replicas=(1,))
    row = only(hour_rows(run(world, range(1, 60), steady(world, 10))))
    assert row["size_bytes"] == [-1, *(1_000_000 + 10 * RECORD_BYTES * n for n in range(1, 60))]


def test_a_short_gap_is_covered_by_its_mean_and_stays_a_gap_in_the_mask() -> None:
    """Three lost minutes: their volume is known from both ends, their samples are not invented."""
    world = one()

    def each(minute: int) -> bool:
        world.logs["t", 0].append(120 if minute != 21 else 480)
        return minute not in (20, 21, 22)

    row = only(hour_rows(run(world, range(-1, 60), each)), broker=1)
    assert row["sampled"] == bits(*(m for m in range(60) if m not in (20, 21, 22)))
    assert row["rated"] == bits(*range(60))
    assert row["bytes_in"][20:24] == pytest.approx([(3 * 120 + 480) * RECORD_BYTES / 240] * 4)
    assert sum(row["bytes_in"]) * 60 == pytest.approx((59 * 120 + 480) * RECORD_BYTES)


def test_a_long_gap_stays_unknown() -> None:
    """After a quarter of an hour without samples nobody knows when the bytes came."""
    world = one()

    def each(minute: int) -> bool:
        world.logs["t", 0].append(120)
        return not 20 <= minute < 35

    row = only(hour_rows(run(world, range(-1, 60), each)), broker=1)
    assert row["rated"] == bits(*(m for m in range(60) if not 20 <= m < 36))


def test_retention_does_not_hide_what_came_in() -> None:
    """Where the first offset moves, records are counted and weighed with the bytes per record seen before."""
    world = one(high=10_000, earliest=0, start_bytes=10_000 * RECORD_BYTES)

    def each(minute: int) -> None:
        log = world.logs["t", 0]
        log.append(120)
        if minute in (10, 40):
            log.earliest += 3000
            log.deleted += 3000 * RECORD_BYTES

    row = only(hour_rows(run(world, range(-1, 60), each)), broker=1)
    assert row["rated"] == bits(*range(60))
    assert row["bytes_in"] == pytest.approx([RATE] * 60)


def test_retention_in_the_very_first_interval_uses_the_log_s_own_average() -> None:
    """With no clean interval at all, size over offsets says what a record weighs."""
    world = one(high=10_000, start_bytes=10_000 * RECORD_BYTES)

    def each(minute: int) -> None:
        log = world.logs["t", 0]
        log.append(120)
        if minute == 0:
            log.earliest += 3000
            log.deleted += 3000 * RECORD_BYTES

    row = only(hour_rows(run(world, range(-1, 1), each)), broker=1)
    assert row["bytes_in"][0] == pytest.approx(RATE)


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

    row = only(hour_rows(run(world, range(-1, 60), each)), broker=1)
    assert row["bytes_in"] == pytest.approx([RATE] * 60)


def test_a_leader_change_compares_no_two_logs() -> None:
    """The roles follow the leader; the rate goes on, although the new leader's log has another size."""
    world = one()

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        world.logs["t", 0].leader = 1 if minute < 30 else 2

    rows = hour_rows(run(world, range(-1, 60), each))
    assert only(rows, broker=1)["led"] == bits(*range(30))
    assert only(rows, broker=2)["led"] == bits(*range(30, 60))
    assert only(rows, broker=1)["bytes_in"] == pytest.approx([RATE] * 60)
    later = load_rows(run(world, range(60, 62), each), START_MS + HOUR_MS)
    assert later.column("minutes_led").to_pylist() == [0, 1, 0]


def test_a_partition_without_a_leader_has_no_rate() -> None:
    """Nobody appends while nobody leads, and nobody answers for offsets."""
    world = one()

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        world.logs["t", 0].leader = -1 if minute in (10, 11) else 1

    row = only(hour_rows(run(world, range(-1, 60), each)), broker=1)
    assert row["led"] == bits(*(m for m in range(60) if m not in (10, 11)))


def test_a_high_watermark_that_went_back_is_no_rate() -> None:
    """An unclean election loses records: the interval says nothing, the next one does."""
    world = one(high=5000)

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        if minute == 5:
            world.logs["t", 0].high -= 1000

    row = only(hour_rows(run(world, range(-1, 10), each)), broker=1)
    assert row["rated"] == bits(0, 1, 2, 3, 4, 6, 7, 8, 9)


def test_a_recreated_topic_is_another_topic() -> None:
    """The same name with another id starts afresh, even where its offsets grew past the old ones."""
    world = one()

    def each(minute: int) -> None:
        if minute == 30:
            world.logs["t", 0] = Log(high=10**6, appended=10**9)
            world.topic_ids["t"] = "id-new"
        world.logs["t", 0].append(120)

    rows = hour_rows(run(world, range(-1, 60), each))
    old, new = only(rows, broker=1, topic_id="id-t"), only(rows, broker=1, topic_id="id-new")
    assert old["sampled"] == bits(*range(30))
    assert new["sampled"] == bits(*range(30, 60))
    assert new["rated"] == bits(*range(31, 60))
    assert new["bytes_in"][31:] == pytest.approx([RATE] * 29)


def test_partitions_added_within_the_hour_begin_there() -> None:
    """A new partition has no minutes before it existed; the others go on."""
    world = one()

    def each(minute: int) -> None:
        if minute == 20:
            world.logs["t", 1] = Log(replicas=(2, 3, 1))
        for log in world.logs.values():
            log.append(120)

    rows = hour_rows(run(world, range(-1, 60), each))
    assert only(rows, broker=2, partition=1)["rated"] == bits(*range(21, 60))
    assert only(rows, broker=1, partition=0)["rated"] == bits(*range(60))


def test_a_moved_replica_has_minutes_where_it_was() -> None:
    """A replica that leaves and one that arrives share the hour between them."""
    world = one(replicas=(1, 2))

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        world.logs["t", 0].replicas = (1, 2) if minute < 40 else (1, 3)

    rows = hour_rows(run(world, range(-1, 60), each))
    assert only(rows, broker=2)["sampled"] == bits(*range(40))
    assert only(rows, broker=3)["sampled"] == bits(*range(40, 60))
    assert only(rows, broker=1)["bytes_in"] == pytest.approx([RATE] * 60)


def test_a_clock_that_steps_ahead_makes_no_wrong_rate() -> None:
    """The wall clock jumps five minutes: the monotonic one disagrees, so that interval is unknown."""
    world = one()

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        world.clock_ms = 300_000 if minute >= 20 else 0

    row = only(hour_rows(run(world, range(-1, 40), each)), broker=1)
    assert row["sampled"] == bits(*range(20), *range(25, 45))
    assert row["rated"] == bits(*range(20), *range(26, 45))
    assert [row["bytes_in"][m] for m in range(26, 45)] == pytest.approx([RATE] * 19)


def test_a_restarted_sampler_goes_on_by_the_wall_clock() -> None:
    """Another process has another monotonic clock; the wall clocks of both still measure the interval."""
    world = one()

    def each(minute: int) -> None:
        world.logs["t", 0].append(120)
        world.writer = "w1" if minute < 20 else "w2"

    samples = run(world, range(-1, 60), each)
    row = only(hour_rows(samples), broker=1)
    assert row["rated"] == bits(*range(60))
    assert row["bytes_in"] == pytest.approx([RATE] * 60)


def test_without_offsets_growth_alone_is_believed() -> None:
    """A principal that may not read offsets still gets rates where the log only grew."""
    world = one()
    samples = []
    for minute in range(-1, 5):
        world.logs["t", 0].append(120)
        samples.append(world.sample(minute, offsets=False))
    row = only(hour_rows(samples), broker=1)
    assert row["bytes_in"][:5] == pytest.approx([RATE] * 5)


def test_batches_may_cut_a_group_anywhere() -> None:
    """Spark decides how rows are batched; the fold does not notice."""
    world = World({(f"t{i}", n): Log() for i in range(5) for n in range(3)})
    samples = run(world, range(-1, 30), steady(world))
    assert hour_rows(samples, batch=1) == hour_rows(samples, batch=7) == hour_rows(samples)


def test_hours_become_a_model_with_the_true_figures() -> None:
    """Two hours, one twice as busy: mean, peak, p95 within the histogram's error, growth per day, coverage."""
    world = one()
    samples = run(world, range(-1, 60), steady(world)) + run(world, range(60, 120), steady(world, 240))
    (row,) = model_rows([load_rows(samples), load_rows(samples, START_MS + HOUR_MS)])
    assert row["minutes"] == 120
    assert row["coverage"] == 1.0
    assert row["bytes_in_mean"] == pytest.approx(1.5 * RATE)
    assert row["bytes_in_peak"] == pytest.approx(2 * RATE)
    assert row["bytes_in_p95"] == pytest.approx(2 * RATE, rel=0.02)
    assert row["records_in_mean"] == pytest.approx(3.0)
    assert row["growth_bytes_per_day"] == pytest.approx(2 * RATE * 3600 * 24)
    assert row["size_bytes"] == world.logs["t", 0].size
    known = [rate for rate in row["week"] if rate >= 0]
    assert known == pytest.approx([RATE, 2 * RATE])

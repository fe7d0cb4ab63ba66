"""The transforms on small DataFrames whose truth is known."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from tests.spark.series import RECORD_BYTES, START_MS, Log, World, run, sample_rows
from tools import pipeline_plans

from ballast.adapters.samples.arrow_schema import arrow_schema
from ballast.adapters.samples.rows import rows_of
from ballast.core.leadership import imbalance
from ballast.core.samples import BROKERS, SAMPLES, Table
from ballast.core.samples.rates import measure
from ballast.pipeline.schemas import DISK_HOUR, LOAD_DAY, LOAD_HOUR
from ballast.pipeline.tables import SparkTables
from ballast.pipeline.transforms.broker_imbalance import broker_imbalance
from ballast.pipeline.transforms.columns import MERGED_K, exact_sketch, percentile
from ballast.pipeline.transforms.disks import disk_outlook
from ballast.pipeline.transforms.leadership_history import leadership_history
from ballast.pipeline.transforms.load_day import load_day
from ballast.pipeline.transforms.load_hour import load_hour
from ballast.pipeline.transforms.load_model import load_model

pytestmark = pytest.mark.spark

RATE = 120 * RECORD_BYTES / 60
HOUR = datetime.fromtimestamp(START_MS / 1000, UTC)
RANK_ERROR = 0.017
"""What DataSketches states for its usual size (k = 200), two-sided, with 99 % confidence."""


def frame(spark: Any, table: Table, rows: Any) -> Any:
    """Rows as a DataFrame with the table's own columns."""
    given = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema=arrow_schema(table.columns))
    return spark.createDataFrame(given.to_pylist(), table.ddl)


def collected(frame_: Any, *order: str) -> list[dict[str, Any]]:
    """Its rows in an order."""
    return [row.asDict(recursive=True) for row in frame_.orderBy(*order).collect()]


def steady(world: World, records: int = 120) -> Any:
    """Each minute, as many records to every partition."""

    def minute(_: int) -> None:
        for log in world.logs.values():
            log.append(records)

    return minute


def test_samples_become_hours_days_and_a_model_with_the_true_figures(spark: Any) -> None:
    """Two hours, the second twice as busy: means, peaks, percentiles, sizes, growth and coverage, and no Python in the plan."""
    world = World({("t", 0): Log()})
    samples = run(world, range(60), steady(world)) + run(world, range(60, 120), steady(world, 240))
    hours = load_hour(frame(spark, SAMPLES, sample_rows(samples)))
    first, second = collected(hours, "hour")
    assert [c.name for c in LOAD_HOUR.columns] == list(first)
    assert (first["hour"], first["leader"], first["samples"], first["seconds"]) == (naive(HOUR), 1, 60, 59 * 60)
    assert first["bytes_in"] == pytest.approx(59 * 120 * RECORD_BYTES)
    assert second["records_in"] == pytest.approx(60 * 240)
    assert (second["bytes_in_max"], second["bytes_in_p95"]) == (pytest.approx(2 * RATE), pytest.approx(2 * RATE))
    assert (first["bytes_out"], first["seconds_out"], first["samples_under_replicated"]) == (None, None, 0)
    assert second["size_bytes"] == second["size_bytes_max"] == world.logs["t", 0].size

    days = load_day(hours)
    (day,) = collected(days, "date")
    assert [c.name for c in LOAD_DAY.columns] == list(day)
    assert (day["date"], day["first_hour"], day["last_hour"]) == (HOUR.date(), naive(HOUR), naive(HOUR + hours_(1)))
    (model,) = collected(load_model(days), "partition")
    assert model["seconds"] == 119 * 60
    assert model["coverage"] == pytest.approx(119 / 120)
    assert model["confidence"] == pytest.approx(119 / 120 * 2 / 168)
    assert model["bytes_in_mean"] == pytest.approx((59 + 120) * 120 * RECORD_BYTES / (119 * 60))
    assert (model["bytes_in_p95"], model["bytes_in_peak"]) == (pytest.approx(2 * RATE), pytest.approx(2 * RATE))
    assert model["growth_bytes_per_day"] == pytest.approx(2 * RATE * 3600 * 24)
    assert (model["size_bytes"], model["bytes_out_mean"], model["bytes_out_p95"]) == (second["size_bytes"], None, None)


def hours_(count: int) -> timedelta:
    """So many hours."""
    return timedelta(hours=count)


def naive(time: datetime) -> datetime:
    """As a session in UTC hands it to Python."""
    return datetime.fromtimestamp(time.timestamp())  # noqa: DTZ006 — PySpark's own way


def test_rates_to_consumers_and_followers_that_lag_are_told(spark: Any) -> None:
    """Bytes out count where they are known; a replica out of sync and its lag show."""
    world = World({("t", 0): Log()})
    rows = sample_rows(run(world, range(4), steady(world))).to_pylist()
    for minute, row in enumerate(rows):
        row |= {
            "bytes_out": 100.0 * minute or None,
            "in_sync": [True, minute != 2, True],
            "lag_records": [0, minute, None],
        }
    (hour,) = collected(load_hour(frame(spark, SAMPLES, rows)), "hour")
    assert (hour["seconds_out"], hour["bytes_out"]) == (180, 60 * 600)
    assert (hour["samples_under_replicated"], hour["lag_records_max"]) == (1, 3)
    (model,) = collected(load_model(load_day(load_hour(frame(spark, SAMPLES, rows)))), "partition")
    assert (model["bytes_out_mean"], model["bytes_out_p95"]) == (200, 300)


def test_percentiles_merge_within_the_stated_rank_error(spark: Any) -> None:
    """Two weeks of hours, merged by day and then all together: the rank is within the error of 95 %; an hour's is exact."""
    dice = random.Random(11)
    rates = [dice.lognormvariate(10, 2) for _ in range(14 * 24 * 60)]
    minutes = spark.createDataFrame(
        [(n // 60, n // 1440, rate) for n, rate in enumerate(rates)], "h int, d int, r float"
    )
    hours = minutes.groupBy("h", "d").agg(exact_sketch("r").alias("s"), F.array_agg("r").alias("all"))
    wrong = hours.where(percentile("s") != F.element_at(F.array_sort("all"), 57)).count()
    assert wrong == 0
    days = hours.groupBy("d").agg(F.kll_merge_agg_float("s", MERGED_K).alias("s"))
    (merged,) = days.agg(F.kll_merge_agg_float("s", MERGED_K).alias("s")).select(percentile("s").alias("p95")).collect()
    rank = sum(rate <= merged["p95"] for rate in rates) / len(rates)
    assert rank == pytest.approx(0.95, abs=RANK_ERROR)


def test_the_slope_of_sizes_is_that_of_all_hours_however_they_are_cut_into_days(spark: Any) -> None:
    """Three weeks of sizes, some hours missing: the days' own sums merge to the least-squares slope of the hours."""
    dice = random.Random(5)
    hours = [n for n in range(21 * 24) if dice.random() > 0.3]
    sizes = {n: 10**12 + 3_000_000 * n + dice.randint(0, 10**8) for n in hours}
    rows = [
        {"cluster": "c", "topic": "t", "topic_id": "", "partition": 0, "hour": HOUR + hours_(n), "size_bytes": size}
        for n, size in sizes.items()
    ]
    (model,) = collected(load_model(load_day(frame(spark, LOAD_HOUR, rows))), "partition")
    mean_x, mean_y = sum(hours) / len(hours), sum(sizes.values()) / len(hours)
    sxx = sum((n - mean_x) ** 2 for n in hours)
    slope = sum((n - mean_x) * (sizes[n] - mean_y) for n in hours) / sxx
    assert model["growth_bytes_per_day"] == pytest.approx(24 * slope, rel=1e-9)
    assert (model["bytes_in_mean"], model["seconds"], model["coverage"]) == (None, 0, 0)
    (alone,) = collected(load_model(load_day(frame(spark, LOAD_HOUR, rows[:1]))), "partition")
    assert alone["growth_bytes_per_day"] is None


def imbalances(spark: Any, samples: list[Any], listed: list[Any] | None = None) -> dict[int, dict[str, Any]]:
    """``broker_imbalance`` by broker; the brokers are of ``listed`` where another sampler wrote them."""
    brokers = pa.concat_tables(rows_of(s, measure(s, None))["brokers"] for s in listed or samples)
    made = broker_imbalance(frame(spark, SAMPLES, sample_rows(samples)), frame(spark, BROKERS, brokers))
    return {row["broker"]: row for row in collected(made, "broker")}


def six() -> World:
    """Six partitions, two preferred on each broker."""
    return World({("t", n): Log(replicas=((n % 3) + 1, ((n + 1) % 3) + 1)) for n in range(6)})


def test_the_ratio_of_an_hour_is_the_live_ratio_of_its_samples(spark: Any) -> None:
    """Two partitions of broker 1 are led by broker 2 for the second half of the hour."""
    w = six()

    def each(minute: int) -> None:
        for n in (0, 3):
            w.logs["t", n].leader = 2 if minute >= 30 else None

    samples = run(w, range(60), each)
    live = imbalance(samples[-1].state)
    rows = imbalances(spark, samples)
    assert sorted(rows) == [1, 2, 3]
    assert rows[1]["ratio_last"] == live[1].ratio == 1.0
    assert (rows[1]["preferred"], rows[1]["not_led"]) == (live[1].preferred, live[1].not_led) == (2, 2)
    assert rows[1]["ratio_mean"] == pytest.approx(0.5)
    assert [rows[b]["samples_over"] for b in (1, 2, 3)] == [30, 0, 0]
    assert rows[1]["led_mean"] == pytest.approx(1.0)
    assert rows[2]["leader_skew"] == pytest.approx((1 + 2) / 2)


def test_a_minute_whose_brokers_another_sampler_wrote_counts(spark: Any) -> None:
    """It was killed between the two tables, and the next one went on with the minute a quarter of a minute later."""
    w = six()
    w.logs["t", 0].leader = 2
    killed = run(w, range(1, 3), lambda _: None)
    w.clock_ms = 15_000
    rows = imbalances(spark, run(w, range(3), lambda _: None), [w.sample(0), *killed])
    assert {broker: (row["samples"], row["ratio_last"]) for broker, row in rows.items()} == {
        1: (3, 0.5),
        2: (3, 0.0),
        3: (3, 0.0),
    }


def test_a_partition_without_a_leader_is_not_led_and_one_without_a_record_is_not_counted_so(spark: Any) -> None:
    """As the live measure counts them."""
    w = six()
    w.logs["t", 0].leader, w.logs["t", 1].leader = -1, -2
    samples = run(w, range(1), lambda _: None)
    live, rows = imbalance(samples[-1].state), imbalances(spark, samples)
    for broker in (1, 2, 3):
        assert (rows[broker]["preferred"], rows[broker]["not_led"]) == (live[broker].preferred, live[broker].not_led)


def test_every_change_of_a_leader_is_one_row(spark: Any) -> None:
    """There and back are two changes; a change across a gap is seen at the sample after it, and none is seen twice."""
    w = six()

    def each(minute: int) -> bool:
        w.logs["t", 1].leader = {0: 2, 1: 3}.get((minute // 20) % 2, 2)
        return minute not in (20, 21)

    samples = run(w, range(62), each)
    found = collected(leadership_history(frame(spark, SAMPLES, sample_rows(samples))), "time")
    changes = [(r["time"].minute, r["partition"], r["leader_before"], r["leader"]) for r in found]
    assert changes == [(22, 1, 2, 3), (40, 1, 3, 2), (0, 1, 2, 3)]


def test_a_disk_is_full_when_its_slope_says_so(spark: Any) -> None:
    """50 bytes an hour gone of 1,000; a disk that frees itself, one of unknown room and one seen once are never full."""
    rooms: dict[str, list[int | None]] = {
        "fills": [1000, 950, 900, 850],
        "frees": [850, 900, 950, 1000],
        "unknown": [None] * 4,
        "once": [500],
    }
    rows = [
        {"cluster": "c", "broker": 1, "path": path, "hour": HOUR + hours_(n), "usable_bytes": room, "total_bytes": 2000}
        for path, found in rooms.items()
        for n, room in enumerate(found)
    ]
    full = {r["path"]: r for r in collected(disk_outlook(frame(spark, DISK_HOUR, rows)), "path")}
    assert full["fills"]["growth_bytes_per_day"] == pytest.approx(1200)
    assert full["fills"]["days_to_full"] == pytest.approx(850 / 1200)
    assert full["fills"]["as_of"] == naive(HOUR + hours_(3))
    assert [full[p]["days_to_full"] for p in ("frees", "unknown", "once")] == [None] * 3


def test_the_documented_plans_are_those_of_the_code_without_python_or_a_sort(spark: Any, store: str) -> None:
    """Built-in functions and hash aggregation throughout.  If this fails, run ``python tools/pipeline_plans.py`` and read the difference."""
    found = pipeline_plans.document(SparkTables(lambda: spark, store))
    assert found == pipeline_plans.DOCS.read_text()
    assert "..." not in found, (
        "Spark cuts long lines, and counts the numbers of columns in them, which differ each time"
    )
    for name, plan in pipeline_plans.plans(SparkTables(lambda: spark, store)).items():
        assert "Physical Plan" in plan
        for word in ("Python", "Arrow", "BatchEval", "Window", "SortAggregate"):
            assert word not in plan, (name, word)


def test_the_window_of_dates_is_what_a_day_is(spark: Any) -> None:
    """An hour belongs to its UTC day, whatever the machine's own time zone."""
    row = {"cluster": "c", "topic": "t", "topic_id": "", "partition": 0, "hour": datetime(2026, 3, 1, 23, tzinfo=UTC)}
    (day,) = collected(load_day(frame(spark, LOAD_HOUR, [row])), "date")
    assert day["date"] == date(2026, 3, 1)

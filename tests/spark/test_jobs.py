"""From samples in a Delta table to a load model in another, through Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.spark.series import RECORD_BYTES, Log, World, run

from ballast.adapters.samples_delta import SampleStore, minute_table, table_url
from ballast.core.samples import MinuteSample
from ballast.errors import UsageError
from ballast.pipeline.jobs import JobReport, run_all
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.tables import SparkTables

pytestmark = pytest.mark.spark

RATE = 120 * RECORD_BYTES / 60
POLICY = PipelinePolicy()


def write(store: str, samples: list[MinuteSample]) -> None:
    """Put samples into the store: the first as the daemon does, the others in one commit, whatever their order."""
    SampleStore(store).write(samples[0])
    rows = [minute_table(sample) for sample in samples[1:]]
    write_deltalake(table_url(store, "samples_minute"), pa.concat_tables(rows), mode="append")


def table(store: str, name: str) -> list[dict[str, Any]]:
    """A table's rows, read without Spark, in a fixed order."""
    rows = DeltaTable(table_url(store, name)).to_pyarrow_table().to_pylist()
    return sorted(
        rows, key=lambda r: tuple(str(r.get(k)) for k in ("cluster", "hour", "date", "topic", "partition", "broker"))
    )


def touched(reports: list[JobReport]) -> dict[str, tuple[str, ...]]:
    """What each job replaced."""
    return {r.job: r.touched for r in reports}


def world() -> World:
    """Two topics, one of them ten times as busy."""
    return World({("busy", 0): Log(), ("calm", 0): Log(replicas=(2, 3, 1)), ("calm", 1): Log(replicas=(3, 1, 2))})


def grow(w: World) -> Any:
    """120 records a minute, ten times as many for the busy topic."""

    def each(_: int) -> bool:
        for (topic, _number), log in w.logs.items():
            log.append(1200 if topic == "busy" else 120)
        return True

    return each


def test_samples_become_a_model_and_late_ones_change_only_what_they_touch(spark: Any, store: str) -> None:
    """The whole road: fold, nothing to do the second time, late samples of one hour fold that hour again, exactly."""
    w = world()
    samples = run(w, range(50, 130), grow(w))
    late = [s for s in samples if (s.epoch_minute - samples[0].epoch_minute) in (40, 41)]
    write(store, [s for s in samples if s not in late])
    tables = SparkTables(lambda: spark, store)
    reports = run_all(tables, POLICY)
    first = touched(reports)
    assert {r.job: r.rows for r in reports} == {name: len(table(store, name)) for name in first}
    hours = ("2026-11-21T13", "2026-11-21T14", "2026-11-21T15")
    assert first == {
        "samples_hour": hours,
        "load_hour": hours,
        "load_day": ("2026-11-21",),
        "load_model": ("alpha",),
        "leadership_history": hours,
        "broker_imbalance": hours,
        "disk_hour": hours,
        "disk_outlook": ("alpha",),
    }
    assert [r["broker"] for r in table(store, "disk_outlook")] == [1, 2, 3]
    assert {r["ratio_max"] for r in table(store, "broker_imbalance")} == {0.0}
    assert table(store, "leadership_history") == [], "no leader changed"
    (busy,) = [r for r in table(store, "load_model") if r["topic"] == "busy"]
    assert busy["bytes_in_mean"] == pytest.approx(10 * RATE)
    assert busy["minutes"] == 79
    read = spark.read.format("delta").load(table_url(store, "load_model"))
    assert read.where("topic = 'busy'").select("minutes", "week").collect()[0].asDict() == {
        "minutes": 79,
        "week": busy["week"],
    }, "as Spark reads what its workers wrote"
    versions = {name: DeltaTable(table_url(store, name)).version() for name in first}

    assert touched(run_all(tables, POLICY)) == dict.fromkeys(first, ())
    assert {name: DeltaTable(table_url(store, name)).version() for name in first} == versions

    before = {name: table(store, name) for name in first}
    write(store, late)
    again = touched(run_all(tables, POLICY))
    assert again["samples_hour"] == again["load_hour"] == ("2026-11-21T14",)
    after = {name: table(store, name) for name in first}
    # The gap's mean was the truth already; what the late samples add is that these minutes were seen.
    assert after["load_model"] == before["load_model"]
    seen = [sum(r["minutes_sampled"] for r in rows["load_hour"]) for rows in (before, after)]
    assert seen[1] - seen[0] == len(late) * 3 * 3


def test_no_samples_is_a_sentence(spark: Any, store: str) -> None:
    """An empty store says what to do."""
    with pytest.raises(UsageError, match="no samples"):
        run_all(SparkTables(lambda: spark, store), POLICY)

"""A ``ballast pipeline run`` that is killed anywhere and run again leaves every minute exactly once."""

from __future__ import annotations

import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable
from tests.spark import kill_rounds
from tests.spark.kill_rounds import KILLED, Run
from tests.spark.series import RECORD_BYTES, Log, World
from tests.spark.servers import QUICK
from tests.spark.test_jobs import write

from ballast.adapters.samples.store import table_url
from ballast.core.samples import MinuteSample
from ballast.errors import Refused
from ballast.pipeline.jobs import JOBS, NOTHING, Scope, run_all
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.tables import SparkTables

pytestmark = pytest.mark.spark

BALLAST: Final = str(Path(sys.executable).parent / "ballast")
RECORDS: Final = 120
"""Appended to each partition in each minute."""
PARTITIONS: Final = 2
BROKERS: Final = 3
TABLES: Final = ("load_hour", "load_day", "load_model", "broker_imbalance", "disk_hour", "disk_outlook")
KILLS: Final = 3
SEED: Final = 4157
"""One kill before Spark is up, one after the first commit of a table, one in a later job; Ballast alone and with its JVM."""
MINUTES_A_ROUND: Final = 25
"""The rounds cross two hours and leave each of them unfinished once."""
MOMENTS: Final = ("starting Spark", *(f"{job}: making" for job in JOBS))
"""What a run says in its course; a kill comes at most ``LATEST_S`` after one of these: what a small job takes."""
LATEST_S: Final = 0.25


def minutes(world: World, first: int, count: int) -> list[MinuteSample]:
    """Samples of consecutive minutes of a steady load."""
    samples = []
    for minute in range(first, first + count):
        for log in world.logs.values():
            log.append(RECORDS)
        samples.append(world.sample(minute))
    return samples


def steady() -> World:
    """One topic of two partitions."""
    return World({("t", number): Log() for number in range(PARTITIONS)})


def rows_of(store: str, table: str) -> list[dict[str, Any]]:
    """A table's rows, read without Spark."""
    found: list[dict[str, Any]] = DeltaTable(table_url(store, table)).to_pyarrow_table().to_pylist()
    return found


def assert_each_minute_once(store: str, count: int) -> None:
    """Every minute is in every table, in one row of its key, and counted once."""
    for table in TABLES:
        keys = [
            tuple(r.get(k) for k in ("cluster", "hour", "date", "topic", "partition", "broker", "path"))
            for r in rows_of(store, table)
        ]
        assert keys, table
        assert len(keys) == len(set(keys)), table
    assert sum(r["samples"] for r in rows_of(store, "load_hour")) == count * PARTITIONS
    assert {r["samples"] for r in rows_of(store, "broker_imbalance")} <= set(range(1, 61))
    assert sum(r["samples"] for r in rows_of(store, "broker_imbalance")) == count * BROKERS
    bytes_in = sum(r["bytes_in"] for r in rows_of(store, "load_hour"))
    # The first sample has none before it, so it makes no rate.
    assert bytes_in == pytest.approx((count - 1) * PARTITIONS * RECORDS * RECORD_BYTES)
    assert sum(r["seconds"] for r in rows_of(store, "load_day")) == (count - 1) * 60 * PARTITIONS
    model = rows_of(store, "load_model")
    assert [r["seconds"] for r in model] == [(count - 1) * 60] * PARTITIONS
    assert [r["bytes_in_mean"] for r in model] == pytest.approx([RECORDS * RECORD_BYTES / 60] * PARTITIONS)


def command(store: str, folder: Path) -> list[str]:
    """A pipeline run as a user would type it, with little to compile."""
    conf = {**QUICK, "spark.local.dir": str(folder)}
    flags = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    return [BALLAST, "pipeline", "run", "--store", store, "--spark", "local[2]", "--driver-memory", "1g", *flags]


def test_killed_runs_leave_every_minute_exactly_once(spark: Any, store: str, tmp_path: Path) -> None:
    """New minutes, a run that is killed, more minutes, another; the last run finds what is left to do and no more."""
    dice, world, kills = kill_rounds.dice(SEED), steady(), kill_rounds.rounds(KILLS)
    for round_ in range(kills):
        write(store, minutes(world, 30 + round_ * MINUTES_A_ROUND, MINUTES_A_ROUND))
        moment, patience, whole_group = dice.choice(MOMENTS), dice.uniform(0, LATEST_S), dice.random() < 0.5
        run = Run.start(command(store, tmp_path), tmp_path)
        run.until_it_says(moment)
        assert run.kill(patience, whole_group=whole_group) == KILLED, run.told()[-3000:]
    run_all(SparkTables(lambda: spark, store), PipelinePolicy())
    assert_each_minute_once(store, kills * MINUTES_A_ROUND)
    again = run_all(SparkTables(lambda: spark, store), PipelinePolicy())
    assert {r.job: r.touched for r in again} == {r.job: () for r in again}


class Killed(BaseException):
    """An exception that no handler catches."""


class Dying(SparkTables):
    """Ends right before or right after the commit of a job."""

    when = "before"

    def replace(self, *arguments: Any) -> int | None:
        """Commit, or do not, and be gone."""
        if self.when == "after":
            super().replace(*arguments)
        raise Killed


def test_every_job_may_end_on_either_side_of_its_commit(spark: Any, store: str) -> None:
    """Before it nothing is done and the job begins anew; after it nothing is left to do."""
    world, dying = steady(), Dying(lambda: spark, store)
    scope = Scope(PipelinePolicy(), datetime.now(UTC))
    write(store, minutes(world, 30, MINUTES_A_ROUND))
    for name, job in JOBS.items():
        for when in ("before", "after"):
            dying.when = when
            with pytest.raises(Killed):
                job(dying, scope, lambda _: None)
        assert job(SparkTables(lambda: spark, store), scope, lambda _: None) == NOTHING, name
    assert_each_minute_once(store, MINUTES_A_ROUND)


class Overtaken(SparkTables):
    """Another run does the same job, and more, while this one is about to commit."""

    world: World

    def replace(self, *arguments: Any) -> int | None:
        """Let the other one finish first."""
        write(self.store, minutes(self.world, 30 + MINUTES_A_ROUND, MINUTES_A_ROUND))
        JOBS["load_hour"](
            SparkTables(lambda: self.session, self.store), Scope(PipelinePolicy(), datetime.now(UTC)), lambda _: None
        )
        return super().replace(*arguments)


def test_a_run_that_was_overtaken_changes_nothing(spark: Any, store: str) -> None:
    """Its older rows do not replace the newer ones of the other run."""
    overtaken = Overtaken(lambda: spark, store)
    overtaken.world = steady()
    write(store, minutes(overtaken.world, 30, MINUTES_A_ROUND))
    done = JOBS["load_hour"](overtaken, Scope(PipelinePolicy(), datetime.now(UTC)), lambda _: None)
    assert done == NOTHING
    assert sum(r["samples"] for r in rows_of(store, "load_hour")) == 2 * MINUTES_A_ROUND * PARTITIONS


def test_two_runs_at_once_leave_every_minute_exactly_once(spark: Any, store: str) -> None:
    """Side by side from the first to the last job: each ends well or is refused in one sentence, and no row is doubled."""
    write(store, minutes(steady(), 30, MINUTES_A_ROUND))
    ends: list[object] = []

    def one() -> None:
        try:
            ends.append(len(run_all(SparkTables(lambda: spark, store), PipelinePolicy())))
        except Refused as refused:
            ends.append(refused)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ends) == 2, "anything else than a result or a refusal is a defect"
    run_all(SparkTables(lambda: spark, store), PipelinePolicy())
    assert_each_minute_once(store, MINUTES_A_ROUND)

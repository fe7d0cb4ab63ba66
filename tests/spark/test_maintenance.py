"""What maintenance frees and keeps, and what jobs do when it took away what they had not read yet."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.spark.series import START_MS, World, run
from tests.spark.test_jobs import NOW, POLICY, grow, table, touched, world

from ballast.adapters.samples.store import SampleStore, table_url
from ballast.core.samples import SAMPLES, Table
from ballast.pipeline.jobs import run_all
from ballast.pipeline.maintenance import compact_samples, vacuum
from ballast.pipeline.tables import SparkTables

pytestmark = pytest.mark.spark

LONG_AGO_S = START_MS / 1000 - 30 * 24 * 3600


def sampled(store: str, w: World, minutes: range) -> None:
    """Each minute in a commit of its own."""
    sink = SampleStore(store)
    for sample in run(w, minutes, grow(w)):
        sink.write(sample)


def minutes_of(store: str) -> list[int]:
    """The minutes of the busy partition's samples, from the start."""
    rows = [r for r in table(store, "samples") if r["topic"] == "busy"]
    return sorted(int(r["time"].timestamp() * 1000 - START_MS) // 60_000 for r in rows)


def test_vacuum_frees_what_no_version_needs_and_says_so(spark: Any, store: str) -> None:
    """A killed writer's file of long ago goes; one that another process may be writing stays, and so does the table."""
    sampled(store, world(), range(2))
    folder = Path(next(iter(DeltaTable(table_url(store, "samples")).file_uris()))).parent
    old, new = folder / "part-old.parquet", folder / "part-new.parquet"
    for file in (old, new):
        file.write_bytes(b"half a file")
    os.utime(old, (LONG_AGO_S, LONG_AGO_S))
    told: list[str] = []
    vacuum(SparkTables(lambda: spark, store), SAMPLES, told.append)
    assert (old.exists(), new.exists()) == (False, True)
    assert told == ["samples: 1 file freed, 11 B"]
    assert minutes_of(store) == [0, 1]


def test_changes_that_were_vacuumed_before_a_job_read_them_are_made_from_what_is_there(spark: Any, store: str) -> None:
    """Compaction put new samples elsewhere and their first files are gone: all hours are made again, and no sample is lost."""
    w, tables = world(), SparkTables(lambda: spark, store)
    sampled(store, w, range(3))
    run_all(tables, POLICY, now=NOW)
    sampled(store, w, range(3, 6))
    compact_samples(tables, NOW)
    log = DeltaTable(table_url(store, "samples"))
    kept = {Path(uri).name for uri in log.file_uris()}
    for file in Path(table_url(store, "samples")).rglob("*.parquet"):
        if file.name not in kept:
            file.unlink()
    assert touched(run_all(SparkTables(lambda: spark, store), POLICY, now=NOW))["load_hour"] == ("2026-11-21T13",)
    assert {r["samples"] for r in table(store, "load_hour")} == {6}


class Meanwhile(SparkTables):
    """A late sample comes after compaction has read its hour."""

    world: World

    def read(self, table: Table, **options: Any) -> Any:
        """Read, and let the sampler commit before anything is written."""
        rows = super().read(table, **options)
        sampled(self.store, self.world, range(3, 4))
        return rows


def test_a_sample_that_comes_while_its_hour_is_compacted_is_not_lost(spark: Any, store: str) -> None:
    """Neither is any of the others, and the hour is made with it."""
    w, meanwhile = world(), Meanwhile(lambda: spark, store)
    sampled(store, w, range(3))
    meanwhile.world = w
    compact_samples(meanwhile, NOW + timedelta(hours=1))
    assert minutes_of(store) == [0, 1, 2, 3]
    run_all(SparkTables(lambda: spark, store), POLICY, now=NOW)
    assert {r["samples"] for r in table(store, "load_hour")} == {4}

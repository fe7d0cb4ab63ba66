"""What jobs learn from the tables' logs, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.spark.series import START_MS, Log, World

from ballast.adapters.arrow_schema import arrow_schema
from ballast.adapters.samples_delta import SampleStore, describe, table_url
from ballast.core.samples import SAMPLES
from ballast.errors import Unavailable, UsageError
from ballast.pipeline.jobs import Scope, _whole_hours
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.schemas import DISK_HOUR, LEADERSHIP_HISTORY, LOAD_HOUR
from ballast.pipeline.table_log import TableLog, Task
from ballast.pipeline.tables import Change, SparkTables

HOUR = datetime.fromtimestamp(START_MS / 1000, UTC)
NEXT = HOUR + timedelta(hours=1)


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    """The logs of an empty store."""
    return TableLog(str(tmp_path))


def sampled(store: str, *minutes: int, cluster: str = "alpha") -> None:
    """Record these minutes."""
    world = World({("t", 0): Log()}, cluster=cluster)
    for minute in minutes:
        SampleStore(store).write(world.sample(minute))


def done(store: str, task: Task) -> None:
    """A commit of the job, as Delta records it."""
    url = table_url(store, LOAD_HOUR.name)
    rows = DeltaTable(url).to_pyarrow_table().schema.empty_table()
    properties = CommitProperties(app_transactions=[Transaction(task.app, task.version)])
    write_deltalake(url, rows, mode="append", commit_properties=properties)


def test_a_job_s_progress_is_the_transaction_of_its_last_commit(log: TableLog) -> None:
    """At first it has read nothing; then it has nothing to read; a source that was made anew has another id."""
    assert log.task(SAMPLES, LOAD_HOUR) is None
    sampled(log.store, 5, 61)
    first = log.task(SAMPLES, LOAD_HOUR)
    assert first is not None
    assert first.done is None
    assert log.task(SAMPLES, LOAD_HOUR) == first, "without a commit the job is where it was"
    done(log.store, first)
    assert log.task(SAMPLES, LOAD_HOUR) is None
    sampled(log.store, 62)
    second = log.task(SAMPLES, LOAD_HOUR)
    assert second is not None
    assert (second.app, second.done, second.version) == (first.app, first.version, first.version + 1)
    Path(log.url(SAMPLES)).rename(Path(log.store) / "away")
    sampled(log.store, 61)
    anew = log.task(SAMPLES, LOAD_HOUR)
    assert anew is not None
    assert (anew.done, anew.app == first.app) == (None, False)


def test_small_files_and_missing_figures_are_told_by_the_log(log: TableLog) -> None:
    """An hour of one file is as compact as it gets; a column of nulls is known to be one."""
    sampled(log.store, 5, 6, 61)
    assert log.small_files(SAMPLES, 1 << 20).keys() == {HOUR}
    assert log.bytes_of(SAMPLES) > log.small_files(SAMPLES, 1 << 20)[HOUR] > 0
    assert log.known(SAMPLES, "bytes_out", (HOUR, NEXT)) is False
    assert log.known(SAMPLES, "partition", (HOUR,)) is True


def scope(**policy: int) -> Scope:
    """What the jobs look at, at half past two."""
    return Scope(PipelinePolicy(**policy), NEXT + timedelta(minutes=30))


def test_hours_whose_samples_are_partly_forgotten_are_not_made_again(log: TableLog) -> None:
    """Late samples of an hour behind the newest by more than is kept would replace its rows by fewer."""
    sampled(log.store, 61)
    tables = SparkTables(lambda: pytest.fail("no Spark"), log.store)
    gained = Change((HOUR - timedelta(hours=2), HOUR), ("alpha",))
    assert _whole_hours(SAMPLES)(tables, scope(keep_minutes_hours=2), gained) == (HOUR,)
    assert _whole_hours(SAMPLES)(tables, scope(), Change((), ())) == ()


def test_a_sample_from_the_future_does_not_end_the_jobs_of_the_present() -> None:
    """A sampler's clock ran a year ahead once: windows are counted back from the last hour that can have been."""
    ahead = NEXT + timedelta(days=365)
    assert scope().newest((HOUR, NEXT, ahead)) == NEXT
    assert scope().newest((HOUR.date(), ahead.date())) == HOUR.date()
    # Where everything lies ahead, it is our own clock that is behind.
    assert scope().newest((ahead, ahead + timedelta(hours=1))) == ahead + timedelta(hours=1)


def test_a_newer_layout_and_a_foreign_table_are_refused(log: TableLog) -> None:
    """Every question begins with the layout, so no job reads or replaces what it does not know."""
    for table, description, sentence in (
        (DISK_HOUR, describe("disk_hour", 2), "layout 2"),
        (LEADERSHIP_HISTORY, "somebody's", "not one of Ballast's"),
    ):
        DeltaTable.create(log.url(table), schema=arrow_schema(table.columns), description=description)
        for question in (log.exists, log.ensure, log.parts):
            with pytest.raises(UsageError, match=sentence):
                question(table)


def test_a_broken_log_is_one_sentence(log: TableLog) -> None:
    """And not a traceback of delta-rs."""
    log.ensure(DISK_HOUR)
    (Path(log.store) / "disk_hour" / "_delta_log" / f"{0:020d}.json").write_text("{")
    with pytest.raises(Unavailable, match="log of the table disk_hour"):
        log.exists(DISK_HOUR)

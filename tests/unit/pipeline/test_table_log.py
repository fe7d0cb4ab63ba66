"""What jobs learn from the tables' logs, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.spark.series import START_MS, Log, World

from ballast.adapters.samples.arrow_schema import arrow_schema
from ballast.adapters.samples.store import SampleStore, describe, table_url
from ballast.core.samples import SAMPLES
from ballast.errors import Unavailable, UsageError
from ballast.pipeline.jobs import JOBS, NOTHING, Scope, Stored
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.schemas import DISK_HOUR, LEADERSHIP_HISTORY, LOAD_HOUR
from ballast.pipeline.table_log import Part, TableLog, Task
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


def test_files_and_missing_figures_are_told_by_the_log(log: TableLog) -> None:
    """Of each hour its files and their bytes, in order; a column of nulls is known to be one."""
    sampled(log.store, 5, 6, 61)
    parts = log.parts(SAMPLES)
    assert [(at, part.files) for at, part in parts.items()] == [(HOUR, 2), (NEXT, 1)]
    assert parts[HOUR].size_bytes > parts[NEXT].size_bytes > 0
    assert log.known(SAMPLES, "bytes_out", (HOUR, NEXT)) is False
    assert log.known(SAMPLES, "partition", (HOUR,)) is True


def scope(**policy: int) -> Scope:
    """What the jobs look at, at half past two."""
    return Scope(PipelinePolicy(**policy), NEXT + timedelta(minutes=30))


HOURS = tuple(HOUR + timedelta(hours=n) for n in range(-85, 1))
"""As many as the pipeline rested; samples are kept for 72."""


def read(hours: tuple[datetime, ...]) -> dict[datetime, Part]:
    """A table of these hours, each written ten minutes after it ended."""
    return {hour: Part(1, 1, hour + timedelta(minutes=70)) for hour in hours}


def test_hours_that_were_made_and_whose_samples_may_be_forgotten_are_not_made_again() -> None:
    """Late samples of an hour behind the newest by more than is kept would replace its rows by fewer."""
    late, parts = HOURS[:20], JOBS["load_hour"].parts
    assert parts(scope(), Stored(read(HOURS), read(HOURS)), Change(late, ("alpha",))) == HOURS[14:20]
    assert parts(scope(), Stored(read(HOURS), read(HOURS)), Change((), ())) == ()


def test_missing_hours_are_made_however_long_the_pipeline_rested() -> None:
    """So is the hour in which it began to rest: its table was written before the hour ended."""
    change = Change(HOURS[5:], ("alpha",))
    for name in ("load_hour", "leadership_history", "broker_imbalance", "disk_hour"):
        parts = JOBS[name].parts
        assert parts(scope(), Stored(read(HOURS), {}), change) == HOURS[5:]
        begun = read(HOURS[:5]) | {HOURS[5]: Part(1, 1, HOURS[5] + timedelta(minutes=30))}
        assert parts(scope(), Stored(read(HOURS), begun), change) == HOURS[5:]


def test_a_day_that_was_made_and_whose_hours_may_be_forgotten_is_not_made_again() -> None:
    """A missing hour of it came: the day keeps the figures of all the others."""
    days = tuple(HOUR.date() - timedelta(days=n) for n in (3, 2, 1))
    change = Change(tuple(HOUR - timedelta(days=n) for n in (3, 2, 1)), ("alpha",))
    written = dict.fromkeys(days, Part(1, 1, HOUR))
    parts = JOBS["load_day"].parts
    short = scope(load_hour_retention_days=2, samples_retention_hours=2)
    assert parts(short, Stored(read(HOURS), written), change) == days[2:]
    assert parts(short, Stored(read(HOURS), {}), change) == days


def test_an_empty_source_is_nothing_to_do(log: TableLog) -> None:
    """All its samples were deleted before a job saw them: what there is stays, and Spark does not start."""
    tables = SparkTables(lambda: pytest.fail("no Spark"), log.store)
    for job in JOBS.values():
        log.ensure(job.source)
        assert job(tables, scope(), print) == NOTHING


def test_a_part_is_as_old_as_its_newest_file(log: TableLog) -> None:
    """By the log, in UTC."""
    began = datetime.now(UTC) - timedelta(seconds=1)
    sampled(log.store, 5, 61)
    parts = log.parts(SAMPLES)
    assert parts.keys() == {HOUR, NEXT}
    assert all(began < part.written < datetime.now(UTC) + timedelta(seconds=1) for part in parts.values())


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
        (LEADERSHIP_HISTORY, "another's", "not one of Ballast's"),
    ):
        DeltaTable.create(log.url(table), schema=arrow_schema(table.columns), description=description)
        for question in (log.exists, log.ensure, log.parts):
            with pytest.raises(UsageError, match=sentence):
                question(table)


def test_a_broken_log_is_one_sentence(log: TableLog) -> None:
    """And not a traceback of delta-rs."""
    log.ensure(DISK_HOUR)
    (Path(log.store) / "disk_hour" / "_delta_log" / f"{0:020d}.json").write_text("{")
    with pytest.raises(Unavailable, match="disk_hour could not be read"):
        log.exists(DISK_HOUR)

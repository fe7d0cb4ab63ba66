"""The jobs in their order, and the only place that reads and writes tables.

Each job asks what its source gained since its own last commit, folds the hours, days or clusters that this touches as a
whole, and replaces them in one commit.  Running again, late samples and repeated samples all lead to the same tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from ballast.errors import UsageError
from ballast.pipeline import transforms
from ballast.pipeline.schemas import (
    BROKER_IMBALANCE,
    DISK_HOUR,
    DISK_OUTLOOK,
    LEADERSHIP_HISTORY,
    LOAD_DAY,
    LOAD_HOUR,
    LOAD_MODEL,
    SAMPLES_HOUR,
    SAMPLES_MINUTE,
    Table,
)
from ballast.pipeline.tables import Position, SparkTables, translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOUR_FORMAT: Final = "%Y-%m-%dT%H"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePolicy:
    """What the jobs keep and look at."""

    window_days: int = 14
    """Days of history behind the load model."""
    keep_minutes_hours: int = 72
    """Hours of raw samples kept. Samples later than this are not folded: their hour is no longer whole."""
    keep_hours_days: int = 35
    """Days of ``samples_hour`` and ``load_hour`` kept."""
    keep_days_days: int = 400
    """Days of ``load_day`` kept."""


@dataclass(frozen=True, slots=True)
class JobReport:
    """What one job did."""

    job: str
    touched: tuple[str, ...]
    """Hours, days or clusters that were replaced; empty when nothing was new."""
    rows: int
    seconds: float


Say = Callable[[str], None]
Clock = Callable[[], float]
"""Monotonic seconds."""


def run_all(
    tables: SparkTables, policy: PipelinePolicy, *, say: Say = lambda _: None, clock: Clock = lambda: 0.0
) -> list[JobReport]:
    """Bring every table up to date with the samples; safe to run at any time, as often as wanted.

    Raises ``UsageError`` when there are no samples, ``Refused`` when another run is at work, ``Unavailable`` when Spark or
    the store failed.
    """
    if tables.position(SAMPLES_MINUTE) is None:
        raise UsageError(
            f"There are no samples in {tables.store}.",
            hint="Let the daemon run with samples.store set, or take samples with `ballast sample`.",
        )
    reports = []
    for job in JOBS:
        begun = clock()
        name = job.__name__.removeprefix("_")
        with translated(f"making {name}"):
            touched, rows = job(tables, policy, say)
        report = JobReport(name, tuple(touched), rows, clock() - begun)
        say(_sentence(report))
        reports.append(report)
    return reports


def _sentence(report: JobReport) -> str:
    if not report.touched:
        return f"{report.job}: nothing new"
    first, last = report.touched[0], report.touched[-1]
    what = first if first == last else f"{first} … {last}"
    return f"{report.job}: {report.rows} rows for {what} in {report.seconds:.1f} s"


def _news(tables: SparkTables, source: Table, target: Table) -> tuple[Position, Position | None] | None:
    """Where the source is and where the job is; None when there is nothing new."""
    until = tables.position(source)
    assert until is not None, f"{source.name} is made before it is read"
    tables.ensure(target)
    since = tables.progress(target, target.name).position
    return None if since == until else (until, since)


def _samples_hour(tables: SparkTables, policy: PipelinePolicy, say: Say) -> tuple[list[str], int]:
    return _from_minutes(tables, policy, say, SAMPLES_HOUR, transforms.samples_hour)


def _leadership_history(tables: SparkTables, policy: PipelinePolicy, say: Say) -> tuple[list[str], int]:
    return _from_minutes(tables, policy, say, LEADERSHIP_HISTORY, transforms.leadership_history)


def _broker_imbalance(tables: SparkTables, policy: PipelinePolicy, say: Say) -> tuple[list[str], int]:
    def of_hours(minutes: DataFrame, hours: list[str]) -> DataFrame:
        return transforms.broker_imbalance(minutes.where(F.col("hour").isin(hours)))

    return _from_minutes(tables, policy, say, BROKER_IMBALANCE, of_hours)


def _disk_hour(tables: SparkTables, policy: PipelinePolicy, say: Say) -> tuple[list[str], int]:
    def of_hours(minutes: DataFrame, hours: list[str]) -> DataFrame:
        return transforms.disk_hour(minutes.where(F.col("hour").isin(hours)))

    return _from_minutes(tables, policy, say, DISK_HOUR, of_hours)


def _from_minutes(
    tables: SparkTables,
    policy: PipelinePolicy,
    say: Say,
    target: Table,
    fold: Callable[[DataFrame, list[str]], DataFrame],
) -> tuple[list[str], int]:
    """Fold the hours that new samples touch; the fold sees the hour before each as its lead-in."""
    news = _news(tables, SAMPLES_MINUTE, target)
    if news is None:
        return [], 0
    until, since = news
    new = tables.added(SAMPLES_MINUTE, since, until).select("hour", "minute").distinct()
    hours = sorted(row["hour"] for row in transforms.touched_hours(new).collect())
    hours = _still_whole(hours, policy)
    if not hours:
        return [], 0
    say(f"{target.name}: folding {len(hours)} hours")
    wanted = sorted({*hours, *(_shift(h, -1) for h in hours)})
    minutes = tables.read(SAMPLES_MINUTE, until).where(F.col("hour").isin(wanted))
    return _replace(tables, target, fold(minutes, hours), hours, until)


def _load_hour(tables: SparkTables, _: PipelinePolicy, say: Say) -> tuple[list[str], int]:
    news = _news(tables, SAMPLES_HOUR, LOAD_HOUR)
    if news is None:
        return [], 0
    until, since = news
    hours = _distinct(tables, SAMPLES_HOUR, "hour", since, until)
    if not hours:
        return [], 0
    say(f"load_hour: folding {len(hours)} hours")
    samples = tables.read(SAMPLES_HOUR, until).where(F.col("hour").isin(hours))
    return _replace(tables, LOAD_HOUR, transforms.load_hour(samples), hours, until)


def _load_day(tables: SparkTables, _: PipelinePolicy, say: Say) -> tuple[list[str], int]:
    news = _news(tables, LOAD_HOUR, LOAD_DAY)
    if news is None:
        return [], 0
    until, since = news
    dates = sorted({hour[:10] for hour in _distinct(tables, LOAD_HOUR, "hour", since, until)})
    if not dates:
        return [], 0
    say(f"load_day: folding {len(dates)} days")
    whole = [f"{date}T{hour:02d}" for date in dates for hour in range(24)]
    hours = tables.read(LOAD_HOUR, until).where(F.col("hour").isin(whole))
    return _replace(tables, LOAD_DAY, transforms.load_day(hours), dates, until)


def _load_model(tables: SparkTables, policy: PipelinePolicy, say: Say) -> tuple[list[str], int]:
    news = _news(tables, LOAD_DAY, LOAD_MODEL)
    if news is None:
        return [], 0
    until, since = news
    clusters = _distinct(tables, LOAD_DAY, "cluster", since, until)
    if not clusters:
        return [], 0
    days = tables.read(LOAD_DAY, until).where(F.col("cluster").isin(clusters))
    newest = str(days.agg(F.max("date").alias("date")).collect()[0]["date"])
    oldest = (_date(newest) - timedelta(days=policy.window_days - 1)).strftime("%Y-%m-%d")
    say(f"load_model: {len(clusters)} clusters from {oldest} to {newest}")
    model = transforms.load_model(days.where(F.col("date") >= oldest))
    return _replace(tables, LOAD_MODEL, model, clusters, until)


def _disk_outlook(tables: SparkTables, policy: PipelinePolicy, say: Say) -> tuple[list[str], int]:
    news = _news(tables, DISK_HOUR, DISK_OUTLOOK)
    if news is None:
        return [], 0
    until, since = news
    hours = _distinct(tables, DISK_HOUR, "hour", since, until)
    clusters = _distinct(tables, DISK_HOUR, "cluster", since, until)
    if not clusters:
        return [], 0
    say(f"disk_outlook: {len(clusters)} clusters")
    oldest = _shift(hours[-1], -24 * policy.window_days)
    disks = tables.read(DISK_HOUR, until).where(F.col("cluster").isin(clusters) & (F.col("hour") > oldest))
    return _replace(tables, DISK_OUTLOOK, transforms.disk_outlook(disks), clusters, until)


JOBS: Final = (
    _samples_hour,
    _load_hour,
    _load_day,
    _load_model,
    _leadership_history,
    _broker_imbalance,
    _disk_hour,
    _disk_outlook,
)
"""In the order in which they feed each other."""


def _replace(
    tables: SparkTables, target: Table, frame: DataFrame, values: list[str], source: Position
) -> tuple[list[str], int]:
    tables.replace(target, frame, key=target.partition_by[0], values=values, job=target.name, source=source)
    return values, tables.rows_in(target, target.partition_by[0], values)


def _distinct(tables: SparkTables, source: Table, key: str, since: Position | None, until: Position) -> list[str]:
    """The few keys that new rows have; the rows themselves stay where they are."""
    return sorted(row[key] for row in tables.added(source, since, until).select(key).distinct().collect())


def _still_whole(hours: list[str], policy: PipelinePolicy) -> list[str]:
    """Hours of which the raw samples are still kept; folding an older one again would lose what is gone."""
    if not hours:
        return []
    oldest = _shift(hours[-1], -policy.keep_minutes_hours)
    return [hour for hour in hours if hour > oldest]


def maintain(tables: SparkTables, policy: PipelinePolicy, *, now: datetime, say: Say = lambda _: None) -> None:
    """Compact the closed hours of raw samples, forget what is older than the policy keeps, and free the files."""
    this_hour = now.strftime(HOUR_FORMAT)
    oldest_minutes = _shift(this_hour, -policy.keep_minutes_hours)
    keep_hours = (now - timedelta(days=policy.keep_hours_days)).strftime(HOUR_FORMAT)
    keep_days = (now - timedelta(days=policy.keep_days_days)).strftime("%Y-%m-%d")
    plan = (
        (SAMPLES_MINUTE, "hour", oldest_minutes),
        (SAMPLES_HOUR, "hour", keep_hours),
        (LOAD_HOUR, "hour", keep_hours),
        (LOAD_DAY, "date", keep_days),
        (LEADERSHIP_HISTORY, "hour", keep_days + "T00"),
        (BROKER_IMBALANCE, "hour", keep_days + "T00"),
        (DISK_HOUR, "hour", keep_days + "T00"),
    )
    for table, key, oldest in plan:
        if tables.position(table) is None:
            continue
        with translated(f"tidying {table.name}"):
            tables.drop_before(table, key, oldest)
            if table is SAMPLES_MINUTE:
                tables.compact(table, key, oldest, this_hour)
            tables.vacuum(table)
        say(f"{table.name}: kept from {oldest}")


def _shift(hour: str, hours: int) -> str:
    return (_date(hour) + timedelta(hours=hours)).strftime(HOUR_FORMAT)


def _date(name: str) -> datetime:
    return datetime.strptime(name, HOUR_FORMAT if "T" in name else "%Y-%m-%d").replace(tzinfo=UTC)

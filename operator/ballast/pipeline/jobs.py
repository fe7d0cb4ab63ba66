"""The jobs in their order, and the only place that reads and writes tables.

Each job asks what its source gained since its own last commit, folds the hours, days or clusters that this touches as a
whole, and replaces them in one commit.  Running again, late samples and repeated samples all lead to the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from ballast.core.wording import human_many
from ballast.errors import UsageError
from ballast.pipeline import row_reader
from ballast.pipeline.disk_fold import fold_disks, fold_outlooks
from ballast.pipeline.hour_fold import fold_hours
from ballast.pipeline.hours import HOUR_FORMAT, shifted, start_of
from ballast.pipeline.leadership_fold import fold_imbalances, fold_leaderships
from ballast.pipeline.load_fold import fold_minutes
from ballast.pipeline.minute_reader import (
    LEAD_IN_FROM_MINUTE,
    Minutes,
    read_disks,
    read_leaders,
    read_measured,
    read_preferences,
    shares_of,
)
from ballast.pipeline.model_fold import fold_days, fold_models
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.row_reader import Rows, RowShare, read_days, read_hours, read_log_dirs
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
from ballast.pipeline.table_log import Note, Position, TableLog
from ballast.pipeline.tables import SparkTables, translated
from ballast.pipeline.workers import Fold, Read, made

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class JobReport:
    """What one job did."""

    job: str
    touched: tuple[str, ...]
    """Hours, days or clusters that were replaced; empty when nothing was new."""
    rows: int
    seconds: float


class Done(NamedTuple):
    """What a job replaced, and how many rows are there now."""

    touched: tuple[str, ...]
    rows: int


NOTHING: Final = Done((), 0)
CLOCKS_DIFFER: Final = timedelta(days=1)
"""How far ahead of ours the clock of a sampler may be before its samples are left out of windows."""
Say = Callable[[str], None]
Clock = Callable[[], float]
"""Monotonic seconds."""


class Scope(NamedTuple):
    """What the jobs look at."""

    policy: PipelinePolicy
    now: datetime

    def newest(self, parts: Sequence[str]) -> str:
        """The last of these hours or days that can have been, from which windows are counted back.

        A sampler whose clock ran ahead once must not close them to everything until that date.
        """
        latest = (self.now + CLOCKS_DIFFER).strftime(HOUR_FORMAT)
        return max((part for part in parts if part <= latest), default=max(parts))


Job = Callable[[SparkTables, Scope, Say], Done]


def run_all(
    tables: SparkTables,
    policy: PipelinePolicy,
    *,
    now: datetime | None = None,
    say: Say = lambda _: None,
    clock: Clock = lambda: 0.0,
) -> list[JobReport]:
    """Bring every table up to date with the samples; safe to run at any time, as often as wanted.

    Raises ``UsageError`` when there are no samples, ``Refused`` when another run is at work, ``Unavailable`` when Spark or
    the store failed.
    """
    if tables.log.position(SAMPLES_MINUTE) is None:
        raise UsageError(
            f"There are no samples in {tables.store}.",
            hint="Let the daemon run with samples.store set, or take samples with `ballast sample`.",
        )
    scope = Scope(policy, now or datetime.now(UTC))
    reports = []
    for name, job in JOBS.items():
        begun = clock()
        with translated(f"making {name}"):
            done = job(tables, scope, say)
        report = JobReport(name, done.touched, done.rows, clock() - begun)
        say(_sentence(report))
        reports.append(report)
    return reports


def _sentence(report: JobReport) -> str:
    if not report.touched:
        return f"{report.job}: nothing new"
    first, last = report.touched[0], report.touched[-1]
    what = first if first == last else f"{first} … {last}"
    return f"{report.job}: {human_many(report.rows, 'row')} for {what} in {report.seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class _Task:
    """What a job has to do: fold these parts of its target, from its source as it is at ``until``."""

    until: Position
    parts: tuple[str, ...]
    clusters: tuple[str, ...]


def _gained(tables: SparkTables, source: Table, target: Table) -> tuple[Position | None, Position] | None:
    """From where to where the source has moved since the job last ran; None when it did not."""
    until = tables.log.position(source)
    assert until is not None, f"{source.name} is made before it is read"
    tables.log.ensure(target)
    since = tables.log.progress(target)
    return None if since == until else (since, until)


def _from_minutes(target: Table, read: Read, fold: Fold, *, whole: bool = False) -> Job:
    """A job that folds the hours that new samples touch, as workers ``read`` them; ``whole`` hours, or chunk by chunk."""

    def job(tables: SparkTables, scope: Scope, say: Say) -> Done:
        gained = _gained(tables, SAMPLES_MINUTE, target)
        if gained is None:
            return NOTHING
        until = gained[1]
        new = tables.log.new_minutes(SAMPLES_MINUTE, *gained)
        there = tables.log.parts(SAMPLES_MINUTE, until)
        hours = _still_whole(touched_hours(new.hour, new.minute, there), there, scope)
        if not hours:
            return NOTHING
        say(f"{target.name}: folding {human_many(len(hours), 'hour')}")
        wanted = {*hours, *(shifted(h, -1) for h in hours)}
        held = tables.log.distinct(SAMPLES_MINUTE, until, wanted, ("cluster", "hour", "chunks"))
        minutes = Minutes(tables.url(SAMPLES_MINUTE), until, shares_of(held, hours, whole=whole))
        files = made(tables.session, tables.target(target), minutes, read, fold)
        return _replace(tables, target, files, _Task(until, hours, new.clusters))

    return job


def touched_hours(hour: Sequence[str], minute: Sequence[int], there: Collection[str]) -> tuple[str, ...]:
    """The hours that new samples change: their own, and the next one, where it has samples, when they lie in its lead-in."""
    led_in = {shifted(h, 1) for h, m in zip(hour, minute, strict=True) if m >= LEAD_IN_FROM_MINUTE}
    return tuple(sorted({*hour, *(led_in & set(there))}))


def _load_day(tables: SparkTables, _: Scope, say: Say) -> Done:
    gained = _gained(tables, LOAD_HOUR, LOAD_DAY)
    if gained is None:
        return NOTHING
    until, news = gained[1], tables.log.news(LOAD_HOUR, *gained)
    dates = tuple(sorted({hour[:10] for hour in news.parts}))
    if not dates:
        return NOTHING
    say(f"load_day: folding {human_many(len(dates), 'day')}")
    shares: list[RowShare] = []
    for date in dates:
        shares += _shares(tables, LOAD_HOUR, until, [f"{date}T{hour:02d}" for hour in range(24)])
    rows = Rows(tables.url(LOAD_HOUR), until, tuple(shares))
    files = made(tables.session, tables.target(LOAD_DAY), rows, read_hours, fold_days)
    return _replace(tables, LOAD_DAY, files, _Task(until, dates, news.clusters))


def _shares(
    tables: SparkTables, source: Table, at: Position, parts: Sequence[str], only: Collection[str] | None = None
) -> tuple[RowShare, ...]:
    """The shares of these parts of a folded table, of all clusters that are in them or of some."""
    files = tables.log.files(source, at, parts)
    clusters = {file.cluster for file in files}
    if None in clusters:
        # Files of several clusters: the log has only the first and the last of their names.
        clusters = {cluster for (cluster,) in tables.log.distinct(source, at, parts, ("cluster",))}
    named = {cluster for cluster in clusters if cluster is not None and (only is None or cluster in only)}
    return row_reader.shares_of(files, named, parts)


def _load_model(tables: SparkTables, scope: Scope, say: Say) -> Done:
    gained = _gained(tables, LOAD_DAY, LOAD_MODEL)
    if gained is None:
        return NOTHING
    until, news = gained[1], tables.log.news(LOAD_DAY, *gained)
    if not news.clusters:
        return NOTHING
    dates = tables.log.parts(LOAD_DAY, until)
    newest = scope.newest(dates)
    oldest = (start_of(newest) - timedelta(days=scope.policy.window_days - 1)).strftime("%Y-%m-%d")
    say(f"load_model: folding {human_many(len(news.clusters), 'cluster')} from {oldest} to {newest}")
    window = [date for date in dates if oldest <= date <= newest]
    rows = Rows(tables.url(LOAD_DAY), until, _shares(tables, LOAD_DAY, until, window, news.clusters))
    files = made(tables.session, tables.target(LOAD_MODEL), rows, read_days, fold_models)
    return _replace(tables, LOAD_MODEL, files, _Task(until, news.clusters, news.clusters))


def _disk_outlook(tables: SparkTables, scope: Scope, say: Say) -> Done:
    gained = _gained(tables, DISK_HOUR, DISK_OUTLOOK)
    if gained is None:
        return NOTHING
    until, news = gained[1], tables.log.news(DISK_HOUR, *gained)
    if not news.clusters:
        return NOTHING
    say(f"disk_outlook: folding {human_many(len(news.clusters), 'cluster')}")
    hours = tables.log.parts(DISK_HOUR, until)
    newest = scope.newest(hours)
    oldest = shifted(newest, -24 * scope.policy.window_days)
    window = [hour for hour in hours if oldest < hour <= newest]
    rows = Rows(tables.url(DISK_HOUR), until, _shares(tables, DISK_HOUR, until, window, news.clusters))
    files = made(tables.session, tables.target(DISK_OUTLOOK), rows, read_log_dirs, fold_outlooks)
    return _replace(tables, DISK_OUTLOOK, files, _Task(until, news.clusters, news.clusters))


JOBS: Final[Mapping[str, Job]] = {
    "load_hour": _from_minutes(LOAD_HOUR, read_measured, fold_minutes),
    "load_day": _load_day,
    "load_model": _load_model,
    "samples_hour": _from_minutes(SAMPLES_HOUR, read_measured, fold_hours),
    "leadership_history": _from_minutes(LEADERSHIP_HISTORY, read_leaders, fold_leaderships),
    "broker_imbalance": _from_minutes(BROKER_IMBALANCE, read_preferences, fold_imbalances, whole=True),
    "disk_hour": _from_minutes(DISK_HOUR, read_disks, fold_disks, whole=True),
    "disk_outlook": _disk_outlook,
}
"""In the order in which they feed each other; the load model, which plans wait for, is made first."""


def _replace(tables: SparkTables, target: Table, files: DataFrame, task: _Task) -> Done:
    note = Note(target.name, task.until.table_id, task.until.version, task.parts, task.clusters)
    rows = tables.replace(target, files, note)
    return NOTHING if rows is None else Done(task.parts, rows)


def _still_whole(hours: tuple[str, ...], there: Sequence[str], scope: Scope) -> tuple[str, ...]:
    """Hours of which the raw samples are still kept; folding an older one again would lose what is gone."""
    if not there:
        return ()
    oldest = shifted(scope.newest(there), -scope.policy.keep_minutes_hours)
    return tuple(hour for hour in hours if hour > oldest)


def maintain(log: TableLog, policy: PipelinePolicy, *, now: datetime, say: Say = lambda _: None) -> None:
    """Compact the closed hours of raw samples, forget what is older than the policy keeps, and free the files."""
    this_hour = now.strftime(HOUR_FORMAT)
    oldest_minutes = shifted(this_hour, -policy.keep_minutes_hours)
    keep_hours = (now - timedelta(days=policy.keep_hours_days)).strftime(HOUR_FORMAT)
    keep_days = (now - timedelta(days=policy.keep_days_days)).strftime("%Y-%m-%d")
    plan: tuple[tuple[Table, str | None], ...] = (
        (SAMPLES_MINUTE, oldest_minutes),
        (SAMPLES_HOUR, keep_hours),
        (LOAD_HOUR, keep_hours),
        (LOAD_DAY, keep_days),
        (LEADERSHIP_HISTORY, keep_days + "T00"),
        (BROKER_IMBALANCE, keep_days + "T00"),
        (DISK_HOUR, keep_days + "T00"),
        # Of these nothing is forgotten, but each run replaces them and leaves the files of before.
        (LOAD_MODEL, None),
        (DISK_OUTLOOK, None),
    )
    for table, oldest in plan:
        if log.position(table) is None:
            continue
        if oldest is not None:
            log.forget(table, oldest)
            say(f"{table.name}: kept from {oldest}")
        if table is SAMPLES_MINUTE:
            log.compact(table, this_hour)
        log.vacuum(table)

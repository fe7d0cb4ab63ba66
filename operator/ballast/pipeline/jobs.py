"""The jobs in their order: what each has to do, from which table, by which transform.

Each job asks what its source gained since its own last commit, makes the hours, days or clusters that this touches anew as a
whole, and replaces them in one commit.  Running again, late samples and repeated samples all lead to the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ballast.core.samples import BROKERS, LOG_DIRS, SAMPLES, Table
from ballast.core.wording import ShowLine, human_many
from ballast.errors import UsageError
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.schemas import (
    BROKER_IMBALANCE,
    DISK_HOUR,
    DISK_OUTLOOK,
    LEADERSHIP_HISTORY,
    LOAD_DAY,
    LOAD_HOUR,
    LOAD_MODEL,
)
from ballast.pipeline.table_log import Part, Task
from ballast.pipeline.tables import Change, SparkTables, among, first_and_last, literal, translate_errors
from ballast.pipeline.transforms.broker_imbalance import broker_imbalance
from ballast.pipeline.transforms.disks import disk_hour, disk_outlook
from ballast.pipeline.transforms.leadership_history import leadership_history
from ballast.pipeline.transforms.load_day import load_day
from ballast.pipeline.transforms.load_hour import load_hour
from ballast.pipeline.transforms.load_model import load_model

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class JobReport:
    """What one job did."""

    job: str
    touched: tuple[Any, ...]
    """Hours, days or clusters that were replaced; empty when nothing was new."""
    rows: int
    seconds: float


class Done(NamedTuple):
    """What a job replaced, and how many rows are there now."""

    touched: tuple[Any, ...]
    rows: int


NOTHING: Final = Done((), 0)
CLOCKS_DIFFER: Final = timedelta(days=1)
"""How far ahead of ours the clock of a sampler may be before its samples are left out of windows."""
Clock = Callable[[], float]
"""Monotonic seconds."""


class Scope(NamedTuple):
    """What the jobs look at."""

    policy: PipelinePolicy
    now: datetime

    def newest(self, parts: Iterable[Any]) -> Any:
        """The last of these hours or days that can have been, from which windows are counted back.

        A sampler whose clock ran ahead once must not close them to everything until that date.
        """
        known = list(parts)
        latest: datetime | date = self.now + CLOCKS_DIFFER
        if not isinstance(known[0], datetime):
            latest = self.now.date() + CLOCKS_DIFFER
        return max((part for part in known if part <= latest), default=max(known))


class Stored(NamedTuple):
    """The parts that a job's two tables have before it runs."""

    source: Mapping[Any, Part]
    target: Mapping[Any, Part]


class Job(NamedTuple):
    """One table, and what it is made of."""

    source: Table
    target: Table
    parts: Callable[[Scope, Stored, Change], tuple[Any, ...]]
    """The parts of the target that the new parts of the source touch."""
    make: Callable[[SparkTables, Scope, Task, tuple[Any, ...]], DataFrame]
    """The rows of these parts."""

    def __call__(self, tables: SparkTables, scope: Scope, on_line: ShowLine) -> Done:
        """Bring the table up to date."""
        task = tables.log.task(self.source, self.target)
        if task is None:
            return NOTHING
        stored = Stored(tables.log.parts(self.source, task.version), tables.log.parts(self.target))
        parts = self.parts(scope, stored, tables.find_changes(self.source, task)) if stored.source else ()
        if not parts:
            return NOTHING
        on_line(f"{self.target.name}: making {first_and_last(parts)}")
        rows = tables.replace(self.target, self.make(tables, scope, task, parts), parts, task)
        return NOTHING if rows is None else Done(parts, rows)


def run_all(
    tables: SparkTables,
    policy: PipelinePolicy,
    *,
    now: datetime | None = None,
    on_line: ShowLine = lambda _: None,
    clock: Clock = lambda: 0.0,
) -> list[JobReport]:
    """Bring every table up to date with the samples; safe to run at any time, as often as wanted.

    Raises ``UsageError`` when there are no samples, ``Refused`` when another run is at work, ``Unavailable`` when Spark or
    the store failed.
    """
    if not tables.log.exists(SAMPLES):
        raise UsageError(
            f"There are no samples in {tables.store}.",
            hint="Let the daemon run with samples.store set, or take samples with `ballast sample`.",
        )
    scope = Scope(policy, now or datetime.now(UTC))

    def run(name: str, job: Job, source: Future[JobReport] | None) -> JobReport:
        if source is not None:
            source.result()
        begun = clock()
        with translate_errors(f"making {name}"):
            done = job(tables, scope, on_line)
        report = JobReport(name, done.touched, done.rows, clock() - begun)
        on_line(_sentence(report))
        return report

    # Side by side, since Spark plans each query on one core; a job waits for the one that makes its source.
    under_way: dict[str, Future[JobReport]] = {}
    with ThreadPoolExecutor(len(JOBS)) as pool:
        for name, job in JOBS.items():
            under_way[name] = pool.submit(run, name, job, under_way.get(job.source.name))
    return [ended.result() for ended in under_way.values()]


def _sentence(report: JobReport) -> str:
    if not report.touched:
        return f"{report.job}: nothing new"
    return (
        f"{report.job}: {human_many(report.rows, 'row')} for {first_and_last(report.touched)} in {report.seconds:.1f} s"
    )


def _hours(scope: Scope, stored: Stored, change: Change) -> tuple[Any, ...]:
    oldest = scope.newest(stored.source) - timedelta(hours=scope.policy.samples_retention_hours)
    return tuple(h for h in change.parts if h > oldest or not _is_final(stored, h, h + timedelta(hours=1)))


def _dates(scope: Scope, stored: Stored, change: Change) -> tuple[Any, ...]:
    oldest = (scope.newest(stored.source) - timedelta(days=scope.policy.load_hour_retention_days)).date()
    days = sorted({hour.date() for hour in change.parts})
    return tuple(d for d in days if d > oldest or not _is_final(stored, d, _midnight(d + timedelta(days=1))))


def _is_final(stored: Stored, part: Any, end: datetime) -> bool:
    """Was it made after it had ended?  Only then may what it was made from be gone: a run makes first and forgets after."""
    return part in stored.target and stored.target[part].written >= end


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _read(tables: SparkTables, source: Table, task: Task, hours: tuple[Any, ...]) -> DataFrame:
    return tables.read(source, version=task.version, where=among("hour", hours))


def _each_hour(source: Table, transform: Callable[[DataFrame], DataFrame]) -> Callable[..., DataFrame]:
    return lambda tables, _, task, hours: transform(_read(tables, source, task, hours))


def _load_hour(tables: SparkTables, _: Scope, task: Task, hours: tuple[Any, ...]) -> DataFrame:
    consumers = tables.log.known(SAMPLES, "bytes_out", hours)
    return load_hour(_read(tables, SAMPLES, task, hours), consumers=consumers)


def _imbalance(tables: SparkTables, _: Scope, task: Task, hours: tuple[Any, ...]) -> DataFrame:
    # Brokers are committed before the samples of their minute, so these are at least as new.
    brokers = tables.read(BROKERS, where=among("hour", hours))
    return broker_imbalance(_read(tables, SAMPLES, task, hours), brokers)


def _load_day(tables: SparkTables, _: Scope, task: Task, dates: tuple[Any, ...]) -> DataFrame:
    hours = tuple(_midnight(day) + timedelta(hours=n) for day in dates for n in range(24))
    return load_day(_read(tables, LOAD_HOUR, task, hours))


def _window(tables: SparkTables, source: Table, scope: Scope, task: Task, clusters: tuple[str, ...]) -> DataFrame:
    """The source's rows of these clusters within the days that the policy looks back."""
    newest = scope.newest(tables.log.parts(source, task.version))
    days = timedelta(days=scope.policy.window_days)
    by = source.partition_by[0]
    where = f"{by} > {literal(newest - days)} AND {by} <= {literal(newest)} AND {among('cluster', clusters)}"
    return tables.read(source, version=task.version, where=where)


def _load_model(tables: SparkTables, scope: Scope, task: Task, clusters: tuple[str, ...]) -> DataFrame:
    return load_model(_window(tables, LOAD_DAY, scope, task, clusters))


def _disk_outlook(tables: SparkTables, scope: Scope, task: Task, clusters: tuple[str, ...]) -> DataFrame:
    return disk_outlook(_window(tables, DISK_HOUR, scope, task, clusters))


def _clusters(_: Scope, __: Stored, change: Change) -> tuple[str, ...]:
    return change.clusters


JOBS: Final[Mapping[str, Job]] = {
    job.target.name: job
    for job in (
        Job(SAMPLES, LOAD_HOUR, _hours, _load_hour),
        Job(LOAD_HOUR, LOAD_DAY, _dates, _load_day),
        Job(LOAD_DAY, LOAD_MODEL, _clusters, _load_model),
        Job(SAMPLES, LEADERSHIP_HISTORY, _hours, _each_hour(SAMPLES, leadership_history)),
        Job(SAMPLES, BROKER_IMBALANCE, _hours, _imbalance),
        Job(LOG_DIRS, DISK_HOUR, _hours, _each_hour(LOG_DIRS, disk_hour)),
        Job(DISK_HOUR, DISK_OUTLOOK, _clusters, _disk_outlook),
    )
}
"""In the order in which they feed each other; the load model, which plans wait for, is made first."""

"""Puts the pipeline together: a session, the store's tables, the jobs, and the metrics of a run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from ballast.core.wording import ShowLine
from ballast.pipeline.buckets import jar_locks, with_bucket
from ballast.pipeline.policy import PipelinePolicy, show_master
from ballast.pipeline.schemas import LOAD_MODEL
from ballast.pipeline.session import SparkPolicy, is_connect, open_session, require_pyspark

Jars = Callable[[str], Sequence[Path]]
"""Brings the jars of a lock; called only when this process starts a JVM."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a pipeline run did, for people, programs and Prometheus."""

    jobs: tuple[Any, ...]
    """``pipeline.jobs.JobReport`` of each job, in order."""
    newest_hour: datetime | None
    finished_at: datetime

    @property
    def lag_s(self) -> float | None:
        """Seconds from the end of the newest hour in the model to now; 0 while that hour runs."""
        if self.newest_hour is None:
            return None
        return max((self.finished_at - self.newest_hour).total_seconds() - 3600, 0.0)


@contextmanager
def spark_session(policy: SparkPolicy, store: str, jars: Jars) -> Iterator[Any]:
    """A session that reaches the store and is ended afterwards."""
    require_pyspark()
    locks = () if is_connect(policy.master) else jar_locks(policy, store)
    session = open_session(with_bucket(policy, store, os.environ), [jar for lock in locks for jar in jars(lock)])
    try:
        yield session
    finally:
        session.stop()


def run_pipeline(
    store: str,
    policy: PipelinePolicy,
    *,
    spark: SparkPolicy,
    jars: Jars,
    maintenance: bool,
    on_line: ShowLine,
) -> RunReport:
    """Bring the tables of a store up to date; with ``maintenance``, forget what is old as well."""
    require_pyspark()
    # These import PySpark, which is an extra.
    from ballast.pipeline.fleet_store import maintain_readings  # noqa: PLC0415
    from ballast.pipeline.jobs import run_all  # noqa: PLC0415
    from ballast.pipeline.maintenance import maintain  # noqa: PLC0415
    from ballast.pipeline.tables import SparkTables  # noqa: PLC0415

    with ExitStack() as stack:

        def session() -> Any:
            on_line(f"starting Spark ({show_master(spark.master)})")
            return stack.enter_context(spark_session(spark, store, jars))

        tables = SparkTables(session, store)
        jobs = run_all(tables, policy, on_line=on_line, clock=time.monotonic)
        if maintenance:
            maintain(tables, policy, now=datetime.now(UTC), on_line=on_line)
            maintain_readings(store, policy, now=datetime.now(UTC), on_line=on_line)
    newest = max(tables.log.column(LOAD_MODEL, "as_of").to_pylist(), default=None)
    return RunReport(tuple(jobs), newest, datetime.now(UTC))


def write_metrics(report: RunReport, path: Path) -> None:
    """A text file for Prometheus' node exporter, replaced in one step."""
    registry = CollectorRegistry()
    rows = Gauge("ballast_pipeline_rows", "Rows that the last run wrote.", ["table"], registry=registry)
    seconds = Gauge("ballast_pipeline_job_seconds", "Time that the last run spent.", ["table"], registry=registry)
    for job in report.jobs:
        rows.labels(job.job).set(job.rows)
        seconds.labels(job.job).set(job.seconds)
    success = Gauge(
        "ballast_pipeline_last_success_timestamp_seconds", "When the pipeline last ran to its end.", registry=registry
    )
    success.set(report.finished_at.timestamp())
    if report.lag_s is not None:
        lag = Gauge("ballast_pipeline_lag_seconds", "How far the model is behind now.", registry=registry)
        lag.set(report.lag_s)
    write_to_textfile(str(path), registry)

"""``ballast pipeline``: from samples to the load model, on Spark."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ballast.cli.default_command import WholeLines
from ballast.cli.store_option import config_option, resolve_store, store_option
from ballast.cli.tables import output_option, print_line
from ballast.errors import UsageError

if TYPE_CHECKING:
    from ballast.pipeline.session import SparkPolicy

F = TypeVar("F", bound=Callable[..., Any])


def jars_of(lock: str) -> Sequence[Path]:
    """The jars of a lock from the user's cache, fetched and verified when they are not there; none where Spark's own folder has them."""
    from ballast.pipeline.session import spark_jars
    from ballast.sandbox.jars import ensure_jars, has_jars

    return () if has_jars(lock, spark_jars()) else ensure_jars(lock, on_line=print_line)


def spark_options(command: F) -> F:
    """Add ``--config``, ``--spark``, ``--driver-memory`` and ``--conf``, passed on as ``config`` and ``spark``.

    What is not said by an option or its environment variable is the settings'.
    """

    @functools.wraps(command)
    def call(
        *args: Any,
        config: Path | None,
        spark: str | None,
        driver_memory: str | None,
        conf: tuple[str, ...],
        **kwargs: Any,
    ) -> Any:
        return command(*args, config=config, spark=_policy(config, spark, driver_memory, conf), **kwargs)

    wrapped: Any = call
    for option in (
        click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark property; may be repeated."),
        click.option(
            "--driver-memory",
            metavar="SIZE",
            help="Heap of the embedded JVM.  [default: settings, else 2g]",
        ),
        click.option(
            "--spark",
            envvar="BALLAST_SPARK",
            metavar="MASTER",
            help="local[*], spark://host:port, k8s://… or sc://host:port (Spark Connect).  "
            "[default: settings, else local[*]]",
        ),
        config_option,
    ):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def _policy(config: Path | None, master: str | None, driver_memory: str | None, conf: tuple[str, ...]) -> SparkPolicy:
    from ballast.pipeline.policy import check_master, check_memory
    from ballast.pipeline.session import SparkPolicy
    from ballast.settings.load import load_settings

    pairs = [entry.partition("=") for entry in conf]
    wrong = [key for key, sign, _ in pairs if not sign or not key]
    if wrong:
        raise UsageError(f"--conf {wrong[0]!r} is not KEY=VALUE.", hint="Write --conf spark.executor.memory=4g.")
    settings = load_settings(config, os.environ).pipeline
    found = SparkPolicy(
        master=master or settings.spark,
        driver_memory=driver_memory or settings.driver_memory,
        conf={key: value for key, _, value in pairs},
    )
    try:
        check_master(found.master)
        check_memory(found.driver_memory)
    except ValueError as refused:
        raise UsageError(f"{refused}.", hint="See --spark, BALLAST_SPARK and --driver-memory.") from None
    return found


@click.group(cls=WholeLines)
def pipeline() -> None:
    """From minute samples to the load model that plans read."""


@pipeline.command()
@store_option
@spark_options
@click.option("--maintenance", is_flag=True, help="Also compact the samples, apply retention and vacuum.")
@click.option(
    "--metrics-file", type=click.Path(dir_okay=False, path_type=Path), help="Write figures of this run for Prometheus."
)
@output_option("PipelineRun")
def run(
    *,
    store: str | None,
    spark: SparkPolicy,
    config: Path | None,
    maintenance: bool,
    metrics_file: Path | None,
    output: str,
) -> int:
    """Bring every table up to date.

    Only what is new is read.  It can be killed anywhere and run again; late samples recompute their hour.
    """
    from ballast.adapters.extras import require

    require("spark", "The pipeline")
    from ballast.cli.tables import Column, console, human_count, print_json, render_table
    from ballast.pipeline.tables import name_of
    from ballast.settings.load import load_settings
    from ballast.wiring.pipeline import run_pipeline, write_metrics

    history = load_settings(config, os.environ).pipeline.history
    report = run_pipeline(
        resolve_store(store, config), history, spark=spark, jars=jars_of, maintenance=maintenance, on_line=print_line
    )
    if metrics_file is not None:
        write_metrics(report, metrics_file)
    newest = None if report.newest_hour is None else name_of(report.newest_hour)
    if output == "json":
        from ballast.cli.documents.history import PipelineJob, PipelineRun

        print_json(
            PipelineRun(
                newest_hour=report.newest_hour,
                lag_seconds=report.lag_s,
                jobs=[
                    PipelineJob(
                        table=j.job,
                        replaced=[name_of(part) for part in j.touched],
                        rows=j.rows,
                        seconds=j.seconds,
                    )
                    for j in report.jobs
                ],
            )
        )
        return 0
    rows = [
        (j.job, str(len(j.touched)), human_count(j.rows) if j.touched else "-", f"{j.seconds:.1f} s")
        for j in report.jobs
    ]
    columns = [Column("table", "left"), Column("parts replaced"), Column("rows"), Column("time")]
    screen = console()
    screen.print(render_table(columns, rows, screen.width))
    if newest is not None:
        click.echo(f"The load model knows everything up to {newest} UTC.")
    return 0

"""``ballast pipeline``: from samples to the load model, on Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ballast.cli.store_option import store_option, the_store
from ballast.cli.tables import output_option
from ballast.errors import UsageError

if TYPE_CHECKING:
    from ballast.pipeline.session import SparkPolicy

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def say(line: str) -> None:
    """Tell the story on stderr."""
    click.echo(line, err=True)


def delta_jars() -> Sequence[Path]:
    """Delta's jars from the user's cache, fetched and verified when they are not there."""
    from ballast.pipeline.session import DELTA_LOCK
    from ballast.sandbox.jars import ensure_jars

    return ensure_jars(DELTA_LOCK, say=say)


def spark_options(command: F) -> F:
    """Add ``--spark``, ``--driver-memory`` and ``--conf``, passed on as ``spark``."""

    def decorated(*args: Any, spark: str, driver_memory: str, conf: tuple[str, ...], **kwargs: Any) -> Any:
        return command(*args, spark=_policy(spark, driver_memory, conf), **kwargs)

    decorated.__name__ = command.__name__
    decorated.__doc__ = command.__doc__
    wrapped: Any = decorated
    if hasattr(command, "__click_params__"):
        wrapped.__click_params__ = command.__click_params__
    for option in (
        click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark property; may be repeated."),
        click.option("--driver-memory", default="2g", show_default=True, help="Heap of the embedded JVM."),
        click.option(
            "--spark",
            default="local[*]",
            show_default=True,
            envvar="BALLAST_SPARK",
            metavar="MASTER",
            help="local[*], spark://host:port, k8s://… or sc://host:port (Spark Connect).",
        ),
    ):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def _policy(master: str, driver_memory: str, conf: tuple[str, ...]) -> SparkPolicy:
    from ballast.pipeline.session import SparkPolicy

    pairs = [entry.partition("=") for entry in conf]
    wrong = [key for key, sign, _ in pairs if not sign or not key]
    if wrong:
        raise UsageError(f"--conf {wrong[0]!r} is not KEY=VALUE.", hint="Write --conf spark.executor.memory=4g.")
    return SparkPolicy(master=master, driver_memory=driver_memory, conf={key: value for key, _, value in pairs})


@click.group()
def pipeline() -> None:
    """From minute samples to the load model that plans read."""


@pipeline.command()
@store_option
@spark_options
@click.option("--config", type=_FILE, envvar="BALLAST_CONFIG", help="Ballast's settings file (YAML).")
@click.option("--tidy", is_flag=True, help="Also compact the samples and forget what is older than is kept.")
@click.option(
    "--metrics-file", type=click.Path(dir_okay=False, path_type=Path), help="Write figures of this run for Prometheus."
)
@output_option
def run(
    *, store: str | None, spark: SparkPolicy, config: Path | None, tidy: bool, metrics_file: Path | None, output: str
) -> int:
    """Bring every table up to date.

    Only what is new is read.  It can be killed anywhere and run again; late samples fold their hour anew.
    """
    from ballast.cli.tables import Column, console, human_count, print_json, render_table
    from ballast.wiring.pipeline import run_pipeline, write_metrics

    report = run_pipeline(the_store(store, config), spark=spark, jars=delta_jars, tidy=tidy, say=say)
    if metrics_file is not None:
        write_metrics(report, metrics_file)
    if output == "json":
        print_json(
            {
                "newest_hour": report.newest_hour,
                "lag_seconds": report.lag_s,
                "jobs": [
                    {"table": j.job, "replaced": list(j.touched), "rows": j.rows, "seconds": round(j.seconds, 3)}
                    for j in report.jobs
                ],
            }
        )
        return 0
    rows = [
        (j.job, str(len(j.touched)), human_count(j.rows) if j.touched else "-", f"{j.seconds:.1f} s")
        for j in report.jobs
    ]
    columns = [Column("table", "left"), Column("parts replaced"), Column("rows"), Column("time")]
    screen = console()
    screen.print(render_table(columns, rows, screen.width))
    if report.newest_hour is not None:
        click.echo(f"The load model knows everything up to {report.newest_hour} UTC.")
    return 0

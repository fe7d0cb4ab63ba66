"""The same hour on a standalone Spark cluster with 1, 2 and 4 executors of one core each: wall time and CPU.

    python bench/executors.py                       # 200,000 partitions, an hour of minutes
    python bench/executors.py --partitions 10000 --executors 1 2

Master, workers and executors are processes of this machine, on its loopback, and end with the bench.  Each run is ``ballast
pipeline run`` as a user runs it, over the same samples, its tables made for the first time: it starts its driver and its executors.
The table is Markdown, as docs/benchmarks.md has it.  With fewer idle cores than executors and driver the time says little.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.meter import Meter, measured
from bench.pipeline import generate, pipeline
from tests.spark.servers import standalone

from ballast.core.samples import BROKERS, LOG_DIRS, SAMPLES

SAMPLED = {table.name for table in (SAMPLES, BROKERS, LOG_DIRS)}
OVERHEAD_MB = 512
"""What Spark itself asks for at most beside an executor's heap: a worker must have both."""


class Run(NamedTuple):
    """What one run took."""

    executors: int
    wall_s: float
    load_hour_s: float
    driver_cpu_s: float
    executors_cpu_s: float
    executors_mb: int


def run_on(executors: int, asked: argparse.Namespace) -> Run:
    """The tables made from the samples by so many executors, on a cluster of their own."""
    with scratch("cluster") as folder:
        heap = f"{asked.heap_mb}m"
        with standalone(folder, workers=executors, memory=f"{asked.heap_mb + OVERHEAD_MB}m", bare=True) as url:
            servers = psutil.Process().children()
            conf = {
                "spark.executor.memory": heap,
                "spark.executor.cores": "1",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.local.dir": str(folder),
            }
            more = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
            wanted = argparse.Namespace(store=asked.store, spark=url, memory=asked.memory)
            done, theirs = measured(Meter(*servers), f"{executors} executors", lambda: pipeline(wanted, *more))
    return Run(
        executors,
        done["wall_s"],
        done["jobs_s"]["load_hour"],
        round(done["cpu_s"] - theirs["cpu_s"], 1),
        theirs["cpu_s"],
        theirs["peak_mb"],
    )


def forget_what_was_made(store: str) -> None:
    """Leave the samples alone."""
    for folder in Path(store).iterdir():
        if folder.name not in SAMPLED:
            shutil.rmtree(folder)


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"ballast-bench-{name}-") as folder:
        yield Path(folder)


def table(runs: list[Run]) -> str:
    """In Markdown."""
    names = (
        "executors",
        "wall s (times as fast)",
        "`load_hour`: wall s (times as fast)",
        "CPU s of the driver",
        "of master, workers, executors",
        "their peak MB",
    )
    lines: list[tuple[object, ...]] = [names, ("---",) * len(names)]
    for run in runs:
        walls = [
            f"{mine:.1f} ({first / mine:.2f})"
            for mine, first in ((run.wall_s, runs[0].wall_s), (run.load_hour_s, runs[0].load_hour_s))
        ]
        lines.append((run.executors, *walls, run.driver_cpu_s, run.executors_cpu_s, run.executors_mb))
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def ran_on(load: tuple[float, float, float]) -> str:
    """The machine, and how busy it was before."""
    memory = psutil.virtual_memory().total / 1e9
    return f"{os.cpu_count()} cores, {memory:.0f} GB; load average before: {', '.join(f'{part:.1f}' for part in load)}"


def main() -> None:
    """Generate, run on each cluster, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=200_000)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--executors", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--heap-mb", type=int, default=1536, help="heap of an executor")
    parser.add_argument("--memory", default="1g", help="heap of the driver")
    parser.add_argument("--within", type=int, default=1800, help="seconds after which all of it is ended")
    asked = parser.parse_args()
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(asked.within)
    load = os.getloadavg()
    with scratch("samples") as folder:
        asked.store = str(folder / "store")
        generate(asked.store, asked.partitions, asked.minutes)
        runs: list[Run] = []
        for executors in asked.executors:
            runs.append(run_on(executors, asked))
            forget_what_was_made(asked.store)
    print(
        f"{asked.partitions:,} partitions, {asked.minutes} minutes; {ran_on(load)}, after: {os.getloadavg()[0]:.1f}\n"
    )
    print(table(runs))


def too_late(*_: Any) -> None:
    """Unwind, so that the servers end."""
    sys.exit("not done in time")


if __name__ == "__main__":
    main()

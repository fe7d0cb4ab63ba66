"""Write docs/pipeline-plans.md: the physical plan of every job of the pipeline, over empty tables.

python tools/pipeline_plans.py
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ballast.core.samples import BROKERS, LOG_DIRS, SAMPLES
from ballast.pipeline.jobs import JOBS
from ballast.pipeline.schemas import DISK_HOUR, LOAD_DAY, LOAD_HOUR
from ballast.pipeline.session import DELTA_LOCK, SparkPolicy, open_session
from ballast.pipeline.tables import SparkTables
from ballast.pipeline.transforms.broker_imbalance import broker_imbalance
from ballast.pipeline.transforms.disks import disk_hour, disk_outlook
from ballast.pipeline.transforms.leadership_history import leadership_history
from ballast.pipeline.transforms.load_day import load_day
from ballast.pipeline.transforms.load_hour import load_hour
from ballast.pipeline.transforms.load_model import load_model
from ballast.sandbox.jars import ensure_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DOCS: Final = Path(__file__).resolve().parents[1] / "docs" / "pipeline-plans.md"
HEAD: Final = """# The plans of the pipeline's jobs

What `explain` says of each job on Spark 4.2, over empty tables, before adaptive execution has seen any data. There is no Python in them: `HashAggregate` and `ObjectHashAggregate` (where a KLL
sketch is among the figures) on both sides of one exchange. A fleet's planning is the one job that is not here: it calls the core planner, by `mapInArrow`.

Made by `python tools/pipeline_plans.py`; a test compares.
"""


SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "16",
    # Spark cuts a filter after 100 characters, its columns' numbers counted: later in a process it is cut elsewhere.
    "spark.sql.maxMetadataStringLength": "10000",
}
"""The first two as in the embedded session, whatever the session at hand has."""


def plans(tables: SparkTables) -> dict[str, str]:
    """What ``explain`` says of each job's rows."""
    for table in (SAMPLES, BROKERS, LOG_DIRS, LOAD_HOUR, LOAD_DAY, DISK_HOUR):
        tables.log.ensure(table)
    samples = tables.read(SAMPLES)
    made = {
        "load_hour": load_hour(samples),
        "load_day": load_day(tables.read(LOAD_HOUR)),
        "load_model": load_model(tables.read(LOAD_DAY)),
        "leadership_history": leadership_history(samples),
        "broker_imbalance": broker_imbalance(samples, tables.read(BROKERS)),
        "disk_hour": disk_hour(tables.read(LOG_DIRS)),
        "disk_outlook": disk_outlook(tables.read(DISK_HOUR)),
    }
    assert made.keys() == JOBS.keys()
    return {name: _explained(rows) for name, rows in made.items()}


def document(tables: SparkTables) -> str:
    """The whole of docs/pipeline-plans.md."""
    conf = tables.session.conf
    before = {name: conf.get(name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        conf.set(name, value)
    try:
        return HEAD + "".join(f"\n## {name}\n\n```\n{plan}\n```\n" for name, plan in plans(tables).items())
    finally:
        for name, value in before.items():
            conf.set(name, value)


def _explained(rows: DataFrame) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        rows.explain()
    # Spark counts these through the life of its process. Where the table lies is told up to a length, and so in as many ways
    # as there are folders.
    counted = r"#\d+L?|, \[plan_id=\d+\]|(?<=_common_expr)_\d+|, Location: [^,]*(?=, PartitionFilters)"
    return re.sub(counted, "", out.getvalue()).strip()


def main() -> None:
    """Explain each job."""
    with tempfile.TemporaryDirectory(prefix="ballast-plans-") as store:
        session = open_session(SparkPolicy(master="local[2]", driver_memory="1g"), ensure_jars(DELTA_LOCK))
        DOCS.write_text(document(SparkTables(lambda: session, store)))
        session.stop()


if __name__ == "__main__":
    main()

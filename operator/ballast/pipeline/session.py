"""Opens the Spark session that everything else is handed: embedded, on a cluster, or through Spark Connect.

Nothing here is imported before it is needed: a Ballast without the ``spark`` extra has every other command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ballast.adapters.extras import require
from ballast.errors import Unavailable
from ballast.pipeline.policy import LOCAL, hide_parameters, show_master

JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
QUICK_JVM: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""For short work: the first compiler alone, with the room for code that a JVM has with both. By itself it takes a fifth of that, and
Spark, which compiles each query to classes, ends with 50 once that is full."""
DELTA_LOCK: Final = "delta-4.4.0"
"""The lock of the jars that teach Spark to read and write Delta tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPolicy:
    """How Spark is run."""

    master: str = LOCAL
    """``local[*]``, ``spark://host:port``, ``k8s://…`` or ``sc://host:port`` for a Spark Connect server."""
    driver_memory: str = "2g"
    """Heap of the embedded JVM, which does all the work there."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Further Spark properties; they win over Ballast's. Static ones do nothing on ``sc://``: its server has its own."""


def require_pyspark() -> Any:
    """The ``pyspark`` module; raises ``UsageError`` where it is not installed."""
    require("spark", "The pipeline")
    import pyspark  # noqa: PLC0415 — the whole point is not to import it before

    return pyspark


def spark_jars() -> Path:
    """The folder of Spark's own jars, which driver and executors of an installation load without being told."""
    home = os.environ.get("SPARK_HOME") or Path(require_pyspark().__file__).parent
    return Path(home) / "jars"


def is_connect(master: str) -> bool:
    """Is this the address of a Spark Connect server?"""
    return master.startswith("sc://")


def is_local(master: str) -> bool:
    """Does Spark run inside this process's own JVM?"""
    return master.startswith("local")


def for_work_in_python(policy: SparkPolicy) -> SparkPolicy:
    """The policy for a job whose workers do the work: the embedded JVM compiles its own code quickly rather than well."""
    if not is_local(policy.master):
        return policy
    return replace(policy, conf={JAVA_OPTIONS: QUICK_JVM, **policy.conf})


def properties(policy: SparkPolicy, jars: Iterable[Path]) -> dict[str, str]:
    """The Spark properties of a session, Ballast's own under the user's."""
    found = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.databricks.delta.snapshotPartitions": "2",
        # Sketches are objects: beyond so many groups of a task Spark would sort every row instead of hashing it.
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
        "spark.databricks.delta.vacuum.logging.enabled": "true",
        # Vacuum lists a table in so many tasks, by default ten thousand.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    }
    if not is_connect(policy.master):
        if names := [str(jar) for jar in jars]:
            # Embedded, they are read where they lie; elsewhere they are shipped, which copies them.
            key, between = ("spark.driver.extraClassPath", ":") if is_local(policy.master) else ("spark.jars", ",")
            found[key] = between.join(names)
        found |= {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
    if is_local(policy.master):
        found |= {
            "spark.driver.memory": policy.driver_memory,
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            JAVA_OPTIONS: "-XX:+UseParallelGC",
            # Adaptive execution puts small ones together; there are few cores for more.
            "spark.sql.shuffle.partitions": "16",
            # A task for each core: every task of load_hour groups all partitions, since every minute's file has them all.
            "spark.sql.files.maxPartitionBytes": "512m",
        }
    return found | dict(policy.conf)


def _choose_python(policy: SparkPolicy) -> None:
    """Workers run the driver's own Python, whatever ``python3`` happens to be on a machine, unless the user names another.

    PySpark heeds the property itself only where ``spark-submit`` started it; otherwise it looks at the environment alone.
    """
    named = policy.conf.get("spark.pyspark.python")
    if named:
        os.environ["PYSPARK_PYTHON"] = named
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _choose_kind(policy: SparkPolicy) -> None:
    """PySpark heeds what an earlier Connect session left in the environment more than the master that it is given."""
    if not is_connect(policy.master):
        for name in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"):
            os.environ.pop(name, None)


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """What a process that is started within prints is no part of a command's answer: Delta's VACUUM prints what it did."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def open_session(policy: SparkPolicy, jars: Iterable[Path] = ()) -> Any:
    """Start or reach Spark; raises ``UsageError`` or ``Unavailable`` in one sentence.

    ``jars`` are those of ``buckets.jar_locks``, for sessions whose JVM this process starts; a Connect server brings its own.
    """
    require_pyspark()
    from pyspark.sql import SparkSession  # noqa: PLC0415

    _choose_python(policy)
    _choose_kind(policy)
    builder = SparkSession.builder.appName("ballast")
    builder = builder.remote(policy.master) if is_connect(policy.master) else builder.master(policy.master)
    for key, value in properties(policy, jars).items():
        builder = builder.config(key, value)
    try:
        with stdout_on_stderr():
            session = builder.getOrCreate()
        if is_connect(policy.master):
            session.range(1).count()
    except Exception as failure:
        told = (str(failure) or type(failure).__name__).splitlines()[0]
        raise Unavailable(
            f"Spark at {show_master(policy.master)} did not start: {hide_parameters(told, policy.master)[:200]}",
            hint="For local[*] Java 17 is needed (JAVA_HOME); for spark:// and sc:// check that the server runs.",
        ) from failure
    if not is_connect(policy.master):
        with suppress(Exception):
            session.sparkContext.setLogLevel("ERROR")
    return session

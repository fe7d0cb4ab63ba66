"""The pipeline on a generated cluster: what a minute costs the sampler, and what the jobs cost Spark.

    python bench/pipeline.py                # 200,000 partitions, an hour, then an hour more on top of it; each run as a user runs it
    python bench/pipeline.py --partitions 10000 --days 13 --hours 24   # with a window of days before it, and a day of 24 hours
    python bench/pipeline.py --partitions 10000 --idle 0.9  # where nine of ten partitions get no writes

DuckDB and Polars answer the question of ``load_hour`` (per partition: known seconds, bytes, highest rate, last size) from the same
plain table, as a yardstick; the answers must agree.  CPU is that of all processes of a step.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from deltalake import DeltaTable, write_deltalake

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.meter import Meter, measured

from ballast.adapters.samples.store import SampleStore, table_url
from ballast.core.cluster import Broker, ClusterState, LogDir, Partitions, Topic
from ballast.core.samples import SAMPLES, MinuteSample

START_MS = 1_795_262_400_000
REPLICAS = 3
BROKERS = 100


def generate(store: str, partitions: int, minutes: int, *, first: int = 0, idle: float = 0) -> dict[str, Any]:
    """Write minutes of a cluster whose rates are lognormal and jitter, but for a share of idle partitions.

    Followers' sizes differ from the leaders'.
    """
    rng = np.random.default_rng(7)
    topics = max(partitions // 40, 1)
    topic = np.sort(np.arange(partitions) % topics).astype(np.int32)
    number = (np.arange(partitions) - np.searchsorted(topic, topic)).astype(np.int32)
    replica = np.stack([(np.arange(partitions) * 7 + k * 33) % BROKERS for k in range(REPLICAS)], axis=1).astype(
        np.int32
    )
    size = rng.integers(10**8, 10**10, (partitions, 1)) + rng.integers(0, 10**6, (partitions, REPLICAS))
    rate = rng.lognormal(10, 2, partitions)
    rate[np.random.default_rng(8).random(partitions) < idle] = 0
    high = rng.integers(10**6, 10**9, partitions)
    names = tuple(Topic(f"team-{i % 50}.events.stream-{i:05d}", topic_id=f"id{i:020d}") for i in range(topics))
    brokers = tuple(
        Broker(i, rack=f"r{i % 3}", log_dirs=(LogDir("/data", 10**14, 5 * 10**13),)) for i in range(BROKERS)
    )
    sink, slowest = SampleStore(store), 0.0
    cpus: list[float] = []
    for minute in range(first + minutes):
        grown = (rate * 60 * rng.uniform(0.5, 1.5, partitions)).astype(np.int64)
        size = size + grown[:, None]
        high = high + grown // 500
        if minute < first:
            continue
        rows = partitions * REPLICAS
        state = ClusterState(
            "bench",
            START_MS + minute * 60_000,
            brokers,
            names,
            Partitions(
                topic=topic,
                number=number,
                leader=replica[:, 0].copy(),
                start=np.arange(partitions + 1, dtype=np.int64) * REPLICAS,
                replica=replica.reshape(-1).copy(),
                in_sync=np.ones(rows, np.bool_),
                adding=np.zeros(rows, np.bool_),
                removing=np.zeros(rows, np.bool_),
                size_bytes=size.reshape(-1).copy(),
                lag=np.zeros(rows, np.int64),
                log_dir=np.zeros(rows, np.int32),
                future_size_bytes=np.full(rows, -1, np.int64),
            ),
        )
        begun, cpu = time.monotonic(), time.process_time()
        sink.write(
            MinuteSample(
                state,
                earliest=np.zeros(partitions, np.int64),
                high_watermark=high,
                taken_at_ms=START_MS + minute * 60_000 + 500,
                monotonic_ms=minute * 60_000,
                writer="bench",
            )
        )
        slowest, cpus = max(slowest, time.monotonic() - begun), [*cpus, time.process_time() - cpu]
    return {
        "step": "sampling (measuring and writing a minute)",
        "slowest_s": round(slowest, 2),
        "cpu_s": {"median": round(float(np.median(cpus)), 2), "most": round(max(cpus), 2)},
        "bytes_per_partition_day": per_day(store, partitions, first + minutes),
    }


def per_day(store: str, partitions: int, minutes: int) -> int:
    """Bytes of the samples that a partition takes in a day."""
    from ballast.pipeline.table_log import TableLog

    stored = sum(part.size_bytes for part in TableLog(store).parts(SAMPLES).values())
    return round(stored / minutes / partitions * 1440)


def earlier_days(store: str, days: int) -> dict[str, Any]:
    """So many days before the first, each a copy of the one that is there: a whole window for the model."""
    begun, noon = time.monotonic(), datetime.fromtimestamp(START_MS / 1000, UTC)
    for back in range(1, days + 1):
        then = noon - timedelta(days=back)
        add_copy(store, "load_day", {"date": then.date(), "first_hour": then, "last_hour": then})
    return {"step": "earlier days", "days": days, "wall_s": round(time.monotonic() - begun, 1)}


def other_hours(store: str, hours: int) -> dict[str, Any]:
    """Other hours of the day, each a copy of the one that is there, so that a day of so many is made."""
    begun, noon = time.monotonic(), datetime.fromtimestamp(START_MS / 1000, UTC)
    for hour in [n for n in range(24) if n not in (noon.hour, noon.hour + 1)][: hours - 2]:
        add_copy(store, "load_hour", {"hour": noon.replace(hour=hour)})
    return {"step": "other hours", "hours": hours, "wall_s": round(time.monotonic() - begun, 1)}


def add_copy(store: str, name: str, moved: dict[str, Any]) -> None:
    """Append the rows that a table's first version has, with other values in some columns."""
    import pyarrow as pa

    table = DeltaTable(table_url(store, name))
    rows = DeltaTable(table.table_uri, version=1).to_pyarrow_table()
    for column, value in moved.items():
        at, field = rows.schema.get_field_index(column), rows.schema.field(column)
        rows = rows.set_column(at, field, pa.repeat(pa.scalar(value, field.type), len(rows)))
    write_deltalake(table, rows, mode="append")


QUESTION = """
SELECT topic, partition, sum(seconds) AS seconds, sum(CAST(bytes_in AS DOUBLE) * seconds) AS bytes_in, max(bytes_in) AS most
FROM samples WHERE hour = $hour GROUP BY topic, partition
"""


def duckdb_answer(samples: Any, hour: datetime) -> Any:
    """In SQL, over the rows as they are."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.register("samples", samples)
    return connection.execute(QUESTION, {"hour": hour}).to_arrow_table()


def polars_answer(samples: Any, hour: datetime) -> Any:
    """Lazily, over the rows as they are."""
    import polars as pl

    amount = (pl.col("bytes_in").cast(pl.Float64) * pl.col("seconds")).sum()
    return (
        pl.scan_pyarrow_dataset(samples)
        .filter(pl.col("hour") == hour)
        .group_by("topic", "partition")
        .agg(seconds=pl.col("seconds").cast(pl.Float64).sum(), bytes_in=amount, most=pl.col("bytes_in").max())
        .collect()
        .to_arrow()
    )


def engine(what: str, store: str) -> dict[str, Any]:
    """One engine's answer, compared with Spark's ``load_hour``."""
    hour = datetime.fromtimestamp(START_MS / 1000, UTC)
    samples = DeltaTable(table_url(store, "samples")).to_pyarrow_dataset()
    work = {"duckdb": duckdb_answer, "polars": polars_answer}[what]
    theirs, figures = measured(Meter(), what, lambda: work(samples, hour))
    ours = DeltaTable(table_url(store, "load_hour")).to_pyarrow_table(filters=[("hour", "=", hour)])
    keys = [("topic", "ascending"), ("partition", "ascending")]
    ours, theirs = ours.sort_by(keys), theirs.sort_by(keys)
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    for mine, other in (("seconds", "seconds"), ("bytes_in", "bytes_in"), ("bytes_in_max", "most")):
        left, right = (np.asarray(c.to_numpy(), np.float64) for c in (ours.column(mine), theirs.column(other)))
        np.testing.assert_allclose(left, right, rtol=1e-5, err_msg=mine)
    return {**figures, "agrees": True}


def in_a_process(what: str, asked: argparse.Namespace) -> Any:
    """Do one step in a process of its own, so that one step's memory is not another's."""
    names = ("partitions", "minutes", "memory", "store", "days", "hours", "idle", "spark")
    options = [text for name in names for text in (f"--{name}", str(getattr(asked, name)))]
    done = subprocess.run([sys.executable, __file__, "--step", what, *options], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def pipeline(asked: argparse.Namespace, *more: str) -> dict[str, Any]:
    """``ballast pipeline run`` as a user runs it, Spark's start included: every table is brought up to date."""
    command = [str(Path(sys.executable).with_name("ballast")), "pipeline", "run", "--store", asked.store]
    command += ["--spark", asked.spark, "--driver-memory", asked.memory, "--output", "json", *more]
    done, found = measured(
        Meter(),
        " ".join(command[1:3] + list(more)),
        lambda: subprocess.run(command, check=True, stdout=subprocess.PIPE),
    )
    return {**found, "jobs_s": {job["table"]: job["seconds"] for job in json.loads(done.stdout)["jobs"]}}


def planner(store: str) -> dict[str, Any]:
    """The load model as the planner reads it: one cluster's columns, without Spark."""
    from ballast.adapters.samples.load_model import read_load_model

    read_load_model(store, "bench", topic_ids={})
    model, found = measured(
        Meter(), "planner reads the load model (warm)", lambda: read_load_model(store, "bench", topic_ids={})
    )
    return {**found, "partitions": len(model)}


STEPS = (
    "generate",
    "first-run",
    "duckdb",
    "polars",
    "planner",
    "days",
    "hours",
    "generate-next",
    "next-run",
    "maintenance",
)


def step(what: str, asked: argparse.Namespace) -> Any:
    """One step, in this process."""
    made = (asked.store, asked.partitions, asked.minutes)
    if what == "maintenance":
        found = pipeline(asked, "--maintenance", "--conf", "spark.sql.shuffle.partitions=16")
        return {**found, "bytes_per_partition_day": per_day(asked.store, asked.partitions, 2 * asked.minutes)}
    others = {
        "generate": lambda: generate(*made, idle=asked.idle),
        "generate-next": lambda: generate(*made, first=asked.minutes, idle=asked.idle),
        "first-run": lambda: pipeline(asked),
        "next-run": lambda: pipeline(asked),
        "days": lambda: earlier_days(asked.store, asked.days),
        "hours": lambda: other_hours(asked.store, asked.hours),
        "planner": lambda: planner(asked.store),
    }
    return others[what]() if what in others else engine(what, asked.store)


def main() -> None:
    """Run the whole of it, or one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=200_000)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--days", type=int, default=0, help="days of history before the first")
    parser.add_argument("--hours", type=int, default=0, help="hours of the first day, the two that are made included")
    parser.add_argument("--idle", type=float, default=0.0, help="share of partitions without writes")
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--spark", default="local[2]")
    parser.add_argument("--step", choices=STEPS, help="one step, in this process")
    parser.add_argument("--store", help="keep the tables here")
    asked = parser.parse_args()
    if asked.step:
        print(json.dumps(step(asked.step, asked)))
        return
    with tempfile.TemporaryDirectory(prefix="ballast-bench-") as folder:
        asked.store = asked.store or str(Path(folder) / "store")
        results = [in_a_process(what, asked) for what in STEPS if getattr(asked, what, True)]
    report = {"partitions": asked.partitions, "minutes": asked.minutes, "load": os.getloadavg(), "steps": results}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()

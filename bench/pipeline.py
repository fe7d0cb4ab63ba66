"""The pipeline's speed and cost on generated samples, with DuckDB and Polars beside it on the same files.

    python bench/pipeline.py --partitions 200000 --minutes 60
    python bench/pipeline.py --next-hour    # and one hour more, folded by `ballast pipeline run` as a user runs it

Samples are generated with known rates; every engine answers the same question (per replica and hour: rated minutes, sum,
maximum, 95th percentile, first and last size) from the same ``samples_hour`` table, and the answers must agree.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from deltalake import DeltaTable

from ballast.adapters.samples_delta import SampleStore, table_url
from ballast.core.cluster import Broker, ClusterState, LogDir, Partitions, Topic
from ballast.core.samples import sample
from meter import Meter, measured  # type: ignore[import-not-found]

START_MS = 1_795_262_400_000
REPLICAS = 3
BROKERS = 100


def generate(store: str, partitions: int, minutes: int, *, first: int = 0) -> dict[str, Any]:
    """Write minutes of a cluster whose rates are lognormal and jitter; followers' sizes differ from the leaders'."""
    rng = np.random.default_rng(7)
    topics = max(partitions // 40, 1)
    topic = np.sort(np.arange(partitions) % topics).astype(np.int32)
    number = (np.arange(partitions) - np.searchsorted(topic, topic)).astype(np.int32)
    replica = np.stack([(np.arange(partitions) * 7 + k * 33) % BROKERS for k in range(REPLICAS)], axis=1).astype(
        np.int32
    )
    size = rng.integers(10**8, 10**10, (partitions, 1)) + rng.integers(0, 10**6, (partitions, REPLICAS))
    rate = rng.lognormal(10, 2, partitions)
    high = rng.integers(10**6, 10**9, partitions)
    names = tuple(Topic(f"team-{i % 50}.events.stream-{i:05d}", topic_id=f"id{i:020d}") for i in range(topics))
    brokers = tuple(
        Broker(i, rack=f"r{i % 3}", log_dirs=(LogDir("/data", 10**14, 5 * 10**13),)) for i in range(BROKERS)
    )
    sink, slowest = SampleStore(store), 0.0
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
        begun = time.monotonic()
        sink.write(
            sample(
                state,
                earliest=np.zeros(partitions, np.int64),
                high_watermark=high,
                taken_at_ms=START_MS + minute * 60_000 + 500,
                monotonic_ms=minute * 60_000,
                writer="bench",
            )
        )
        slowest = max(slowest, time.monotonic() - begun)
    on_disk = sum(f.stat().st_size for f in Path(table_url(store, "samples_minute")).rglob("*.parquet"))
    return {
        "step": "sampling (laying out and writing a minute)",
        "slowest_s": round(slowest, 2),
        "bytes_per_partition_day": round(on_disk / (first + minutes) / partitions * 1440),
    }


def compacted(store: str, partitions: int) -> dict[str, Any]:
    """Every hour compacted as ``--tidy`` does with closed ones: what the minutes take before and afterwards."""
    from ballast.pipeline.schemas import SAMPLES_MINUTE
    from ballast.pipeline.table_log import TableLog

    log = TableLog(store)
    at = log.position(SAMPLES_MINUTE)
    assert at is not None
    minutes = len(log.new_minutes(SAMPLES_MINUTE, None, at).minute)

    def per_day() -> int:
        return round(log.bytes_of(SAMPLES_MINUTE) / minutes / partitions * 1440)

    before, begun = per_day(), time.process_time()
    log.compact(SAMPLES_MINUTE, "9")
    return {
        "step": "compacting",
        "cpu_s": round(time.process_time() - begun, 1),
        "bytes_per_partition_day": {"before": before, "after": per_day()},
    }


DUCK = """
SELECT topic, partition, broker,
  len(r) AS n, coalesce(list_sum(r) * 60, 0) AS total, coalesce(list_max(r), -1) AS most,
  coalesce(list_sort(r)[CAST(ceil(0.95 * len(r) - 1e-9) AS INT)], -1) AS p95,
  s[1] AS first, s[len(s)] AS last
FROM (SELECT topic, partition, broker, list_filter(bytes_in, lambda x: x >= 0) AS r, list_filter(size_bytes, lambda x: x >= 0) AS s
      FROM read_parquet($files))
"""


def duckdb_answer(files: list[str]) -> Any:
    """The question in SQL over list functions."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.execute("SET preserve_insertion_order = false")
    return connection.execute(DUCK, {"files": files}).to_arrow_table()


def duckdb_flat_answer(files: list[str]) -> Any:
    """The question over a row per sample, as a warehouse would hold it; the rows are made beforehand."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    return connection.execute(
        "SELECT topic, partition, broker, count(*) FILTER (b >= 0) AS n, "
        "coalesce(sum(b) FILTER (b >= 0), 0) * 60 AS total, coalesce(max(b) FILTER (b >= 0), -1) AS most, "
        "coalesce(quantile_disc(b, 0.95) FILTER (b >= 0), -1) AS p95, "
        "arg_min(s, m) FILTER (s >= 0) AS first, arg_max(s, m) FILTER (s >= 0) AS last "
        "FROM read_parquet($files) GROUP BY ALL",
        {"files": files},
    ).to_arrow_table()


def flatten(files: list[str], target: Path) -> list[str]:
    """A row per replica and minute, sorted as samples come: by minute."""
    import duckdb

    connection = duckdb.connect()
    rows = connection.read_parquet(files).project(
        "topic, partition, broker, unnest(range(60)) AS m, unnest(bytes_in) AS b, unnest(size_bytes) AS s"
    )
    rows.write_parquet(str(target), compression="zstd")
    return [str(target)]


def polars_answer(files: list[str]) -> Any:
    """The question with Polars' list functions."""
    import polars as pl

    rate = pl.col("bytes_in").list.eval(pl.element().filter(pl.element() >= 0))
    size = pl.col("size_bytes").list.eval(pl.element().filter(pl.element() >= 0))
    return (
        pl.scan_parquet(files)
        .select(
            "topic",
            "partition",
            "broker",
            n=rate.list.len(),
            total=rate.list.eval(pl.element().cast(pl.Float64).sum() * 60).list.first(),
            most=rate.list.max(),
            p95=rate.list.eval(
                pl.element().sort().get((pl.len() * 0.95 - 1e-9).ceil().cast(pl.Int64) - 1)
            ).list.first(),
            first=size.list.first(),
            last=size.list.last(),
        )
        .collect()
        .to_arrow()
    )


def agree(ours: Any, theirs: Any) -> None:
    """Every figure of every replica is the same."""
    keys = [("topic", "ascending"), ("partition", "ascending"), ("broker", "ascending")]
    ours, theirs = ours.sort_by(keys), theirs.sort_by(keys)
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    for name in ("n", "total", "most", "p95", "first", "last"):
        left, right = (np.asarray(t.column(name).to_numpy(), np.float64) for t in (ours, theirs))
        np.testing.assert_allclose(left, right, rtol=1e-5, err_msg=name)


def ours_from(store: str) -> Any:
    """Ballast's answer, read from its table."""
    table = DeltaTable(table_url(store, "load_hour")).to_pyarrow_table()
    import pyarrow.compute as pc

    led = pc.greater(table["minutes_led"], 0)

    def pick(name: str) -> Any:
        return pc.if_else(led, table[f"{name}_led"], table[f"{name}_followed"])

    named = {
        "topic": table["topic"],
        "partition": table["partition"],
        "broker": table["broker"],
        "n": pc.add(table["minutes_led"], table["minutes_followed"]),
        "total": pc.add(table["bytes_in_led"], table["bytes_in_followed"]),
        "most": pick("bytes_in_max"),
        "p95": pick("bytes_in_p95"),
        "first": table["size_first"],
        "last": table["size_last"],
    }
    import pyarrow as pa

    return pa.table(named)


def in_a_process(what: str, asked: argparse.Namespace) -> Any:
    """Do one step in a process of its own, so that one step's memory is not another's."""
    names = ("partitions", "minutes", "first", "jobs", "memory", "store", "scratch")
    options = [text for name in names for text in (f"--{name}", str(getattr(asked, name)))]
    command = [sys.executable, __file__, "--engine", what, *options]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def engine(what: str, store: str, scratch: Path) -> dict[str, Any]:
    """One engine's answer, compared with Ballast's."""
    files = DeltaTable(table_url(store, "samples_hour")).file_uris()
    meter = Meter()
    if what == "duckdb-rows":
        files = flatten(files, scratch / "flat.parquet")
    work = {"duckdb-arrays": duckdb_answer, "duckdb-rows": duckdb_flat_answer, "polars": polars_answer}[what]
    answer, figures = measured(meter, what, lambda: work(files))
    agree(ours_from(store), answer)
    return {**figures, "agrees": True}


def pipeline(store: str, memory: str, wanted: list[str]) -> list[dict[str, Any]]:
    """The jobs, measured apart from the session's start."""
    from ballast.pipeline import jobs
    from ballast.pipeline.policy import PipelinePolicy
    from ballast.pipeline.session import DELTA_LOCK, SparkPolicy, open_session
    from ballast.pipeline.tables import SparkTables
    from ballast.sandbox.jars import ensure_jars

    meter, figures = Meter(), []
    policy = SparkPolicy(master="local[2]", driver_memory=memory)
    session, first = measured(meter, "session", lambda: open_session(policy, ensure_jars(DELTA_LOCK)))
    figures.append(first)
    tables = SparkTables(lambda: session, store)
    _, warm = measured(meter, "first query (cold JVM)", lambda: session.range(1).count())
    figures.append(warm)
    scope = jobs.Scope(PipelinePolicy(), datetime.now(UTC))
    for name in wanted:
        work = functools.partial(jobs.JOBS[name], tables, scope, lambda _: None)
        _, found = measured(meter, name, work)
        figures.append(found)
    session.stop()
    return figures


def planner(store: str) -> dict[str, Any]:
    """The load model as the planner reads it: one cluster's columns, without Spark."""
    from ballast.adapters.load_model import read_load_model

    read_load_model(store, "bench", topic_ids={})
    model, found = measured(
        Meter(), "planner reads the load model (warm)", lambda: read_load_model(store, "bench", topic_ids={})
    )
    return {**found, "partitions": len(model)}


def next_hour(store: str, memory: str) -> dict[str, Any]:
    """``ballast pipeline run`` as a user runs it, Spark's start included: every table is brought up to date."""
    from ballast.pipeline.schemas import SAMPLES_MINUTE
    from ballast.pipeline.table_log import TableLog

    command = [str(Path(sys.executable).with_name("ballast")), "pipeline", "run", "--store", store]
    command += ["--spark", "local[2]", "--driver-memory", memory, "--output", "json"]
    done, found = measured(
        Meter(), "ballast pipeline run", lambda: subprocess.run(command, check=True, stdout=subprocess.PIPE)
    )
    told = json.loads(done.stdout)
    assert told["newest_hour"] == TableLog(store).parts(SAMPLES_MINUTE)[-1]
    return {**found, "jobs_s": {job["table"]: job["seconds"] for job in told["jobs"]}}


ALL_JOBS = (
    *("load_hour", "load_day", "load_model", "samples_hour"),
    *("leadership_history", "broker_imbalance", "disk_hour", "disk_outlook"),
)
STEPS = ("spark", "planner", "duckdb-arrays", "duckdb-rows", "polars")
"""In this order; the engines read ``samples_hour`` and are compared with ``load_hour``, so both jobs are among those run."""
COMPACT = "compact"
"""By itself and after ``generate``: the others read the files as the sampler wrote them."""
NEXT_HOUR = ("generate-next", "next-hour")
"""After all others, since the engines' answers are those of the first hour."""


def step(asked: argparse.Namespace) -> Any:
    """One step, in this process."""
    if asked.engine == "generate":
        return generate(asked.store, asked.partitions, asked.minutes, first=asked.first)
    if asked.engine == "generate-next":
        return generate(asked.store, asked.partitions, 60, first=asked.minutes)
    if asked.engine == "next-hour":
        return next_hour(asked.store, asked.memory)
    if asked.engine == COMPACT:
        return compacted(asked.store, asked.partitions)
    if asked.engine == "spark":
        return pipeline(asked.store, asked.memory, asked.jobs.split(","))
    return planner(asked.store) if asked.engine == "planner" else engine(asked.engine, asked.store, asked.scratch)


def main() -> None:
    """Run the whole of it, or one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=200_000)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="generate from this minute on; 60 is the hour after")
    parser.add_argument("--jobs", default=",".join(ALL_JOBS), help="which jobs, in this order")
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--next-hour", action="store_true", help="then an hour more, by the command")
    parser.add_argument("--engine", choices=("generate", COMPACT, *STEPS, *NEXT_HOUR), help="one step, in this process")
    parser.add_argument("--store", help="keep the samples here, or take them from here")
    parser.add_argument("--scratch", type=Path)
    asked = parser.parse_args()
    if asked.engine:
        print(json.dumps(step(asked)))
        return
    with tempfile.TemporaryDirectory(prefix="ballast-bench-") as folder:
        asked.scratch = asked.scratch or Path(folder)
        asked.store = asked.store or str(asked.scratch / "store")
        steps: tuple[str, ...] = (
            STEPS if Path(table_url(asked.store, "samples_minute")).exists() else ("generate", *STEPS)
        )
        steps += NEXT_HOUR if asked.next_hour else ()
        results: list[Any] = []
        for what in steps:
            found = in_a_process(what, asked)
            results += found if isinstance(found, list) else [found]
    report = {"partitions": asked.partitions, "minutes": asked.minutes, "load": os.getloadavg(), "steps": results}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()

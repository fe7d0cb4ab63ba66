"""A generated fleet through one Spark job, and the same plans made one by one without Spark: what Spark adds.

    python bench/fleet.py --clusters 1000 --partitions 5000 --brokers 12
    python bench/fleet.py --clusters 100 --partitions 70000 --brokers 40 --alone 3

``--alone`` plans so many of the clusters in this process, one after another, with the same functions; digests must agree.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.meter import Meter, measured

from ballast.core.cluster import Broker, ClusterState, LogDir, Partitions, Topic
from ballast.core.what_if import Member, plan_scenario
from ballast.pipeline.fleet_store import append_snapshots, read_plans

REPLICAS = 3
CHUNK = 20
"""Clusters generated and appended at a time, so that the generator's memory stays small."""


def cluster(seed: int, brokers: int, partitions: int) -> Member:
    """A cluster whose leaders and sizes lean to its first brokers."""
    rng = np.random.default_rng(seed)
    topics = max(partitions // 40, 1)
    topic = np.sort(np.arange(partitions) % topics).astype(np.int32)
    number = (np.arange(partitions) - np.searchsorted(topic, topic)).astype(np.int32)
    first = np.minimum(rng.integers(0, brokers, partitions), rng.integers(0, brokers + brokers // 2, partitions))
    replica = np.stack([(first + k * max(brokers // REPLICAS, 1)) % brokers for k in range(REPLICAS)], axis=1)
    size = np.repeat((rng.lognormal(20, 1.2, partitions)).astype(np.int64), REPLICAS)
    disk = int(size.sum() / brokers * 3)
    rows = partitions * REPLICAS
    state = ClusterState(
        f"fleet-{seed}",
        1,
        tuple(
            Broker(i, rack=f"r{i % REPLICAS}", log_dirs=(LogDir("/data", disk, disk // 2),), log_dirs_known=True)
            for i in range(brokers)
        ),
        tuple(Topic(f"t{i}", topic_id=f"id{i}", min_isr=2) for i in range(topics)),
        Partitions(
            topic=topic,
            number=number,
            leader=replica[:, 0].astype(np.int32),
            start=np.arange(partitions + 1, dtype=np.int64) * REPLICAS,
            replica=replica.reshape(-1).astype(np.int32),
            in_sync=np.ones(rows, np.bool_),
            adding=np.zeros(rows, np.bool_),
            removing=np.zeros(rows, np.bool_),
            size_bytes=size,
            lag=np.zeros(rows, np.int64),
            log_dir=np.zeros(rows, np.int32),
            future_size_bytes=np.full(rows, -1, np.int64),
        ),
    )
    return Member(f"cluster-{seed:04d}", state, None)


def generate(store: str, clusters: int, brokers: int, partitions: int) -> None:
    """Append the readings, some at a time."""
    for begin in range(0, clusters, CHUNK):
        append_snapshots(store, [cluster(n, brokers, partitions) for n in range(begin, min(begin + CHUNK, clusters))])


def in_spark(store: str, memory: str) -> tuple[int, dict[str, Any]]:
    """The fleet's job as ``ballast fleet plan`` runs it, and what it took; the session is started before."""
    from ballast.pipeline.fleet_job import plan_fleet
    from ballast.pipeline.session import DELTA_LOCK, SparkPolicy, for_work_in_python, open_session
    from ballast.pipeline.tables import SparkTables
    from ballast.sandbox.jars import ensure_jars

    policy = for_work_in_python(SparkPolicy(master="local[2]", driver_memory=memory))
    session = open_session(policy, ensure_jars(DELTA_LOCK))
    session.range(1).count()
    rows, figures = measured(
        Meter(), "fleet job", lambda: plan_fleet(SparkTables(lambda: session, store), {"balance": ""})
    )
    session.stop()
    return int(rows), figures


def main() -> None:
    """Generate, plan in Spark, plan alone, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--brokers", type=int, default=12)
    parser.add_argument("--partitions", type=int, default=5000)
    parser.add_argument("--alone", type=int, default=10)
    parser.add_argument("--memory", default="2g")
    asked = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="ballast-fleet-"))
    store = str(scratch)
    try:
        begun = time.monotonic()
        generate(store, asked.clusters, asked.brokers, asked.partitions)
        made_s = time.monotonic() - begun
        rows, job = in_spark(store, asked.memory)
        assert rows == asked.clusters
        plans = read_plans(store)
        plan_scenario(cluster(0, asked.brokers, asked.partitions), "balance", "")
        members = [cluster(n, asked.brokers, asked.partitions) for n in range(min(asked.alone, asked.clusters))]
        cpu = time.process_time()
        alone = [plan_scenario(member, "balance", "") for member in members]
        each = (time.process_time() - cpu) / max(len(alone), 1)
        digests = {row["name"]: row["digest"] for row in plans}
        assert all(digests[row["name"]] == row["digest"] for row in alone), "the same plans as one by one"
        figures: dict[str, Any] = {
            "clusters": asked.clusters,
            "brokers": asked.clusters * asked.brokers,
            "partitions": asked.clusters * asked.partitions,
            "generating_s": round(made_s, 1),
            "planner_alone_cpu_s_per_cluster": round(each, 3),
            "planner_alone_cpu_s": round(each * asked.clusters, 1),
            "job": job,
            "overhead": round(job["cpu_s"] / (each * asked.clusters) - 1, 3),
            "statuses": {s: sum(r["status"] == s for r in plans) for s in {r["status"] for r in plans}},
            "load": os.getloadavg(),
        }
        print(json.dumps(figures, indent=2))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()

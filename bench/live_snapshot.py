"""How much a snapshot of real brokers costs beyond the brokers' own answers.

Starts a sandbox, creates the partitions, waits until every replica lies on disk, and takes snapshots: the first one on new
connections, the others on open ones.  Of each it tells the wall time, for how much of it at least one broker's answer was
outstanding (reading the answer off the wire included), and the CPU time of this process, which is all that Ballast adds,
however busy the machine is.

    python bench/live_snapshot.py [--brokers 3] [--partitions 2000] [--replicas 2] [--rounds 5] [--output json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from unittest import mock

from confluent_kafka.admin import AdminClient, NewTopic

from ballast.adapters.kafka.confluent import Admin, MetadataReader
from ballast.adapters.kafka.kafka_python import Link
from ballast.core.cluster import ClusterState
from ballast.ports.cluster import Cluster
from ballast.sandbox import Sandbox, SandboxSpec
from ballast.wiring.cluster import open_cluster

PARTITIONS_PER_TOPIC = 50
TOPICS_AT_ONCE = 5
ON_DISK_WITHIN_S = 300.0


@dataclass(frozen=True, slots=True)
class Figures:
    """One snapshot, in seconds."""

    wall_s: float
    answers_s: float
    beyond_s: float
    cpu_s: float


def create(server: str, partitions: int, replicas: int) -> None:
    """Topics of equal size, the last one with what is left."""
    admin = AdminClient({"bootstrap.servers": server, "log_level": 0})
    topics = [
        NewTopic(f"bench-{at // PARTITIONS_PER_TOPIC:04}", min(PARTITIONS_PER_TOPIC, partitions - at), replicas)
        for at in range(0, partitions, PARTITIONS_PER_TOPIC)
    ]
    for at in range(0, len(topics), TOPICS_AT_ONCE):
        for created in admin.create_topics(topics[at : at + TOPICS_AT_ONCE], operation_timeout=60).values():
            created.result(timeout=90)


def complete(state: ClusterState, partitions: int) -> bool:
    """Every partition there, every replica's size told, nothing missing."""
    return len(state.partitions) == partitions and bool((state.partitions.size_bytes >= 0).all()) and not state.gaps


def wait_until_on_disk(cluster: Cluster, partitions: int) -> None:
    """Poll until the brokers report every replica in their log dirs."""
    deadline = time.monotonic() + ON_DISK_WITHIN_S
    while not complete(cluster.snapshot(), partitions):
        if time.monotonic() > deadline:
            raise SystemExit(f"not every replica lay on disk after {ON_DISK_WITHIN_S:.0f} s")
        time.sleep(0.5)


@contextmanager
def outstanding() -> Iterator[list[tuple[float, float]]]:
    """When each request of either client left and when its answer had been read."""
    spans: list[tuple[float, float]] = []
    send = Link.send

    async def timed_send(self: Any, *args: Any) -> Any:
        begin = time.perf_counter()
        try:
            return await send(self, *args)
        finally:
            spans.append((begin, time.perf_counter()))

    def timed(owner: type, name: str) -> Any:
        method = getattr(owner, name)

        def call(*args: Any) -> Any:
            begin = time.perf_counter()
            try:
                return method(*args)
            finally:
                spans.append((begin, time.perf_counter()))

        return mock.patch.object(owner, name, call)

    with (
        mock.patch.object(Link, "send", timed_send),
        timed(MetadataReader, "_ask"),
        timed(Admin, "_wait"),
    ):
        yield spans


def covered(spans: list[tuple[float, float]]) -> float:
    """Length of the union of the spans."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def measure(cluster: Cluster, partitions: int) -> Figures:
    """One snapshot, timed."""
    with outstanding() as spans:
        wall, cpu = time.perf_counter(), time.process_time()
        state = cluster.snapshot()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    if not complete(state, partitions):
        raise SystemExit(f"the snapshot has gaps: {state.gaps}")
    answers = covered(spans)
    return Figures(wall, answers, wall - answers, cpu)


def main() -> None:
    """Start, fill, measure, end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=2_000)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", choices=["table", "json"], default="table")
    options = parser.parse_args()
    with Sandbox.up(SandboxSpec(brokers=options.brokers)) as sandbox:
        create(sandbox.bootstrap_server, options.partitions, options.replicas)
        with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
            wait_until_on_disk(opened.cluster, options.partitions)
        with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
            first, *others = [measure(opened.cluster, options.partitions) for _ in range(options.rounds + 1)]
    rows = {"first": asdict(first)} | {
        f"median of {len(others)}": {k: statistics.median(asdict(f)[k] for f in others) for k in asdict(first)}
    }
    load = os.getloadavg()[0]
    if options.output == "json":
        print(json.dumps({**vars(options), "load": load, "snapshots": rows}))
        return
    print(
        f"{options.brokers} brokers, {options.partitions:,} partitions of {options.replicas}; load average {load:.1f}"
    )
    for name, row in rows.items():
        print(f"{name:12} " + "  ".join(f"{k.removesuffix('_s')} {v:.2f} s" for k, v in row.items()))


if __name__ == "__main__":
    main()

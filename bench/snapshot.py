"""How long it takes to turn a large cluster's responses into a ``ClusterState``, and how much memory.

The responses are made by the protocol library's own encoder and decoded like those of real brokers: one metadata response
for ``list_topics`` (which a process beside this one serves) and the same for topic ids, and one log-dir response per broker.
Only the brokers' own work is missing.

    python bench/snapshot.py [--brokers 1000] [--partitions 200000] [--replicas 3] [--output json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import numpy as np
from kafka.protocol.admin import DescribeLogDirsResponse
from kafka.protocol.metadata import MetadataResponse

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.recorded_broker import recorded_broker

from ballast.adapters.auth.security import Security
from ballast.adapters.kafka import collector
from ballast.adapters.kafka.confluent import MetadataReader
from ballast.adapters.kafka.diagnosis import parse_servers
from ballast.adapters.kafka.responses import join_facts, read_log_columns, read_metadata, read_metadata_facts
from ballast.adapters.kafka.retry import RetryPolicy
from ballast.core.cluster import ClusterState
from ballast.core.cluster.assemble import Facts, LogColumns, assemble
from ballast.core.status import cluster_status

METADATA_VERSION = 12
LOG_DIRS_VERSION = 4
PARTITIONS_PER_TOPIC = 20
DISK_BYTES = 4 << 40


def placement(brokers: int, partitions: int, replicas: int, seed: int) -> np.ndarray:
    """Replica lists: a random first broker, the others at random steps after it."""
    draw = np.random.default_rng(seed)
    first = draw.integers(0, brokers, partitions)
    steps = draw.integers(1, max(2, brokers // replicas), (partitions, replicas - 1)).cumsum(axis=1)
    return np.column_stack((first, (first[:, None] + steps) % brokers)) + 1


def metadata_bytes(lists: np.ndarray, brokers: int, port: int = 9092) -> bytes:
    """A metadata response for these replica lists."""
    topic_type = MetadataResponse.MetadataResponseTopic
    partition_type = topic_type.MetadataResponsePartition
    topics = []
    for at in range(0, len(lists), PARTITIONS_PER_TOPIC):
        partitions = [
            partition_type(
                error_code=0,
                partition_index=n,
                leader_id=r[0],
                leader_epoch=1,
                replica_nodes=r,
                isr_nodes=r,
                offline_replicas=[],
            )
            for n, r in enumerate(lists[at : at + PARTITIONS_PER_TOPIC].tolist())
        ]
        name, topic_id = f"topic-{at // PARTITIONS_PER_TOPIC:06}", UUID(int=at + 1)
        topics.append(topic_type(error_code=0, name=name, topic_id=topic_id, is_internal=False, partitions=partitions))
    nodes = [
        MetadataResponse.MetadataResponseBroker(
            node_id=b, host="127.0.0.1", port=port if b == 1 else b, rack=f"rack-{b % 3}"
        )
        for b in range(1, brokers + 1)
    ]
    response = MetadataResponse(
        throttle_time_ms=0, brokers=nodes, cluster_id="bench", controller_id=1, topics=topics, version=METADATA_VERSION
    )
    return bytes(response.encode(version=METADATA_VERSION))


def log_dir_bytes(lists: np.ndarray, brokers: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """A log-dir response per broker."""
    draw = np.random.default_rng(seed)
    result_type = DescribeLogDirsResponse.DescribeLogDirsResult
    topic_type = result_type.DescribeLogDirsTopic
    partition_type = topic_type.DescribeLogDirsPartition
    rows, _ = np.divmod(np.arange(lists.size), lists.shape[1])
    order = np.argsort(lists.ravel(), kind="stable")
    held = np.split(rows[order], np.searchsorted(lists.ravel()[order], np.arange(2, brokers + 1)))
    for broker, mine in enumerate(held, start=1):
        by_topic: dict[int, list[int]] = {}
        for row in mine.tolist():
            by_topic.setdefault(row // PARTITIONS_PER_TOPIC, []).append(row % PARTITIONS_PER_TOPIC)
        sizes = iter(draw.integers(0, 1 << 34, len(mine)).tolist())
        topics = [
            topic_type(
                name=f"topic-{t:06}",
                partitions=[
                    partition_type(partition_index=n, partition_size=next(sizes), offset_lag=0, is_future_key=False)
                    for n in numbers
                ],
            )
            for t, numbers in by_topic.items()
        ]
        results = [
            result_type(
                error_code=0, log_dir="/data", topics=topics, total_bytes=DISK_BYTES, usable_bytes=DISK_BYTES // 2
            )
        ]
        response = DescribeLogDirsResponse(throttle_time_ms=0, error_code=0, results=results, version=LOG_DIRS_VERSION)
        yield broker, bytes(response.encode(version=LOG_DIRS_VERSION))


def read(reader: MetadataReader, metadata: bytes, log_dirs: dict[int, bytes], laps: dict[str, float]) -> ClusterState:
    """What a snapshot does with the answers, timed part by part; CPU seconds, as the machine may be shared."""
    wall, begin = time.perf_counter(), time.process_time()
    told = read_metadata(reader.read())
    laps["list_topics_cpu_s"] = (lap := time.process_time()) - begin
    facts = read_metadata_facts(MetadataResponse.decode(metadata, version=METADATA_VERSION))
    told = join_facts(told, facts)
    laps["topic_ids_cpu_s"] = (now := time.process_time()) - lap
    logs: dict[int, LogColumns] = {
        b: read_log_columns(DescribeLogDirsResponse.decode(raw, version=LOG_DIRS_VERSION))
        for b, raw in log_dirs.items()
    }
    laps["log_dirs_cpu_s"] = (lap := time.process_time()) - now
    state = assemble(Facts(told.cluster_id, 0, told.brokers), told.columns, logs=logs)
    laps["assemble_cpu_s"] = (end := time.process_time()) - lap
    laps["total_cpu_s"] = end - begin
    laps["total_wall_s"] = time.perf_counter() - wall
    return state


def peak_mib() -> float:
    """Largest resident set of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def generated(lists: np.ndarray, brokers: int, seed: int) -> tuple[bytes, dict[int, bytes]]:
    """The responses, made by another process, so that its objects are not in the figures of this one."""
    with multiprocessing.get_context("fork").Pool(1) as other:
        metadata: bytes = other.apply(metadata_bytes, (lists, brokers))
        log_dirs: dict[int, bytes] = other.apply(_log_dirs, (lists, brokers, seed))
    return metadata, log_dirs


def _log_dirs(lists: np.ndarray, brokers: int, seed: int) -> dict[int, bytes]:
    return dict(log_dir_bytes(lists, brokers, seed))


def main() -> None:
    """Generate, read, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--brokers", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=200_000)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", choices=["table", "json"], default="table")
    options = parser.parse_args()
    lists = placement(options.brokers, options.partitions, options.replicas, options.seed)
    metadata, log_dirs = generated(lists, options.brokers, options.seed)
    laps: dict[str, float] = {}
    before_mib = peak_mib()
    with recorded_broker(lambda port: metadata_bytes(lists, options.brokers, port), METADATA_VERSION) as where:
        retry = RetryPolicy(total_s=600.0)  # The broker beside this process makes its answer first.
        reader = MetadataReader(parse_servers(where), Security(), wait_s=300.0, retry=retry)
        with collector.pause_collection():
            state = read(reader, metadata, log_dirs, laps)
    begin = time.process_time()
    status = cluster_status(state)
    laps["status_cpu_s"] = time.process_time() - begin
    assert len(state.partitions) == options.partitions
    assert (state.partitions.size_bytes >= 0).all()
    assert not status.unhealthy.any
    figures = {
        "brokers": options.brokers,
        "partitions": options.partitions,
        "replicas": int(lists.size),
        "response_mib": (len(metadata) + sum(map(len, log_dirs.values()))) / (1 << 20),
        **laps,
        "before_mib": before_mib,
        "peak_mib": peak_mib(),
    }
    if options.output == "json":
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:18} {figure:,.2f}" if isinstance(figure, float) else f"{name:14} {figure:,}")


if __name__ == "__main__":
    main()

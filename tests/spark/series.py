"""Generated clusters whose load is known exactly, minute by minute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ballast.adapters.samples.rows import rows_of
from ballast.core.cluster import Broker, ClusterState, ConfigValue, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.cluster.log_ends import tiered_leaders
from ballast.core.samples import MinuteSample, offset_columns
from ballast.core.samples.rates import measure
from ballast.ports.cluster import Offsets

START_MS = 1_795_266_000_000
"""2026-11-21T13:00 UTC."""
RECORD_BYTES = 500


@dataclass(slots=True)
class Log:
    """One partition: what was appended, what was deleted, who holds and leads it."""

    replicas: tuple[int, ...] = (1, 2, 3)
    copied: Mapping[int, int] = field(default_factory=dict)
    """What replicas that are still being filled have; they are not in sync."""
    leader: int | None = None
    earliest: int = 0
    local_start: int | None = 0
    """Of a tiered log: the first offset on its leader's disk; None where no broker tells it."""
    high: int = 0
    start_bytes: int = 1_000_000
    appended: int = 0
    deleted: int = 0

    def append(self, records: int) -> None:
        """Producers write."""
        self.high += records
        self.appended += records * RECORD_BYTES

    @property
    def size(self) -> int:
        """Bytes on disk of every replica that is in sync."""
        return self.start_bytes + self.appended - self.deleted


@dataclass(slots=True)
class World:
    """A cluster of three brokers whose partitions a scenario changes minute by minute."""

    logs: dict[tuple[str, int], Log]
    cluster: str = "alpha"
    topic_ids: dict[str, str] = field(default_factory=dict)
    compacted: frozenset[str] = frozenset()
    tiered: frozenset[str] = frozenset()
    clock_ms: int = 0
    """What the wall clock is off by."""
    writer: str = "w1"
    usable_bytes: int = 10**12

    def state(self, at_ms: int) -> ClusterState:
        """The cluster as a reader would see it."""
        names = sorted({topic for topic, _ in self.logs})
        topics = tuple(
            Topic(
                name,
                topic_id=self.topic_ids.get(name, f"id-{name}"),
                configs={
                    key: ConfigValue(value, "DYNAMIC_TOPIC_CONFIG")
                    for key, value, topics in (
                        ("cleanup.policy", "compact", self.compacted),
                        ("remote.storage.enable", "true", self.tiered),
                    )
                    if name in topics
                },
            )
            for name in names
        )
        brokers = tuple(
            Broker(i, rack=f"r{i}", host=f"b{i}", port=9092, log_dirs=(LogDir("/data", 2 * 10**12, self.usable_bytes),))
            for i in (1, 2, 3)
        )
        rows = [
            PartitionRow(
                topic,
                number,
                leader=log.replicas[0] if log.leader is None else log.leader,
                replicas=log.replicas,
                isr=tuple(b for b in log.replicas if b not in log.copied),
                sizes=tuple(log.copied.get(b, log.size) for b in log.replicas),
                lags=(0,) * len(log.replicas),
                log_dirs=(0,) * len(log.replicas),
            )
            for (topic, number), log in self.logs.items()
        ]
        return build(self.cluster, brokers, topics, rows, taken_at_ms=at_ms)

    def sample(self, minute: int, *, offsets: bool = True) -> MinuteSample:
        """Sample the cluster ``minute`` minutes after ``START_MS``."""
        true_ms = START_MS + minute * 60_000 + 700
        state = self.state(true_ms + self.clock_ms)
        given: Mapping[TopicPartition, Offsets] = (
            {n: Offsets(self.logs[n].earliest, self.logs[n].high) for n in state.index} if offsets else {}
        )
        starts: dict[int, dict[TopicPartition, int]] = {}
        for leader, led in tiered_leaders(state).items():
            starts[leader] = {n: start for n in led if (start := self.logs[n].local_start) is not None}
        earliest, high = offset_columns(state, given, starts)
        return MinuteSample(
            state,
            earliest=earliest,
            high_watermark=high,
            taken_at_ms=true_ms + self.clock_ms,
            monotonic_ms=minute * 60_000,
            writer=self.writer,
        )


def run(world: World, minutes: range, each: Callable[[int], bool | None]) -> list[MinuteSample]:
    """Let ``each(minute)`` change the world before each sample; where it says False, no sample is taken."""
    return [world.sample(minute) for minute in minutes if each(minute) is not False]


def sample_rows(samples: Iterable[MinuteSample]) -> Any:
    """The rows of ``samples``, each sample measured from the one before it, as a sampler that remembers it does."""
    tables, before = [], None
    for sample in samples:
        measured = measure(sample, before)
        before = measured.readings
        tables.append(rows_of(sample, measured)["samples"])
    return pa.concat_tables(tables)

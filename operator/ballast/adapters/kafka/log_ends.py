"""ListOffsets to followers: where each replica's log begins and ends on its own broker.

Replica id -2 (Kafka's ``DEBUGGING_REPLICA_ID``) is answered by whichever broker holds the replica, with its own offsets; any
other asker is sent on to the leader.  It takes Describe on the topic, no more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from ballast.adapters.kafka.kafka_python import Wire, split_failures
from ballast.adapters.kafka.kafka_python_parts import ListOffsetsRequest
from ballast.core.cluster import TopicPartition
from ballast.errors import BallastError

_ANY_REPLICA: Final = -2

LATEST: Final = -1
EARLIEST_LOCAL: Final = -4
_SINCE: Final = {LATEST: 1, EARLIEST_LOCAL: 8}
"""The first version of the request that has this one: before 1 an answer may hold many offsets, KIP-405 came with 8."""


def describe(
    wire: Wire, replicas: Mapping[int, Collection[TopicPartition]], which: int = LATEST
) -> tuple[dict[int, dict[TopicPartition, int]], dict[int, BallastError]]:
    """Ask all brokers side by side; this offset of each replica by broker, and why the others did not answer."""
    wanted = {b: names for b, names in replicas.items() if names}
    told = wire.ask_each("offsets of replicas", wanted, lambda b: _request(wanted[b], which), read=_read)
    return split_failures(told)


def _request(names: Collection[TopicPartition], which: int) -> Any:
    topic_type = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[Any]] = {}
    for name in names:
        partition = topic_type.ListOffsetsPartition(partition_index=name.partition, timestamp=which)
        by_topic.setdefault(name.topic, []).append(partition)
    return ListOffsetsRequest(
        replica_id=_ANY_REPLICA,
        isolation_level=0,
        topics=[topic_type(name=topic, partitions=partitions) for topic, partitions in by_topic.items()],
        timeout_ms=0,
        min_version=_SINCE[which],
    )


def _read(response: Any) -> dict[TopicPartition, int]:
    return {
        TopicPartition(t.name, p.partition_index): int(p.offset)
        for t in response.topics
        for p in t.partitions
        if not p.error_code and p.offset >= 0
    }

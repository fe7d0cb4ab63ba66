"""ListOffsets to followers: the true end of each replica's log.

Replica id -2 (Kafka's ``DEBUGGING_REPLICA_ID``) is answered by whichever broker holds the replica, with its log end; any
other asker is sent on to the leader.  It takes Describe on the topic, no more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from kafka.protocol.consumer import ListOffsetsRequest

from ballast.adapters.kafka.kafka_python import Wire
from ballast.core.cluster import TopicPartition
from ballast.errors import BallastError

_ANY_REPLICA: Final = -2
_LATEST: Final = -1
_SINGLE_OFFSET_SINCE: Final = 1


def describe(
    wire: Wire, replicas: Mapping[int, Collection[TopicPartition]]
) -> tuple[dict[int, dict[TopicPartition, int]], dict[int, BallastError]]:
    """Ask all brokers side by side; log ends by broker, and why the others did not answer."""
    wanted = {b: names for b, names in replicas.items() if names}
    told = wire.ask_each("log ends", wanted, lambda b: _request(wanted[b]), read=_read)
    failures = {b: answer for b, answer in told.items() if isinstance(answer, BallastError)}
    answers: dict[int, Any] = {b: answer for b, answer in told.items() if b not in failures}
    return answers, failures


def _request(names: Collection[TopicPartition]) -> Any:
    topic_type = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[Any]] = {}
    for name in names:
        partition = topic_type.ListOffsetsPartition(partition_index=name.partition, timestamp=_LATEST)
        by_topic.setdefault(name.topic, []).append(partition)
    return ListOffsetsRequest(
        replica_id=_ANY_REPLICA,
        isolation_level=0,
        topics=[topic_type(name=topic, partitions=partitions) for topic, partitions in by_topic.items()],
        timeout_ms=0,
        min_version=_SINGLE_OFFSET_SINCE,
    )


def _read(response: Any) -> dict[TopicPartition, int]:
    return {
        TopicPartition(t.name, p.partition_index): int(p.offset)
        for t in response.topics
        for p in t.partitions
        if not p.error_code and p.offset >= 0
    }

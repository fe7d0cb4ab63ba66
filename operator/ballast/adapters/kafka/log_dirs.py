"""DescribeLogDirs and AlterReplicaLogDirs: what lies where on each broker, and moves between its disks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from ballast.adapters.kafka.kafka_python import Wire, code_name, raise_for, split_failures
from ballast.adapters.kafka.kafka_python_parts import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from ballast.adapters.kafka.reassignments import WRITE_ONCE
from ballast.adapters.kafka.rights import LOG_DIR_MOVE, LOG_DIRS
from ballast.core.cluster import TopicPartition
from ballast.errors import BallastError
from ballast.ports.cluster import OK, Outcome

T = TypeVar("T")
Replica = tuple[TopicPartition, int]


def describe(
    wire: Wire, brokers: Collection[int], read: Callable[[Any], T]
) -> tuple[dict[int, T], dict[int, BallastError]]:
    """Ask all brokers side by side; who answered, and why the others did not."""

    def check(answer: Any) -> T:
        raise_for(answer.error_code or 0, LOG_DIRS)
        return read(answer)

    told = wire.ask_each(LOG_DIRS, brokers, lambda _: DescribeLogDirsRequest(topics=None), read=check)
    return split_failures(told)


def alter(wire: Wire, targets: Mapping[Replica, str]) -> dict[Replica, Outcome]:
    """Start moves between the log dirs of a broker; each broker is told of its own."""
    by_broker: dict[int, dict[str, dict[str, list[int]]]] = {}
    for (name, broker), path in targets.items():
        by_broker.setdefault(broker, {}).setdefault(path, {}).setdefault(name.topic, []).append(name.partition)
    outcomes: dict[Replica, Outcome] = {}
    answers = wire.ask_each(LOG_DIR_MOVE, by_broker, lambda b: _request(by_broker[b]), retry=WRITE_ONCE)
    for broker, answer in answers.items():
        if isinstance(answer, BallastError):
            silence = Outcome(ok=False, code="NO_ANSWER", message=answer.message)
            outcomes |= {replica: silence for replica in targets if replica[1] == broker}
            continue
        for topic in answer.results:
            for p in topic.partitions:
                outcome = OK if p.error_code == 0 else Outcome(ok=False, code=code_name(p.error_code))
                outcomes[TopicPartition(topic.topic_name, p.partition_index), broker] = outcome
    return outcomes


def _request(paths: Mapping[str, Mapping[str, list[int]]]) -> Any:
    dir_type = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    return AlterReplicaLogDirsRequest(
        dirs=[
            dir_type(
                path=path,
                topics=[
                    dir_type.AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                    for topic, numbers in topics.items()
                ],
            )
            for path, topics in paths.items()
        ]
    )

"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455), with the safety flag of version 1.

Version 1 refuses to change a replica count unless told to, which is the guard against taking the union seen in mid-move for
an assignment.  Brokers that have only version 0 get the same check here, against what they say right before the send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ballast.adapters.kafka.kafka_python import Wire, code_name, raise_for
from ballast.adapters.kafka.kafka_python_parts import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
)
from ballast.adapters.kafka.responses import read_partition_states, read_reassignments
from ballast.adapters.kafka.retry import RetryPolicy
from ballast.adapters.kafka.rights import REASSIGNMENT, REASSIGNMENTS, explain
from ballast.core.cluster import TopicPartition
from ballast.errors import BallastError, Refused
from ballast.ports.cluster import OK, Outcome, Reassignment

ALTER: Final = AlterPartitionReassignmentsRequest.API_KEY
LIST: Final = ListPartitionReassignmentsRequest.API_KEY
PARTITIONS_PER_REQUEST: Final = 1_000
"""A controller applies a request as one batch of at most 10,000 records; this stays far below it and answers quickly."""

WRITE_ONCE: Final = RetryPolicy(total_s=2.0)
"""A caller checks its lease right before a write, so a failed write is repeated only while that check is fresh."""

Targets = Mapping[TopicPartition, tuple[int, ...] | None]


def list_reassignments(wire: Wire) -> dict[TopicPartition, Reassignment]:
    """Every move in progress, Ballast's and foreign ones."""

    def make() -> Any:
        return ListPartitionReassignmentsRequest(timeout_ms=round(wire.broker_wait_s * 1000), topics=None)

    response = wire.ask_controller(REASSIGNMENTS, make)
    raise_for(response.error_code, REASSIGNMENTS, response.error_message)
    return read_reassignments(response)


def alter_reassignments(
    wire: Wire, targets: Targets, *, allow_replication_factor_change: bool
) -> dict[TopicPartition, Outcome]:
    """Start or cancel moves, in requests of bounded size; partitions that a failed request held say so."""
    flag = _flag_version(wire)
    outcomes: dict[TopicPartition, Outcome] = {}
    if not flag and not allow_replication_factor_change:
        outcomes = _changes_of_count(wire, targets)
    names = [n for n in targets if n not in outcomes]
    sent = 0
    for at in range(0, len(names), PARTITIONS_PER_REQUEST):
        chunk = {n: targets[n] for n in names[at : at + PARTITIONS_PER_REQUEST]}
        try:
            outcomes |= _alter_chunk(wire, chunk, allow=allow_replication_factor_change, flag=flag)
        except BallastError as failure:
            if not sent:
                raise
            return outcomes | _missing_answers(names[at:], failure.message)
        sent += len(chunk)
    return outcomes


def _flag_version(wire: Wire) -> bool:
    """Whether the brokers know the replication-factor flag."""
    versions = wire.versions().get(ALTER)
    if versions is None:
        raise Refused(
            "The cluster's Kafka is older than 2.4 and takes reassignments through ZooKeeper only.",
            hint="Give --zookeeper HOST:PORT, or cluster.zookeeper in the settings.",
        )
    return versions[1] >= 1


def _alter_chunk(wire: Wire, targets: Targets, *, allow: bool, flag: bool) -> dict[TopicPartition, Outcome]:
    def make() -> Any:
        fields: dict[str, Any] = {"timeout_ms": round(wire.broker_wait_s * 1000), "topics": _topics(targets)}
        if flag:
            # The minimum keeps the client from falling back to version 0, which would drop the flag silently.
            fields |= {"allow_replication_factor_change": allow, "min_version": 1}
        return AlterPartitionReassignmentsRequest(**fields)

    response = wire.ask_controller(REASSIGNMENT, make, retry=WRITE_ONCE)
    raise_for(response.error_code, REASSIGNMENT, response.error_message)
    outcomes = {
        TopicPartition(t.name, p.partition_index): _outcome(p.error_code, p.error_message)
        for t in response.responses
        for p in t.partitions
    }
    return (
        _missing_answers([n for n in targets if n not in outcomes], "the answer leaves this partition out") | outcomes
    )


def _topics(targets: Targets) -> list[Any]:
    topic_type = AlterPartitionReassignmentsRequest.ReassignableTopic
    by_topic: dict[str, list[Any]] = {}
    for name, replicas in targets.items():
        partition = topic_type.ReassignablePartition(
            partition_index=name.partition, replicas=None if replicas is None else list(replicas)
        )
        by_topic.setdefault(name.topic, []).append(partition)
    return [topic_type(name=topic, partitions=partitions) for topic, partitions in by_topic.items()]


def _outcome(code: int, message: str | None) -> Outcome:
    if code == 0:
        return OK
    return Outcome(ok=False, code=code_name(code), message=explain(code_name(code), message, REASSIGNMENT))


def _missing_answers(names: Sequence[TopicPartition], message: str) -> dict[TopicPartition, Outcome]:
    return dict.fromkeys(names, Outcome(ok=False, code="NO_ANSWER", message=message))


def _changes_of_count(wire: Wire, targets: Targets) -> dict[TopicPartition, Outcome]:
    """Refusals for targets whose length differs from the partition's count, or of one in mid-move from the count that it will have."""
    moves = list_reassignments(wire)
    wanted = {n: t for n, t in targets.items() if t}
    topics = sorted({n.topic for n in wanted})
    if not topics:
        return {}

    def make() -> Any:
        names = [MetadataRequest.MetadataRequestTopic(name=t) for t in topics]
        return MetadataRequest(topics=names, allow_auto_topic_creation=False)

    states = read_partition_states(wire.ask("partitions", make), wanted)
    refused: dict[TopicPartition, Outcome] = {}
    for name, target in wanted.items():
        state = states.get(name)
        if state is None:
            continue  # The controller names what is wrong better than we could.
        move = moves.get(name)
        has = len(state.replicas) if move is None else len(set(move.replicas) - set(move.removing))
        if len(target) != has:
            refused[name] = Outcome(
                ok=False,
                code="INVALID_REPLICATION_FACTOR",
                message=f"The replication factor is changed from {has} to {len(target)}",
            )
    return refused

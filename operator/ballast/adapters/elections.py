"""ElectLeaders (KIP-183, KIP-460), in requests of bounded size.

Sent through ``Wire``: confluent-kafka 2.16's call takes no time limit (it fails on one), and an election must not be sent
late.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from kafka.protocol.admin import ElectLeadersRequest

from ballast.adapters.kafka_python import Wire, code_name, raise_for
from ballast.adapters.reassignments import WRITE_ONCE
from ballast.adapters.rights import explained
from ballast.core.cluster import TopicPartition
from ballast.errors import BallastError, Refused
from ballast.ports.cluster import OK, Outcome

PARTITIONS_PER_REQUEST: Final = 1_000
ELECT: Final = ElectLeadersRequest.API_KEY
_NOT_NEEDED: Final = 84
_PREFERRED: Final = 0
_UNCLEAN: Final = 1


def elect_leaders(wire: Wire, names: Collection[TopicPartition], *, unclean: bool) -> dict[TopicPartition, Outcome]:
    """Hold elections; an election that was not needed counts as ok, a partition of a failed request says so."""
    latest = wire.versions().get(ELECT, (0, -1))[1]
    if latest < (1 if unclean else 0):
        raise Refused(
            f"The cluster's Kafka is too old for {'unclean' if unclean else 'preferred'} elections on request.",
            hint="Elections through ZooKeeper need --zookeeper HOST:PORT.",
        )
    ordered = list(dict.fromkeys(names))
    outcomes: dict[TopicPartition, Outcome] = {}
    for at in range(0, len(ordered), PARTITIONS_PER_REQUEST):
        chunk = ordered[at : at + PARTITIONS_PER_REQUEST]
        try:
            outcomes |= _elect_chunk(wire, chunk, unclean=unclean)
        except BallastError as failure:
            if not outcomes:
                raise
            return outcomes | dict.fromkeys(ordered[at:], Outcome(ok=False, code="NO_ANSWER", message=failure.message))
    return outcomes


def _elect_chunk(wire: Wire, names: Sequence[TopicPartition], *, unclean: bool) -> dict[TopicPartition, Outcome]:
    by_topic: dict[str, list[int]] = {}
    for name in names:
        by_topic.setdefault(name.topic, []).append(name.partition)

    def make() -> Any:
        topics = [ElectLeadersRequest.TopicPartitions(topic=t, partitions=p) for t, p in by_topic.items()]
        return ElectLeadersRequest(
            election_type=_UNCLEAN if unclean else _PREFERRED,
            topic_partitions=topics,
            timeout_ms=round(wire.broker_wait_s * 1000),
            min_version=1 if unclean else 0,
        )

    response = wire.ask_controller("leader elections", make, retry=WRITE_ONCE)
    raise_for(response.error_code or 0, "leader elections")
    answered = {
        TopicPartition(r.topic, p.partition_id): _outcome(p.error_code, p.error_message)
        for r in response.replica_election_results
        for p in r.partition_result
    }
    silence = Outcome(ok=False, code="NO_ANSWER", message="the answer leaves this partition out")
    return dict.fromkeys(names, silence) | answered


def _outcome(code: int, message: str | None) -> Outcome:
    if code in {0, _NOT_NEEDED}:
        return OK
    return Outcome(ok=False, code=code_name(code), message=explained(code_name(code), message, "leader elections"))

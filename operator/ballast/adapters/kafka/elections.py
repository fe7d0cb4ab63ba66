"""ElectLeaders (KIP-183, KIP-460), in requests of bounded size, by confluent-kafka's admin client."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from confluent_kafka import KafkaError

from ballast.adapters.kafka.confluent import Admin
from ballast.adapters.kafka.kafka_python import code_name
from ballast.adapters.kafka.rights import ELECTIONS, explain
from ballast.core.cluster import TopicPartition
from ballast.errors import BallastError, Refused
from ballast.ports.cluster import OK, Outcome

PARTITIONS_PER_REQUEST: Final = 1_000
ELECT: Final = 43


def elect_leaders(
    admin: Admin, versions: Mapping[int, tuple[int, int]], names: Collection[TopicPartition], *, unclean: bool
) -> dict[TopicPartition, Outcome]:
    """Hold elections; an election that was not needed counts as ok, a partition of a failed request says so.

    ``versions`` are those of the requests that the brokers speak.
    """
    latest = versions.get(ELECT, (0, -1))[1]
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
            outcomes |= _elect_chunk(admin, chunk, unclean=unclean)
        except BallastError as failure:
            if not outcomes:
                raise
            return outcomes | dict.fromkeys(ordered[at:], Outcome(ok=False, code="NO_ANSWER", message=failure.message))
    return outcomes


def _elect_chunk(admin: Admin, names: Sequence[TopicPartition], *, unclean: bool) -> dict[TopicPartition, Outcome]:
    answered = admin.elect_leaders(names, unclean=unclean)
    silence = Outcome(ok=False, code="NO_ANSWER", message="the answer leaves this partition out")
    return dict.fromkeys(names, silence) | {n: _outcome(error) for n, error in answered.items()}


def _outcome(error: KafkaError | None) -> Outcome:
    if error is None or error.code() == KafkaError.ELECTION_NOT_NEEDED:
        return OK
    code = code_name(error.code())
    return Outcome(ok=False, code=code, message=explain(code, error.str(), ELECTIONS))

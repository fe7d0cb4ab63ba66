"""What librdkafka's errors on the journal's topics mean: which pass, which are ours to report, and what a person does about them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import confluent_kafka as ck

from ballast.adapters.kafka.rights import PAGE
from ballast.errors import AuthenticationFailed, AuthorizationFailed, BallastError, Fenced, Unavailable

READER_GROUP: Final = "ballast-journal-reader"
"""librdkafka wants a group name even where the group is never joined and no offset committed."""
TRANSACTIONAL_ID: Final = "ballast-journal"
FILE_HINT: Final = "If the cluster cannot hold a journal now, keep one in a file (--journal file:PATH; of a daemon: journal.file), and that file safe."
REPLICAS_DOWN_HINT: Final = (
    "Start one of them and try again. If they are gone for good, evacuate them with --journal file:PATH: that moves the "
    "journal's own partitions to live brokers as well."
)
LOGIN_HINT: Final = (
    "Check user name, password, sasl.mechanism and the certificates in the client properties (--command-config)."
)
REACH_HINT: Final = f"See whether brokers are down or overloaded. {FILE_HINT}"
HANGING_HINT: Final = (
    "An unclean election can lose its end: kafka-transactions.sh find-hanging --topic TOPIC finds it, and "
    f"kafka-transactions.sh abort ends it. {FILE_HINT}"
)

_FENCED: Final = {
    ck.KafkaError._FENCED,  # noqa: SLF001 — librdkafka's own codes have underscored names
    ck.KafkaError.INVALID_PRODUCER_EPOCH,
    ck.KafkaError.PRODUCER_FENCED,
}
STUCK: Final = frozenset(
    {
        ck.KafkaError.FENCED_LEADER_EPOCH,
        ck.KafkaError.UNKNOWN_LEADER_EPOCH,
        ck.KafkaError._NOENT,  # noqa: SLF001
        ck.KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        ck.KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
        ck.KafkaError._DESTROY_BROKER,  # noqa: SLF001
    }
)
"""A client that asks with what it knew before an election, that finds no leader or no topic where there is one, that gave up
the connection which its question went through."""
MISSING: Final = frozenset(
    {
        ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
        ck.KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        ck.KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
        ck.KafkaError._NOENT,  # noqa: SLF001
    }
)
"""The topic may be gone."""
PASSING: Final = {
    *STUCK,
    ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
    ck.KafkaError.LEADER_NOT_AVAILABLE,
    ck.KafkaError.NOT_LEADER_FOR_PARTITION,
    ck.KafkaError.OFFSET_NOT_AVAILABLE,
}
_OWN_TOPICS: Final = (
    "Create, Read and Write on the topics with the prefix __ballast_, and Describe and DescribeConfigs on them"
)
_FORBIDDEN: Final = {
    ck.KafkaError.TOPIC_AUTHORIZATION_FAILED: _OWN_TOPICS,
    ck.KafkaError.CLUSTER_AUTHORIZATION_FAILED: _OWN_TOPICS,
    ck.KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: f"Describe and Write on the transactional id {TRANSACTIONAL_ID}",
    ck.KafkaError.GROUP_AUTHORIZATION_FAILED: f"Describe on the group {READER_GROUP}",
}
"""What a broker forbids us, and the rights that are missing then."""
AUTHENTICATION_FAILED: Final = {
    ck.KafkaError._AUTHENTICATION,  # noqa: SLF001
    ck.KafkaError._SSL,  # noqa: SLF001
    ck.KafkaError.SASL_AUTHENTICATION_FAILED,
}
UNREACHABLE: Final = {
    ck.KafkaError._TRANSPORT,  # noqa: SLF001
    ck.KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    ck.KafkaError._TIMED_OUT,  # noqa: SLF001
    ck.KafkaError._RESOLVE,  # noqa: SLF001
}
"""No broker answered.  A client whose login fails sees this as well: why is in an event of its own."""


def lock_lost() -> Fenced:
    """What a holder is told whose lock is another's now."""
    return Fenced("Another process has taken this cluster's lock.", hint="This process stops; the other goes on.")


def translate(error: ck.KafkaError, doing: str) -> BallastError:
    """The client's error as one of ours; ``doing`` completes the sentence."""
    code, text = error.code(), error.str()
    if code in _FENCED:
        return lock_lost()
    if code in _FORBIDDEN:
        return AuthorizationFailed(
            f"Not authorized to {doing}: {text}.",
            hint=f"Grant Ballast's user {_FORBIDDEN[code]}; all rights are in {PAGE}.",
        )
    if code in AUTHENTICATION_FAILED:
        return AuthenticationFailed(f"Authentication failed while trying to {doing}: {text}.", hint=LOGIN_HINT)
    if code in UNREACHABLE:
        return Unavailable(f"The cluster could not {doing}: {text}.", hint=REACH_HINT)
    return Unavailable(f"The cluster could not {doing}: {text}.", hint=FILE_HINT)


@contextlib.contextmanager
def translate_errors(doing: str) -> Iterator[None]:
    """Turn the client's exceptions into ours."""
    try:
        yield
    except ck.KafkaException as failure:
        raise translate(failure.args[0], doing) from failure

"""Guarded sandboxes: their listeners really require what they say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tests.waiting import PATIENCE_S

from ballast.adapters.journal.topic import TopicJournal
from ballast.errors import AuthenticationFailed, UsageError
from ballast.sandbox import Sandbox, SandboxSpec
from ballast.sandbox.security import ALICE, KINDS

pytestmark = [pytest.mark.kafka, pytest.mark.openssl]

QUIET = {"log_level": 0}
LONGEST_SETUP_MS = 30_000
"""The client's own limit.  Logins and handshakes count, so that a busy broker may need seconds for one."""


def brokers_seen(sandbox: Sandbox, properties: dict[str, str], *, within_s: float = PATIENCE_S) -> set[int]:
    """What a client so configured is told of brokers; raises when it is not let in by then."""
    setup = {"socket.connection.setup.timeout.ms": min(round(within_s * 1000), LONGEST_SETUP_MS)}
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server, **QUIET, **setup, **properties})
    return set(admin.list_topics(timeout=within_s).brokers)


@pytest.mark.parametrize("kind", KINDS)
def test_the_right_client_is_let_in_and_a_plain_one_is_not(secured: Callable[[str], Sandbox], kind: str) -> None:
    """With the sandbox's own properties a client sees the broker; with none it sees nothing."""
    sandbox = secured(kind)
    assert brokers_seen(sandbox, sandbox.librdkafka_properties) == {1}
    with pytest.raises(KafkaException):
        brokers_seen(sandbox, {}, within_s=2)


@pytest.mark.parametrize("kind", ["plain", "scram", "sasl-tls", "acl"])
def test_a_wrong_password_is_not_let_in(secured: Callable[[str], Sandbox], kind: str) -> None:
    """The broker checks the password, not only that there is one."""
    sandbox = secured(kind)
    with pytest.raises(KafkaException):
        brokers_seen(sandbox, sandbox.librdkafka_properties | {"sasl.password": "wrong"}, within_s=2)


def test_the_journal_tells_a_wrong_password_from_brokers_that_are_away(secured: Callable[[str], Sandbox]) -> None:
    """Its own client is turned away, and says what to check instead of proposing a journal in a file."""
    sandbox = secured("plain")
    client = {"bootstrap.servers": sandbox.bootstrap_server, **sandbox.librdkafka_properties, "sasl.password": "wrong"}
    journal = TopicJournal(client, timeout_s=15)
    try:
        with pytest.raises(AuthenticationFailed, match="Authentication failed") as failure:
            journal.read()
        assert failure.value.hint is not None
        assert "password" in failure.value.hint
        assert "wrong" not in str(failure.value)
    finally:
        journal.close()


def test_mutual_tls_wants_the_clients_certificate(secured: Callable[[str], Sandbox]) -> None:
    """Trusting the broker is not enough where the broker wants to know who asks."""
    sandbox = secured("mtls")
    without = {k: v for k, v in sandbox.librdkafka_properties.items() if k.startswith(("security.", "ssl.ca."))}
    with pytest.raises(KafkaException):
        brokers_seen(sandbox, without, within_s=2)


def test_alice_may_nothing(secured: Callable[[str], Sandbox]) -> None:
    """Under the authorizer an ordinary user is let in and then refused."""
    sandbox = secured("acl")
    assert sandbox.guard is not None
    properties = sandbox.guard.librdkafka_properties(ALICE)
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server, **QUIET, **properties})
    refused = admin.create_topics([NewTopic("hers", 1, 1)])["hers"]
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        refused.result(timeout=PATIENCE_S)


def test_an_unknown_kind_is_refused() -> None:
    """The sentence names the kinds there are."""
    with pytest.raises(UsageError, match=r"kerberos.*sasl-tls"):
        Sandbox.up(SandboxSpec(security="kerberos"))

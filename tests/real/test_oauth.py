"""OAUTHBEARER over HTTP: brokers that check signed tokens against an issuer's keys, and clients that fetch theirs from it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.real.test_status_guarded import status
from tests.token_server import AUDIENCE, ISSUER, SigningKey, TokenServer, token_server
from tests.waiting import until

from ballast.adapters.auth.security import Security
from ballast.adapters.journal.topic import TopicJournal
from ballast.adapters.kafka.cluster import KafkaCluster
from ballast.adapters.kafka.confluent import Admin
from ballast.adapters.kafka.kafka_python import Wire
from ballast.core.cluster import TopicPartition
from ballast.errors import AuthenticationFailed
from ballast.ports.cluster import Offsets
from ballast.ports.journal import Holder, Record
from ballast.sandbox import Sandbox, SandboxSpec

pytestmark = [pytest.mark.kafka, pytest.mark.openssl]

SHORT_S = 24.0
"""A token's life in the test of renewal: Kafka counts it in whole seconds, and the last fifth of it must do for a slow login."""


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    """Signs tokens and publishes the keys."""
    with token_server(SigningKey.make(tmp_path_factory.mktemp("issuer"))) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(issuer: TokenServer) -> Iterator[Sandbox]:
    """A broker that lets in who shows a token of this issuer, for as long as the token lives."""
    kafka = "org.apache.kafka.common.security.oauthbearer"
    listener = "listener.name.client.oauthbearer.sasl"
    spec = SandboxSpec(
        brokers=1,
        racks=0,
        security="plain",
        broker_configs={
            "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
            f"{listener}.jaas.config": f"{kafka}.OAuthBearerLoginModule required;",
            f"{listener}.server.callback.handler.class": f"{kafka}.OAuthBearerValidatorCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": issuer.keys,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.clock.skew.seconds": "0",
            "connections.max.reauth.ms": "600000",
        },
        # Since 4.0 brokers ask only the addresses that they are told of in this way.
        java_options=(f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.keys}",),
    )
    with Sandbox.up(spec) as sandbox:
        yield sandbox


def journal_of(guarded: Sandbox, security: Security) -> TopicJournal:
    """A journal of the test's own."""
    name = f"__ballast_test_{uuid.uuid4().hex[:8]}"
    client = security.for_confluent() | {"bootstrap.servers": guarded.bootstrap_server}
    return TopicJournal(client, timeout_s=30, journal_topic=name, requests_topic=f"{name}_r")


def test_a_token_of_the_endpoint_lets_every_client_in(guarded: Sandbox, issuer: TokenServer, tmp_path: Path) -> None:
    """The command as a person runs it; then each client by itself, all with one token."""
    code, out, err = status(guarded, issuer.properties(), tmp_path, "--output", "json")
    assert code == 0, err
    assert json.loads(out)["gaps"] == []
    security, before = Security.from_properties(issuer.properties()), len(issuer.asked)
    where = (guarded.bootstrap_server, security)
    with (
        closing(KafkaCluster(Wire(*where), Admin(*where))) as cluster,
        closing(journal_of(guarded, security)) as journal,
    ):
        assert not cluster.snapshot().gaps
        cluster.create_topic("t", {0: (1,)})
        name = TopicPartition("t", 0)
        until(lambda: cluster.offsets([name])[name] == Offsets(0, 0), "the offsets of a new topic")
        journal.acquire(Holder("ada-1", "ada", lease_s=60), wait_s=60)
        journal.append([Record("a", {"n": 1})])
        assert [r.key for r in journal.read()] == ["a"]
        journal.release()
    assert len(issuer.asked) == before + 1, "one token for all"


def test_tokens_are_renewed_before_they_end(
    guarded: Sandbox, issuer: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers end a connection whose token has run out: idle clients, the journal's writer with its lock too, go on with newer ones."""
    monkeypatch.setattr(issuer, "life_s", SHORT_S)
    security = Security.from_properties(issuer.properties())
    where = (guarded.bootstrap_server, security)
    with (
        closing(KafkaCluster(Wire(*where), Admin(*where))) as cluster,
        closing(journal_of(guarded, security)) as journal,
    ):
        journal.acquire(Holder("ada-2", "ada", lease_s=60), wait_s=60)
        journal.append([Record("a", {"n": 1})])
        assert not cluster.snapshot().gaps
        assert security.tokens is not None
        first = security.tokens.token()
        # Longer than the first token can be good for; the writer's client alone renews it meanwhile.
        until(lambda: time.time() > first.expires_at_s + SHORT_S / 2, "the end of the first token")
        until(lambda: security.tokens is not None and security.tokens.held != first, "a client that renews its token")
        journal.append([Record("b", {"n": 2})])
        assert [r.key for r in journal.read()] == ["a", "b"]
        assert not cluster.snapshot().gaps
        journal.release()


def test_a_wrong_secret_is_one_sentence(guarded: Sandbox, issuer: TokenServer, tmp_path: Path) -> None:
    """The endpoint that refused and the client are named; the secret is not; the journal's client says the same."""
    code, out, err = status(guarded, issuer.properties("wr0ng"), tmp_path)
    assert (code, out) == (6, "")
    assert f"The token endpoint {issuer.endpoint} rejected the client ballast" in err
    assert "client secret" in err
    assert "wr0ng" not in err
    assert "Traceback" not in err
    security = Security.from_properties(issuer.properties("wr0ng"))
    with (
        closing(journal_of(guarded, security)) as journal,
        pytest.raises(AuthenticationFailed, match="rejected the client ballast"),
    ):
        journal.read()


def test_a_token_for_another_service_is_one_sentence(
    guarded: Sandbox, issuer: TokenServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint grants it and the broker does not take it: the token's claims are what to look at."""
    monkeypatch.setattr(issuer, "audience", "another-service")
    code, out, err = status(guarded, issuer.properties(), tmp_path)
    assert (code, out) == (6, "")
    assert "rejected the OAuth token" in err
    assert "audience" in err

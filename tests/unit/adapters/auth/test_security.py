"""One security value is read from Kafka client properties and drives every client, and secrets stay secret."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from ballast.adapters.auth.oauth import Token, TokenSource, token_from_file
from ballast.adapters.auth.security import Security, parse_jaas
from ballast.errors import AuthenticationFailed, UsageError

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="pa\\"ss;word";'
SECRET = 'pa"ss;word'  # noqa: S105 — a made-up one


def test_nothing_said_is_plaintext() -> None:
    """Without properties there is neither TLS nor a login."""
    security = Security.from_properties({})
    assert security.for_confluent() == {"security.protocol": "PLAINTEXT"}
    assert security.for_kafka_python() == {"security_protocol": "PLAINTEXT", "ssl_context": None}


def test_a_login_reaches_both_clients() -> None:
    """Name and password come out of the JAAS entry, escapes undone."""
    security = Security.from_properties(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": PLAIN}
    )
    assert security.for_confluent() == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ada",
        "sasl.password": SECRET,
    }
    theirs = security.for_kafka_python()
    assert (theirs["sasl_plain_username"], theirs["sasl_plain_password"]) == ("ada", SECRET)


def test_librdkafkas_names_are_understood() -> None:
    """Properties written for librdkafka work as they are."""
    security = Security.from_properties(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "ada",
            "sasl.password": "x",
        }
    )
    assert (security.protocol, security.mechanism, security.username) == ("SASL_PLAINTEXT", "PLAIN", "ada")


def test_the_environment_spells_properties() -> None:
    """``BALLAST_KAFKA_SASL_JAAS_CONFIG`` is ``sasl.jaas.config``; other variables are not read."""
    security = Security.from_environment(
        {
            "BALLAST_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "BALLAST_KAFKA_SASL_MECHANISM": "PLAIN",
            "BALLAST_KAFKA_SASL_JAAS_CONFIG": PLAIN,
            "SECURITY_PROTOCOL": "nonsense",
        }
    )
    assert (security.username, security.password) == ("ada", SECRET)


def test_secrets_show_nowhere() -> None:
    """Neither repr nor a redacted message holds the password."""
    security = Security.from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": PLAIN,
            "zookeeper.digest.username": "zk",
            "zookeeper.digest.password": "hush-hush",
        }
    )
    shown = repr(security) + str(security) + repr(parse_jaas(PLAIN)) + repr(Token("bearer-secret", 0.0))
    for secret in (SECRET, "hush-hush", "bearer-secret"):
        assert secret not in shown
    assert security.redact(f"login {SECRET} and hush-hush failed") == "login ******** and ******** failed"


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is 'TLS'"),
        ({"security.protocol": "SASL_SSL"}, "Kerberos"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "DIGEST-MD5"}, "sasl.mechanism is 'DIGEST-MD5'"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "no username and password"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "secret rubbish"},
            "does not start with a login module",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": 'a.B required username="x" password="half',
            },
            "after its option number 1",
        ),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "where the token comes from"),
        (
            {"security.protocol": "SSL", "ssl.truststore.type": "JKS", "ssl.truststore.location": "/t.jks"},
            "ssl.truststore.type is JKS",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_with_a_remedy(properties: dict[str, str], sentence: str) -> None:
    """Every mistake names the property and what to write instead, and never repeats a secret."""
    with pytest.raises(UsageError) as failure:
        Security.from_properties(properties)
    assert sentence in failure.value.message
    assert failure.value.hint
    assert "half" not in str(failure.value)
    assert "rubbish" not in str(failure.value)


def test_a_keystore_of_java_is_named_with_the_way_out(tmp_path: Path) -> None:
    """A truststore without a type whose bytes are JKS is told to be converted, with the commands."""
    store = tmp_path / "trust"
    store.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    security = Security.from_properties({"security.protocol": "SSL", "ssl.truststore.location": str(store)})
    with pytest.raises(UsageError, match="is not PEM") as failure:
        security.for_confluent()
    assert failure.value.hint is not None
    assert "keytool" in failure.value.hint


def test_a_missing_certificate_file_is_one_sentence(tmp_path: Path) -> None:
    """The file and its purpose are named."""
    security = Security.from_properties({"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "no.pem")})
    with pytest.raises(UsageError, match=r"trusted certificates, .*no\.pem, cannot be read"):
        security.tls_context()


@pytest.mark.parametrize(("algorithm", "verified"), [(None, True), ("https", True), ("", False), ("none", False)])
def test_host_names_are_verified_unless_switched_off(algorithm: str | None, *, verified: bool) -> None:
    """``ssl.endpoint.identification.algorithm`` set to nothing switches the check off in every client."""
    properties = {"security.protocol": "SSL"}
    if algorithm is not None:
        properties["ssl.endpoint.identification.algorithm"] = algorithm
    security = Security.from_properties(properties)
    context = security.tls_context()
    assert context is not None
    assert context.check_hostname is verified
    assert security.for_confluent()["ssl.endpoint.identification.algorithm"] == ("https" if verified else "none")


def test_a_token_is_fetched_once_and_renewed_in_time() -> None:
    """Every caller shares one token; a new one is fetched when four fifths of its life are over."""
    clock = {"now": 1000.0}
    fetched: list[float] = []

    def fetch() -> Token:
        fetched.append(clock["now"])
        return Token(f"token-{len(fetched)}", clock["now"] + 100)

    source = TokenSource(fetch, now=lambda: clock["now"])
    assert [source.token().value for _ in range(3)] == ["token-1"] * 3
    clock["now"] = 1079.0
    assert source.token().value == "token-1"
    clock["now"] = 1080.0
    assert source.token().value == "token-2"
    assert fetched == [1000.0, 1080.0]


def test_unsecured_claims_make_an_unsigned_token() -> None:
    """What brokers on trial accept: algorithm none, the subject, no signature."""
    security = Security.from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": 'a.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="ada";',
        }
    )
    assert security.tokens is not None
    head, body, signature = security.tokens.token().value.split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "none"}
    assert json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["sub"] == "ada"
    assert signature == ""
    assert callable(security.for_confluent()["oauth_cb"])


def test_a_token_file_tells_when_it_ends(tmp_path: Path) -> None:
    """The end of life is the token's own ``exp``; a missing file is one sentence."""
    body = base64.urlsafe_b64encode(json.dumps({"exp": 4242}).encode()).rstrip(b"=").decode()
    path = tmp_path / "token"
    path.write_text(f"aaa.{body}.bbb\n")
    assert token_from_file(path) == Token(f"aaa.{body}.bbb", 4242.0)
    with pytest.raises(AuthenticationFailed, match="cannot be read"):
        token_from_file(tmp_path / "none")

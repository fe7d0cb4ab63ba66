"""``ballast status`` on brokers that really require what their security says, right and wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.leash import leashed
from tests.waiting import PATIENCE_S, becomes

from ballast.adapters.auth.security import Security
from ballast.adapters.kafka.cluster import KafkaCluster
from ballast.adapters.kafka.confluent import Admin
from ballast.adapters.kafka.kafka_python import Wire
from ballast.core.cluster import TopicPartition
from ballast.ports.cluster import Offsets
from ballast.sandbox import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.openssl]
Secured = Callable[[str], Sandbox]
WRONG = "certainly-not-it"


def status(sandbox: Sandbox, properties: Mapping[str, str] | None, tmp_path: Path, *flags: str) -> tuple[int, str, str]:
    """Run the command as a person would, with these client properties in a file."""
    command = [sys.executable, "-m", "ballast", "status", "--bootstrap-server", sandbox.bootstrap_server, *flags]
    if properties is not None:
        path = tmp_path / "client.properties"
        path.write_text("".join(f"{k}={v}\n" for k, v in properties.items()))
        command += ["--command-config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def without(properties: Mapping[str, str], *keys: str) -> dict[str, str]:
    """The properties that are left."""
    return {k: v for k, v in properties.items() if k not in keys}


@pytest.mark.parametrize("kind", ["plain", "scram", "tls", "mtls", "sasl-tls", "acl"])
def test_the_right_properties_let_us_in(secured: Secured, kind: str, tmp_path: Path) -> None:
    """Each kind of security works with a properties file in Kafka's own form, and nothing is missing."""
    sandbox = secured(kind)
    code, out, err = status(sandbox, sandbox.client_properties, tmp_path, "--output", "json")
    assert code == 0, err
    document = json.loads(out)
    assert [b["alive"] for b in document["brokers"]] == [True]
    assert document["brokers"][0]["diskTotalBytes"] > 0
    assert document["gaps"] == []


def test_librdkafkas_spelling_lets_us_in(secured: Secured, tmp_path: Path) -> None:
    """The same properties in librdkafka's names."""
    sandbox = secured("mtls")
    assert sandbox.guard is not None
    code, _, err = status(sandbox, sandbox.guard.librdkafka_properties(), tmp_path)
    assert code == 0, err


@pytest.mark.parametrize("kind", ["plain", "scram", "sasl-tls"])
def test_a_wrong_password_is_one_sentence(secured: Secured, kind: str, tmp_path: Path) -> None:
    """The user is named, the password is not, and nothing is tried for long."""
    sandbox = secured(kind)
    properties = sandbox.client_properties
    right = properties["sasl.jaas.config"].split('password="')[1].split('"')[0]
    properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace(right, WRONG)
    code, out, err = status(sandbox, properties, tmp_path)
    assert (code, out) == (6, "")
    assert "rejected the user admin with the password given" in err
    assert "Check username, password" in err
    assert WRONG not in err
    assert "Traceback" not in err


def test_a_login_that_is_missing_is_one_sentence(secured: Secured, tmp_path: Path) -> None:
    """Without properties, a SASL listener is recognised and the way in is named."""
    code, _, err = status(secured("plain"), None, tmp_path)
    assert code == 6
    assert "requires SASL authentication" in err
    assert "--command-config" in err


def test_another_mechanism_is_one_sentence(secured: Secured, tmp_path: Path) -> None:
    """The mechanism that the listener does not offer is named."""
    sandbox = secured("plain")
    code, _, err = status(sandbox, sandbox.client_properties | {"sasl.mechanism": "SCRAM-SHA-256"}, tmp_path)
    assert code == 6
    assert "does not offer the SASL mechanism SCRAM-SHA-256" in err


def test_plain_text_at_a_tls_port_is_one_sentence(secured: Secured, tmp_path: Path) -> None:
    """A TLS listener spoken to in plain text is recognised."""
    code, _, err = status(secured("tls"), None, tmp_path)
    assert code == 6
    assert "is a TLS listener, and the client connected without TLS" in err


def test_an_unknown_authority_is_one_sentence(secured: Secured, tmp_path: Path) -> None:
    """Without the truststore the certificate is not trusted, and the property to set is named."""
    sandbox = secured("tls")
    bare = without(sandbox.client_properties, "ssl.truststore.type", "ssl.truststore.location")
    code, _, err = status(sandbox, bare, tmp_path)
    assert code == 6
    assert "is not trusted" in err
    assert "ssl.truststore.location" in err


def test_a_missing_client_certificate_is_one_sentence(secured: Secured, tmp_path: Path) -> None:
    """Brokers that want a certificate of ours are recognised although TLS 1.3 says so late."""
    sandbox = secured("mtls")
    bare = without(sandbox.client_properties, "ssl.keystore.type", "ssl.keystore.location")
    code, _, err = status(sandbox, bare, tmp_path)
    assert code == 6
    assert "rejected the client certificate" in err
    assert "ssl.keystore.location" in err


def test_tls_at_a_plain_port_is_one_sentence(kraft: Sandbox, tmp_path: Path) -> None:
    """A plain listener greeted in TLS is recognised."""
    code, _, err = status(kraft, {"security.protocol": "SSL"}, tmp_path)
    assert code == 6
    assert "The TLS handshake with" in err


def test_a_missing_permission_is_one_sentence(secured: Secured, tmp_path: Path) -> None:
    """A user without any ACL learns what was refused and where the list of ACLs is."""
    sandbox = secured("acl")
    assert sandbox.guard is not None
    code, _, err = status(sandbox, sandbox.guard.client_properties("alice"), tmp_path)
    assert code == 6
    assert "Not authorized to ask for" in err
    assert "docs/acls.md" in err
    assert "Traceback" not in err


def test_a_broker_that_does_not_answer_is_one_sentence(own_cluster: Callable[..., Sandbox], tmp_path: Path) -> None:
    """A frozen broker costs no more than the time given."""
    sandbox = own_cluster(brokers=1, racks=0)
    sandbox.pause_broker(1)
    code, _, err = status(sandbox, None, tmp_path, "--timeout", "4")
    sandbox.resume_broker(1)
    assert code == 6
    assert "does not answer" in err


def test_a_frozen_broker_does_not_keep_us_out(own_cluster: Callable[..., Sandbox], tmp_path: Path) -> None:
    """The first of the bootstrap servers is frozen: the next one serves, and what the frozen one hides is a gap."""
    sandbox = own_cluster(session_timeout_ms=60_000)
    sandbox.pause_broker(1)
    code, out, err = status(sandbox, None, tmp_path, "--output", "json")
    sandbox.resume_broker(1)
    assert code == 0, err
    document = json.loads(out)
    one = document["brokers"][0]
    assert (one["alive"], one["replicaBytes"], one["diskTotalBytes"]) == (True, None, None)
    assert {(g["subject"], g["missing"]) for g in document["gaps"]} == {
        ("broker 1", "log dirs"),
        ("broker 1", "configs"),
    }


def test_a_token_lets_every_client_in(own_cluster: Callable[..., Sandbox], tmp_path: Path) -> None:
    """OAUTHBEARER works for what is read by one client library and for the offsets, which the other reads."""
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    sandbox = own_cluster(
        brokers=1,
        racks=0,
        security="plain",
        broker_configs={
            "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
            "listener.name.client.oauthbearer.sasl.jaas.config": f"{module};",
        },
    )
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'{module} unsecuredLoginStringClaim_sub="ada";',
    }
    security = Security.from_properties(properties)
    cluster = KafkaCluster(Wire(sandbox.bootstrap_server, security), Admin(sandbox.bootstrap_server, security))
    try:
        assert not cluster.snapshot().gaps
        cluster.create_topic("t", {0: (1,)})
        name = TopicPartition("t", 0)
        becomes(lambda: cluster.offsets([name])[name], Offsets(0, 0))
    finally:
        cluster.close()
    refused = properties | {"sasl.jaas.config": f'{module} unsecuredLoginStringClaim_other="ada";'}
    code, _, err = status(sandbox, refused, tmp_path)
    assert code == 6
    assert "rejected the OAuth token" in err


def test_a_watch_goes_on_until_it_is_interrupted(kraft: Sandbox) -> None:
    """One line of JSON per reading; Ctrl-C ends it with 0."""
    command = [sys.executable, "-m", "ballast", "status", "-b", kraft.bootstrap_server]
    with subprocess.Popen(
        leashed(*command, "--watch", "--interval", "0.2", "--output", "json"), stdout=subprocess.PIPE, text=True
    ) as watch:
        assert watch.stdout is not None
        readings = [json.loads(watch.stdout.readline()) for _ in range(3)]
        watch.send_signal(signal.SIGINT)
        watch.stdout.read()
        assert watch.wait(PATIENCE_S) == 0
    assert [r["kind"] for r in readings] == ["Status"] * 3
    assert readings[0]["takenAt"] < readings[2]["takenAt"]

"""How a sandbox's listeners are guarded, and what its clients must show.

A guarded broker has two listeners on the loopback: CLIENT, which really requires what the kind says, and INTERNAL, plaintext,
by which the brokers talk to each other and the sandbox prepares the cluster.
"""

from __future__ import annotations

import secrets
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ballast.errors import Unavailable, UsageError

KINDS: Final[dict[str, str]] = {
    "plain": "SASL/PLAIN without encryption",
    "scram": "SASL/SCRAM-SHA-512 without encryption",
    "tls": "TLS; the broker shows a certificate of the sandbox's own authority",
    "mtls": "TLS; the client must show a certificate as well",
    "sasl-tls": "SASL/SCRAM-SHA-512 over TLS",
    "acl": "SASL/PLAIN and an authorizer: admin may do everything, alice nothing",
}
"""Every kind of security and what it means."""

PROTOCOLS: Final = {
    "plain": "SASL_PLAINTEXT",
    "scram": "SASL_PLAINTEXT",
    "tls": "SSL",
    "mtls": "SSL",
    "sasl-tls": "SASL_SSL",
    "acl": "SASL_PLAINTEXT",
}
MECHANISMS: Final = {"plain": "PLAIN", "scram": "SCRAM-SHA-512", "sasl-tls": "SCRAM-SHA-512", "acl": "PLAIN"}
MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
ADMIN: Final = "admin"
ALICE: Final = "alice"
CERTIFICATE_DAYS: Final = "30"


def new_users() -> dict[str, str]:
    """The two people every guarded sandbox knows, and passwords that no other sandbox has."""
    return {name: secrets.token_urlsafe(12) for name in (ADMIN, ALICE)}


@dataclass(frozen=True, slots=True)
class Guard:
    """One kind of security in one sandbox's folder."""

    kind: str
    certificates: Path
    users: dict[str, str]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"There is no kind of security {self.kind!r}.", hint=f"Choose one of {', '.join(KINDS)}.")

    @property
    def protocol(self) -> str:
        """The CLIENT listener's security protocol."""
        return PROTOCOLS[self.kind]

    @property
    def mechanism(self) -> str | None:
        """The SASL mechanism, where there is SASL."""
        return MECHANISMS.get(self.kind)

    @property
    def has_tls(self) -> bool:
        """Whether there are certificates."""
        return self.protocol.endswith("SSL")

    def broker_configs(self, mode: str) -> dict[str, str]:
        """What every broker of the cluster is told."""
        configs = {}
        if self.mechanism:
            prefix = f"listener.name.client.{self.mechanism.lower()}."
            known = "".join(f' user_{name}="{word}"' for name, word in self.users.items())
            accounts = known if self.mechanism == "PLAIN" else ""
            configs["sasl.enabled.mechanisms"] = self.mechanism
            configs[f"{prefix}sasl.jaas.config"] = f"{MODULES[self.mechanism]} required{accounts};"
        if self.has_tls:
            configs |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.certificates / "broker.pem"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.certificates / "authority.pem"),
                "ssl.client.auth": "required" if self.kind == "mtls" else "none",
            }
        return configs | self.authorizer_configs(mode)

    def authorizer_configs(self, mode: str) -> dict[str, str]:
        """What brokers and controllers are told of permissions; the INTERNAL listener's user is ANONYMOUS."""
        if self.kind != "acl":
            return {}
        kraft = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        return {
            "authorizer.class.name": kraft if mode == "kraft" else "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:{ADMIN};User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "false",
        }

    def client_properties(self, user: str = ADMIN) -> dict[str, str]:
        """What a client is configured with, in Kafka's own form."""
        configs = {"security.protocol": self.protocol}
        if self.mechanism:
            configs["sasl.mechanism"] = self.mechanism
            account = f'username="{user}" password="{self.users[user]}"'
            configs["sasl.jaas.config"] = f"{MODULES[self.mechanism]} required {account};"
        if self.has_tls:
            configs |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.certificates / "authority.pem"),
            }
        if self.kind == "mtls":
            configs |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.certificates / "client.pem")}
        return configs

    def librdkafka_properties(self, user: str = ADMIN) -> dict[str, str]:
        """The same in librdkafka's words."""
        configs = {"security.protocol": self.protocol}
        if self.mechanism:
            configs |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": user,
                "sasl.password": self.users[user],
            }
        if self.has_tls:
            configs["ssl.ca.location"] = str(self.certificates / "authority.pem")
        if self.kind == "mtls":
            client = str(self.certificates / "client.pem")
            configs |= {"ssl.certificate.location": client, "ssl.key.location": client}
        return configs

    def write_certificates(self) -> None:
        """An authority of the sandbox's own, and a certificate each for the brokers and a client."""
        if not self.has_tls:
            return
        self.certificates.mkdir(mode=0o700)
        authority, key = self.certificates / "authority.pem", self.certificates / "authority.key"
        subject = ["-subj", "/CN=Ballast sandbox authority", "-days", CERTIFICATE_DAYS]
        self._openssl("req", "-x509", *EC_KEY, "-keyout", str(key), "-out", str(authority), *subject)
        self._issue("broker", "localhost")
        self._issue("client", ADMIN)

    def _issue(self, name: str, common_name: str) -> None:
        request, key, certificate = (self.certificates / f"{name}.{end}" for end in ("csr", "key", "crt"))
        subject = ["-subj", f"/CN={common_name}"]
        self._openssl("req", *EC_KEY, "-keyout", str(key), "-out", str(request), *subject)
        names = self.certificates / f"{name}.ext"
        names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        signer = ["-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-days", CERTIFICATE_DAYS]
        ends = ["-in", str(request), "-out", str(certificate), "-extfile", str(names)]
        self._openssl("x509", "-req", *signer, *ends)
        whole = self.certificates / f"{name}.pem"
        whole.touch(mode=0o600)
        whole.write_text(key.read_text() + certificate.read_text())

    def _openssl(self, *words: str) -> None:
        try:
            done = subprocess.run(
                ["openssl", *words], cwd=self.certificates, capture_output=True, text=True, timeout=60, check=False
            )
        except FileNotFoundError as missing:
            raise UsageError(
                "The program openssl is not here to make certificates.", hint="Install openssl."
            ) from missing
        if done.returncode != 0:
            raise UsageError(f"openssl {words[0]} failed: {done.stderr.strip()[-300:]}")


SCRAM_WITHIN_S: Final = 60.0
"""Longest wait until the users are created."""
SCRAM_PAUSE_S: Final = 0.5
"""Between requests, while the controller changes."""
EC_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def create_scram_users(bootstrap_server: str, users: dict[str, str]) -> None:
    """Make the users known to a running cluster, by its INTERNAL listener."""
    from confluent_kafka import KafkaError, KafkaException, admin  # noqa: PLC0415

    from ballast.adapters.kafka import librdkafka  # noqa: PLC0415

    kind = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = [admin.UserScramCredentialUpsertion(name, kind, word.encode()) for name, word in users.items()]
    client = admin.AdminClient({"bootstrap.servers": bootstrap_server, "log_level": 0})
    # A broker that was the controller, or has just ended, answers so; the request may be sent again.
    passing, ends = {KafkaError.NOT_CONTROLLER, KafkaError._TRANSPORT}, time.monotonic() + SCRAM_WITHIN_S  # noqa: SLF001
    while True:
        left_s = max(ends - time.monotonic(), 1.0)
        try:
            for asked in client.alter_user_scram_credentials(wanted, request_timeout=left_s).values():
                librdkafka.answer_of_controller(client, asked, left_s)
        except KafkaException as failed:
            if failed.args[0].code() in passing and time.monotonic() < ends:
                time.sleep(SCRAM_PAUSE_S)
                continue
            raise Unavailable(
                f"The sandbox's users could not be created: {failed.args[0].str()}.", hint="Read its brokers' logs."
            ) from failed
        return

"""Who we are to the cluster and whom we trust: one value that drives every client.

``Security`` is read from Kafka client properties (a file, a mapping of settings, or the environment), in the Java
client's names or librdkafka's.  It is the only place that knows how confluent-kafka, kafka-python and kazoo spell the same
thing.  Secrets are kept out of ``repr`` and scrubbed from messages by ``redact``.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ballast.adapters.auth.oauth import PROXY, ClientCredentials, Token, TokenSource, token_from_file, unsecured_token
from ballast.adapters.auth.pem import Pem, client_context
from ballast.adapters.auth.properties import follow_references, read_properties
from ballast.errors import UsageError

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
ENVIRONMENT_PREFIX: Final = "BALLAST_KAFKA_"
"""``BALLAST_KAFKA_SASL_JAAS_CONFIG`` is the property ``sasl.jaas.config``."""

_ENTRY: Final = re.compile(
    r"^\s*(?P<module>[\w.$]+)\s+(?P<flag>required|requisite|sufficient|optional)\b(?P<options>.*)$",
    re.DOTALL | re.IGNORECASE,
)
_OPTION: Final = re.compile(r"""\s*([\w.\-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""", re.DOTALL)
_READ: Final = ("security.protocol", "sasl.", "ssl.", "zookeeper.", "ballast.")
"""How the names of all properties begin that are read here; what others refer to is not looked at."""
_HIDDEN: Final = "********"
_CREDENTIALS: Final = "sasl.oauthbearer.client.credentials.client"


@dataclass(frozen=True, kw_only=True)
class Security:
    """How to reach one cluster; the default is a plain connection without a name."""

    protocol: str = "PLAINTEXT"
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    mechanism: str | None = None
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; None without SASL."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    fetch_token: Callable[[], Token] | None = field(default=None, repr=False)
    """OAUTHBEARER: how to get a new token."""
    trusted: Pem | None = None
    """Certificates to trust; None trusts the system's."""
    certificate: Pem | None = None
    """The client's own certificate chain (mutual TLS)."""
    key: Pem | None = field(default=None, repr=False)
    """Its private key; None when the chain's text holds it."""
    key_password: str | None = field(default=None, repr=False)
    verify_hostname: bool = True
    """False when ``ssl.endpoint.identification.algorithm`` is set to nothing."""
    zookeeper: ZooKeeperSecurity | None = None
    """None: ZooKeeper is spoken to in plain text and without a name."""
    files: frozenset[Path] = field(default=frozenset(), compare=False)
    """Every file that the properties name: what is renewed in them is to be used."""

    @classmethod
    def from_file(cls, path: Path) -> Security:
        """Read a Kafka client properties file."""
        return cls.from_properties(read_properties(path))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Security:
        """Read the properties that variables with ``ENVIRONMENT_PREFIX`` spell."""
        cut = len(ENVIRONMENT_PREFIX)
        return cls.from_properties(
            {k[cut:].lower().replace("_", "."): v for k, v in environment.items() if k.startswith(ENVIRONMENT_PREFIX)}
        )

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Security:
        """Read Kafka client properties; what has nothing to do with security is left alone."""
        properties, referred = follow_references({k: v for k, v in properties.items() if k.startswith(_READ)})
        protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
        if protocol not in PROTOCOLS:
            raise UsageError(
                f"security.protocol is {protocol!r}, which Kafka does not know.",
                hint=f"Use one of {', '.join(PROTOCOLS)}.",
            )
        sasl = _sasl(properties) if protocol.startswith("SASL") else {}
        tls = _tls(properties) if protocol.endswith("SSL") else {}
        return cls(
            protocol=protocol,
            zookeeper=_zookeeper(properties),
            files=referred | _locations(properties),
            **sasl,
            **tls,
        )

    @property
    def uses_tls(self) -> bool:
        """Connections to brokers are encrypted."""
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """Connections to brokers log in."""
        return self.protocol.startswith("SASL")

    @cached_property
    def tokens(self) -> TokenSource | None:
        """The token source that all clients share."""
        return None if self.fetch_token is None else TokenSource(self.fetch_token)

    def tls_context(self) -> ssl.SSLContext | None:
        """A fresh context, None without TLS."""
        if not self.uses_tls:
            return None
        return client_context(
            trusted=self.trusted,
            certificate=self.certificate,
            key=self.key,
            key_password=self.key_password,
            verify_hostname=self.verify_hostname,
        )

    def for_confluent(self) -> dict[str, Any]:
        """The configuration of librdkafka."""
        out: dict[str, Any] = {"security.protocol": self.protocol}
        if self.uses_tls:
            self.tls_context()  # librdkafka reports unreadable material in riddles; this raises the clear sentence.
            out["ssl.endpoint.identification.algorithm"] = "https" if self.verify_hostname else "none"
            if self.trusted is not None:
                out["ssl.ca.pem"] = self.trusted.read()
            if self.certificate is not None:
                out["ssl.certificate.pem"] = self.certificate.read()
                out["ssl.key.pem"] = (self.key or self.certificate).read()
                if self.key_password:
                    out["ssl.key.password"] = self.key_password
        if self.mechanism is not None:
            out["sasl.mechanism"] = self.mechanism
            if self.tokens is None:
                out |= {"sasl.username": self.username, "sasl.password": self.password}
            else:
                out["oauth_cb"] = _confluent_token(self.tokens)
        return out

    def for_kafka_python(self) -> dict[str, Any]:
        """kafka-python's configuration, without the token provider, whose base class only the adapter may import."""
        out: dict[str, Any] = {"security_protocol": self.protocol, "ssl_context": self.tls_context()}
        if self.mechanism is not None:
            out["sasl_mechanism"] = self.mechanism
            if self.tokens is None:
                out |= {"sasl_plain_username": self.username, "sasl_plain_password": self.password}
        return out

    def redact(self, text: str) -> str:
        """The text without any of our secrets, for messages that a client library wrote."""
        token = self.tokens.held if self.tokens is not None else None
        secrets = [self.password, self.key_password, token.value if token is not None else None]
        if self.zookeeper is not None:
            secrets += [self.zookeeper.password, self.zookeeper.key_password]
        for secret in filter(None, secrets):
            text = text.replace(secret, _HIDDEN)
        return text


@dataclass(frozen=True, kw_only=True)
class ZooKeeperSecurity:
    """TLS and digest login towards ZooKeeper, in the names of Kafka's ``--zk-tls-config-file``."""

    tls: bool = False
    trusted: Pem | None = None
    certificate: Pem | None = None
    key_password: str | None = field(default=None, repr=False)
    verify_hostname: bool = True
    username: str | None = None
    """For znodes whose ACL names a digest user (``zookeeper.digest.username``)."""
    password: str | None = field(default=None, repr=False)


def _confluent_token(tokens: TokenSource) -> Callable[[str], tuple[str, float]]:
    def fetch(_configuration: str) -> tuple[str, float]:
        token = tokens.token()
        return token.value, token.expires_at_s

    return fetch


def _sasl(properties: Mapping[str, str]) -> dict[str, Any]:
    mechanism = (properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or "GSSAPI").strip().upper()
    if mechanism == "GSSAPI":
        raise UsageError(
            "The client properties ask for SASL with Kerberos (GSSAPI, Kafka's default), which Ballast does not support.",
            hint=f"Set sasl.mechanism to one of {', '.join(MECHANISMS)}.",
        )
    if mechanism not in MECHANISMS:
        raise UsageError(
            f"sasl.mechanism is {mechanism!r}, which Ballast does not support.",
            hint=f"Use one of {', '.join(MECHANISMS)}.",
        )
    jaas = parse_jaas(properties["sasl.jaas.config"]) if properties.get("sasl.jaas.config") else None
    if mechanism == "OAUTHBEARER":
        return {"mechanism": mechanism, "fetch_token": _token_fetcher(properties, jaas)}
    options = jaas.options if jaas else {}
    username = options.get("username") or properties.get("sasl.username")
    password = options.get("password") or properties.get("sasl.password")
    if not username or password is None:
        raise UsageError(
            f"The client properties ask for {mechanism} but give no username and password.",
            hint='Set sasl.jaas.config to: <login module> required username="…" password="…";',
        )
    return {"mechanism": mechanism, "username": username, "password": password}


def _token_fetcher(properties: Mapping[str, str], jaas: JaasEntry | None) -> Callable[[], Token]:
    options = jaas.options if jaas else {}
    unsecured = "unsecuredLoginStringClaim_"
    claims = {k[len(unsecured) :]: v for k, v in options.items() if k.startswith(unsecured)}
    if claims:
        return lambda: unsecured_token(claims)
    endpoint = properties.get("sasl.oauthbearer.token.endpoint.url", "").strip()
    scheme = endpoint.partition(":")[0].lower()
    if scheme == "file":
        path = Path(unquote(urlsplit(endpoint).path))
        return lambda: token_from_file(path)
    client_id = _first(properties, f"{_CREDENTIALS}.id", options.get("clientId"), "sasl.oauthbearer.client.id")
    secret = _first(properties, f"{_CREDENTIALS}.secret", options.get("clientSecret"), "sasl.oauthbearer.client.secret")
    if not endpoint or not client_id or not secret:
        raise UsageError(
            "The client properties ask for OAUTHBEARER but do not say where the token comes from, or who asks for it.",
            hint=f"Set sasl.oauthbearer.token.endpoint.url, {_CREDENTIALS}.id and {_CREDENTIALS}.secret.",
        )
    scope = properties.get("sasl.oauthbearer.scope") or options.get("scope")
    url_encoded = properties.get("sasl.oauthbearer.header.urlencode", "false").strip().lower() == "true"
    trusted = _pem(properties, "ssl.truststore", "ssl.ca", "trusted certificates")
    tls = (
        client_context(trusted=trusted, certificate=None, key=None, key_password=None, verify_hostname=True)
        if scheme == "https"
        else None
    )
    proxy = properties.get(PROXY, "").strip() or None
    return ClientCredentials(endpoint, client_id, secret, scope, url_encoded=url_encoded, tls=tls, proxy=proxy).fetch


def _locations(properties: Mapping[str, str]) -> frozenset[Path]:
    """The files that stand in the properties: stores, certificates, keys."""
    return frozenset(
        Path(value).expanduser() for name, value in properties.items() if name.endswith(".location") and value
    )


def _first(properties: Mapping[str, str], newest: str, of_jaas: str | None, of_librdkafka: str) -> str | None:
    """One thing under its three names; Kafka's own order."""
    return properties.get(newest) or of_jaas or properties.get(of_librdkafka)


def _tls(properties: Mapping[str, str]) -> dict[str, Any]:
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    return {
        "trusted": _pem(properties, "ssl.truststore", "ssl.ca", "trusted certificates"),
        "certificate": _pem(properties, "ssl.keystore", "ssl.certificate", "client certificate"),
        "key": _key(properties),
        "key_password": properties.get("ssl.key.password") or None,
        "verify_hostname": algorithm not in {"", "none"},
    }


def _pem(properties: Mapping[str, str], java: str, librdkafka: str, what: str) -> Pem | None:
    """Text or file under the Java name of a store, else under librdkafka's."""
    inline = properties.get(f"{java}.certificates") or properties.get(f"{java}.certificate.chain")
    inline = inline or properties.get(f"{librdkafka}.pem")
    location = properties.get(f"{java}.location") or properties.get(f"{librdkafka}.location")
    if inline:
        # A property is one line: some tools write the line breaks of PEM as backslash-n.
        return Pem(text=inline.replace("\\n", "\n"), what=what)
    if not location:
        return None
    kind = properties.get(f"{java}.type", "").strip().upper()
    path = Path(location).expanduser()
    if kind in {"JKS", "PKCS12"}:
        raise UsageError(
            f"{java}.type is {kind}, which only Java can read.",
            hint=(
                f"Make it PEM (keytool -importkeystore -srckeystore {path} -destkeystore store.p12 -deststoretype PKCS12; "
                f"openssl pkcs12 -in store.p12 -out store.pem), then set {java}.type=PEM and {java}.location=store.pem."
            ),
        )
    return Pem(path=path, what=what)


def _key(properties: Mapping[str, str]) -> Pem | None:
    inline = properties.get("ssl.keystore.key") or properties.get("ssl.key.pem")
    if inline:
        return Pem(text=inline.replace("\\n", "\n"), what="client key")
    location = properties.get("ssl.key.location")
    return Pem(path=Path(location).expanduser(), what="client key") if location else None


def _zookeeper(properties: Mapping[str, str]) -> ZooKeeperSecurity | None:
    tls = properties.get("zookeeper.ssl.client.enable", "false").strip().lower() == "true"
    username = properties.get("zookeeper.digest.username")
    if not tls and not username:
        return None
    return ZooKeeperSecurity(
        tls=tls,
        trusted=_pem(properties, "zookeeper.ssl.truststore", "zookeeper.ssl.ca", "certificates trusted for ZooKeeper"),
        certificate=_pem(
            properties, "zookeeper.ssl.keystore", "zookeeper.ssl.certificate", "certificate for ZooKeeper"
        ),
        key_password=properties.get("zookeeper.ssl.keystore.password") or None,
        verify_hostname=properties.get("zookeeper.ssl.endpoint.identification.algorithm", "https").lower()
        not in {"", "none"},
        username=username,
        password=properties.get("zookeeper.digest.password"),
    )


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module and its options; the options hold secrets, so they stay out of ``repr``."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry(module={self.module!r}, options=<{len(self.options)} hidden>)"


def parse_jaas(text: str) -> JaasEntry:
    """The entry in a ``sasl.jaas.config`` value; errors never repeat the value, which holds a password.

    ``<module class> required key="value" … ;`` Values may be quoted either way, with backslash escapes, or bare.
    """
    entry = _ENTRY.match(text)
    if entry is None:
        raise UsageError(
            "sasl.jaas.config does not start with a login module and 'required'.",
            hint='It reads: org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";',
        )
    rest = entry["options"]
    options: dict[str, str] = {}
    at = 0
    while match := _OPTION.match(rest, at):
        options[match[1]] = _unquote_option(match[2])
        at = match.end()
    if rest[at:].strip() not in ("", ";"):
        raise UsageError(
            f"sasl.jaas.config cannot be read after its option number {len(options)}.",
            hint='Quote each value and end the entry with a semicolon: key="value" key="value";',
        )
    return JaasEntry(entry["module"], options)


def _unquote_option(value: str) -> str:
    if value[0] not in "\"'":
        return value
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL)

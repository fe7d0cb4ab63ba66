"""Finds out, without any client library, why a bootstrap server does not serve us.

Client libraries answer every failed start with a timeout.  This module connects by itself: it resolves the name, connects,
shakes hands in TLS where that is asked for, and sends the two harmless requests every Kafka broker answers.  The first step
that fails names the cause and the remedy.
"""

from __future__ import annotations

import queue
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ballast.adapters.auth.sasl import dialogue
from ballast.adapters.auth.security import Security
from ballast.errors import AuthenticationFailed, Unavailable, UsageError

ANSWER_TIMEOUT_S: Final = 5.0
"""Longest wait for one step of one server."""
NEXT_SERVER_S: Final = 0.5
"""A server that has said nothing for so long is waited for beside the next one."""
_WRONG_NAME: Final = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""
_API_VERSIONS: Final = 18
_METADATA: Final = 3
_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36
_VERSIONS: Final = {_API_VERSIONS: 0, _METADATA: 1, _SASL_HANDSHAKE: 1, _SASL_AUTHENTICATE: 0}
"""The oldest form of each request that says what we need; all are the plain encoding from before KIP-482."""
_TLS_ALERT: Final = 21
_TLS_HINT: Final = (
    "Give --command-config a properties file with security.protocol=SSL (or SASL_SSL) and the trusted certificates."
)
_SASL_HINT: Final = (
    "Give --command-config a properties file with security.protocol, sasl.mechanism and sasl.jaas.config."
)


def parse_servers(text: str) -> list[tuple[str, int]]:
    """``host:port,[::1]:port,…``; raises ``UsageError`` on anything else."""
    servers: list[tuple[str, int]] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        host, _, port = part.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise UsageError(
                f"{part!r} is not a bootstrap server.", hint="Write HOST:PORT, several separated by commas."
            )
        servers.append((host, int(port)))
    if not servers:
        raise UsageError("The list of bootstrap servers is empty.", hint="Give --bootstrap-server HOST:PORT.")
    return servers


class NotServed(Unavailable):
    """None of the servers that a person named lets us in."""


def first_to_answer(
    servers: Sequence[tuple[str, int]], security: Security, *, timeout_s: float = ANSWER_TIMEOUT_S
) -> tuple[str, int]:
    """The first server that behaves like a broker; where there is none, raise what is wrong with the first of all.

    Servers are tried in their order, the next one as soon as the one before has failed or said nothing for
    ``NEXT_SERVER_S``: frozen ones cost their wait once, not one after another.
    """
    context = security.tls_context()
    tried: queue.SimpleQueue[tuple[int, BaseException | None]] = queue.SimpleQueue()

    def attempt(number: int) -> None:
        try:
            _try_server(*servers[number], context, security, timeout_s)
        except BaseException as failure:  # noqa: BLE001 — it is raised again where it is waited for
            tried.put((number, failure))
        else:
            tried.put((number, None))

    failures: dict[int, Unavailable] = {}
    begun = 0
    while len(failures) < len(servers):
        if begun < len(servers):
            threading.Thread(target=attempt, args=(begun,), name="ballast-first-answer", daemon=True).start()
            begun += 1
        try:
            number, failure = tried.get(timeout=NEXT_SERVER_S if begun < len(servers) else None)
        except queue.Empty:
            continue
        if failure is None:
            return servers[number]
        if not isinstance(failure, Unavailable):
            raise failure
        failures[number] = failure
    first = failures[0]
    if not first.retryable:
        raise first
    raise NotServed(first.message, hint=first.hint)


def _try_server(host: str, port: int, context: ssl.SSLContext | None, security: Security, timeout_s: float) -> None:
    where = f"{host}:{port}"
    with _connect(host, port, where, timeout_s) as plain:
        channel = plain if context is None else _start_tls(plain, context, host, where)
        with channel:
            answer = _ask(channel, _API_VERSIONS, b"", where)
            if answer is None:
                raise Unavailable(
                    f"{where} closed the connection (security.protocol={security.protocol}).",
                    hint="Check that it is a broker's client port and that security.protocol is right.",
                )
            if security.uses_sasl:
                _log_in(channel, security, where)
            elif _ask(channel, _METADATA, struct.pack(">i", 0), where) is None:
                raise AuthenticationFailed(f"{where} requires SASL authentication.", hint=_SASL_HINT)


def _log_in(channel: socket.socket, security: Security, where: str) -> None:
    """Log in as a client would; what the server says about a refusal is lost by clients that only see it hang up."""
    assert security.mechanism is not None
    answer = _ask(channel, _SASL_HANDSHAKE, _text(security.mechanism), where)
    if answer is None or _code(answer):
        raise no_such_mechanism(security)
    talk = dialogue(security)
    message: bytes | None = next(talk)
    while message is not None:
        answer = _ask(channel, _SASL_AUTHENTICATE, struct.pack(">i", len(message)) + message, where)
        if answer is None or _code(answer):
            raise login_refused(security)
        try:
            message = talk.send(_sasl_bytes(answer))
        except StopIteration:
            message = None


def no_such_mechanism(security: Security) -> AuthenticationFailed:
    """The listener has not enabled our mechanism."""
    return AuthenticationFailed(
        f"The cluster does not offer the SASL mechanism {security.mechanism}.",
        hint="Set sasl.mechanism to one that its listener has enabled.",
    )


def login_refused(security: Security) -> AuthenticationFailed:
    """The listener rejected the credentials."""
    if security.tokens is not None:
        return AuthenticationFailed(
            "The cluster rejected the OAuth token.",
            hint="Check the token's issuer, audience and scope against what the brokers expect.",
        )
    return AuthenticationFailed(
        f"The cluster rejected the user {security.username} with the password given.",
        hint="Check username, password and sasl.mechanism in the client properties.",
    )


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _code(answer: bytes) -> int:
    """The error code, which follows the correlation id."""
    return int(struct.unpack_from(">h", answer, 4)[0])


def _sasl_bytes(answer: bytes) -> bytes:
    """The server's part of the dialogue: after the correlation id, the error code and the error message."""
    length = struct.unpack_from(">h", answer, 6)[0]
    at = 8 + max(length, 0)
    size = struct.unpack_from(">i", answer, at)[0]
    return answer[at + 4 : at + 4 + max(size, 0)]


@contextmanager
def _connect(host: str, port: int, where: str, timeout_s: float) -> Iterator[socket.socket]:
    try:
        channel = socket.create_connection((host, port), timeout=timeout_s)
    except socket.gaierror:
        raise Unavailable(
            f"The host name {host} is not known.", hint="Check --bootstrap-server for a typing error."
        ) from None
    except TimeoutError:
        raise Unavailable(
            f"{where} did not accept a connection within {timeout_s:g} s.",
            hint="Check the address, firewalls and network policies.",
        ) from None
    except ConnectionRefusedError:
        raise Unavailable(
            f"Connection refused at {where}.", hint="Check the address and whether the broker runs."
        ) from None
    except OSError as failure:
        raise Unavailable(f"{where} cannot be reached: {failure.strerror or failure}.") from None
    with channel:
        yield channel


def _start_tls(plain: socket.socket, context: ssl.SSLContext, host: str, where: str) -> ssl.SSLSocket:
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as failure:
        reason = failure.verify_message or failure.reason
        if failure.verify_code in _WRONG_NAME:
            hint = "Use the name that the certificate holds, or set ssl.endpoint.identification.algorithm= (empty)."
        else:
            hint = "Name the authority that signed it as ssl.truststore.location with ssl.truststore.type=PEM."
        raise AuthenticationFailed(f"The certificate of {where} is not trusted: {reason}.", hint=hint) from None
    except TimeoutError:
        raise Unavailable(
            f"{where} accepts connections, and the TLS handshake timed out.",
            hint="Check that the port is a TLS listener.",
        ) from None
    except (ssl.SSLError, OSError):
        raise Unavailable(
            f"The TLS handshake with {where} failed.",
            hint="Check the port, or set security.protocol to PLAINTEXT or SASL_PLAINTEXT.",
        ) from None


def _ask(channel: socket.socket, api: int, body: bytes, where: str) -> bytes | None:
    """Send one request of the oldest version; None when the server hangs up."""
    client = b"ballast"
    request = struct.pack(">hhih", api, _VERSIONS[api], 1, len(client)) + client + body
    try:
        channel.sendall(struct.pack(">i", len(request)) + request)
        head = _receive(channel, 5)
    except TimeoutError:
        raise Unavailable(
            f"{where} accepts connections but does not answer.",
            hint="The broker may be starting, frozen or overloaded.",
        ) from None
    except ssl.SSLError as failure:
        # In TLS 1.3 a server judges the client's certificate after the handshake, so that its refusal comes with the first read.
        raise AuthenticationFailed(
            f"{where} rejected the client certificate: {failure.reason or failure}.",
            hint="Set ssl.keystore.location (PEM) to a certificate and key that the brokers trust.",
        ) from None
    except OSError:
        return None
    if len(head) < 5:
        if head[:1] and head[0] == _TLS_ALERT:
            raise Unavailable(f"{where} is a TLS listener, and the client connected without TLS.", hint=_TLS_HINT)
        return None
    if head[0] == _TLS_ALERT and head[1] == 3:
        raise Unavailable(f"{where} is a TLS listener, and the client connected without TLS.", hint=_TLS_HINT)
    length = struct.unpack(">i", head[:4])[0]
    if not 4 <= length <= 100_000_000:
        raise Unavailable(
            f"{where} did not answer in Kafka's protocol.", hint="Check that it is a broker's client port."
        )
    try:
        return head[4:] + _receive(channel, length - 1)
    except OSError:
        return None


def _receive(channel: socket.socket, length: int) -> bytes:
    """Up to ``length`` bytes; fewer when the server hangs up."""
    out = bytearray()
    while len(out) < length:
        piece = channel.recv(min(65536, length - len(out)))
        if not piece:
            break
        out += piece
    return bytes(out)

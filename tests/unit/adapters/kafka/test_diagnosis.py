"""Why a bootstrap server does not serve us is told in one sentence, found by connecting to it."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ballast.adapters.auth.security import Security
from ballast.adapters.kafka.diagnosis import NotServed, first_to_answer, parse_servers
from ballast.errors import AuthenticationFailed, Unavailable, UsageError

Serve = Callable[[socket.socket], None]


@contextmanager
def server(serve: Serve) -> Iterator[tuple[str, int]]:
    """A server on the loopback that treats each connection like this."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                serve(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[:2]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def request(connection: socket.socket) -> bytes:
    """One request of the client; empty when it is gone."""
    head = connection.recv(4, socket.MSG_WAITALL)
    return connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL) if len(head) == 4 else b""


def answer(connection: socket.socket) -> None:
    """Any well-framed answer."""
    connection.sendall(struct.pack(">ii", 10, 1) + bytes(6))


def broker(connection: socket.socket) -> None:
    """Answers everything."""
    while request(connection):
        answer(connection)


def wants_login(connection: socket.socket) -> None:
    """Answers ApiVersions and hangs up on all else, as a SASL listener does."""
    request(connection)
    answer(connection)
    request(connection)


def hangs_up(connection: socket.socket) -> None:
    """Hangs up on the first request, as a listener of another protocol does."""
    request(connection)


def refuses_sizes(connection: socket.socket) -> None:
    """Hangs up on what is no framed request, as a plain broker does on a TLS greeting."""
    connection.recv(4)


def tls(connection: socket.socket) -> None:
    """Answers plain text with a TLS alert."""
    connection.recv(4)
    connection.sendall(b"\x15\x03\x03\x00\x02\x02\x50")


def web(connection: socket.socket) -> None:
    """Answers as a web server does."""
    connection.recv(4)
    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


def silent(connection: socket.socket) -> None:
    """Takes the request and never answers."""
    while connection.recv(1024):
        pass


def test_a_broker_that_answers_is_enough() -> None:
    """One good server among bad ones is all that is needed."""
    with server(broker) as good:
        assert first_to_answer([("127.0.0.1", 1), good], Security(), timeout_s=5) == good


def test_a_frozen_server_is_not_waited_for_where_another_answers() -> None:
    """The next one is tried beside it: the answer is there while the frozen one could still give its own."""
    given_up = threading.Event()

    def frozen(connection: socket.socket) -> None:
        silent(connection)
        given_up.set()

    with server(frozen) as first, server(broker) as second:
        assert first_to_answer([first, second], Security(), timeout_s=600) == second
        assert not given_up.is_set()


def test_frozen_servers_are_waited_for_side_by_side() -> None:
    """Each is asked before the first of them has had its time, and what is told is wrong with the first of all."""
    all_asked = threading.Barrier(3, timeout=60)

    def frozen(connection: socket.socket) -> None:
        all_asked.wait()
        silent(connection)

    with server(frozen) as a, server(frozen) as b, server(frozen) as c, pytest.raises(NotServed) as failure:
        first_to_answer([a, b, c], Security(), timeout_s=5)
    assert f"{a[0]}:{a[1]} accepts connections but does not answer" in failure.value.message
    assert not all_asked.broken


@pytest.mark.parametrize(
    ("serve", "kind", "sentence", "hint"),
    [
        (wants_login, AuthenticationFailed, "requires SASL authentication", "sasl.jaas.config"),
        (hangs_up, Unavailable, "closed the connection (security.protocol=PLAINTEXT)", "security.protocol"),
        (tls, Unavailable, "is a TLS listener, and the client connected without TLS", "security.protocol=SSL"),
        (web, Unavailable, "did not answer in Kafka's protocol", "client port"),
        (silent, Unavailable, "accepts connections but does not answer", "frozen"),
    ],
    ids=lambda v: v.__name__ if callable(v) else None,
)
def test_each_kind_of_trouble_has_its_sentence(serve: Serve, kind: type[Exception], sentence: str, hint: str) -> None:
    """What listens there is told from how it behaves."""
    with server(serve) as where, pytest.raises(kind) as failure:
        first_to_answer([where], Security(), timeout_s=0.5)
    assert sentence in failure.value.message  # type: ignore[attr-defined]
    assert hint in failure.value.hint  # type: ignore[attr-defined]


def test_no_process_listens() -> None:
    """A port without a listener is named."""
    with pytest.raises(Unavailable, match=r"Connection refused at 127\.0\.0\.1:1\."):
        first_to_answer([("127.0.0.1", 1)], Security(), timeout_s=5)


def test_plain_text_where_tls_is_wanted() -> None:
    """A TLS client at a plain listener learns that it speaks no TLS."""
    with server(refuses_sizes) as where, pytest.raises(Unavailable, match="The TLS handshake with"):
        first_to_answer([where], Security(protocol="SSL"), timeout_s=2)


@pytest.mark.openssl
@pytest.mark.parametrize(
    ("trusted", "name", "hint"),
    [
        (True, "DNS:kafka.example", "ssl.endpoint.identification.algorithm"),
        (True, "IP:127.0.0.9", "ssl.endpoint.identification.algorithm"),
        (False, "IP:127.0.0.1", "ssl.truststore.location"),
    ],
)
def test_a_wrong_name_is_told_from_an_unknown_authority(trusted: bool, name: str, hint: str, tmp_path: Path) -> None:  # noqa: FBT001
    """By OpenSSL's code of the failure, whatever words it has for it."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [
        *(
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            str(key),
        ),
        *("-out", str(certificate), "-days", "2", "-subj", "/CN=broker", "-addext", f"subjectAltName={name}"),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def handshake(connection: socket.socket) -> None:
        with suppress(OSError):
            context.wrap_socket(connection, server_side=True)

    stores = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificate)} if trusted else {}
    security = Security.from_properties({"security.protocol": "SSL", **stores})
    with server(handshake) as where, pytest.raises(AuthenticationFailed, match="is not trusted") as failure:
        first_to_answer([where], security, timeout_s=5)
    assert hint in (failure.value.hint or "")


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("a:1", [("a", 1)]),
        (" a:1 ,b.c:65535,", [("a", 1), ("b.c", 65535)]),
        ("[::1]:9092", [("::1", 9092)]),
    ],
)
def test_bootstrap_servers_are_hosts_and_ports(text: str, servers: list[tuple[str, int]]) -> None:
    """Several, with spaces, and IPv6 in brackets."""
    assert parse_servers(text) == servers


@pytest.mark.parametrize("text", ["", " , ", "host", "host:", ":9092", "host:0", "host:65536", "host:port"])
def test_what_is_no_bootstrap_server_is_refused(text: str) -> None:
    """The person learns what to write."""
    with pytest.raises(UsageError) as failure:
        parse_servers(text)
    assert failure.value.hint

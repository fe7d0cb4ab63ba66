"""A proxy for the token endpoint: none unless it is named, and then it leads there and is shown nothing."""

from __future__ import annotations

import base64
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.token_server import TokenServer, say

from ballast.adapters.auth.oauth import PROXY
from ballast.adapters.auth.security import Security
from ballast.errors import BallastError, UsageError

pytestmark = pytest.mark.openssl

SECRET = "s3cr3t of ours"  # noqa: S105 — of this test


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Servers of a test; ended with it."""
    with ExitStack() as servers:
        yield servers


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A certificate of localhost that signs itself, and its key beside it."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-keyout", "tls.key", "-out", "tls.crt", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-days", "2"],
        cwd=tmp_path, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    return tmp_path / "tls.crt"


def serve(stack: ExitStack, handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> int:
    """A server on the loopback; its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    return int(server.server_address[1])


@pytest.fixture
def endpoint(stack: ExitStack, authority: Path) -> str:
    """A token endpoint that speaks TLS."""
    tokens = TokenServer("", clients={"ballast": SECRET})

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = dict(p.split("=") for p in self.rfile.read(int(self.headers["Content-Length"])).decode().split("&"))
            say(self, *tokens.grant(self.headers["Authorization"], body))

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, authority.with_suffix(".key"))
    return f"https://localhost:{serve(stack, Handler, context)}/token"


@pytest.fixture
def seen() -> list[bytes]:
    """Everything that the proxy was shown: its requests, and the bytes that went through it."""
    return []


@pytest.fixture
def proxy(stack: ExitStack, seen: list[bytes]) -> int:
    """A proxy that connects every client that asks for it."""

    class Proxy(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            seen.append(f"{self.requestline}\n{self.headers}".encode())
            host, _, port = self.path.rpartition(":")
            with socket.create_connection((host, int(port)), timeout=10) as far:
                self.send_response(200)
                self.end_headers()
                back = threading.Thread(target=pass_on, args=(far, self.connection, lambda _: None), daemon=True)
                back.start()
                pass_on(self.connection, far, seen.append)
                back.join(10)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    return serve(stack, Proxy)


def pass_on(source: socket.socket, target: socket.socket, look: Callable[[bytes], None]) -> None:
    """Every byte, until one side hangs up."""
    with suppress(OSError):
        while data := source.recv(65_536):
            look(data)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def token(endpoint: str, authority: Path, proxy: str | None) -> str:
    """What a client with these properties is given."""
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": endpoint,
        "sasl.oauthbearer.client.credentials.client.id": "ballast",
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority),
    } | ({} if proxy is None else {PROXY: proxy})
    security = Security.from_properties(properties)
    assert "open-sesame" not in repr(security)
    assert security.tokens is not None
    return security.tokens.token().value


def test_a_named_proxy_leads_to_the_endpoint_and_sees_no_secret(
    endpoint: str, authority: Path, proxy: int, seen: list[bytes]
) -> None:
    """It is asked to connect, with its own user and password; the rest is TLS with the endpoint."""
    assert token(endpoint, authority, f"http://me:open-sesame@127.0.0.1:{proxy}").count(".") == 2
    assert seen[0].startswith(f"CONNECT {endpoint.removeprefix('https://').removesuffix('/token')} ".encode())
    assert base64.b64encode(b"me:open-sesame") in seen[0]
    secret = base64.b64encode(f"ballast:{SECRET}".encode())
    assert not any(secret in part or SECRET.encode() in part for part in seen)


def test_no_proxy_is_used_that_is_not_named(
    endpoint: str, authority: Path, proxy: int, seen: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the environment says of https."""
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
    monkeypatch.setenv("no_proxy", "")
    assert token(endpoint, authority, None)
    assert seen == []


def test_a_proxy_that_is_away_is_a_failure_and_never_passed_by(endpoint: str, authority: Path) -> None:
    """Who names one has a reason."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(BallastError):
            token(endpoint, authority, f"http://127.0.0.1:{taken.getsockname()[1]}")


@pytest.mark.parametrize(
    ("address", "proxy"),
    [
        ("http://127.0.0.1:1/token", "http://127.0.0.1:2"),
        ("https://localhost:1/token", "https://127.0.0.1:2"),
        ("https://localhost:1/token", "127.0.0.1:2"),
        ("https://localhost:1/token", "http://me:open-sesame@127.0.0.1:x"),
        ("https://localhost:1/token", "http://me:open-sesame@127.0.0.1"),
    ],
)
def test_what_cannot_be_a_proxy_is_refused_before_anything_is_sent(authority: Path, address: str, proxy: str) -> None:
    """And the sentence does not repeat it, since a password may stand in it."""
    with pytest.raises(UsageError) as refusal:
        token(address, authority, proxy)
    assert "open-sesame" not in str(refusal.value)

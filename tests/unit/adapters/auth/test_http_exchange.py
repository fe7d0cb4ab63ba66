"""An HTTP exchange over TLS: answered, and ended from outside while the other side keeps it waiting."""

from __future__ import annotations

import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from ballast.adapters.auth.http_exchange import Exchange

pytestmark = pytest.mark.openssl


class Server:
    """Answers ``/`` and drips for ever on every other path."""

    def __init__(self, folder: Path) -> None:
        key, self.certificate = folder / "key.pem", folder / "cert.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-keyout", str(key), "-out", str(self.certificate), "-days", "2", "-subj", "/CN=tokens",
             "-addext", "subjectAltName=IP:127.0.0.1"],
            check=True, capture_output=True,
        )  # fmt: skip
        self.dripping, self.over = threading.Event(), threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\nhello")
                while self.path != "/" and not server.over.wait(0.02):
                    server.dripping.set()
                    self.wfile.write(b".")

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the base class named it
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.handle_error = lambda *_: None  # type: ignore[method-assign] # clients hang up here
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def get(self, exchange: Exchange, path: str, *, trusted: bool = True) -> bytes:
        """One request through the exchange."""
        tls = ssl.create_default_context(cafile=str(self.certificate)) if trusted else None
        with urllib.request.build_opener(*exchange.handlers(tls)).open(self.url + path, timeout=60) as answer:
            return bytes(answer.read())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """It listens until the test is over."""
    started = Server(tmp_path)
    yield started
    started.over.set()
    started.http.shutdown()
    started.http.server_close()


def test_an_answer_comes_through_and_ending_it_does_no_harm(server: Server) -> None:
    """As without an exchange; ending it twice is one end."""
    exchange = Exchange()
    assert server.get(exchange, "/") == b"hello"
    exchange.end()
    exchange.end()


def test_a_reader_that_is_kept_waiting_is_disconnected(server: Server) -> None:
    """Within TLS as well, and with an error that is one of sockets."""
    exchange, ends = Exchange(), list[BaseException | bytes]()

    def read() -> None:
        try:
            ends.append(server.get(exchange, "/drip"))
        except OSError as failure:
            ends.append(failure)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    until(server.dripping.is_set)
    exchange.end()
    reader.join(60)
    assert not reader.is_alive()
    assert not server.over.is_set()


def test_nothing_is_asked_once_it_is_over(server: Server) -> None:
    """A name that took long to resolve leads to no request once its caller has given up."""
    exchange = Exchange()
    exchange.end()
    with pytest.raises(urllib.error.URLError, match="time of this exchange is over"):
        server.get(exchange, "/")


def test_certificates_are_checked(server: Server) -> None:
    """Without a trust of its own it is the system's."""
    with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
        server.get(Exchange(), "/", trusted=False)

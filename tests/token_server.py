"""An OAuth token endpoint on the loopback: client credentials in, signed tokens out, and the keys that brokers check them with.

It answers wrongly as well: with another status, with nonsense, slowly or not at all, as a test tells it to.
"""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

ISSUER = "ballast-tests"
AUDIENCE = "kafka"
EXPONENT = 65537

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class TokenServer:
    """What the server knows, and what it was asked."""

    url: str
    clients: dict[str, str] = field(default_factory=lambda: {"ballast": "s3cr3t/+ of ours"})
    life_s: float = 3600.0
    audience: str = AUDIENCE
    key: SigningKey | None = None
    asked: list[dict[str, str]] = field(default_factory=list)
    """The forms of the requests that were granted, and the header they came with."""
    instead: Answer | None = None
    """Answers requests for tokens, where set."""

    @property
    def endpoint(self) -> str:
        """Where tokens are asked for."""
        return f"{self.url}/token"

    @property
    def keys(self) -> str:
        """Where brokers find the keys."""
        return f"{self.url}/keys"

    def properties(self, secret: str | None = None, client: str = "ballast") -> dict[str, str]:
        """Client properties in Kafka's own names."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": self.endpoint,
            "sasl.oauthbearer.client.credentials.client.id": client,
            "sasl.oauthbearer.client.credentials.client.secret": secret or self.clients[client],
        }

    def grant(self, header: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Status and answer for one request."""
        given = base64.b64decode(header.removeprefix("Basic ")).decode()
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        client, _, secret = given.partition(":")
        if self.clients.get(client) != secret:
            return 401, {"error": "invalid_client", "error_description": f"not {secret}"}
        self.asked.append({**form, "header": header})
        return 200, {"access_token": self.token(client), "expires_in": self.life_s, "token_type": "Bearer"}

    def token(self, subject: str) -> str:
        """A token of this life, signed where there is a key."""
        now = time.time()
        claims = {"iss": ISSUER, "aud": self.audience, "sub": subject, "iat": int(now), "exp": int(now + self.life_s)}
        if self.key is None:
            return f"{_part({'alg': 'none'})}.{_part(claims)}."
        signed = f"{_part({'alg': 'RS256', 'kid': self.key.name})}.{_part(claims)}"
        return f"{signed}.{_url64(self.key.sign(signed.encode()))}"


@dataclass(frozen=True)
class SigningKey:
    """An RSA key in a file; openssl makes it and signs with it."""

    path: Path
    name: str = "first"

    @classmethod
    def make(cls, folder: Path) -> SigningKey:
        """A new one."""
        path = folder / "signing.pem"
        subprocess.run(["openssl", "genrsa", "-out", str(path), "2048"], check=True, capture_output=True, timeout=60)
        return cls(path)

    def sign(self, what: bytes) -> bytes:
        """RSASSA-PKCS1-v1_5 with SHA-256."""
        command = ["openssl", "dgst", "-sha256", "-sign", str(self.path)]
        return subprocess.run(command, input=what, check=True, capture_output=True, timeout=60).stdout

    def published(self) -> dict[str, str]:
        """The public half as brokers read it (RFC 7517)."""
        command = ["openssl", "rsa", "-in", str(self.path), "-noout", "-modulus"]
        told = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout.decode()
        modulus = bytes.fromhex(told.strip().partition("=")[2])
        return {
            "kty": "RSA",
            "use": "sig",
            "alg": "RS256",
            "kid": self.name,
            "n": _url64(modulus),
            "e": _url64(EXPONENT.to_bytes(3, "big")),
        }


@contextmanager
def token_server(key: SigningKey | None = None, *, life_s: float = 3600.0) -> Iterator[TokenServer]:
    """A server for the test's time."""
    published = {"keys": [key.published()] if key is not None else []}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            say(self, 200, published)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if server.instead is not None:
                server.instead(self)
                return
            form = {name: values[0] for name, values in parse_qs(body).items()}
            say(self, *server.grant(self.headers["Authorization"], form))

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        server = TokenServer(f"http://127.0.0.1:{httpd.server_address[1]}", life_s=life_s, key=key)
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            httpd.shutdown()
            thread.join()


def say(request: BaseHTTPRequestHandler, status: int, answer: dict[str, Any] | bytes, **headers: str) -> None:
    """Answer a request."""
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def _part(value: dict[str, Any]) -> str:
    return _url64(json.dumps(value).encode())


def _url64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

"""A small HTTPS double of the Kubernetes API, held to the one request that Ballast sends; it is no API server.

It checks address, token and method, and the body against the published schema of ``events.k8s.io/v1`` (strictly: an unknown
field is a refusal), and keeps what the real server would have kept.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import kubernetes_validate

NAMESPACE, TOKEN = "kafka", "token-of-the-pod-1"
OLDEST, NEWEST = "1.25", "1.37"


@dataclass
class EventsApi:
    """The server, and the folder that a pod would have mounted."""

    account: Path
    port: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    requests: int = 0
    allowed: bool = True
    _server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        """Listen on the loopback with a certificate of its own authority."""
        self.account.mkdir()
        (self.account / "token").write_text(TOKEN)
        (self.account / "namespace").write_text(NAMESPACE)
        key = self.account / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-keyout", str(key), "-out", str(self.account / "ca.crt"), "-days", "2", "-subj", "/CN=kubernetes",
             "-addext", "subjectAltName=IP:127.0.0.1"],
            check=True, capture_output=True,
        )  # fmt: skip
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.account / "ca.crt", key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="events-api", daemon=True).start()

    def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def take(self, path: str, token: str, body: bytes) -> tuple[int, str]:
        """Status and message of one POST."""
        self.requests += 1
        if token != f"Bearer {(self.account / 'token').read_text()}":
            return 401, "Unauthorized"
        if path != f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events":
            return 404, "the server could not find the requested resource"
        if not self.allowed:
            who = "system:serviceaccount:kafka:shop-ballast"
            return 403, f'events.events.k8s.io is forbidden: User "{who}" cannot create resource "events"'
        event = json.loads(body)
        for version in (OLDEST, NEWEST):
            kubernetes_validate.validate(event, version, strict=True)
        for name, longest in (("reason", 128), ("action", 128), ("reportingInstance", 128), ("note", 1024)):
            if not 0 < len(event[name].encode()) <= longest:
                return 422, f"Invalid value: {name}"
        self.events.append(event)
        return 201, "created"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    status, message = api.take(self.path, self.headers["Authorization"], body)
                except kubernetes_validate.ValidationError as error:
                    status, message = 400, str(error)
                answer = json.dumps({"kind": "Status", "apiVersion": "v1", "message": message}).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the base class names it
                """Keep the tests' output quiet."""

        return Handler

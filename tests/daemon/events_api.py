"""A small HTTPS double of the Kubernetes API, held to the one request that Ballast sends; it is no API server.

It checks address, token and method, then the body twice: against the published schema of ``events.k8s.io/v1`` (strictly: an
unknown field is a refusal), and by the rules of the real server's own validation that no schema tells (``objections``).  It
keeps what the real server would have kept.
"""

from __future__ import annotations

import json
import re
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


_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_UNSET = ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount", "deprecatedSource")


def objections(event: dict[str, Any], namespace: str) -> list[str]:
    """What a real server's ``ValidateEventCreate`` has against an event of ``events.k8s.io/v1``; lengths count bytes."""
    meta, wrong = event["metadata"], []
    if not _is_subdomain(meta.get("name", "")):
        wrong.append("metadata.name")
    # The prefix is judged as a name, except that it may end in a dash.
    prefix = meta.get("generateName", "")
    if prefix and not _is_subdomain(re.sub("-$", "a", prefix)):
        wrong.append("metadata.generateName")
    if meta.get("namespace") != namespace:
        wrong.append("metadata.namespace")
    if event["regarding"].get("namespace", "") == "" and namespace not in {"default", "kube-system"}:
        wrong.append("regarding.namespace")
    if not _MICRO_TIME.fullmatch(event.get("eventTime") or ""):
        wrong.append("eventTime")
    if event.get("type") not in {"Normal", "Warning"}:
        wrong.append("type")
    if not _is_qualified(event.get("reportingController", "")):
        wrong.append("reportingController")
    wrong += [name for name in ("reason", "action", "reportingInstance") if not 0 < _length(event, name) <= 128]
    if _length(event, "note") > 1024:
        wrong.append("note")
    series = event.get("series")
    if series is not None and (series["count"] < 2 or not _MICRO_TIME.fullmatch(series["lastObservedTime"])):
        wrong.append("series")
    return wrong + [name for name in _UNSET if event.get(name)]


def _is_subdomain(name: str) -> bool:
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def _is_qualified(name: str) -> bool:
    """An optional prefix that is a DNS name, a slash, and at most 63 characters."""
    prefix, slash, word = name.rpartition("/")
    return (not slash or _is_subdomain(prefix)) and len(word) <= 63 and _QUALIFIED.fullmatch(word) is not None


def _length(event: dict[str, Any], name: str) -> int:
    return len(event.get(name, "").encode())


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
        if wrong := objections(event, NAMESPACE):
            return 422, f'Event.events.k8s.io "{event["metadata"].get("name", "")}" is invalid: {", ".join(wrong)}'
        if any(kept["metadata"]["name"] == event["metadata"]["name"] for kept in self.events):
            return 409, "already exists"
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

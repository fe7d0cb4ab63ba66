"""The web server's thread: starts, tells its ports, stops within a second.

The page's port serves everything; the probes' own port, where one is set, serves probes and metrics beside it.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
from typing import Final

import uvicorn
from starlette.applications import Starlette

from ballast.daemon.policy import WebPolicy
from ballast.daemon.web.connections import BoundedConnection
from ballast.errors import UsageError

_STOP_S: Final = 2.0


class WebServer:
    """Serves the page, and probes beside it, until it is stopped."""

    def __init__(self, page: Starlette, probes: Starlette, policy: WebPolicy) -> None:
        self._sockets = [_listen(policy.host, policy.port, "web.port")]
        self._servers = [_server(page, policy)]
        self._policy = policy
        self._renewed: ssl.SSLContext | None = None
        """With the newest certificate, once there is another than at the start."""
        self._certificate = self._load_certificate()
        self.probes_port: int | None = None
        if policy.probes_port is not None:
            self._sockets.append(_listen(policy.host, policy.probes_port, "web.probes_port"))
            self._servers.append(_server(probes))
            self.probes_port = self._sockets[1].getsockname()[1]
        # A thread each: what keeps the page busy keeps no probe waiting.
        self._threads = [
            threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name=name, daemon=True)
            for server, listener, name in zip(self._servers, self._sockets, ("web", "probes"), strict=False)
        ]
        self.host, self.port = self._sockets[0].getsockname()[:2]

    @property
    def scheme(self) -> str:
        """``http``, or ``https`` where the page has a certificate."""
        return "http" if self._policy.tls_certificate is None else "https"

    def renew(self) -> str:
        """Use the certificate that is in its files now, for connections to come."""
        found = _digest(self._policy)
        if found == self._certificate:
            return "The page's certificate is the same."
        self._renewed = _load(self._policy)
        self._certificate = found
        return "The page's certificate was renewed."

    def _load_certificate(self) -> bytes:
        found = _digest(self._policy)
        if self._policy.tls_certificate is not None:
            _load(self._policy)
        config = self._servers[0].config
        # Here and not in the thread, where a mistake would go unseen.
        config.load()
        if config.ssl is not None:
            # Once: what changes in a context while another thread accepts with it can end the process.
            config.ssl.sni_callback = self._use_renewed
        return found

    def _use_renewed(self, connection: ssl.SSLObject, _name: str, _first: ssl.SSLContext) -> None:
        if (renewed := self._renewed) is not None:
            connection.context = renewed

    def start(self) -> None:
        """Begin to answer; the sockets have been listening since construction."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Answer what has been asked, then close."""
        for server in self._servers:
            server.should_exit = True
        for thread in self._threads:
            thread.join(_STOP_S)
        self.close()

    def close(self) -> None:
        """Let the ports go; for a server that was never started."""
        for listener in self._sockets:
            listener.close()


def _server(app: Starlette, tls: WebPolicy | None = None) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app,
            ssl_certfile=tls.tls_certificate if tls else None,
            ssl_keyfile=tls.tls_key if tls else None,
            http=BoundedConnection,
            log_config=None,
            access_log=False,
            # A scanner's broken requests are its own affair: a line for each would drown the log.
            log_level="error",
            lifespan="off",
            timeout_graceful_shutdown=1,
            server_header=False,
        )
    )


def _digest(policy: WebPolicy) -> bytes:
    whole = hashlib.sha256()
    for path in (policy.tls_certificate, policy.tls_key):
        if path is not None:
            try:
                whole.update(path.read_bytes())
            except OSError as failure:
                raise UsageError(f"The page's certificate {path} cannot be read: {failure.strerror}.") from failure
    return whole.digest()


def _load(policy: WebPolicy) -> ssl.SSLContext:
    assert policy.tls_certificate is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(policy.tls_certificate, policy.tls_key)
    except (OSError, ssl.SSLError) as failure:
        raise UsageError(
            f"The page's certificate {policy.tls_certificate} and its key {policy.tls_key} cannot be loaded.",
            hint="Both are PEM, the key without a password, and belong to each other.",
        ) from failure
    return context


def _listen(host: str, port: int, setting: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"Cannot listen on {host}:{port}: {error.strerror}.",
            hint=f"Change web.host or {setting}, or stop what listens there.",
        ) from error
    listener.listen(128)
    return listener

"""The web server's thread: starts, tells its port, stops within a second."""

from __future__ import annotations

import socket
import threading
from typing import Final

import uvicorn
from starlette.applications import Starlette

from ballast.daemon.policy import WebPolicy
from ballast.errors import UsageError

_STOP_S: Final = 2.0


class WebServer:
    """Serves one application on one port until it is stopped."""

    def __init__(self, app: Starlette, policy: WebPolicy) -> None:
        self._socket = _listen(policy)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            # A scanner's broken requests are its own affair: a line for each would drown the log.
            log_level="error",
            lifespan="off",
            timeout_graceful_shutdown=1,
            server_header=False,
            # A page that is open on many wall screens must not starve the probes.
            limit_concurrency=200,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="web", daemon=True)
        self.host, self.port = self._socket.getsockname()[:2]

    def start(self) -> None:
        """Begin to answer; the socket has been listening since construction."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what has been asked, then close."""
        self._server.should_exit = True
        self._thread.join(_STOP_S)
        self.close()

    def close(self) -> None:
        """Let the port go; for a server that was never started."""
        self._socket.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])


def _listen(policy: WebPolicy) -> socket.socket:
    family = socket.AF_INET6 if ":" in policy.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((policy.host, policy.port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"Cannot listen on {policy.host}:{policy.port}: {error.strerror}.",
            hint="Change web.host or web.port, or stop what listens there.",
        ) from error
    listener.listen(128)
    return listener

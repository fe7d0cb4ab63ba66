"""An HTTP exchange that ends when its time is over, whatever the other side does.

The standard library limits each wait for a byte and not the whole: an endpoint that sends one byte now and then keeps a reader
for as long as it likes.  An ``Exchange`` knows the sockets of its requests; ``end`` shuts them, and a thread that waits on one
gets an ``OSError``.  Resolving a name is the system's business and ends by itself.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import ssl
import threading
import urllib.request
from typing import Any


class Exchange:
    """The connections of one request and its redirects."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._over = False

    def handlers(self, tls: ssl.SSLContext | None) -> list[urllib.request.BaseHandler]:
        """For ``urllib.request.build_opener``: http and https over connections that are known here."""
        exchange = self

        class Known(http.client.HTTPConnection):
            def connect(self) -> None:
                super().connect()
                exchange.know(self.sock)

            def _tunnel(self) -> None:
                # A proxy may be as slow as an endpoint.
                exchange.know(self.sock)
                super()._tunnel()  # type: ignore[misc]

        # Before the handshake: the plain connection is made by the base that stands last.
        class KnownTls(http.client.HTTPSConnection, Known):
            pass

        class Http(urllib.request.HTTPHandler):
            def http_open(self, req: urllib.request.Request) -> Any:
                return self.do_open(Known, req)

        class Https(urllib.request.HTTPSHandler):
            def https_open(self, req: urllib.request.Request) -> Any:
                return self.do_open(KnownTls, req, context=tls)

        return [Http(), Https()]

    def know(self, sock: socket.socket) -> None:
        """Remember a connection; raises where the time is over already.

        A handle of our own: TLS takes the socket's away.
        """
        with self._lock:
            if self._over:
                raise TimeoutError("the time of this exchange is over")
            self._sockets.append(socket.socket(fileno=os.dup(sock.fileno())))

    def end(self) -> None:
        """No caller waits for an answer any more, or it is there."""
        with self._lock:
            self._over = True
            while self._sockets:
                with self._sockets.pop() as sock, contextlib.suppress(OSError):  # The other side may have hung up.
                    sock.shutdown(socket.SHUT_RDWR)

"""The check of the Host header, against DNS rebinding.

A foreign site can have its own name resolve to our address, so that a browser sends us that site's requests.  The browser
still writes the site's name into the Host header; a request under such a name is refused.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ballast.daemon.web.answers import RequestRefused

_MISDIRECTED: Final = 421
_SERVICES: Final = (".svc", ".svc.cluster.local")


class KnownHosts:
    """Middleware that refuses requests whose Host header names neither an address, a local name nor one of ``hosts``."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(h.lower() for h in hosts) | {"localhost", socket.gethostname().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse."""
        if scope["type"] != "http" or self._is_known(dict(scope["headers"]).get(b"host", b"").decode("latin-1")):
            await self._app(scope, receive, send)
            return
        refusal = RequestRefused(detail="The page does not answer under this name. Add it to web.hosts.")
        answer = Response(refusal.to_json(), _MISDIRECTED, media_type="application/json")
        await answer(scope, receive, send)

    def _is_known(self, header: str) -> bool:
        """An address is no name that an attacker could point elsewhere; names without a dot and of Services are none of the public DNS."""
        name = host_of(header)
        return not name or "." not in name or name.endswith(_SERVICES) or name in self._hosts or _is_address(name)


def host_of(header: str) -> str:
    """The name in a Host header, without the port."""
    bare = header.strip().lower()
    if bare.startswith("["):
        return bare[1:].partition("]")[0]
    return bare.partition(":")[0].removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

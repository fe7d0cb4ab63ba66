"""The desk where a person's word arrives: checks the token, writes the request down, hands it to the loop.

The token travels in the ``Authorization`` header, which a browser never adds by itself: a foreign site cannot forge a
request.  It is compared in constant time, read anew at each use so that it can be rotated, and never logged.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from starlette.exceptions import HTTPException

from ballast.daemon.logs import say
from ballast.errors import BallastError
from ballast.ports.journal import Request
from ballast.ports.time import Clock

log = logging.getLogger("ballast.audit")

LEAST_TOKEN: Final = 16
"""Fewer characters than this are refused as a token: they can be guessed."""
_KEPT: Final = {"pause": ("reason",), "resume": (), "approve": ("plan",), "cancel": ("run",), "rollback": ("run",)}


class Desk:
    """Takes requests of people who know the token."""

    def __init__(self, token_file: Path | None, submit: Callable[[Request], None], clock: Clock) -> None:
        self._token_file = token_file
        self._submit = submit
        self._clock = clock

    @property
    def open(self) -> bool:
        """Is there a token at all?  Without one the page is read-only."""
        return self._token() is not None

    def admit(self, headers: Mapping[str, str]) -> None:
        """Raise unless the request carries the token."""
        token = self._token()
        if token is None:
            raise HTTPException(403, "This page is read-only: web.token_file is not set, or holds no usable token.")
        scheme, _, given = headers.get("authorization", "").partition(" ")
        known = hmac.compare_digest(given.strip().encode(), token.encode())
        if scheme.lower() != "bearer" or not known:
            raise HTTPException(401, "The token is missing or wrong.", headers={"WWW-Authenticate": "Bearer"})
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            raise HTTPException(403, "Requests from other sites are refused.")

    def take(self, kind: str, body: Mapping[str, Any]) -> str:
        """Hand a request on and return its id; raises where the daemon cannot take it."""
        by = str(body.get("by") or "someone with the token")[:80]
        if kind == "cancel" and body.get("rollback") is True:
            kind = "rollback"
        request = Request(
            id=f"web-{secrets.token_hex(6)}",
            kind=kind,
            by=by,
            at_ms=self._clock.now_ms(),
            body={key: body[key] for key in _KEPT[kind] if isinstance(body.get(key), str)},
        )
        try:
            self._submit(request)
        except BallastError as failure:
            raise HTTPException(409, str(failure)) from failure
        say(log, f"{by} asked to {kind}.", request=request.id, **request.body)
        return request.id

    def _token(self) -> str | None:
        if self._token_file is None:
            return None
        try:
            token = self._token_file.read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        return token if len(token) >= LEAST_TOKEN else None

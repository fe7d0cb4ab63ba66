"""The desk where a person's word arrives: checks the token, writes the request down, hands it to the loop.

The token travels in the ``Authorization`` header, which a browser never adds by itself: a foreign site cannot forge a
request.  It is compared in constant time, read anew at each use so that it can be rotated, and never logged.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
_KEPT: Final = {
    "pause": ("reason",),
    "resume": (),
    "approve": ("plan",),
    "reject": ("plan", "reason"),
    "plan": ("intent", "broker"),
    "cancel": ("run", "reason"),
    "rollback": ("run", "reason"),
}


@dataclass(frozen=True, slots=True)
class Person:
    """Whose token a request carries."""

    name: str
    """Empty where the file holds one token without a name."""
    role: str
    token: str = field(repr=False)


class Desk:
    """Takes requests of people who know a token."""

    def __init__(self, token_file: Path | None, submit: Callable[[Request], None], clock: Clock) -> None:
        self._token_file = token_file
        self._submit = submit
        self._clock = clock

    @property
    def open(self) -> bool:
        """May anybody act at all?  Without an operator's token the page is read-only."""
        return any(p.role == OPERATOR for p in self._people())

    def admit(self, headers: Mapping[str, str], kind: str = "") -> Person:
        """Who asks; raises unless the request carries the token of somebody who may.  Each refusal is in the audit log."""
        people = self._people()
        if not people:
            raise HTTPException(403, "This page is read-only: web.token_file is not set, or holds no usable token.")
        scheme, _, given = headers.get("authorization", "").partition(" ")
        offered = given.strip().encode() if scheme.lower() == "bearer" else b""
        # Every token is compared, so that the time tells nothing.
        known = [p for p in people if hmac.compare_digest(offered, p.token.encode())]
        if not known:
            say(log, f"Refused to {kind}: no token, or a wrong one.", level=logging.WARNING)
            raise HTTPException(401, "The token is missing or wrong.", headers={"WWW-Authenticate": "Bearer"})
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            say(log, f"Refused to {kind}: the request comes from another site.", level=logging.WARNING)
            raise HTTPException(403, "Requests from other sites are refused.")
        if known[0].role != OPERATOR:
            say(log, f"Refused to {kind}: {known[0].name} is a viewer.", level=logging.WARNING, by=known[0].name)
            raise HTTPException(403, "This token may look and not act.")
        return known[0]

    def take(self, kind: str, body: Mapping[str, Any], who: Person | None = None) -> str:
        """Hand a request on and return its id; raises where the daemon cannot take it."""
        kept = {key: body[key] for key in _KEPT[kind] if isinstance(body.get(key), str)}
        by = (who.name if who else "") or str(body.get("by") or "someone with the token")[:80]
        for name, text in {"by": by, **kept}.items():
            if not text.isprintable():
                raise HTTPException(400, f"{name} holds characters that cannot be shown.")
        if kind == "cancel" and body.get("rollback") is True:
            kind = "rollback"
        request = Request(id=f"web-{secrets.token_hex(6)}", kind=kind, by=by, at_ms=self._clock.now_ms(), body=kept)
        try:
            self._submit(request)
        except BallastError as failure:
            say(
                log,
                f"{by} asked to {kind} and was refused: {failure}",
                level=logging.WARNING,
                request=request.id,
                by=by,
            )
            raise HTTPException(409, str(failure)) from failure
        say(log, f"{by} asked to {kind}.", request=request.id, by=by, **request.body)
        return request.id

    def _people(self) -> list[Person]:
        """Everybody with a usable token, read anew."""
        if self._token_file is None:
            return []
        try:
            lines = self._token_file.read_text().split("\n")
        except (OSError, UnicodeDecodeError):
            return []
        people = [person for line in lines if line.strip() and (person := _person(line.split())) is not None]
        return [p for p in people if len(p.token) >= LEAST_TOKEN]


def _person(words: list[str]) -> Person | None:
    """``NAME ROLE TOKEN``, else the whole line is a token without a name."""
    if len(words) == _WORDS and words[1] in {OPERATOR, VIEWER}:
        return Person(words[0], words[1], words[2])
    return Person("", OPERATOR, " ".join(words))


OPERATOR: Final = "operator"
VIEWER: Final = "viewer"
_WORDS: Final = 3

"""The action_requests where a person's word arrives: checks the token, writes the request down, hands it to the loop.

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
from typing import Final

from starlette.exceptions import HTTPException

from ballast.daemon.context.log import log_event
from ballast.daemon.web.requests import Body, CancelRequest
from ballast.errors import BallastError
from ballast.ports.journal import Request
from ballast.ports.time import Clock

log = logging.getLogger("ballast.audit")

LEAST_TOKEN: Final = 16
"""Fewer characters than this are refused as a token: they can be guessed."""


@dataclass(frozen=True, slots=True)
class Person:
    """Whose token a request carries."""

    name: str
    """Empty where the file holds one token without a name."""
    role: str
    token: str = field(repr=False)


class ActionRequests:
    """Takes requests of people who know a token."""

    def __init__(
        self,
        token_file: Path | None,
        submit: Callable[[Request], None],
        clock: Clock,
        *,
        read_needs_token: bool = False,
    ) -> None:
        self._token_file = token_file
        self._read_needs_token = read_needs_token
        self._submit = submit
        self._clock = clock
        self._refused: list[int] = []
        """Lines of the token file that hold no usable token, as last said."""
        self._unreadable = ""
        """Why the token file could not be read, as last said."""
        if token_file is not None and (closed := self.closed):
            log_event(log, f"The page is read-only: {closed}.", level=logging.WARNING)

    @property
    def closed(self) -> str:
        """Why no request may act; empty where an operator's may."""
        if self._token_file is None:
            return "web.token_file is not set"
        return (
            "" if any(p.role == OPERATOR for p in self._people()) else "web.token_file holds no operator's usable token"
        )

    def admit(self, headers: Mapping[str, str], kind: str = "") -> Person:
        """Who asks; raises unless the request carries an operator's token.  Each refusal is in the audit log."""
        person = self._person(headers, kind)
        if person.role != OPERATOR:
            log_event(log, f"Refused to {kind}: {person.name} is a viewer.", level=logging.WARNING, by=person.name)
            raise HTTPException(403, "This token has the viewer role: it is read-only.")
        return person

    def admit_reader(self, headers: Mapping[str, str]) -> None:
        """Raise unless the request may read: with any person's token, where reading takes one."""
        if self._read_needs_token:
            self._person(headers, READ)

    def _person(self, headers: Mapping[str, str], kind: str) -> Person:
        """Whose token it carries; raises where the token is missing or wrong, or the request comes from a foreign site."""
        people = self._people()
        if not people:
            what = "No user may read this page" if kind == READ else "This page is read-only"
            raise HTTPException(403, f"{what}: {self.closed}.")
        scheme, _, given = headers.get("authorization", "").partition(" ")
        offered = given.strip().encode() if scheme.lower() == "bearer" else b""
        # Every token is compared, so that the time tells nothing.
        known = [p for p in people if hmac.compare_digest(offered, p.token.encode())]
        if not known:
            # A page that was just opened has no token yet: that is no attempt.
            if offered or kind != READ:
                log_event(log, f"Refused to {kind}: no token, or a wrong one.", level=logging.WARNING)
            raise HTTPException(401, "The token is missing or wrong.", headers={"WWW-Authenticate": "Bearer"})
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            log_event(log, f"Refused to {kind}: the request comes from another site.", level=logging.WARNING)
            raise HTTPException(403, "Requests from other sites are refused.")
        return known[0]

    def take(self, kind: str, body: Body, who: Person | None = None) -> str:
        """Hand a request on and return its id; raises where the daemon cannot take it."""
        by = (who.name if who else "") or body.by or "a user with the token"
        if isinstance(body, CancelRequest) and body.rollback:
            kind = "rollback"
        told = body.to_record()
        request = Request(id=f"web-{secrets.token_hex(6)}", kind=kind, by=by, at_ms=self._clock.now_ms(), body=told)
        try:
            self._submit(request)
        except BallastError as failure:
            log_event(
                log,
                f"{by} asked to {kind} and was refused: {failure}",
                level=logging.WARNING,
                request=request.id,
                by=by,
            )
            raise HTTPException(409, str(failure)) from failure
        log_event(log, f"{by} asked to {kind}.", request=request.id, by=by, **request.body)
        return request.id

    def _people(self) -> list[Person]:
        """All people with a usable token, read anew."""
        if self._token_file is None:
            return []
        try:
            text = self._token_file.read_text()
        except (OSError, UnicodeDecodeError) as failure:
            self._say_unreadable(failure)
            return []
        self._unreadable = ""
        lines = {n: line.split() for n, line in enumerate(text.split("\n"), start=1)}
        lines = {n: words for n, words in lines.items() if words and not words[0].startswith("#")}
        found = {n: _person(words, alone=len(lines) == 1) for n, words in lines.items()}
        self._say_refused([n for n, person in found.items() if person is None])
        return [person for person in found.values() if person is not None]

    def _say_unreadable(self, failure: OSError | UnicodeDecodeError) -> None:
        """Once, until it can be read or fails otherwise: the page is read-only, and an operator would not know why."""
        why = (
            "it is not text" if isinstance(failure, UnicodeDecodeError) else (failure.strerror or str(failure)).lower()
        )
        if why != self._unreadable:
            log_event(
                log,
                f"The token file {self._token_file} cannot be read, so no user may act: {why}.",
                level=logging.WARNING,
            )
        self._unreadable = why

    def _say_refused(self, lines: list[int]) -> None:
        """Once, until other lines are refused; the text of a line may be a token, and stays out."""
        for line in [n for n in lines if n not in self._refused]:
            log_event(
                log,
                f"Line {line} of the token file is ignored: it is not NAME ROLE TOKEN with the role {OPERATOR} or {VIEWER} "
                f"and a token of at least {LEAST_TOKEN} characters.",
                level=logging.WARNING,
                line=line,
            )
        self._refused = lines


def _person(words: list[str], *, alone: bool) -> Person | None:
    """``NAME ROLE TOKEN``; the one word of a file that holds no other is an operator's token without a name."""
    if alone and len(words) == 1:
        words = ["", OPERATOR, *words]
    usable = len(words) == _WORDS and words[1] in {OPERATOR, VIEWER} and len(words[2]) >= LEAST_TOKEN
    return Person(*words) if usable else None


READ: Final = "read"
OPERATOR: Final = "operator"
VIEWER: Final = "viewer"
_WORDS: Final = 3

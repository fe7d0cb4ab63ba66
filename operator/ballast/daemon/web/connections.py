"""Bounds on connections, so that no client that opens many and says nothing keeps others out.

A connection that waits for its client (for a request, the rest of one, or for its answer to be taken) is given so many
seconds; where there are too many, the one that has waited longest makes room.  No client that has asked is sent away.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

WAIT_S: Final = 10.0
"""How long the client may take for its request's head, then for each look at the body."""
ANSWER_S: Final = 60.0
"""How long an answer may take altogether: the longest is held back for 25 s until there is news."""
LOOK_S: Final = 1.0
MOST: Final = 256
"""Connections of one port."""
MOST_OF_ONE_ADDRESS: Final = 128
"""Of these from one address: an Ingress is one address to us."""


class BoundedConnection(H11Protocol):
    """uvicorn's connection, with time-outs while the client is silent."""

    _since_s: float = 0.0
    """When what it does now began."""
    _doing: tuple[RequestResponseCycle | None, bool] = (None, True)
    """The request it is at, and whether it waits for its client."""
    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room where there is none, then look after it until it ends."""
        super().connection_made(transport)
        self._since_s = self.loop.time()
        everyone = [c for c in self.connections if isinstance(c, BoundedConnection)]
        neighbours = [c for c in everyone if c.address == self.address]
        for crowd, most in ((neighbours, MOST_OF_ONE_ADDRESS), (everyone, MOST)):
            # One that is being closed leaves the list a moment later; of those that come at once each makes room by itself.
            standing = [c for c in crowd if not c.transport.is_closing()]
            if len(standing) > most:
                idle = [c for c in standing if c.waits]
                min(idle, key=lambda c: c._since_s).transport.abort()  # noqa: SLF001 — one of us
        self._look = self.loop.call_later(LOOK_S, self._look_after)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    @property
    def address(self) -> str:
        """The client's address."""
        return self.client[0] if self.client else ""

    @property
    def waits(self) -> bool:
        """Is it the client's turn?"""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def _look_after(self) -> None:
        now_s = self.loop.time()
        doing = (self.cycle, self.waits)
        if doing != self._doing:  # Kept as itself and not as its id, which another request may get.
            self._doing, self._since_s = doing, now_s
        if now_s - self._since_s > (WAIT_S if self.waits else ANSWER_S):
            self.transport.abort()
            return
        self._look = self.loop.call_later(LOOK_S, self._look_after)

"""The three forms of the journal, each behind the same few calls, for the contract suite."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from ballast.ports.journal import Holder, Journal
from ballast.ports.time import Clock


@dataclass(frozen=True)
class JournalForm:
    """One journal that can be opened by several 'processes' of a test."""

    name: str
    open: Callable[[], Journal]
    clock: Clock
    lease_s: float
    write_request: Callable[[str, bytes], None]
    """Writes what Ballast did not: this under the id of a request."""

    def holder(self, who: str, *, lease_s: float | None = None) -> Holder:
        """A holder as a process start would name itself."""
        return Holder(
            id=f"{who}-{uuid.uuid4().hex[:8]}",
            description=who,
            doing="testing",
            lease_s=lease_s or self.lease_s,
        )

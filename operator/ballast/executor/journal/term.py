"""The journal as one acquisition of the lock sees it.

A thread may be blocked while its process loses the lock and takes it again.  What it knew is then older than what another process
may have written in between: it must not write under the new acquisition, although the lock is its process's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ballast.errors import Fenced
from ballast.ports.journal import Holder, Journal, Record, Request


class LeaseTerm:
    """What a driver uses of the journal; bound by ``begin``, and fenced from the next acquisition on."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._term: int | None = None

    def begin(self) -> None:
        """From now on only the present acquisition counts."""
        self._term = self._journal.term

    def renew(self, doing: str = "") -> None:
        """``Journal.renew``."""
        self._own().renew(doing)

    def check(self) -> None:
        """``Journal.check``."""
        self._own().check()

    def append(self, records: Sequence[Record]) -> None:
        """``Journal.append``."""
        self._own().append(records)

    def remake(self) -> None:
        """``Journal.remake``."""
        self._own().remake()

    def read(self) -> Sequence[Record]:
        """``Journal.read``."""
        return self._own().read()

    def holder(self) -> Holder | None:
        """``Journal.holder``."""
        return self._own().holder()

    def requests(self) -> Sequence[Request]:
        """``Journal.requests``."""
        return self._own().requests()

    def skipped_requests(self) -> Mapping[str, str]:
        """``Journal.skipped_requests``."""
        return self._own().skipped_requests()

    def answer(self, request_id: str, answer: str, *, refused: bool = False) -> None:
        """``Journal.answer``."""
        self._own().answer(request_id, answer, refused=refused)

    def _own(self) -> Journal:
        if self._term is not None and self._journal.term != self._term:
            raise Fenced(
                "The lock was lost and taken again since this began.", hint="What it left is adopted from the journal."
            )
        return self._journal

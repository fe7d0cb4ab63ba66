"""What is asked of the run in progress: by threads of this process, and by other processes and people through the journal."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from ballast.executor.driver.notes import Note
from ballast.executor.driver.term import OneTerm
from ballast.executor.machine.step import Asked, Command
from ballast.ports.journal import FORGOTTEN, Journal, is_forgotten, sign

_COMMANDS: Final = frozenset(w.value for w in Command)


class Commands:
    """Commands of this process's threads, each with the run that it is meant for, until a look takes them up."""

    def __init__(self) -> None:
        self.at_hand: str | None = None
        """The run that is carried out, or made ready: a command without a name is meant for it."""
        self._waiting: deque[tuple[Asked, str | None]] = deque()

    def add(self, asked: Asked, run: str | None) -> None:
        """For this run, else for the one at hand; callable from any thread."""
        self._waiting.append((asked, run or self.at_hand))

    def take(self) -> Iterator[tuple[Asked, str | None]]:
        """Each one once."""
        while self._waiting:
            yield self._waiting.popleft()


def take_requests(journal: Journal | OneTerm, run_id: str, now_ms: int) -> Iterator[tuple[Asked | None, Note]]:
    """What is asked of this run (None: leave it to another process) and a note on who asks; answered once it is heard.

    An answer whose commit fails may be in the journal all the same, and what it answers is not read again.  One that was heard
    and could not be answered is heard again at the next look.
    """
    for request in journal.requests():
        run = request.body.get("run")
        if request.answer is not None or (run is not None and run != run_id):
            continue
        if request.kind == "take-over" and is_forgotten(request, now_ms):
            journal.answer(request.id, FORGOTTEN, refused=True)
        elif request.kind == "take-over":
            yield None, Note("take-over", {"by": request.by})
            journal.answer(request.id, f"run {run_id} is left for you")
        elif run is not None and request.kind in _COMMANDS:
            yield (
                Asked(Command(request.kind), sign(request)),
                Note("asked", {"by": request.by, "command": request.kind}),
            )
            journal.answer(request.id, f"run {run_id}: {request.kind}")

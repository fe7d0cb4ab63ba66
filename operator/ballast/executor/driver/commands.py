"""What is asked of the run in progress: by threads of this process, and by other processes and people through the journal."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ballast.executor.journal.answers import RequestAnswer, answer_done, answer_stale
from ballast.executor.journal.notes import RunNote
from ballast.executor.journal.pause import (
    is_paused,
    pause_of,
    pause_record,
    resume_records,
)
from ballast.executor.journal.term import LeaseTerm
from ballast.executor.machine.step import Command, CommandRequested
from ballast.ports.journal import Journal, Record, sign

_COMMANDS: Final = frozenset(w.value for w in Command)
_DAEMONS: Final = frozenset({"approve", "reject", "plan", "end-drain"})
"""What only a daemon can do: a process that executes one run refuses it at once, since it would expire unheard meanwhile."""


class ReceivedRequest(NamedTuple):
    """What a request means for the run in progress."""

    id: str
    asked: CommandRequested | None
    """None: leave the run to another process."""
    note: RunNote
    records: tuple[Record, ...] = ()
    """What the journal keeps of it, where it is meant for every run from now on."""


class Commands:
    """What is asked of runs: by this process's threads until a look takes it up, and by requests in the journal."""

    def __init__(self, journal: LeaseTerm, note: Callable[[RunNote], None]) -> None:
        self._journal = journal
        self._note = note
        self._at_hand: str | None = None
        self._waiting: deque[tuple[CommandRequested, str | None]] = deque()
        self._told: set[str] = set()
        """Requests of which it was said that they are being executed, or cannot be read."""

    def make_ready(self, run_id: str) -> None:
        """A command without a name is meant for this run from now on."""
        self._at_hand = run_id

    def add(self, asked: CommandRequested, run: str | None) -> None:
        """Add a command for this run, else for the one at hand; callable from any thread."""
        self._waiting.append((asked, run or self._at_hand))

    def take(self) -> Iterator[tuple[CommandRequested, str | None]]:
        """Take the commands that wait, each once."""
        while self._waiting:
            yield self._waiting.popleft()

    def take_requests(self, run_id: str, now_ms: int) -> Iterator[ReceivedRequest]:
        """``take_requests``; one whose answer could not be written is received again, and told once."""
        for received in take_requests(self._journal, run_id, now_ms):
            self._tell_once(received.id, received.note)
            yield received
        for request, why in self._journal.skipped_requests().items():
            self._tell_once(request, RunNote("request-not-read", {"request": request, "message": why}))

    def _tell_once(self, request: str, note: RunNote) -> None:
        if request not in self._told:
            self._told.add(request)
            self._note(note)


def take_requests(journal: Journal | LeaseTerm, run_id: str, now_ms: int) -> Iterator[ReceivedRequest]:
    """What is asked of this run, and of the process that holds the lock; answered once the caller has taken it up.

    An answer whose commit fails may be in the journal all the same, and what it answers is not read again.  One that was received
    and could not be answered is received again at the next look.
    """
    for request in journal.requests():
        run = request.body.get("run")
        if request.answer is not None:
            continue
        if (stale := answer_stale(request, now_ms)) is not None:
            journal.answer(request.id, str(stale), refused=True)
        elif run is not None and run != run_id:
            continue
        elif request.kind == "take-over":
            yield ReceivedRequest(request.id, None, RunNote("take-over", {"by": request.by}))
            journal.answer(request.id, str(RequestAnswer("run-left", {"run": run_id})))
        elif run is not None and request.kind in _COMMANDS:
            note = RunNote("requested", {"by": request.by, "command": request.kind})
            yield ReceivedRequest(request.id, CommandRequested(Command(request.kind), sign(request)), note)
            journal.answer(request.id, str(answer_done(request, run_id)))
        elif request.kind == Command.PAUSE:
            pause = pause_of(request)
            asked = CommandRequested(Command.PAUSE, sign(request))
            yield ReceivedRequest(request.id, asked, RunNote("paused", {"by": asked.by}), (pause_record(pause),))
            journal.answer(request.id, str(RequestAnswer("paused", {"by": pause.by})))
        elif request.kind == Command.RESUME and not is_paused(journal.read()):
            journal.answer(request.id, str(RequestAnswer("not-paused")))
        elif request.kind == Command.RESUME:
            asked = CommandRequested(Command.RESUME, sign(request))
            yield ReceivedRequest(request.id, asked, RunNote("resumed", {"by": asked.by}), resume_records())
            journal.answer(request.id, str(RequestAnswer("resumed", {"by": request.by})))
        elif request.kind in _DAEMONS:
            holder = journal.holder()
            who = "Another process" if holder is None else holder.description
            busy = RequestAnswer("busy", {"holder": who, "run": run_id})
            journal.answer(request.id, str(busy), refused=True)
        else:
            code = "names-no-run" if request.kind in _COMMANDS else "unknown"
            journal.answer(request.id, str(RequestAnswer(code, {"kind": request.kind})), refused=True)

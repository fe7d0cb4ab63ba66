"""The journal: where intents are written before they are executed, and the lock that goes with it.

One writer at a time.  ``acquire`` makes this process the writer or raises ``LockHeld``; ``append`` is atomic and durable
and raises ``Fenced`` once another process has become the writer.  Every call may raise ``JournalLost``: what was written is
no longer there.  Records are compacted by key: the newest value of each key
is what ``read`` returns, in the order in which the keys were last written.  Requests of others are a stream of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from ballast.core.document import parse
from ballast.core.field_types import Moment
from ballast.errors import Refused, UsageError

JOURNAL_VERSION = 1

T = TypeVar("T")

JOURNAL_TOPIC: Final = "__ballast_journal"
REQUESTS_TOPIC: Final = "__ballast_requests"
STANDS_ON: Final = frozenset({JOURNAL_TOPIC, REQUESTS_TOPIC, "__transaction_state"})
"""What a journal in the cluster cannot be written without; a run that moves these moves them last."""


@dataclass(frozen=True, slots=True)
class Record:
    """A key and a JSON value; None is a tombstone."""

    key: str
    """``run/<id>``, ``move/<run>/<topic>-<partition>``, ``throttle/<kind>/<name>``, ``pause``, …"""
    value: Mapping[str, Any] | None


STRANGE_HINT: Final = "Something else writes to the journal; find out what before Ballast acts on this cluster."


OTHER_VERSION: Final = "The journal's record {record} has version {version}, and this Ballast reads {reads}."
THAT_VERSION: Final = "Use the Ballast version that wrote it, or a newer one."


class UnusableJournal(Refused):
    """The journal is there, and this version of Ballast may not act upon what it is or holds."""

    id = "journal-unusable"


class Corrupt(UnusableJournal):
    """The journal holds something that no version of Ballast wrote."""

    id = "journal-corrupt"


class OtherVersion(UnusableJournal):
    """A record is of a version that this Ballast does not read."""

    id = "journal-version"

    def __init__(self, record: str, version: object, reads: int) -> None:
        self.values = {"record": record, "version": version, "reads": reads}
        super().__init__(OTHER_VERSION.format(**self.values), hint=THAT_VERSION)


def read_record(record: Record, kind: type[T], *, version: int | None = None) -> T:
    """What a record says, of this version where it is a versioned one; what it does not say only the type's own defaults fill up.

    One that is not whole is refused by its name and the key that is wrong.
    """
    given = (record.value or {}).get("version")
    if version is not None and given != version:
        raise OtherVersion(record.key, given, version)
    from pydantic_core import ValidationError, to_json  # noqa: PLC0415 — no command waits for it that finds nothing to read

    from ballast.core.document_errors import problem  # noqa: PLC0415 — so does this

    place = f"The journal's record {record.key}"
    try:
        return parse(kind, to_json(record.value))
    except ValidationError as wrong:
        raise Corrupt(f"{place}: {problem(wrong)}", hint=STRANGE_HINT) from None
    except UsageError as wrong:
        raise Corrupt(f"{place}: {wrong.message}", hint=wrong.hint) from None
    except ValueError:
        raise Corrupt(f"{place} is not one of Ballast's.", hint=STRANGE_HINT) from None


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock."""

    id: str
    """Unique for each process start."""
    description: str
    """For people: user@host, pod name, command."""
    since_ms: int = 0
    """When it took the lock: ``acquire`` fills it in."""
    doing: str = ""
    lease_s: float = 15.0
    is_follower: bool = False
    """It only resumes open runs: ``ballast reassign`` may ask it to release the lock."""


@dataclass(frozen=True, slots=True)
class Request:
    """Something another process or person asks the holder to do."""

    id: str
    kind: str
    """``approve``, ``pause``, ``resume``, ``cancel``, ``rollback``, ``take-over``, …"""
    by: str
    at_ms: int
    body: Mapping[str, Any]
    answer: str | None = None
    """What the holder says of it; None while it waits."""
    refused: bool = False
    """The answer says why nothing was done."""

    @property
    def reason(self) -> str:
        """Why they ask it, as far as it is kept; empty where they do not say."""
        return str(self.body.get("reason", "")).strip()[:LONGEST_REASON]


LONGEST_REASON: Final = 200
"""Characters of a reason that are kept."""
TAKE_OVER_WAIT_S: Final = 60.0
"""How long a process that asks for the lock waits for it, where its request does not say."""
LONGEST_WAIT_S: Final = 86_400.0
"""The longest that such a process is believed to wait, whatever its request says."""
CLOCKS_DIFFER_S: Final = 120.0
"""Allowed to the clocks of two machines when a request's age is judged."""


def is_forgotten(request: Request, now_ms: int) -> bool:
    """Whether a take-over is so old that its sender no longer waits for it: that was killed, or gave up, before it was read."""
    wait_s = request.body.get("wait_s")
    patience_s = TAKE_OVER_WAIT_S
    if isinstance(wait_s, int | float) and not isinstance(wait_s, bool) and wait_s >= 0:
        patience_s = min(float(wait_s), LONGEST_WAIT_S)
    return now_ms - request.at_ms > (patience_s + CLOCKS_DIFFER_S) * 1000


def always() -> bool:
    """The lock is wanted for as long as ``acquire`` waits for it."""
    return True


RESTART_KEY: Final = "journal-restart"
"""The record of a journal that was begun where an earlier one had been deleted; a person takes it away."""


@dataclass(frozen=True, slots=True)
class JournalRestart:
    """When a journal was begun of which an earlier one had been lost, and by whom.  Nothing from before is known."""

    at_ms: Moment
    by: str


def restart_record(restart: JournalRestart | None) -> Record:
    """The record; None takes it away."""
    return Record(RESTART_KEY, None if restart is None else {"at_ms": restart.at_ms, "by": restart.by})


def find_restart(records: Iterable[Record]) -> JournalRestart | None:
    """Whether these are of a journal that was begun so, and that no person has acknowledged."""
    for record in records:
        if record.key == RESTART_KEY and record.value is not None:
            return read_record(record, JournalRestart)
    return None


EXPIRES_S: Final = 300.0
"""How long an order may wait for a process that executes it."""


def is_expired(request: Request, now_ms: int) -> bool:
    """Whether an order was given so long ago that its sender may not mean what it would stop today."""
    return now_ms - request.at_ms > (EXPIRES_S + CLOCKS_DIFFER_S) * 1000


def is_ahead(request: Request, now_ms: int) -> bool:
    """Whether the sender's clock is so far ahead that the age of the order is not known."""
    return request.at_ms - now_ms > CLOCKS_DIFFER_S * 1000


def sign(request: Request) -> str:
    """Who asks, and why where they say so."""
    return sign_as(request.by, request.reason)


def sign_as(by: str, reason: str) -> str:
    """The same of what needs no request."""
    return f"{by}: {reason}" if reason else by


class Journal(Protocol):
    """One cluster's journal and lock."""

    def acquire(self, holder: Holder, *, wait_s: float = 0.0, wanted: Callable[[], bool] = always) -> Holder:
        """Become the writer, waiting for a holder that stops renewing; raises ``LockHeld`` naming who, since, doing what.

        Returns the holder as the lease names it.  A process that held the lock of a lost journal all along holds it since then.

        A caller that is overtaken by another candidate waits for that one; it has no name as long as it wrote no lease.
        ``wanted`` is asked at each look, and right before the first write: once it is false, nothing more is written.
        """
        ...

    @property
    def term(self) -> int:
        """The number of this handle's last acquisition: another one where the lock was lost and taken again in between."""
        ...

    def renew(self, doing: str = "") -> None:
        """Show that the holder lives; raises ``Fenced`` when it no longer is the holder."""
        ...

    def check(self) -> None:
        """Raise ``Fenced`` unless the lease is surely still ours; called right before each write to the cluster."""
        ...

    def release(self) -> None:
        """Give the lock up so that the next one need not wait for the lease."""
        ...

    def holder(self) -> Holder | None:
        """Who holds the lock now, as far as can be read without holding it."""
        ...

    def renewed_ms(self) -> int | None:
        """When the lease that ``holder`` read last was renewed, by a clock of the cluster or of its holder; None where none tells."""
        ...

    def append(self, records: Sequence[Record]) -> None:
        """Write all of these or none; returns when they are durable."""
        ...

    def read(self) -> Sequence[Record]:
        """The newest value of every key that is not a tombstone; needs no lock."""
        ...

    def remake(self) -> None:
        """After ``JournalLost``: make the journal again and write into it all that this handle remembers; holder only.

        Raises ``Fenced`` where another process holds the lock in what stands there now, or has held it and left records.
        """
        ...

    def remove(self) -> None:
        """Delete the journal with its lock and its requests, for good; holder only.

        Where that fails the lock stays ours until its lease lapses.
        """
        ...

    def request(self, request: Request) -> None:
        """Ask the holder for something; needs no lock."""
        ...

    def requests(self) -> Sequence[Request]:
        """Requests and their answers, oldest first; needs no lock."""
        ...

    def skipped_requests(self) -> Mapping[str, str]:
        """Of the last ``requests``: by id, why a request cannot be read and is not obeyed."""
        ...

    def answer(self, request_id: str, answer: str, *, refused: bool = False) -> None:
        """Say what came of a request; holder only."""
        ...

    def close(self) -> None:
        """Close connections without releasing the lock."""
        ...

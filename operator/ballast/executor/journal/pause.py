"""The pause switch as the journal keeps it.  The holder of the lock writes it: a daemon, or a command that executes a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

from ballast.core.field_types import Moment, Text
from ballast.ports.journal import Record, Request, read_record, restart_record

PAUSE_KEY: Final = "pause"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Nothing new starts until it is taken away."""

    by: str
    since_ms: Moment
    reason: Text

    @property
    def signed(self) -> str:
        """Who paused, and why where they said so."""
        return f"{self.by}: {self.reason}" if self.reason else self.by


def pause_of(request: Request) -> Pause:
    """The pause that a person asks for."""
    return Pause(by=request.by, since_ms=request.at_ms, reason=request.reason)


def pause_record(pause: Pause | None) -> Record:
    """The switch; None turns it off."""
    return Record(PAUSE_KEY, None if pause is None else asdict(pause))


def resume_records() -> tuple[Record, ...]:
    """What turns it off.  The person who resumes has looked after a journal that was recreated empty, too.

    The pause goes last: were it first, a process that dies in between would begin without one.
    """
    return restart_record(None), pause_record(None)


def is_paused(records: Iterable[Record]) -> bool:
    """Whether there is a pause, readable or not."""
    return _standing(records) is not None


def find_pause(records: Iterable[Record]) -> Pause | None:
    """The pause that stands; one that is not whole is refused, since without it more would be allowed."""
    record = _standing(records)
    return None if record is None else read_record(record, Pause)


def _standing(records: Iterable[Record]) -> Record | None:
    return next((record for record in records if record.key == PAUSE_KEY and record.value is not None), None)

"""Runs in a line each: what lists and pages show of them, without their moves, and which of those that ended are forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from typing_extensions import TypedDict

from ballast.core.field_types import Count
from ballast.core.plan import Purpose
from ballast.errors import Refused
from ballast.executor.journal.records import (
    KINDS,
    RUN_VERSION,
    STRIPPED,
    Parsed,
    RunHeader,
    Unreadable,
    ended_key,
    has_ended,
    load_open_runs,
    run_ids,
    run_key,
    tally,
)
from ballast.executor.machine.run import Now, Phase, Run, Status
from ballast.executor.machine.stages import Verified
from ballast.ports.journal import Record, read_record

KEPT_IN_PLACE_KEY: Final = "hand/"
"""What the keys of orders to keep replicas in their log dirs begin with: intents outside of a run, deleted once they are answered."""
KEEP_RUNS: Final = 50
"""Runs that have ended and whose moves (and way back) the journal keeps."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in numbers."""

    id: str
    intent: str
    purpose: Purpose
    phase: Phase
    status: Status
    started_ms: int
    ended_ms: int
    rollback_of: str | None
    stopped_by: str
    moves: Mapping[str, int]
    """How many are in each stage."""
    elections: Mapping[str, int]
    bytes_total: int | None
    """None where the size of a move was never known."""
    bytes_done: int
    """Of moves that have arrived, and what the others have copied so far."""

    @property
    def ended(self) -> bool:
        """Nothing is left to do for this run."""
        return self.phase is Phase.ENDED

    @property
    def verified(self) -> int:
        """Moves that ended well."""
        return self.moves.get(Verified.code, 0)


@dataclass(frozen=True, slots=True)
class History:
    """The runs of a journal, and what could not be read of it."""

    runs: tuple[RunSummary, ...]
    """Oldest first."""
    skipped: Mapping[str, Unreadable]
    """Why other runs cannot be shown, by their ids: they keep no run from starting, and are told."""


def summarise(run: Run) -> RunSummary:
    """A run as it stands."""
    return RunSummary(
        run.id,
        run.intent,
        run.purpose,
        run.phase,
        run.status,
        run.started_ms,
        run.ended_ms,
        run.rollback_of,
        run.stopped_by,
        **tally(run),
    )


def load_summaries(records: Sequence[Record], now: Now) -> History:
    """Every run in the journal; no move of one that has ended is read."""
    left, ended = load_open_runs(records, now), load_ended(records)
    found = [*map(summarise, left), *ended.runs]
    return History(tuple(sorted(found, key=_age)), {**ended.skipped, **find_unreadable_open_runs(records, left)})


def find_unreadable_open_runs(records: Sequence[Record], left: Iterable[Run]) -> dict[str, Unreadable]:
    """By id, why open runs that are not among the loaded ones (``left``) cannot be resumed."""
    return dict.fromkeys(sorted(run_ids(records, ended=False) - {run.id for run in left}), STRIPPED)


def load_ended(records: Sequence[Record], parsed: Parsed | None = None) -> History:
    """The runs that have ended; one that this version cannot read is skipped by name, as ``read_runs`` does."""
    parsed = parsed or Parsed()
    packed = {r.key for r in records if r.key.startswith(ended_key(""))}
    found, skipped = [], dict[str, Unreadable]()
    for record in records:
        if record.key.startswith(run_key("")) and has_ended(record):
            run_id = record.key.removeprefix(run_key(""))
            if ended_key(run_id) not in packed:
                skipped[run_id] = STRIPPED
                continue
            try:
                found.append(parsed.read(record, _read_summary))
            except Refused as strange:
                skipped[run_id] = Unreadable.of(strange)
    parsed.end_reading()
    return History(tuple(sorted(found, key=_age)), skipped)


def expire(records: Sequence[Record], keep: int = KEEP_RUNS) -> list[Record]:
    """Tombstones for the oldest runs that have ended, beyond the newest ``keep``; an open run never expires.

    And for orders of processes that died before the answer: who expires runs holds the lock, so that none of these is being sent, and
    the person who gave one saw it fail and gives it again.
    """
    headers = [r for r in records if r.key.startswith(run_key("")) and has_ended(r)]
    headers.sort(key=lambda r: (_start_ms(r), r.key))
    old = {r.key.removeprefix(run_key("")) for r in headers[: max(0, len(headers) - keep)]}
    return [
        Record(r.key, None)
        for r in records
        if (r.key.split("/")[0] in KINDS and r.key.split("/")[1] in old)
        or (r.key.startswith(KEPT_IN_PLACE_KEY) and r.value is not None)
    ]


def _start_ms(header: Record) -> int:
    at_ms = (header.value or {}).get("started_ms")
    return at_ms if isinstance(at_ms, int) else 0


def _age(run: RunSummary) -> tuple[int, str]:
    return run.started_ms, run.id


def _read_summary(header: Record) -> RunSummary:
    found = read_record(header, _EndedHeader, version=RUN_VERSION)
    return RunSummary(id=header.key.removeprefix(run_key("")), **found.shared(), **found.tally)


class _Tally(TypedDict):
    moves: dict[str, int]
    elections: dict[str, int]
    bytes_total: Count | None
    bytes_done: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class _EndedHeader(RunHeader):
    tally: _Tally

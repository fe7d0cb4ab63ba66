"""A run's form in the journal: one header, and a record for each move and each election.

The append that ends a run packs its moves and elections into a single record and deletes theirs; the header then says how they
ended, in numbers, so that listing runs need not unpack them.

A record is versioned; one of a version that is not known, or that Ballast did not write, is refused, never guessed.
"""

from __future__ import annotations

import base64
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Final, TypeVar

from typing_extensions import TypedDict

from ballast.core.catalogue import Message, Table
from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.document import parse
from ballast.core.field_types import Count, Moment, OneOf, Parameters, Whole
from ballast.core.plan import Move, Purpose, Reason
from ballast.errors import Refused
from ballast.executor.machine.notes import MoveNote, code_of, journaled_note, text_of
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.progress import done_of, total_of
from ballast.executor.machine.run import ElectionRun, ElectionStage, MoveRun, Now, Phase, Run, Status
from ballast.executor.machine.stages import ENDED_CODES, STAGES, Cancelling, Ended, Reassigning, Relocating, Stage
from ballast.ports.journal import (
    OTHER_VERSION,
    STRANGE_HINT,
    THAT_VERSION,
    Corrupt,
    OtherVersion,
    Record,
    read_record,
)
from ballast.ports.journal_codec import encode_json

T = TypeVar("T")
RUN_VERSION: Final = 1
LONGEST_UNPACKED_BYTES: Final = 1 << 30
"""What is packed is never longer; a million moves take half of it."""


KINDS: Final = frozenset({"run", "move", "election", "ended"})
"""What the keys of a run's records begin with; its id follows."""


class Unreadable(Message):
    """Why a run of the journal cannot be read."""

    __slots__ = ()
    sentences: ClassVar[Table] = {
        "records-missing": "Records of it are missing in the journal: they were deleted.",
        "other-version": f"{OTHER_VERSION} {THAT_VERSION}",
        "corrupt": "{message}",
    }

    @classmethod
    def of(cls, refused: Refused) -> Unreadable:
        """Why a record was refused."""
        if isinstance(refused, OtherVersion):
            return cls("other-version", refused.values)
        return cls("corrupt", {"message": str(refused)})


STRIPPED: Final = Unreadable("records-missing")


@dataclass(frozen=True, slots=True)
class SkippedRun:
    """A run of the journal that cannot be read."""

    id: str
    code: str
    parameters: Parameters
    """The figures of ``detail``."""
    detail: str


def name_skipped(skipped: Mapping[str, Unreadable]) -> tuple[SkippedRun, ...]:
    """By id, as programs are told."""
    return tuple(SkippedRun(run_id, why.code, why.parameters, str(why)) for run_id, why in skipped.items())


def run_key(run_id: str) -> str:
    """The journal key of a run's header."""
    return f"run/{run_id}"


def move_key(run_id: str, name: TopicPartition) -> str:
    """The journal key of one move."""
    return f"move/{run_id}/{name}"


def election_key(run_id: str, name: TopicPartition) -> str:
    """The journal key of one election."""
    return f"election/{run_id}/{name}"


def ended_key(run_id: str) -> str:
    """The journal key of the moves and elections of a run that has ended."""
    return f"ended/{run_id}"


def dump_header(run: Run) -> Record:
    """The run without its moves; of one that has ended, their numbers."""
    value: dict[str, Any] = {
        "version": RUN_VERSION,
        "intent": run.intent,
        "purpose": {"code": run.purpose.code, "brokers": list(run.purpose.brokers), "racks": list(run.purpose.racks)},
        "cluster_id": run.cluster_id,
        "policy": run.policy.dump(),
        "phase": run.phase.value,
        "status": run.status.value,
        "in_order": run.in_order,
        "unclean": run.unclean,
        "started_ms": run.started_ms,
        "ended_ms": run.ended_ms,
        "rollback_of": run.rollback_of,
        "rollback_when_cancelled": run.rollback_when_cancelled,
        "stopped_by": run.stopped_by,
        "moves": len(run.moves),
        "elections": len(run.elections),
    }
    if run.ended:
        value["tally"] = tally(run)
    return Record(run_key(run.id), value)


def tally(run: Run) -> dict[str, Any]:
    """How many moves and elections stand in which stage, and the bytes of all moves, as far as known, and of those that have arrived."""
    return {
        "moves": dict(Counter(m.stage.code for m in run.moves.values())),
        "elections": dict(Counter(e.stage.value for e in run.elections.values())),
        "bytes_total": total_of(run.moves.values()),
        "bytes_done": sum(map(done_of, run.moves.values())),
    }


def dump_move(run: Run, order: int, m: MoveRun) -> Record:
    """One move with all that its rollback needs."""
    value: dict[str, Any] = {
        "version": RUN_VERSION,
        "order": order,
        "topic": m.move.topic,
        "partition": m.move.partition,
        "old": list(m.move.old),
        "new": list(m.move.new),
        "size_bytes": m.move.size_bytes,
        "reason": [m.move.reason.code, m.move.reason.detail],
        **_dump_stage(m.stage),
        "attempts": m.attempts,
        "since_ms": m.since_ms,
    }
    if m.move.log_dirs is not None:
        value["log_dirs"] = list(m.move.log_dirs)
    if m.note is not None:
        value |= _dump_note(m.note)
    if m.topic_id is not None:
        value["topic_id"] = m.topic_id
    if m.cancelled_by:
        value["cancelled_by"] = m.cancelled_by
    return Record(move_key(run.id, m.move.name), value)


def _dump_stage(stage: Stage) -> dict[str, Any]:
    """What the journal keeps of a stage."""
    match stage:
        case Ended(outcome) if outcome:
            return {"stage": stage.code, "outcome": outcome}
        case Reassigning(raced=True) | Cancelling(raced=True):
            return {"stage": stage.code, "raced": True}
        case Relocating(seen_on=seen) if seen:
            # Without it the next process would take a copy that another user stopped meanwhile for one that never began.
            return {"stage": stage.code, "seen_on": sorted(seen)}
    return {"stage": stage.code}


def dump_election(run: Run, name: TopicPartition, e: ElectionRun) -> Record:
    """One election."""
    return Record(
        election_key(run.id, name),
        {
            "version": RUN_VERSION,
            "topic": name.topic,
            "partition": name.partition,
            "stage": e.stage.value,
            "attempts": e.attempts,
            **_dump_note(e.note),
        },
    )


def _dump_note(note: MoveNote | None) -> dict[str, Any]:
    """Its sentence, which every version reads, and what it is made of."""
    value: dict[str, Any] = {"detail": text_of(note)}
    if note is not None and (code := code_of(note)) is not None:
        value |= {"code": code, "values": note.parameters} | ({"cause": note.cause} if note.cause else {})
    return value


def dump_run(run: Run) -> list[Record]:
    """Every record of a run; of one that has ended, two."""
    if run.ended:
        return [_dump_ended(run), dump_header(run)]
    return [dump_header(run), *_dump_parts(run)]


def _dump_parts(run: Run) -> list[Record]:
    moves = [dump_move(run, i, m) for i, m in enumerate(run.moves.values())]
    return [*moves, *(dump_election(run, n, e) for n, e in run.elections.items())]


def _dump_ended(run: Run) -> Record:
    parts = [{"key": r.key, "value": r.value} for r in _dump_parts(run)]
    packed = zlib.compress(encode_json(parts))
    return Record(ended_key(run.id), {"version": RUN_VERSION, "packed": base64.b64encode(packed).decode()})


def changes(before: Run, after: Run) -> list[Record]:
    """The records that differ between two values of one run; with its end its moves are packed."""
    if after.ended:
        return _end(before, after)
    out: list[Record] = []
    if before.moves is not after.moves:
        for i, (name, m) in enumerate(after.moves.items()):
            was = before.moves[name]
            if was is not m and _changing_parts(was) != _changing_parts(m):
                out.append(dump_move(after, i, m))
    if before.elections is not after.elections:
        for name, e in after.elections.items():
            was_e = before.elections[name]
            if (was_e.stage, was_e.attempts, was_e.note) != (e.stage, e.attempts, e.note):
                out.append(dump_election(after, name, e))
    header = dump_header(after)
    return out if header == dump_header(before) else [*out, header]


def _changing_parts(m: MoveRun) -> tuple[object, ...]:
    """What may change of a move's record."""
    return m.attempts, m.note, m.topic_id, m.cancelled_by, _dump_stage(m.stage)


def _end(before: Run, after: Run) -> list[Record]:
    """What ends a run; the header goes last: once it says so, what it counts is in the journal."""
    if not before.ended:
        return [*(Record(r.key, None) for r in _dump_parts(after)), *dump_run(after)]
    same = before.moves is after.moves and before.elections is after.elections
    return [] if same and dump_header(before) == dump_header(after) else dump_run(after)


class Parsed:
    """What was made of records at the reading before: the same record is not parsed again."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[Record, Any]] = {}
        self._now: dict[str, tuple[Record, Any]] = {}

    def read(self, record: Record, read: Callable[[Record], T]) -> T:
        """What the record says."""
        known = self._before.get(record.key)
        if known is None or known[0] is not record:
            known = (record, read(record))
        self._now[record.key] = known
        found: T = known[1]
        return found

    def end_reading(self) -> None:
        """Forget what this reading did not ask for."""
        self._before, self._now = self._now, {}


def load_runs(records: Iterable[Record], now: Now) -> dict[str, Run]:
    """Every run in the journal that can be read, oldest first: see ``read_runs``."""
    return read_runs(records, now)[0]


def read_runs(records: Iterable[Record], now: Now) -> tuple[dict[str, Run], dict[str, Unreadable]]:
    """Every run in the journal, oldest first, and why others cannot be read.

    An open run that this version cannot read is refused by name.  One that has ended is no longer acted upon: settings that a
    newer version gave it are skipped, and where that is not enough the run is, so that going back to this version is possible.
    """
    found, skipped = [], dict[str, Unreadable]()
    for run_id, header, own in _by_run(records):
        ended = has_ended(header)
        try:
            parts = [part for record in own for part in unpack(record)] if ended else own
            run = _load_run(run_id, header, parts, now, Parsed(), ended=ended)
        except Refused as strange:
            if not ended:
                raise
            skipped[run_id] = Unreadable.of(strange)
            continue
        if run is None:
            skipped[run_id] = STRIPPED
        else:
            found.append(run)
    return {r.id: r for r in sorted(found, key=lambda r: (r.started_ms, r.id))}, skipped


def run_ids(records: Iterable[Record], *, ended: bool) -> frozenset[str]:
    """The runs of which the journal holds any record, those that have ended or the others."""
    return frozenset(run_id for run_id, header, _ in _by_run(records) if has_ended(header) == ended)


def load_open_runs(records: Iterable[Record], now: Now, parsed: Parsed | None = None) -> list[Run]:
    """The runs that have not ended, oldest first; one that this version cannot read is refused by name."""
    parsed = parsed or Parsed()
    found = [
        _load_run(run_id, header, own, now, parsed, ended=False)
        for run_id, header, own in _by_run(records)
        if not has_ended(header)
    ]
    parsed.end_reading()
    return sorted(filter(None, found), key=lambda r: (r.started_ms, r.id))


def has_ended(header: Record | None) -> bool:
    """Whether a run's header says so."""
    return header is not None and (header.value or {}).get("phase") == Phase.ENDED.value


def _by_run(records: Iterable[Record]) -> list[tuple[str, Record | None, list[Record]]]:
    """The id, the header and the other records of each run."""
    headers: dict[str, Record | None] = {}
    parts: dict[str, list[Record]] = {}
    for record in records:
        kind, _, rest = record.key.partition("/")
        if kind not in KINDS:
            continue
        run_id = rest.partition("/")[0]
        headers.setdefault(run_id, None)
        if kind == "run":
            headers[run_id] = record
        else:
            parts.setdefault(run_id, []).append(record)
    return [(run_id, header, parts.get(run_id, [])) for run_id, header in headers.items()]


def unpack(record: Record) -> list[Record]:
    """The records of moves and elections that were packed into this one; any other record by itself."""
    if not record.key.startswith("ended/"):
        return [record]
    text = read_record(record, _Packed, version=RUN_VERSION).packed
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(text, validate=True), LONGEST_UNPACKED_BYTES)
        return parse(list[Record], data)
    except (ValueError, zlib.error):
        raise Corrupt(f"The journal's record {record.key} is not one of Ballast's.", hint=STRANGE_HINT) from None


def names_in_flight(records: Iterable[Record]) -> frozenset[TopicPartition]:
    """Partitions whose moves in open runs have not ended."""
    moves = [r for r in records if r.key.startswith("move/") and r.value is not None]
    found = (read_record(m, _Progress) for m in moves)
    return frozenset(TopicPartition(m.topic, m.partition) for m in found if m.stage not in ENDED_CODES)


def _load_run(
    run_id: str, header: Record | None, records: Sequence[Record], now: Now, parsed: Parsed, *, ended: bool
) -> Run | None:
    """One run out of its records; None where some of them are missing."""
    own: list[tuple[int, MoveRun]] = []
    votes: dict[TopicPartition, ElectionRun] = {}
    for record in records:
        if record.key.startswith("move/"):
            order, move = parsed.read(record, _read_move)
            own.append((order, move.begin_waits(now)))
        elif record.key.startswith("election/"):
            name, election = parsed.read(record, _read_election)
            votes[name] = election
    if header is None:
        return None
    found = read_record(header, _WholeHeader, version=RUN_VERSION)
    # Journals are read in whole appends, so every record of a run is here with its header.  Should one be missing all
    # the same, something other than Ballast removed it, and half a run is nothing to act upon.
    if (len(own), len(votes)) != (found.moves, found.elections):
        return None
    unknown = ExecutionPolicy.unknown(found.policy)
    if unknown and not ended:
        raise Corrupt(
            f"The journaled policy has settings this version does not know: {', '.join(unknown)}.",
            hint="Use the Ballast version that started the run, or a newer one.",
        )
    return Run(
        id=run_id,
        cluster_id=found.cluster_id,
        policy=read_record(Record(header.key, found.policy), ExecutionPolicy),
        moves={m.move.name: m for _, m in sorted(own, key=lambda pair: pair[0])},
        elections=votes,
        in_order=found.in_order,
        unclean=found.unclean,
        rollback_when_cancelled=found.rollback_when_cancelled,
        unknown_settings=unknown,
        **found.shared(),
    )


def _read_move(record: Record) -> tuple[int, MoveRun]:
    m = read_record(record, _MoveRecord, version=RUN_VERSION)
    return m.order, MoveRun(
        Move(m.topic, m.partition, m.old, m.new, m.size_bytes, Reason(*m.reason), m.log_dirs),
        stage=_stage(m),
        attempts=m.attempts,
        note=m.note,
        since_ms=m.since_ms,
        cancelled_by=m.cancelled_by,
        topic_id=m.topic_id,
    )


def _stage(m: _MoveRecord) -> Stage:
    kind = _STAGES[m.stage]
    if issubclass(kind, Ended):
        return kind(m.outcome)
    if kind is Relocating:
        return Relocating(seen_on=m.seen_on)
    return kind(raced=m.raced) if issubclass(kind, Reassigning | Cancelling) else kind()


def _read_election(record: Record) -> tuple[TopicPartition, ElectionRun]:
    e = read_record(record, _ElectionRecord, version=RUN_VERSION)
    return TopicPartition(e.topic, e.partition), ElectionRun(e.stage, e.attempts, e.note)


# The records as they are read; what has a default is written only where it says something.


class _Purpose(TypedDict):
    code: str
    brokers: tuple[Count, ...]
    racks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """What a header says that lists show as well."""

    intent: str
    purpose: _Purpose
    phase: Phase
    status: Status
    started_ms: Moment
    ended_ms: Moment
    rollback_of: str | None = None
    stopped_by: str = ""

    def shared(self) -> dict[str, Any]:
        """All of it, by the names that it has in a run."""
        return {f.name: getattr(self, f.name) for f in fields(RunHeader)} | {"purpose": Purpose(**self.purpose)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _WholeHeader(RunHeader):
    cluster_id: str
    policy: dict[str, Any]
    in_order: bool
    unclean: bool
    rollback_when_cancelled: bool
    moves: Count
    elections: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packed:
    packed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    topic: str
    partition: Count
    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted(_Progress):
    attempts: Count
    detail: str
    code: str | None = None
    values: dict[str, Any] | None = None
    cause: str = ""

    def __post_init__(self) -> None:
        """Require of a code what its sentence was made of."""
        if self.code is not None and self.values is None:
            raise ValueError("'values' is missing beside 'code'")

    @property
    def note(self) -> MoveNote | None:
        """What was said, if anything."""
        return (
            journaled_note(self.detail)
            if self.code is None
            else journaled_note(self.detail, self.code, self.values, self.cause)
        )


_STAGES: Final = {stage.code: stage for stage in STAGES}


@dataclass(frozen=True, slots=True, kw_only=True)
class _MoveRecord(_Noted):
    stage: Annotated[str, OneOf(*_STAGES)]
    order: Count
    old: tuple[Count, ...]
    new: tuple[Count, ...]
    size_bytes: Annotated[int, Whole(UNKNOWN)]
    reason: tuple[str, str]
    since_ms: Moment
    detail: str = ""
    outcome: str = ""
    raced: bool = False
    seen_on: frozenset[Count] = frozenset()
    log_dirs: tuple[str, ...] | None = None
    topic_id: str | None = None
    cancelled_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ElectionRecord(_Noted):
    stage: ElectionStage

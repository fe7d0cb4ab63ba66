"""A run's form in the journal: one header, a record for each move and each election.

A record is versioned; one of a version that is not known, or that Ballast did not write, is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.document import Reader
from ballast.core.plan import Move, Reason
from ballast.errors import Refused, UsageError
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.run import ElectionRun, ElectionStage, MoveRun, Now, Phase, Run, Stage, Status
from ballast.ports.journal import Record
from ballast.ports.journal_codec import STRANGE_HINT, Corrupt

T = TypeVar("T")
RUN_VERSION: Final = 1


def run_key(run_id: str) -> str:
    """The journal key of a run's header."""
    return f"run/{run_id}"


def move_key(run_id: str, name: TopicPartition) -> str:
    """The journal key of one move."""
    return f"move/{run_id}/{name}"


def election_key(run_id: str, name: TopicPartition) -> str:
    """The journal key of one election."""
    return f"election/{run_id}/{name}"


def dump_header(run: Run) -> Record:
    """The run without its moves."""
    return Record(
        run_key(run.id),
        {
            "version": RUN_VERSION,
            "intent": run.intent,
            "cluster_id": run.cluster_id,
            "policy": run.policy.dump(),
            "phase": run.phase.value,
            "status": run.status.value,
            "unclean": run.unclean,
            "started_ms": run.started_ms,
            "ended_ms": run.ended_ms,
            "undoes": run.undoes,
            "rollback_when_cancelled": run.rollback_when_cancelled,
            "stopped_by": run.stopped_by,
            "moves": len(run.moves),
            "elections": len(run.elections),
        },
    )


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
        "stage": m.stage.value,
        "attempts": m.attempts,
        "since_ms": m.since_ms,
    }
    if m.move.log_dirs is not None:
        value["log_dirs"] = list(m.move.log_dirs)
    if m.outcome:
        value["outcome"] = m.outcome
    if m.detail:
        value["detail"] = m.detail
    if m.astray:
        value["astray"] = True
    if m.topic_id is not None:
        value["topic_id"] = m.topic_id
    return Record(move_key(run.id, m.move.name), value)


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
            "detail": e.detail,
        },
    )


def dump_run(run: Run) -> list[Record]:
    """Every record of a run."""
    return [
        dump_header(run),
        *(dump_move(run, i, m) for i, m in enumerate(run.moves.values())),
        *(dump_election(run, n, e) for n, e in run.elections.items()),
    ]


def changes(before: Run, after: Run) -> list[Record]:
    """The records that differ between two values of one run."""
    out: list[Record] = []
    if before.moves is not after.moves:
        for i, (name, m) in enumerate(after.moves.items()):
            was = before.moves[name]
            if was is not m and not was.persists_like(m):
                out.append(dump_move(after, i, m))
    if before.elections is not after.elections:
        for name, e in after.elections.items():
            was_e = before.elections[name]
            if (was_e.stage, was_e.attempts, was_e.detail) != (e.stage, e.attempts, e.detail):
                out.append(dump_election(after, name, e))
    header = dump_header(after)
    # The header goes last: once it says that the run has ended, every move before it in the journal has its end too.
    return out if header == dump_header(before) else [*out, header]


def load_runs(records: Iterable[Record], now: Now) -> dict[str, Run]:
    """Every run in the journal, oldest first.

    An open run that this version cannot read is refused by name.  One that has ended is no longer acted upon: settings that a
    newer version gave it are skipped, and where that is not enough the run is, so that going back to this version is possible.
    """
    of_run: dict[str, list[Record]] = {}
    for record in records:
        if record.key.startswith(("run/", "move/", "election/")):
            of_run.setdefault(record.key.split("/", 2)[1], []).append(record)
    found = []
    for run_id, own in of_run.items():
        header = next((r for r in own if r.key == run_key(run_id)), None)
        ended = header is not None and (header.value or {}).get("phase") == Phase.ENDED.value
        try:
            found.append(_load_run(run_id, header, own, now, ended=ended))
        except Refused:
            if not ended:
                raise
    return {r.id: r for r in sorted(filter(None, found), key=lambda r: (r.started_ms, r.id))}


def _load_run(run_id: str, header: Record | None, records: Iterable[Record], now: Now, *, ended: bool) -> Run | None:
    """One run out of its records; None where some of them are missing."""
    own: list[tuple[int, MoveRun]] = []
    votes: dict[TopicPartition, ElectionRun] = {}
    for record in records:
        if record.key.startswith("move/"):
            own.append(_read(record, lambda r: (r.integer("order"), _move(r, now))))
        elif record.key.startswith("election/"):
            name, election = _read(record, _election)
            votes[name] = election

    def run(r: Reader) -> Run | None:
        # Journals are read in whole appends, so every record of a run is here with its header.  Should one be missing all
        # the same, somebody else took it away, and half a run is nothing to act upon.
        if (len(own), len(votes)) != (r.integer("moves"), r.integer("elections")):
            return None
        return Run(
            id=run_id,
            intent=r.text("intent"),
            cluster_id=r.text("cluster_id"),
            policy=ExecutionPolicy.load(r.mapping("policy"), skips_unknown=ended),
            moves={m.move.name: m for _, m in sorted(own, key=lambda pair: pair[0])},
            elections=votes,
            phase=Phase(r.text("phase")),
            status=Status(r.text("status")),
            unclean=r.flag("unclean"),
            started_ms=r.integer("started_ms"),
            ended_ms=r.integer("ended_ms"),
            undoes=r.optional_text("undoes"),
            rollback_when_cancelled=r.flag("rollback_when_cancelled"),
            stopped_by=r.text("stopped_by") if r.has("stopped_by") else "",
            unknown_settings=ExecutionPolicy.unknown(r.mapping("policy")),
        )

    return None if header is None else _read(header, run)


def _read(record: Record, read: Callable[[Reader], T]) -> T:
    """What the record says, when this version of Ballast knows how to read it."""
    value = record.value or {}
    if value.get("version") != RUN_VERSION:
        raise Refused(
            f"The journal's record {record.key} has version {value.get('version')}, and this Ballast reads {RUN_VERSION}.",
            hint="Use the Ballast version that wrote it, or a newer one.",
        )
    place = f"The journal's record {record.key}"
    try:
        return read(Reader(value, place, STRANGE_HINT))
    except UsageError as mistake:
        raise Corrupt(mistake.message, hint=mistake.hint) from None
    except (ValueError, TypeError):
        raise Corrupt(f"{place} is not one of Ballast's.", hint=STRANGE_HINT) from None


def _move(r: Reader, now: Now) -> MoveRun:
    code, detail = r.texts("reason")
    return MoveRun(
        Move(
            topic=r.text("topic"),
            partition=r.integer("partition"),
            old=r.integers("old"),
            new=r.integers("new"),
            size_bytes=r.integer("size_bytes", at_least=UNKNOWN),
            reason=Reason(code, detail),
            log_dirs=r.texts("log_dirs") if r.has("log_dirs") else None,
        ),
        stage=Stage(r.text("stage")),
        attempts=r.integer("attempts"),
        outcome=r.text("outcome") if r.has("outcome") else "",
        detail=r.text("detail") if r.has("detail") else "",
        since_ms=r.integer("since_ms"),
        astray=r.flag("astray") if r.has("astray") else False,
        topic_id=r.text("topic_id") if r.has("topic_id") else None,
    ).taken_up(now)


def _election(r: Reader) -> tuple[TopicPartition, ElectionRun]:
    name = TopicPartition(r.text("topic"), r.integer("partition"))
    return name, ElectionRun(ElectionStage(r.text("stage")), r.integer("attempts"), r.text("detail"))


def expired(runs: Mapping[str, Run], keep: int) -> list[Record]:
    """Tombstones for the oldest runs that have ended, beyond the newest ``keep``; an open run never expires."""
    ended = [r for r in runs.values() if r.ended]
    old = ended[: max(0, len(ended) - keep)]
    return [Record(record.key, None) for r in old for record in dump_run(r)]

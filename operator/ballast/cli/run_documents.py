"""What happens in a run, and how it ends, as documents: one a line on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ballast.cli.documents import runs
from ballast.cli.documents.base import Partition
from ballast.core.catalogue import plain
from ballast.executor.driver import events
from ballast.executor.journal.notes import RunNote
from ballast.executor.machine.notes import note_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ballast.cli.documents.base import Document
    from ballast.core.guards import Verdict
    from ballast.executor.driver.pace import Pace
    from ballast.executor.machine.progress import Progress


def document_of(event: events.RunEvent) -> Document | None:
    """The document of an event that is told."""
    match event:
        case events.RunBegan(run, resumed):
            found: Document | None = runs.RunBegan(run=run.id, intent=run.intent, purpose=run.purpose, resumed=resumed)
        case events.Paced(pace):
            found = _throttle(pace)
        case events.MoveChanged():
            found = _move_change(event)
        case events.Refusing(verdicts):
            found = _waiting(verdicts)
        case events.Progressed(progress):
            found = _progress(progress)
        case RunNote(code):
            found = runs.RunNote(code=code, parameters=event.parameters, detail=str(event))
        case events.RunEnded(result):
            found = _run_end(result)
        case events.Performing():
            found = None
    return found


def _move_change(change: events.MoveChanged) -> Document:
    return runs.MoveChanged(
        topic=change.name.topic,
        partition=change.name.partition,
        before=change.before.code,
        after=change.after.code,
        outcome=change.outcome,
        **note_fields(change.why),
    )


def _waiting(verdicts: Sequence[Verdict]) -> Document:
    return runs.RunWaiting(
        refusals=[
            runs.Refusal(
                code=v.code,
                cause=v.cause,
                subject=v.subject,
                parameters=plain(v.values),
                detail=v.detail,
                remedy=v.remedy,
            )
            for v in verdicts
        ]
    )


def _throttle(pace: Pace) -> Document:
    return runs.RunThrottle(
        auto=pace.auto,
        seconds=pace.seconds,
        brokers=pace.brokers,
        unmeasured=[Partition.of(name) for name in pace.unmeasured],
    )


def _progress(p: Progress) -> Document:
    return runs.RunProgress(
        run=p.run_id,
        phase=p.phase,
        moves_total=p.moves,
        moves_verified=p.verified,
        moves_ended_otherwise=p.ended_otherwise,
        moves_in_flight=len(p.in_flight),
        moves_waiting=p.waiting,
        elections_total=p.elections,
        elections_completed=p.elections_completed,
        bytes_total=p.bytes_total,
        bytes_done=p.bytes_done,
        bytes_per_s=None if p.bytes_per_s is None else round(p.bytes_per_s),
        seconds_left=p.left_s,
        refusals=list(p.refusals),
    )


def _run_end(r: events.RunResult) -> Document:
    return runs.RunEnded(
        run=r.run_id,
        status=r.status,
        moves=runs.MovesEnded(verified=r.verified, rolled_back=r.rolled_back, failed=r.failed, left=r.still_open),
        elections_completed=r.elections_completed,
        bytes_moved=r.bytes_moved,
        seconds=r.seconds,
        endings=[
            runs.Ending(
                subject=e.subject,
                outcome=e.outcome,
                **note_fields(e.why),
            )
            for e in r.endings
        ],
        throttles_to_restore=[str(s) for s in r.throttles_to_restore],
        restore_commands=list(r.restore_commands),
    )

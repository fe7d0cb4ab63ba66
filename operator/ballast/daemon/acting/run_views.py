"""Runs as the page and the metrics show them: the one in progress, and the ones of the journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ballast.core.plan import Move
from ballast.core.plan.work import work_of
from ballast.core.throttles import FOLLOWER_RATE, LEADER_RATE
from ballast.core.wording import human_elections, human_many
from ballast.daemon.context.view import MoveView, RunView
from ballast.executor.journal.history import RunSummary
from ballast.executor.machine.progress import Progress, done_of, total_of
from ballast.executor.machine.run import ElectionStage, MoveRun, Run
from ballast.executor.machine.stages import ENDED_CODES, Ended, InFlight, Verified

SHOWN_MOVES: Final = 50
"""Moves of a run in progress, or of a waiting plan, that the page lists; the rest it counts."""
SHOWN_RUNS: Final = 50
"""Runs that ended, of which the page tells."""


def run_view(run: Run, progress: Progress | None = None, note: str = "") -> RunView:
    """A run at this moment."""
    moves = list(run.moves.values())
    ended_well = len(run.moves_in(Verified))
    failed = len(run.moves_in(Ended)) - ended_well
    total = total_of(moves)
    done = sum(done_of(m) for m in moves)
    flying = run.moves_in(InFlight)
    completed = sum(e.stage is ElectionStage.COMPLETED for e in run.elections.values())
    return RunView(
        id=run.id,
        intent=run.intent,
        purpose=run.purpose,
        phase=run.phase.value,
        started_at_ms=run.started_ms,
        ended_at_ms=run.ended_ms or None,
        status=run.status.value,
        changes=() if run.ended else changes((m.move for m in moves), len(run.elections), unclean=run.unclean),
        moves_total=len(moves),
        moves_verified=ended_well,
        moves_ended_otherwise=failed,
        moves_in_flight=len(flying),
        elections_total=len(run.elections),
        elections_completed=completed,
        bytes_total=total,
        bytes_left=None if total is None else max(0, total - done),
        bytes_per_s=progress.bytes_per_s if progress else None,
        seconds_left=progress.left_s if progress else None,
        throttle_bytes_per_s=_lowest_rate(run),
        detail=_sentence(run, flying, note),
        moves=tuple(_move(m) for m in flying[:SHOWN_MOVES]),
    )


def changes(moves: Iterable[Move], elections: int, *, unclean: bool = False) -> tuple[str, ...]:
    """What a run does, each kind in the words of its plan."""
    parts = work_of(moves).parts()
    return (*parts, human_elections(elections, unclean=unclean)) if elections else tuple(parts)


def _lowest_rate(run: Run) -> int | None:
    """The lowest replication rate that the run has set on a broker; None while it has set none."""
    rates = [
        int(r) for s, values in (run.applied or {}).items() if s.key in (LEADER_RATE, FOLLOWER_RATE) for r in values
    ]
    return min(rates, default=None)


def past_runs(ended: Sequence[RunSummary]) -> tuple[RunView, ...]:
    """Runs that ended, newest first."""
    return tuple(map(_past, sorted(ended, key=lambda r: r.ended_ms, reverse=True)[:SHOWN_RUNS]))


def _past(run: RunSummary) -> RunView:
    final = sum(run.moves.get(stage, 0) for stage in ENDED_CODES)
    return RunView(
        id=run.id,
        intent=run.intent,
        purpose=run.purpose,
        phase=run.phase.value,
        started_at_ms=run.started_ms,
        ended_at_ms=run.ended_ms or None,
        status=run.status.value,
        moves_total=sum(run.moves.values()),
        moves_verified=run.verified,
        moves_ended_otherwise=final - run.verified,
        elections_total=sum(run.elections.values()),
        elections_completed=run.elections.get(ElectionStage.COMPLETED, 0),
        bytes_total=run.bytes_total,
        bytes_left=None if run.bytes_total is None else max(0, run.bytes_total - run.bytes_done),
    )


def _sentence(run: Run, flying: list[MoveRun], note: str) -> str:
    if run.ended:
        return ""
    stalled = [m for m in flying if m.cause is not None]
    if stalled:
        return f"{human_many(len(stalled), 'move')} of {len(flying)} in progress stalled: {stalled[0].detail or 'no progress'}"
    if flying:
        return f"Moving {human_many(len(flying), 'partition')}"
    if run.verdicts:
        return f"Held back: {run.verdicts[0]}"
    if run.elections and not run.moves:
        return f"Running {human_elections(len(run.elections), unclean=run.unclean)}"
    return note or "Looking"


def _move(m: MoveRun) -> MoveView:
    return MoveView(
        topic=m.move.topic,
        partition=m.move.partition,
        old=m.move.old,
        new=m.move.new,
        size_bytes=total_of([m]),
        copied_bytes=done_of(m),
        stage=m.stage.code,
        detail=m.detail or str(m.move.reason),
    )

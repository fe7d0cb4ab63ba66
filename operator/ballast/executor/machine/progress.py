"""How far a run has come: bytes, rate and time left, for the whole and for each move in progress."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ballast.core.cluster import TopicPartition
from ballast.executor.machine.run import ElectionStage, MoveRun, Run
from ballast.executor.machine.stages import Ended, InFlight, Moved, Planned, Stage, Throttled, Unthrottled, Verified

WINDOW_S = 30.0
"""The rate is an average over this time."""


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """One move in progress."""

    name: TopicPartition
    stage: Stage
    copied_bytes: int
    total_bytes: int | None
    """None where no broker has told its size."""
    detail: str


@dataclass(frozen=True, slots=True)
class Progress:
    """One look at a run."""

    run_id: str
    phase: str
    moves: int
    verified: int
    ended_otherwise: int
    in_flight: tuple[MoveProgress, ...]
    waiting: int
    elections: int
    elections_completed: int
    bytes_total: int | None
    """None where the size of a move is unknown, as ``left_s`` then is."""
    bytes_done: int
    bytes_per_s: float | None
    """Averaged over the last half minute; None before two readings."""
    left_s: float | None
    """Time left at that rate; None while nothing is known."""
    refusals: tuple[str, ...] = ()


def total_of(moves: Iterable[MoveRun]) -> int | None:
    """Bytes that these moves copy, by the newest figures; None where the size of one is unknown."""
    listed = list(moves)
    return None if any(m.size_unknown for m in listed) else sum(m.to_copy_bytes for m in listed)


def done_of(m: MoveRun) -> int:
    """Bytes it has copied; a move that arrived has copied all."""
    if m.size_unknown:
        return m.copied_bytes if isinstance(m.stage, (InFlight, *_ARRIVED)) else 0
    if isinstance(m.stage, _ARRIVED):
        return m.to_copy_bytes
    return min(m.copied_bytes, m.to_copy_bytes) if isinstance(m.stage, InFlight) else 0


_ARRIVED: Final = (Moved, Unthrottled, Verified)


@dataclass(slots=True)
class Speedometer:
    """Remembers readings to tell a rate from."""

    readings: deque[tuple[float, int]] = field(default_factory=deque)

    def read(self, run: Run, now_s: float) -> Progress:
        """The progress now; call it whenever bytes may have changed."""
        moves, verified = list(run.moves.values()), len(run.moves_in(Verified))
        done = sum(done_of(m) for m in moves)
        total = total_of(m for m in moves if not isinstance(m.stage, Ended) or isinstance(m.stage, Verified))
        if not self.readings or done != self.readings[-1][1] or now_s - self.readings[-1][0] > WINDOW_S / 3:
            self.readings.append((now_s, done))
        while len(self.readings) > 2 and now_s - self.readings[0][0] > WINDOW_S:
            self.readings.popleft()
        rate = self._rate(now_s, done)
        left = None if total is None else max(0, total - done)
        return Progress(
            run_id=run.id,
            phase=run.phase.value,
            moves=len(moves),
            verified=verified,
            ended_otherwise=len(run.moves_in(Ended)) - verified,
            in_flight=tuple(
                MoveProgress(m.move.name, m.stage, m.copied_bytes, total_of([m]), m.detail)
                for m in run.moves_in(InFlight)
            ),
            waiting=len(run.moves_in(Planned, Throttled)),
            elections=len(run.elections),
            elections_completed=sum(e.stage is ElectionStage.COMPLETED for e in run.elections.values()),
            bytes_total=total,
            bytes_done=done,
            bytes_per_s=rate,
            left_s=0.0 if left == 0 else left / rate if left is not None and rate else None,
            refusals=tuple(str(v) for v in run.verdicts[:5]),
        )

    def _rate(self, now_s: float, done: int) -> float | None:
        since, before = self.readings[0]
        return max(0, done - before) / (now_s - since) if now_s > since else None

"""How long a move may take: a timeout that follows its bytes and the rate in force, and starts anew with progress.

A move is measured in *legs* of a tenth of its bytes.  For the next leg it has ``policy.stall_factor`` times what the leg
takes at its share of the throttle, and never less than ``policy.stall_min_s``; where no throttle is set it is expected
to make ``policy.stall_unthrottled_bytes_per_s``.  Every leg that is done starts the clock anew, so a large move is not ended for being
large and a too slow one is not kept alive by single bytes.  Copies between the log dirs of a broker have their time by the
same rule and their own rate.  Pure.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final, TypeVar

from ballast.executor.machine.notes import MoveNote, note
from ballast.executor.machine.run import MoveRun, Now, Run
from ballast.executor.machine.scheduling.speeds import broker_rates
from ballast.executor.machine.stages import Copying, InFlight, Moving, Relocating

StageT = TypeVar("StageT", bound=Copying)
LEGS: Final = 10
"""Parts of a move that each have a time of their own."""


def next_end_s(run: Run, now: Now) -> float | None:
    """Seconds until the first move in progress may have arrived, at its share of its destinations' rates; None unthrottled.

    Estimated from the last reading of what has arrived and the time since, so it may be a little early and is rarely late.
    """
    flying = [(m, m.stage) for m in run.moves.values() if isinstance(m.stage, Moving) and m.move.adding]
    sharing = Counter(b for m, _ in flying for b in m.move.adding)
    rates = broker_rates(run, sharing)
    ends = [
        max(0.0, m.left_bytes / len(m.move.adding) * sharing[b] / rates[b] - (now.s - stage.grown_at_s))
        for m, stage in flying
        if not m.size_unknown
        for b in m.move.adding
        if b in rates
    ]
    return min(ends, default=None)


def leg_bytes(m: MoveRun, stage: Copying) -> int:
    """Bytes that must arrive before the clock starts anew."""
    return min(stage.mark_left_bytes, -(-m.to_copy_bytes // LEGS))


def share_bytes_per_s(run: Run, m: MoveRun, leader: int) -> float:
    """What this move may be expected to copy: the tightest of its brokers' rates, divided among the moves that share it."""
    least = float(run.policy.stall_unthrottled_bytes_per_s)
    if not run.policy.throttled:
        return least
    flying = [o for o in run.moves_in(InFlight) if o.move.adding]
    rates = broker_rates(run, (*m.move.adding, leader))
    shares = [rates[b] / max(1, sum(b in o.move.adding for o in flying)) for b in m.move.adding if b in rates]
    if leader in rates:
        # Who leads the others is not known here; that any broker that had the partition may send is the careful side.
        shares.append(rates[leader] / max(1, sum(leader in o.move.old for o in flying)))
    return min(shares, default=least) * max(len(m.move.adding), 1)


def dir_share_bytes_per_s(run: Run, m: MoveRun) -> float:
    """The same for its copies between log dirs: the broker's rate for these, divided among the moves that copy there.

    That one copy after the other gets it is the careful side.
    """
    rate = run.policy.log_dir_throttle_bytes_per_s
    if rate is None:
        return float(run.policy.stall_unthrottled_bytes_per_s)
    sharing = Counter(b for o in run.moves_in(Relocating) for b in o.move.named_dirs)
    return rate / max((sharing[b] for b in m.move.named_dirs), default=1)


def _share(run: Run, m: MoveRun, leader: int) -> tuple[float, bool]:
    """Bytes/s that it is expected to make, and whether a throttle is what says so."""
    if isinstance(m.stage, Relocating):
        return dir_share_bytes_per_s(run, m), run.policy.log_dir_throttle_bytes_per_s is not None
    return share_bytes_per_s(run, m, leader), run.policy.throttled


def allowed_s(run: Run, m: MoveRun, stage: Copying, leader: int) -> float:
    """Seconds that the next leg may take."""
    due = run.policy.stall_factor * leg_bytes(m, stage) / _share(run, m, leader)[0]
    return max(run.policy.stall_min_s, due)


def mark(m: MoveRun, stage: StageT, now: Now, *, anew: bool = False) -> StageT:
    """The stage with its clock started anew where a leg is done, or where the move goes on after having stood still."""
    left = m.left_bytes
    if anew or stage.mark_left_bytes - left >= leg_bytes(m, stage) > 0:
        return replace(stage, mark_left_bytes=left, mark_s=now.s)
    # What producers add while it runs is more to copy, not progress undone.
    return replace(stage, mark_left_bytes=left) if left > stage.mark_left_bytes else stage


def overdue(run: Run, m: MoveRun, stage: Copying, leader: int, now: Now) -> MoveNote | None:
    """Why this move is over its time, with the arithmetic; None while it is not."""
    passed = now.s - stage.mark_s
    if passed < run.policy.stall_min_s or passed < (allowed := allowed_s(run, m, stage, leader)):
        return None
    share, throttled = _share(run, m, leader)
    return note(
        "slow",
        done=max(0, stage.mark_left_bytes - m.left_bytes),
        passed_s=passed,
        leg=leg_bytes(m, stage),
        allowed_s=allowed,
        share=share,
        throttled=throttled,
        left=m.known_left_bytes,
    )

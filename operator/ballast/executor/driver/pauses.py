"""What a run waits for: a cluster that stands still before it begins, the rest between two looks, and what ends that early.

Also after which failures it looks again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ballast.core.cluster import TopicPartition
from ballast.errors import BallastError, Fenced, LockHeld, Refused, WrongCluster
from ballast.executor.journal.records import load_runs
from ballast.executor.journal.term import LeaseTerm
from ballast.executor.machine.run import Now, Run
from ballast.executor.machine.stages import Cancelling, Moved, Restoring, Submitted, Unthrottled
from ballast.executor.machine.time_limit import next_end_s
from ballast.ports.cluster import ClusterReader
from ballast.ports.journal import Journal
from ballast.ports.time import Clock

LOOKING_SHARE: Final = 3.0
"""A look that took t seconds is followed by this many times t of rest: looking takes at most a quarter of the time."""

STILL_S: Final = 1.0
"""Two listings this far apart that agree mean that the cluster stands still."""

_ENDS_SOON: Final = (Submitted, Moved, Unthrottled, Cancelling, Restoring)
"""What these wait for happens by itself within moments."""


def pause_until_next_s(run: Run, look_s: float, now: Now) -> float:
    """Look again soon where something is about to end by itself: free moves, elections, copies that are nearly there.

    A destination whose copies have ended stands idle until the next look, which with small moves is most of its time.
    Where a look is dear the pause is longer.
    """
    often_s = max(run.policy.poll_s / 4, look_s * LOOKING_SHARE)
    last = list(run.open_moves)
    if last and all(isinstance(m.stage, Unthrottled) and now.s - m.entered_s < often_s for m in last):
        # All that is left is to see once more what the last look has shown already.
        return 0.0
    soon = any(isinstance(m.stage, _ENDS_SOON) for m in run.moves.values())
    until_s = 0.0 if soon else next_end_s(run, now)
    return run.policy.poll_s if until_s is None else min(max(often_s, until_s), run.policy.poll_s)


def wait(cluster: ClusterReader, clock: Clock, pause_s: float, look_s: float) -> bool:
    """Rest for the pause; True when the cluster ended it by telling that ISRs have changed.

    The rest that is owed for the last look is never cut: a cluster in turmoil tells all the time.
    """
    owed_s = min(pause_s, look_s * LOOKING_SHARE)
    clock.sleep(owed_s)
    return cluster.await_change(clock, pause_s - owed_s)


def is_transient(failure: BallastError) -> bool:
    """Is it worth trying again later?

    A broker that fails for a reason of its own (``UNKNOWN_SERVER_ERROR``, ``STALE_BROKER_EPOCH``) says no like one that will
    never say yes.  A run that stands in the journal must not be left by its process for that.
    """
    return failure.retryable or (
        isinstance(failure, Refused) and not isinstance(failure, Fenced | LockHeld | WrongCluster)
    )


def wait_until_listings_agree(
    cluster: ClusterReader, journal: Journal | LeaseTerm, clock: Clock, leaving: Callable[[], bool]
) -> None:
    """Wait until two listings agree: a predecessor's last send may still be on its way.

    It can only repeat what the journal holds, so moves of others do not count, however many they start.  Reassignments end
    by themselves: only new ones and other targets count as movement.
    """
    ours: set[TopicPartition] | None = None
    before = cluster.reassignments()
    while not leaving():
        clock.sleep(STILL_S)
        journal.renew()
        after = cluster.reassignments()
        moved = {n for n, r in after.items() if n not in before or before[n].adding != r.adding}
        if moved and ours is None:
            runs = load_runs(journal.read(), Now(clock.now_ms(), clock.monotonic_s()))
            ours = {name for run in runs.values() for name in run.moves}
        if not moved or moved.isdisjoint(ours or ()):
            return
        before = after

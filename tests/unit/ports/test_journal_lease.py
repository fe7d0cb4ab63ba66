"""What a process is told that finds the lock held."""

from __future__ import annotations

from ballast.ports.journal import Holder
from ballast.ports.journal_lease import lock_held


def test_who_finds_the_lock_held_is_told_by_whom_since_when_and_what_can_be_done() -> None:
    """The holder's activity where it says one; the rest of its lease, never as 0 s."""
    holder = Holder("id", "ana@laptop ballast apply", since_ms=1_700_000_000_000, doing="moving orders-3")
    assert str(lock_held(holder, left_s=0.2)) == (
        "ana@laptop ballast apply has held this cluster's lock since 2023-11-14T22:13:20Z, doing: moving orders-3. "
        "Wait, or request the lock from it with --take-over; if that process has died, its lease expires in 1 s."
    )
    follower = lock_held(Holder("id", "ana@pod", is_follower=True), left_s=9.0)
    assert (follower.holder, follower.is_follower) == ("ana@pod", True)
    assert follower.message == "ana@pod has held this cluster's lock since 1970-01-01T00:00:00Z."

"""The arithmetic of the lock's lease, without a clock: what a candidate may conclude, and what a holder may still do.

Neither side trusts the other's clock.  A candidate counts from the moment *it* last saw the lease change; a holder counts from
the moment *before* it began to write its last beat.  The holder's count therefore always ends first.
"""

from __future__ import annotations

from datetime import UTC, datetime

from ballast.errors import LockHeld
from ballast.ports.journal import CLOCKS_DIFFER_S, Holder

RENEW_AT: float = 1 / 3
"""A lease is renewed when this part of it has passed, so that two beats may fail."""

Mark = tuple[str, int]


class LeaseWatch:
    """A candidate's observation of another process's lease."""

    def __init__(self, now_s: float) -> None:
        self._mark: Mark | None = None
        self._unchanged_since_s = now_s

    def may_take(self, lease: tuple[Holder, int] | None, now_s: float) -> bool:
        """Whether the lock is free: released, or not renewed for one whole lease on our own clock."""
        if lease is None:
            return True
        holder, beat = lease
        if self._mark != (holder.id, beat):
            self._mark, self._unchanged_since_s = (holder.id, beat), now_s
        return now_s - self._unchanged_since_s >= holder.lease_s

    def left_s(self, lease: tuple[Holder, int], now_s: float) -> float:
        """How long until the lease could be taken if nothing renews it."""
        return max(lease[0].lease_s - (now_s - self._unchanged_since_s), 0.0)


class HeldLease:
    """A holder's own account of how long its last beat protects it."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._surely_until_s = float("-inf")
        self._renew_from_s = float("-inf")

    def record_renewal(self, began_s: float) -> None:
        """The beat whose writing began then is in the journal: the lease runs from that moment."""
        self._surely_until_s = began_s + self._lease_s
        self._renew_from_s = began_s + self._lease_s * RENEW_AT

    def is_sure(self, now_s: float) -> bool:
        """No other process can have taken the lock yet."""
        return now_s < self._surely_until_s

    def is_due(self, now_s: float) -> bool:
        """It is time for the next beat."""
        return now_s >= self._renew_from_s


def is_lease_expired(holder: Holder, renewed_ms: int | None, now_ms: int) -> bool | None:
    """Whether this lease has surely run out, whatever two clocks may differ by; None where it is not known when it was renewed.

    For people who look.  A candidate for the lock trusts no clock but its own, and watches the lease (``LeaseWatch``).
    """
    return None if renewed_ms is None else now_ms - renewed_ms > (holder.lease_s + CLOCKS_DIFFER_S) * 1000


def lock_held(holder: Holder, *, left_s: float) -> LockHeld:
    """The sentence for a process that finds the lock held."""
    doing = f", doing: {holder.doing}" if holder.doing else ""
    return LockHeld(
        f"{holder.description} has held this cluster's lock since {_utc(holder.since_ms)}{doing}.",
        holder=holder.description,
        is_follower=holder.is_follower,
        hint="Wait, or request the lock from it with --take-over; if that process has died, its lease expires in "
        f"{max(left_s, 1):.0f} s.",
    )


def lock_contended() -> LockHeld:
    """The sentence for a process that was overtaken by another, whose name is not known yet."""
    return LockHeld("Another process is taking this cluster's lock at this moment.", hint="Try again in a few seconds.")


def lock_unwanted() -> LockHeld:
    """The sentence for a process that no longer wants the lock."""
    return LockHeld("The lock is no longer wanted.")


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

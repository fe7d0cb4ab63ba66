"""Hears from ZooKeeper that in-sync replicas have changed, on brokers that write such notifications (before Kafka 2.7).

A leader that changes an ISR writes its state znode at once and, after 5 quiet seconds or 60 at most, a child of
``/isr_change_notification``, which the controller takes away again when it has told every broker.  The children say which
partitions; that is not read here: a notification is a reason to look, and what is looked at are the state znodes.

ZooKeeper's watches fire once and die with their session.  What is kept is therefore not the watch but the number of changes
that the parent counts: a watch that fired for any reason, the end of its session included, is set anew with a reading of that
number, so a change in between is found and not missed.
"""

from __future__ import annotations

import threading
from typing import Final

from ballast.adapters.clock import Deadline
from ballast.adapters.zookeeper.client import ZooKeeper
from ballast.errors import BallastError
from ballast.ports.time import Clock

NOTIFICATIONS: Final = "/isr_change_notification"


class IsrWatch:
    """Waits for ISR changes; for one waiter at a time."""

    def __init__(self, zookeeper: ZooKeeper) -> None:
        self._zookeeper = zookeeper
        self._fired = threading.Event()
        self._armed = False
        self._changes: int | None = None
        """How many children had come and gone at the last reading; None before the first."""

    def wait(self, clock: Clock, seconds: float) -> bool:
        """Wait this long, or until ISRs have changed since they were counted last: True then.

        The first wait only learns where the counting begins.  While ZooKeeper does not answer the time is waited out: the
        caller looks afterwards all the same, and hears there what is wrong.
        """
        end = Deadline(seconds)
        try:
            while not self._changed():
                if not self._fired.wait(end.left_s):
                    return False
        except BallastError:
            self._armed = False
            clock.sleep(end.left_s)
            return False
        return True

    def _changed(self) -> bool:
        if self._armed and not self._fired.is_set():
            return False
        # Cleared before the reading: what fires from here on is a reason to read again.
        self._fired.clear()
        before, self._changes = self._changes, self._zookeeper.child_changes(NOTIFICATIONS, self._fire)
        self._armed = self._changes is not None
        return before is not None and self._changes not in {before, None}

    def _fire(self, _event: object) -> None:
        """In kazoo's thread: a child came or went, or the session that watched is lost or interrupted."""
        self._fired.set()

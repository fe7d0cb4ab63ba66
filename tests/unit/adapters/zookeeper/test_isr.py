"""The watch on ISR notifications: what ends a wait, what does not, and that nothing in between is missed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

from ballast.adapters.clock import SystemClock
from ballast.adapters.zookeeper.client import ZooKeeper
from ballast.adapters.zookeeper.isr import NOTIFICATIONS, IsrWatch
from ballast.errors import Unavailable

LONG_S = 30.0
"""Reached by no wait that is told something."""


class Scripted:
    """Stands in for a session: a count of children that came and went, and the watches that were set."""

    def __init__(self, changes: int | None = 0) -> None:
        self.changes = changes
        self.watches: list[Callable[[object], None]] = []
        self.readings = 0
        self.silent = False
        self.after_reading: Callable[[], None] = lambda: None

    def child_changes(self, path: str, watch: Callable[[object], None]) -> int | None:
        """As ``ZooKeeper.child_changes``: a watch only where there is a znode."""
        assert path == NOTIFICATIONS
        self.readings += 1
        if self.silent:
            raise Unavailable("ZooKeeper did not answer in time.")
        seen = self.changes
        if seen is not None:
            self.watches = [watch]
        self.after_reading()
        return seen

    def change(self, times: int = 1) -> None:
        """Children come and go; the watch fires once for however many."""
        assert self.changes is not None
        self.changes += times
        self.fire()

    def fire(self) -> None:
        """Every watch, once, as kazoo does also when the session is interrupted."""
        watches, self.watches = self.watches, []
        for watch in watches:
            watch("an event")


class HurriedClock(SystemClock):
    """Notes what it was asked to sleep, and does not."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        """Note it."""
        self.slept.append(seconds)


def watch_of(zookeeper: Scripted) -> IsrWatch:
    """The watch under test."""
    return IsrWatch(cast("ZooKeeper", zookeeper))


def learned(zookeeper: Scripted) -> IsrWatch:
    """A watch that has waited once in vain and knows where the counting begins."""
    watch = watch_of(zookeeper)
    assert not watch.wait(SystemClock(), 0.0)
    return watch


def test_a_wait_in_which_nothing_happens_ends_with_its_time_and_reads_no_more() -> None:
    """The first wait reads and watches; as long as the watch stands nothing is asked again."""
    zookeeper = Scripted(7)
    watch = learned(zookeeper)
    assert not watch.wait(SystemClock(), 0.01)
    assert not watch.wait(SystemClock(), 0.01)
    assert zookeeper.readings == 1


def test_a_notification_ends_the_wait_also_when_it_is_gone_again() -> None:
    """The controller takes notifications away at once: what counts is that children came and went."""
    zookeeper = Scripted()
    watch = learned(zookeeper)
    telling = threading.Timer(0.05, lambda: zookeeper.change(times=2))
    telling.start()
    assert watch.wait(SystemClock(), LONG_S)
    telling.join()


def test_what_happened_between_two_waits_is_found_by_the_next() -> None:
    """No thread was waiting when the watch fired."""
    zookeeper = Scripted()
    watch = learned(zookeeper)
    zookeeper.change()
    assert watch.wait(SystemClock(), LONG_S)
    assert not watch.wait(SystemClock(), 0.01)


def test_a_watch_that_fires_while_it_is_read_is_not_lost() -> None:
    """Between the reading and the wait: it is read once more."""
    zookeeper = Scripted()
    watch = watch_of(zookeeper)

    def meanwhile() -> None:
        zookeeper.after_reading = lambda: None
        zookeeper.change()

    zookeeper.after_reading = meanwhile
    assert watch.wait(SystemClock(), LONG_S)


def test_the_end_of_a_session_sets_the_watch_anew_and_is_no_news_by_itself() -> None:
    """The watch died with the session; without a change the wait goes on, and the next change is heard."""
    zookeeper = Scripted(3)
    watch = learned(zookeeper)
    zookeeper.fire()
    assert not watch.wait(SystemClock(), 0.05)
    assert zookeeper.readings == 2
    assert zookeeper.watches, "a new watch stands"
    zookeeper.change()
    assert watch.wait(SystemClock(), LONG_S)


def test_a_silent_zookeeper_costs_the_time_and_no_more() -> None:
    """The wait is waited out; when ZooKeeper answers again, what was missed is found."""
    zookeeper = Scripted(3)
    watch = learned(zookeeper)
    zookeeper.silent = True
    zookeeper.change()
    clock = HurriedClock()
    assert not watch.wait(clock, 20.0)
    assert 0.0 < clock.slept[0] <= 20.0
    zookeeper.silent = False
    assert watch.wait(SystemClock(), LONG_S)


def test_without_the_znode_time_alone_ends_the_wait() -> None:
    """A cluster whose first controller has yet to make it: it is looked for again with the next wait."""
    zookeeper = Scripted(None)
    watch = learned(zookeeper)
    assert not watch.wait(SystemClock(), 0.01)
    zookeeper.changes = 0
    assert not watch.wait(SystemClock(), 0.01)
    zookeeper.change()
    assert watch.wait(SystemClock(), LONG_S)

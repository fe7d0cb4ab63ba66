"""Maintenance windows: is one open now, and when does the next one open?"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from ballast.daemon.policy import Window


def closes_at(window: Window, now: datetime) -> datetime | None:
    """When the window that is open now closes; None when it is closed.

    The opening minute belongs to the window and the closing minute does not.  Length is real time: a window of 60 minutes
    stays open for 60 minutes on the night when the clocks change, too.
    """
    minute = now.astimezone(ZoneInfo(window.timezone)).replace(second=0, microsecond=0)
    # The iterator excludes its own starting minute, so it starts at the next one.
    latest = next(CronSim(window.opens, minute + timedelta(minutes=1), reverse=True), None)
    if latest is None:
        return None
    closes = latest.astimezone(UTC) + timedelta(minutes=window.lasts_minutes)
    return closes if latest.astimezone(UTC) <= now < closes else None


def opens_at(window: Window, now: datetime) -> datetime | None:
    """When the window opens next."""
    upcoming = next(CronSim(window.opens, now.astimezone(ZoneInfo(window.timezone))), None)
    return None if upcoming is None else upcoming.astimezone(UTC)


def is_open(windows: Iterable[Window], now: datetime) -> bool:
    """Is any open?  No windows at all means always."""
    windows = tuple(windows)
    return not windows or any(closes_at(w, now) is not None for w in windows)


def next_opening(windows: Iterable[Window], now: datetime) -> datetime | None:
    """The nearest opening of any of them."""
    return min((at for w in windows if (at := opens_at(w, now)) is not None), default=None)

"""Windows in time, across midnight and across the nights when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.daemon.acting.permission import closes_at, is_open, next_opening, opens_at
from ballast.daemon.policy import Window

NIGHT = Window(opens="0 23 * * 1-5", lasts_minutes=240, timezone="Europe/Berlin")


def at(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "is_it"),
    [
        ("2026-11-20T21:59:59", False),  # Friday, 22:59:59 in Berlin
        ("2026-11-20T22:00:00", True),
        ("2026-11-20T22:00:59", True),
        ("2026-11-21T01:59:59", True),  # Saturday morning still belongs to Friday's window
        ("2026-11-21T02:00:00", False),
        ("2026-11-21T22:30:00", False),  # Saturday night has none
    ],
)
def test_a_window_opens_on_its_minute_and_closes_after_its_length(moment: str, *, is_it: bool) -> None:
    """The opening minute is inside, the closing one is not, and midnight does not matter."""
    assert is_open([NIGHT], at(moment)) is is_it


def test_no_window_at_all_means_always() -> None:
    """An empty list bounds nothing."""
    assert is_open([], at("2026-01-01T00:00:00"))


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_length_is_real_time_when_clocks_change(day: str) -> None:
    """On the night that has an hour more or less, a window of two hours lasts two hours."""
    window = Window(opens="30 0 * * *", lasts_minutes=120, timezone="Europe/Berlin")
    start = at(f"{day}T00:00:00") - timedelta(hours=3)
    minutes = [start + timedelta(minutes=m) for m in range(6 * 60)]
    assert sum(is_open([window], m) for m in minutes) == 120


@given(
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    length=st.integers(1, 1439),
    moment=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)),  # noqa: DTZ001 — made aware below
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata"]),
)
def test_open_and_next_opening_agree(minute: int, hour: int, length: int, moment: datetime, zone: str) -> None:
    """A daily window is open at its next opening; what is open closes within its length."""
    window = Window(opens=f"{minute} {hour} * * *", lasts_minutes=length, timezone=zone)
    now = moment.replace(tzinfo=UTC)
    opening = opens_at(window, now)
    assert opening is not None
    assert opening > now
    assert is_open([window], opening)
    assert next_opening([window, window], now) == opening
    closing = closes_at(window, now)
    assert (closing is not None) == is_open([window], now)
    if closing is not None:
        assert now < closing <= now + timedelta(minutes=length)

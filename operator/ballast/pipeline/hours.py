"""The names of hours and days, by which tables are cut into parts: ``2026-11-21T14`` and ``2026-11-21``, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

HOUR_FORMAT: Final = "%Y-%m-%dT%H"


def start_of(name: str) -> datetime:
    """When the hour or day of this name begins."""
    return datetime.strptime(name, HOUR_FORMAT if "T" in name else "%Y-%m-%d").replace(tzinfo=UTC)


def shifted(hour: str, hours: int) -> str:
    """The name of the hour so many hours later."""
    return (start_of(hour) + timedelta(hours=hours)).strftime(HOUR_FORMAT)

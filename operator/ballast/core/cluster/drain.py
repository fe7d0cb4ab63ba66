"""A broker that a person drained through the daemon; those of ``level.draining`` are the settings' own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """It is emptied and takes no replica until the drain is ended."""

    broker: int
    by: str
    since_ms: int

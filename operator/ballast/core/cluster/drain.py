"""A broker that a person drained through the daemon; those of ``balance.draining`` are the settings' own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ballast.core.field_types import Moment
from ballast.errors import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A broker that a person drained: it takes no replica until the drain is ended."""

    broker: int
    by: str
    since_ms: Moment


def hint_to_end(broker: int, otherwise: str) -> str:
    """What to do where the drain of a broker is in the way: ``otherwise``, or end it."""
    return f"{otherwise}, or end the drain first: ballast drains end {broker} (or balance.draining of the settings)."


def refuse_drained(brokers: Iterable[int], drained: Iterable[int], what: str, otherwise: str) -> None:
    """Refuse to put a replica on a drained broker; ``what`` would, and ``otherwise`` says what to do instead."""
    filled = frozenset(brokers) & frozenset(drained)
    if filled:
        first = min(filled)
        raise Refused(f"{what} broker {first}, which is draining.", hint=hint_to_end(first, otherwise))

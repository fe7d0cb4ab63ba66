"""Where the throttle of a run starts when no rate is given: from what is known of each broker.  Pure.

Four facts may be known, and the start is the largest that they allow, within the two bounds of ``auto``:

- a stated network: half of what all other traffic leaves of it, which is also the most that a broker is given;
- traffic: half of what the broker carries already in its busier direction, since it is seen to carry that;
- a small part of the run: a broker that is done within seconds at a moderate rate starts at that rate;
- nothing: a cautious rate.

What producers write to a moving partition is the least that any of them may be: a copy below it never ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ballast.core.plan import Move
from ballast.core.throttles.settings import SAFE_SHARE


class Basis(StrEnum):
    """What a broker's rate was chosen by."""

    STATED = "stated"
    """A person or the settings state it."""
    NETWORK = "network"
    TRAFFIC = "traffic"
    SMALL = "small"
    CAUTIOUS = "cautious"
    PRODUCERS = "producers"
    """Raised to what producers write to the partitions that it copies."""
    MAXIMUM = "maximum"
    """Lowered to the most that ``auto`` gives it."""


@dataclass(frozen=True, slots=True)
class Start:
    """A rate, and what it was chosen by."""

    bytes_per_s: int
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of one broker before its first copy."""

    headroom: int | None = None
    """Bytes/s that moves may use of its network; None where no network is stated."""
    traffic: float | None = None
    """Bytes/s through its busier direction; None where it was not measured."""
    copies: int | None = None
    """Bytes that it receives, or may have to send; None where a size is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The figures that ``auto`` goes by, in bytes/s and bytes."""

    minimum: int
    maximum: int
    cautious: int
    small_rate: int
    small_bytes: int


def start(known: Known, bounds: Bounds) -> Start:
    """The rate that a broker starts at."""
    choices = []
    if known.headroom is not None:
        choices.append(Start(known.headroom // 2, Basis.NETWORK))
    else:
        choices.append(Start(bounds.cautious, Basis.CAUTIOUS))
        choices.append(Start(int((known.traffic or 0.0) / 2), Basis.TRAFFIC))
    if known.copies is not None and known.copies <= bounds.small_bytes:
        choices.append(Start(bounds.small_rate, Basis.SMALL))
    best = max(choices, key=lambda s: s.bytes_per_s)
    if best.bytes_per_s < bounds.minimum:
        return Start(bounds.minimum, Basis.CAUTIOUS)
    return best if best.bytes_per_s <= bounds.maximum else Start(bounds.maximum, Basis.MAXIMUM)


def least(inbound_bytes_per_s: float) -> int:
    """The least rate at which a broker that must copy so much each second also catches up."""
    return int(inbound_bytes_per_s / SAFE_SHARE) + 1 if inbound_bytes_per_s > 0 else 0


def bytes_by_broker(moves: Iterable[Move]) -> dict[int, int]:
    """Bytes that each broker receives, or may have to send as any replica may come to lead, whichever is more.

    A broker one of whose moves has an unknown size is left out.
    """
    coming: defaultdict[int, int] = defaultdict(int)
    going: defaultdict[int, int] = defaultdict(int)
    unknown: set[int] = set()
    for m in moves:
        if not m.adding:
            continue
        if m.size_bytes < 0:
            unknown.update(m.adding, m.old)
            continue
        for b in m.adding:
            coming[b] += m.size_bytes
        for b in m.old:
            going[b] += m.bytes_moved
    return {b: max(coming[b], going[b]) for b in coming.keys() | going.keys() if b not in unknown}

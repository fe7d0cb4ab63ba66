"""What was written, acknowledged and read back, and the judgement on it; no client, no clock, no thread."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Final

SHOWN: Final = 5


@dataclass(slots=True)
class Ledger:
    """The records of one partition, each with the number it was given, counted up from 0."""

    first: int = 0
    """The offset at which this traffic begins; what was there before is not looked at."""
    acked: dict[int, int] = field(default_factory=dict)
    """Number to the offset that the cluster acknowledged."""
    acked_somewhere: set[int] = field(default_factory=set)
    """Numbers acknowledged without a place: a repeated send that the leader had already, as idempotent producers are told."""
    open: set[int] = field(default_factory=set)
    """Numbers that were sent and never acknowledged: each may be there once or not at all."""
    read: dict[int, int] = field(default_factory=dict)
    """Offset to the number that was read there."""
    wrong: list[str] = field(default_factory=list)
    """What was already wrong while it was read."""

    @property
    def next_offset(self) -> int:
        """Where reading goes on."""
        return self.first + len(self.read)

    @property
    def is_read(self) -> bool:
        """Whether every acknowledged record has been read, or read over."""
        placed = not self.acked or max(self.acked.values()) < self.next_offset
        return placed and (not self.acked_somewhere or self.acked_somewhere <= set(self.read.values()))

    def acknowledge(self, number: int, offset: int | None) -> None:
        """Note that the cluster has taken a record, and where if it says so."""
        self.open.discard(number)
        if offset is None or offset < 0:
            self.acked_somewhere.add(number)
        else:
            self.acked[number] = offset

    def see(self, offset: int, number: int) -> None:
        """Note a record that was read; a log without compaction has no gaps, and says the same when it is read anew."""
        if offset in self.read:
            if self.read[offset] != number:
                self.wrong.append(f"offset {offset} held {self.read[offset]} and now holds {number}")
        elif offset != self.next_offset:
            self.wrong.append(f"offset {self.next_offset} is followed by {offset}")
        else:
            self.read[offset] = number

    def faults(self) -> list[str]:
        """Everything that breaks the promise: acknowledged records are there, once, where it was said, in order."""
        out = list(self.wrong)
        places: dict[int, int] = {}
        for offset, number in self.read.items():
            if number in places:
                out.append(f"{number} is at offsets {places[number]} and {offset}")
            places[number] = offset
            if number not in self.acked and number not in self.acked_somewhere | self.open:
                out.append(f"{number} at offset {offset} was never written")
        for number, offset in self.acked.items():
            found = self.read.get(offset)
            if found != number:
                where = "is nowhere" if number not in places else f"is at {places[number]}"
                out.append(f"{number} was acknowledged at offset {offset}, which holds {found}; it {where}")
        out += [f"{n} was acknowledged and is nowhere" for n in sorted(self.acked_somewhere - set(places))]
        in_order = [self.acked[n] for n in sorted(self.acked)]
        out += [f"offset {b} was acknowledged after {a}" for a, b in itertools.pairwise(in_order) if b <= a]
        return out


def judge(ledgers: dict[int, Ledger]) -> None:
    """Fail with the first faults of each partition."""
    found = {p: ledger.faults() for p, ledger in ledgers.items()}
    told = [f"partition {p}: {f}" for p, faults in found.items() for f in faults[:SHOWN]]
    assert not told, f"{sum(map(len, found.values()))} faults: " + "; ".join(told)
